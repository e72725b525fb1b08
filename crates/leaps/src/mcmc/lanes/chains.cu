// Chains at one temperature (lanes.cu has what they are made of): all make `updates` updates, `from` having been made before.
extern "C" __global__ void __launch_bounds__(THREADS) walk(
    Lanes p, u8* states, const u32* table, u64 seed, u64 from, u64 updates, u32 chains) {
    extern __shared__ u32 space[];
    u32 start = blockIdx.x * THREADS, chain = start + threadIdx.x;
#if STAGED
    auto row = [&](u32 thread) { return states + (size_t)(start + thread) * SITES; };
    State<PITCH> x = stage((u8*)space, held_from(start, chains), row);
#else
    State<1> x{states + (size_t)chain * SITES};
#endif
    double none[TERMS];
    if (chain < chains) advance(p, table, x, seed, chain, from, updates, false, none);
#if STAGED
    give_back((u8*)space, held_from(start, chains), row);
#endif
}

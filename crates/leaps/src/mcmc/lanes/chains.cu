// Chains at one temperature (lanes.cu has what they are made of): all make `updates` updates, `from` having been made before.
// The structure Walk is declared by cuda.rs.
extern "C" __global__ void __launch_bounds__(THREADS) walk(Lanes p, Walk w) {
    extern __shared__ u32 space[];
    u32 start = blockIdx.x * THREADS, chain = start + threadIdx.x;
#if STAGED
    auto row = [&](u32 thread) { return w.states + (size_t)(start + thread) * SITES; };
    State<PITCH> x = stage((u8*)space, held_from(start, w.chains), row);
#else
    State<1> x{w.states + (size_t)chain * SITES};
#endif
    double none[TERMS];
    if (chain < w.chains) advance(p, w.table, x, w.seed, chain, w.from, w.updates, false, none);
#if STAGED
    give_back((u8*)space, held_from(start, w.chains), row);
#endif
}

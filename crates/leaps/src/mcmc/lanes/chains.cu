// Chains at one temperature (lanes.cu has what they are made of): all make `updates` updates, `from` having been made before.
extern "C" __global__ void __launch_bounds__(THREADS) walk(
    Lanes p, u8* states, const u32* table, u64 seed, u64 from, u64 updates, u32 chains) {
    extern __shared__ u32 space[];
    u32 start = blockIdx.x * THREADS, chain = start + threadIdx.x;
#if STAGED
    u32 held = chains - start < THREADS ? chains - start : THREADS;
    u8* staged = (u8*)space;
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (u32 w = warp; w < held; w += THREADS / 32) {
        const u8* row = states + (size_t)(start + w) * SITES;
        for (u32 site = lane; site < SITES; site += 32) staged[site * PITCH + w] = row[site];
    }
    __syncthreads();
    State<PITCH> x{staged + threadIdx.x};
#else
    State<1> x{states + (size_t)chain * SITES};
#endif
    double none[TERMS];
    if (chain < chains) advance(p, table, x, seed, chain, from, updates, false, none);
#if STAGED
    __syncthreads();
    for (u32 w = warp; w < held; w += THREADS / 32) {
        u8* row = states + (size_t)(start + w) * SITES;
        for (u32 site = lane; site < SITES; site += 32) row[site] = staged[site * PITCH + w];
    }
#endif
}

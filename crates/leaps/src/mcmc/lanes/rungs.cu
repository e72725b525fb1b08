// Rungs of ladders (lanes.cu has what they are made of), TILE ladders to a tile: tiles of `period` rungs follow each other, of which the `width` rungs
// from rung `first` on are swept, each by the thresholds of its own. Random numbers belong to the walker, `rows` says where its state lies.
// The structure Rungs is declared by cuda.rs.

// The walker that thread `number` of all moves.
__device__ __forceinline__ u32 walker_of(const Rungs& r, u32 number) {
    u32 swept = r.width * TILE, group = number / swept;
    return (group * r.period + r.first) * TILE + number % swept;
}

// Make `updates` updates, `from` having been made before; then write the energies if `measured`, and how many sites have the values 1, 2, ...
// if `counted`.
extern "C" __global__ void __launch_bounds__(THREADS) sweep_rungs(Lanes p, Rungs r) {
    extern __shared__ u32 space[];
    u32 start = blockIdx.x * THREADS, number = start + threadIdx.x;
    auto row = [&](u32 thread) { return r.states + (size_t)r.rows[walker_of(r, start + thread)] * SITES; };
    bool mine = number < r.count;
#if STAGED
    State<PITCH> x = stage((u8*)space, held_from(start, r.count), row);
#else
    State<1> x{mine ? row(threadIdx.x) : r.states};
#endif
    if (mine) {
        u32 walker = walker_of(r, number);
        const u32* table = r.tables + (size_t)(number / TILE % r.width) * THRESHOLDS;
        double energies[TERMS];
        advance(p, table, x, r.seed, walker, r.from, r.updates, false, energies);
        size_t at = r.rows[walker];
        if (r.measured) {
            measure(p, x, energies);
#pragma unroll
            for (u32 term = 0; term < TERMS; term++) r.energies[at * TERMS + term] = energies[term];
        }
        if (r.counted)
            for (u32 value = 1; value < Q; value++) {
                u32 found = 0;
                for (u32 site = 0; site < SITES; site++) found += x.get(site) == value;
                r.counts[at * (Q - 1) + value - 1] = found;
            }
    }
#if STAGED
    give_back((u8*)space, held_from(start, r.count), row);
#endif
}

// Ladders of `rungs` rungs, whose states are exchanged as tempering.rs does; `tile` ladders at a time lie rung by rung in `period` rungs, of which
// those behind the ladder exchange nothing. `rows` says which state is at which place. With SITES sites, Q values and TERMS energy terms.
// The structures Ladders and Tabulation are declared by ladders.rs. FIRST and LAST: the end of the ladder at which a state last was.

__device__ __forceinline__ size_t place_of(const Ladders& l, u32 ladder, u32 rung) {
    return (size_t)(ladder / l.tile * l.period + rung) * l.tile + ladder % l.tile;
}

// Exchange states between neighbouring rungs of every ladder; a thread for each. `energies` are those of the rows.
extern "C" __global__ void exchange(Ladders l, const double* energies, u64 seed, u64 step, u32 counted) {
    u32 ladder = blockIdx.x * blockDim.x + threadIdx.x;
    if (ladder >= l.ladders) return;
    u64* swaps = l.swaps + (size_t)ladder * l.rungs;
    Numbers n = numbers(seed, EXCHANGE, ladder, step);
    for (u32 rung = (u32)(step % 2); rung + 1 < l.rungs; rung += 2) {
        const double* here = l.lambda + (size_t)rung * TERMS;
        u32* row = l.rows + place_of(l, ladder, rung);
        u32* next = l.rows + place_of(l, ladder, rung + 1);
        const double* mine = energies + (size_t)*row * TERMS;
        const double* other = energies + (size_t)*next * TERMS;
        double log_ratio = 0.0;
        for (u32 term = 0; term < TERMS; term++) {
            double weight = __dadd_rn(here[term], -here[TERMS + term]);
            log_ratio = plus_product(log_ratio, weight, __dadd_rn(mine[term], -other[term]));
        }
        if (log_ratio >= 0.0 || chance_bits(n, threshold(exp(log_ratio)))) {
            u32 moved = *row;
            *row = *next;
            *next = moved;
            swaps[rung] += counted;
        }
    }
    u8* first = l.came_from + l.rows[place_of(l, ladder, 0)];
    if (counted && *first == LAST) l.round_trips[ladder]++;
    *first = FIRST;
    u32 coldest = l.rows[place_of(l, ladder, l.rungs - 1)];
    l.coldest[ladder] = coldest;
    u8* last = l.came_from + coldest;
    if (l.rungs > 1 && *last == FIRST) *last = LAST;
}

// What the table of a ladder takes in of all its places, in their order: the energy, and how many sites have the values 1, 2, ... A thread for each
// ladder, which also keeps the state of the lowest energy so far.
extern "C" __global__ void tabulate(Ladders l, Tabulation t, double* out) {
    u32 ladder = blockIdx.x * blockDim.x + threadIdx.x;
    if (ladder >= l.ladders) return;
    double lowest = t.lowest[ladder];
    const u8* found = 0;
    out += (size_t)ladder * l.period * Q;
    for (u32 rung = 0; rung < l.period; rung++) {
        size_t row = l.rows[place_of(l, ladder, rung)];
        double energy = 0.0;
        for (u32 term = 0; term < TERMS; term++) energy = __dadd_rn(energy, t.energies[row * TERMS + term]);
        *out++ = energy;
        for (u32 value = 1; value < Q; value++) *out++ = (double)t.counts[row * (Q - 1) + value - 1];
        if (energy < lowest) {
            lowest = energy;
            found = t.states + row * SITES;
        }
    }
    if (!found) return;
    t.lowest[ladder] = lowest;
    u8* kept = t.found + (size_t)ladder * SITES;
    for (u32 site = 0; site < SITES; site++) kept[site] = found[site];
}

// Places of chains or of rungs (pairwise.cu has the sweeps): `rows` says which state is at which place. Random numbers belong to the place.
extern "C" __global__ void __launch_bounds__(THREADS) heat_bath_places(
    Pairs p, Places a, u8* states, u64 seed, u64 step, u32 sweeps) {
    sweep_rows<false, true, false>(p, states, a.rows, a.lambda, a.stride, seed, MOVE, step, sweeps, a.count, 0);
}

extern "C" __global__ void __launch_bounds__(THREADS) metropolis_places(
    Pairs p, Places a, u8* states, u64 seed, u64 step, u32 sweeps) {
    sweep_rows<true, true, false>(p, states, a.rows, a.lambda, a.stride, seed, MOVE, step, sweeps, a.count, 0);
}

// The same, and add the mean acceptance of every sweep.
extern "C" __global__ void __launch_bounds__(THREADS) metropolis_counted(
    Pairs p, Places a, u8* states, u64 seed, u64 step, u32 sweeps) {
    sweep_rows<true, true, true>(
        p, states, a.rows, a.lambda, a.stride, seed, MOVE, step, sweeps, a.count, a.acceptance);
}

// Where a state last was: at neither end of the ladder, at its first rung, at its last one.
#define NEITHER 0
#define FIRST 1
#define LAST 2

// Exchange states between neighbouring rungs of every ladder, as tempering.rs does; a thread for each. `energies` are those of the rows.
extern "C" __global__ void exchange(
    Places a, Ladders l, const double* energies, u64 seed, u64 step, u32 counted) {
    u32 ladder = blockIdx.x * blockDim.x + threadIdx.x;
    if (ladder >= l.ladders) return;
    u32* rows = l.rows + (size_t)ladder * l.rungs;
    u64* swaps = l.swaps + (size_t)ladder * l.rungs;
    Numbers n = numbers(seed, EXCHANGE, ladder, step);
    for (u32 rung = (u32)(step % 2); rung + 1 < l.rungs; rung += 2) {
        // The weights of all ladders are the same.
        const double* here = a.lambda + (size_t)rung * TERMS;
        const double* mine = energies + (size_t)rows[rung] * TERMS;
        const double* other = energies + (size_t)rows[rung + 1] * TERMS;
        double log_ratio = 0.0;
        for (u32 term = 0; term < TERMS; term++) {
            double weight = __dadd_rn(here[term], -here[TERMS + term]);
            log_ratio = plus_product(log_ratio, weight, __dadd_rn(mine[term], -other[term]));
        }
        if (log_ratio >= 0.0 || chance_bits(n, threshold(exp(log_ratio)))) {
            u32 row = rows[rung];
            rows[rung] = rows[rung + 1];
            rows[rung + 1] = row;
            swaps[rung] += counted;
        }
    }
    u8* first = l.came_from + rows[0];
    if (counted && *first == LAST) l.round_trips[ladder]++;
    *first = FIRST;
    u8* last = l.came_from + rows[l.rungs - 1];
    if (l.rungs > 1 && *last == FIRST) *last = LAST;
}

// The energies of the rows, by place.
extern "C" __global__ void by_place(Places a, const double* energies, double* out) {
    u32 place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= a.count) return;
    for (u32 term = 0; term < TERMS; term++)
        out[(size_t)place * TERMS + term] = energies[(size_t)a.rows[place] * TERMS + term];
}

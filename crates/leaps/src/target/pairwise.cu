// A pairwise target (pairwise.rs: Ising, Potts, spin glasses, any graph) with SITES sites, Q values and TERMS energy terms.
// The energy change of a site is energy_change_to (one new value) or energy_changes_at (all of them); sweeps by tables have theirs in
// mcmc/lanes/lanes.cu.
//
// CLASSES > 0: two values, and sites fall into so many classes with the same couplings and fields; the change of a flip then depends on class, value
// and the numbers of equal neighbours alone, and is looked up. Neighbours are counted by coupling, of which a site has at most GROUPS; a neighbour of
// group g adds (degree in group 0 + 1) ... (degree in group g - 1 + 1) to the index of the surroundings, which is below SURROUNDINGS.
// DEGREE is the largest degree, and REGULAR says that it is that of every site.
// Sweeps: one thread per walker, THREADS in a block. STAGED keeps states in shared memory, [site * PITCH + thread].
// The structure Pairs is declared by target/cuda.rs.
//
// INSTANCES: rows of states belong to instances of a disorder, p.rows of them to each, in order. Instances share the graph and the fields;
// couplings and constants are one set after the other. Otherwise all rows are of the one target.
#ifndef INSTANCES
#define INSTANCES 0
#endif

#if INSTANCES
// The target of a row of states.
__device__ __forceinline__ Pairs pairs_of(const Pairs& p, u32 row) {
    Pairs own = p;
    size_t instance = row / (u32)p.rows;
    own.couplings += instance * TERMS * p.bonds;
    own.constants += instance * TERMS;
    return own;
}
#else
__device__ __forceinline__ const Pairs& pairs_of(const Pairs& p, u32) {
    return p;
}
#endif

__device__ __forceinline__ u32 bonds_from(const Pairs& p, u32 site) {
    return REGULAR ? site * DEGREE : __ldg(p.starts + site);
}

__device__ __forceinline__ u32 bonds_to(const Pairs& p, u32 site) {
    return REGULAR ? (site + 1) * DEGREE : __ldg(p.starts + site + 1);
}

// ---- Energies.

// A state whose values lie STRIDE bytes apart.
template <u32 STRIDE>
struct State {
    u8* x;
    __device__ __forceinline__ u32 get(u32 site) const { return x[(size_t)site * STRIDE]; }
    __device__ __forceinline__ void set(u32 site, u32 value) const { x[(size_t)site * STRIDE] = (u8)value; }
};

// The change of the potential when `site` turns from `old` to `value`.
template <typename S>
__device__ __forceinline__ double energy_change_to(const Pairs& p, const double* lambda, S x, u32 site, u32 old, u32 value) {
    double change = 0.0;
    u32 from = bonds_from(p, site), to = bonds_to(p, site);
#pragma unroll
    for (u32 term = 0; term < TERMS; term++) {
        const double* f = p.fields + ((size_t)term * SITES + site) * Q;
        change = plus_product(change, lambda[term], __dadd_rn(__ldg(f + value), -__ldg(f + old)));
        const double* couplings = p.couplings + term * p.bonds;
        for (u32 bond = from; bond < to; bond++) {
            u32 neighbour = x.get(__ldg(p.ends + bond));
            double lost = (double)((int)(neighbour == old) - (int)(neighbour == value));
            change += __dmul_rn(lambda[term], __ldg(couplings + bond)) * lost;
        }
    }
    return change;
}

// The changes for all values, 0 for the one in place.
template <typename S>
__device__ __forceinline__ void energy_changes_at(const Pairs& p, const double* lambda, S x, u32 site, double* h) {
    u32 from = bonds_from(p, site), to = bonds_to(p, site);
#pragma unroll
    for (u32 value = 0; value < Q; value++) h[value] = 0.0;
#pragma unroll
    for (u32 term = 0; term < TERMS; term++) {
        const double* f = p.fields + ((size_t)term * SITES + site) * Q;
#pragma unroll
        for (u32 value = 0; value < Q; value++) h[value] = plus_product(h[value], lambda[term], __ldg(f + value));
        const double* couplings = p.couplings + term * p.bonds;
        for (u32 bond = from; bond < to; bond++) {
            u32 neighbour = x.get(__ldg(p.ends + bond));
            double weight = __dmul_rn(lambda[term], __ldg(couplings + bond));
#if Q <= 8
#pragma unroll
            for (u32 value = 0; value < Q; value++) h[value] -= neighbour == value ? weight : 0.0;
#else
            h[neighbour] -= weight;
#endif
        }
    }
    u32 own = x.get(site);
    double base = 0.0;
#pragma unroll
    for (u32 value = 0; value < Q; value++) base = value == own ? h[value] : base;
#pragma unroll
    for (u32 value = 0; value < Q; value++) h[value] -= base;
}

// What sites first, first + step, ... add to the fields' energy of a term, and to twice the bonds'.
template <typename S>
__device__ __forceinline__ void add_energy(
    const Pairs& p, u32 term, S x, u32 first, u32 step, double& field, double& twice) {
    const double* couplings = p.couplings + term * p.bonds;
    for (u32 site = first; site < SITES; site += step) {
        u32 value = x.get(site);
        field += __ldg(p.fields + ((size_t)term * SITES + site) * Q + value);
        u32 to = bonds_to(p, site);
        for (u32 bond = bonds_from(p, site); bond < to; bond++)
            twice += x.get(__ldg(p.ends + bond)) == value ? __ldg(couplings + bond) : 0.0;
    }
}

// All energy terms of all walkers: one warp each.
extern "C" __global__ void energies(Pairs p, u8* states, double* out, u32 walkers) {
    u32 walker = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5), lane = threadIdx.x & 31;
    if (walker >= walkers) return;
    State<1> x{states + (size_t)walker * SITES};
    const Pairs& own = pairs_of(p, walker);
    for (u32 term = 0; term < TERMS; term++) {
        double field = 0.0, twice = 0.0;
        add_energy(own, term, x, lane, 32, field, twice);
        field = warp_sum(field);
        twice = warp_sum(twice);
        if (lane == 0) out[(size_t)walker * TERMS + term] = (own.constants[term] + field) - 0.5 * twice;
    }
}

// Uniformly random states, as target::initial_state gives them; Purpose::Initial is 1.
extern "C" __global__ void initial(u8* states, u64 seed, u32 walkers) {
    u32 walker = blockIdx.x * blockDim.x + threadIdx.x;
    if (walker >= walkers) return;
    Numbers n = numbers(seed, 1, walker, 0);
    for (u32 site = 0; site < SITES; site++) states[(size_t)walker * SITES + site] = (u8)below(n, Q);
}

// Weigh all walkers for the interval between two times, whose weights follow each other in `lambda`.
extern "C" __global__ void weigh_walkers(double* log_weights, const double* energies, const double* lambda, u32 walkers) {
    u32 walker = blockIdx.x * blockDim.x + threadIdx.x;
    if (walker >= walkers) return;
    log_weights[walker] = plus_energy_drop<TERMS>(
        log_weights[walker], lambda, lambda + TERMS, energies + (size_t)walker * TERMS);
}

// Row `i` becomes a copy of row `from[i]`; `row` bytes each.
extern "C" __global__ void gather(const u8* old, u8* out, const u32* from, u32 row, u32 rows) {
    u32 i = blockIdx.x;
    if (i >= rows) return;
    const u8* source = old + (size_t)from[i] * row;
    for (u32 byte = threadIdx.x; byte < row; byte += blockDim.x) out[(size_t)i * row + byte] = source[byte];
}

// ---- Sweeps in fixed order.
#define ENTRIES (CLASSES * 2 * SURROUNDINGS)

// The change of a flip at a site of a class, with such surroundings.
__device__ double class_change(const Pairs& p, const double* lambda, u32 class_, u32 old, u32 surroundings) {
    u32 site = p.members[class_];
    double change = 0.0;
    for (u32 term = 0; term < TERMS; term++) {
        const double* f = p.fields + ((size_t)term * SITES + site) * Q;
        change = plus_product(change, lambda[term], __dadd_rn(f[1 - old], -f[old]));
        u32 rest = surroundings;
        for (u32 group = 0; group < GROUPS; group++) {
            const u32* bond = p.groups + 2 * (class_ * GROUPS + group);
            int degree = (int)bond[1], equal = (int)(rest % (bond[1] + 1));
            rest /= bond[1] + 1;
            if (degree > 0)
                change = plus_product(
                    change, __dmul_rn(lambda[term], p.couplings[term * p.bonds + bond[0]]), (double)(2 * equal - degree));
        }
    }
    return change;
}

template <bool METROPOLIS>
__device__ __forceinline__ u64 flip_threshold(double change) {
    return threshold(METROPOLIS ? exp(-change) : 1.0 / (1.0 + exp(change)));
}

// Draw an index in proportion to exp(-energies); the energies are overwritten.
__device__ __forceinline__ u32 pick_energy(Numbers& n, double* energies) {
    double lowest = energies[0];
#pragma unroll
    for (u32 i = 1; i < Q; i++) lowest = fmin(lowest, energies[i]);
    double total = 0.0;
#pragma unroll
    for (u32 i = 0; i < Q; i++) {
        energies[i] = exp(lowest - energies[i]);
        total += energies[i];
    }
    u32 high = next_word(n), low = next_word(n);
    double left = __dmul_rn(uniform(high, low), total);
    u32 last = 0;
    bool open = true;
#pragma unroll
    for (u32 i = 0; i < Q; i++) {
        if (open && energies[i] > 0.0) {
            last = i;
            if (left < energies[i]) open = false;
            left -= energies[i];
        }
    }
    return last;
}

// The probability with which a change of the potential is accepted.
__device__ __forceinline__ double acceptance_of(double change) {
    return -change >= 0.0 ? 1.0 : exp(-change);
}

// Entries of the table whose bit is in `sure` are accepted without a draw; those in `close` are so close to that that the change is
// summed bond by bond, as on the CPU, to tell. COUNT: add the probabilities with which proposals are accepted to `accepted`.
template <bool METROPOLIS, bool COUNT, typename S>
__device__ __forceinline__ void sweep_once(
    const Pairs& p, const double* lambda, S x, const u32* table, u64 sure, u64 close, Numbers& n,
    double& accepted) {
    for (u32 site = 0; site < SITES; site++) {
        u32 old = x.get(site);
#if CLASSES > 0
        u32 equal = 0, to = bonds_to(p, site);
#pragma unroll
        for (u32 bond = bonds_from(p, site); bond < to; bond++) {
            u32 adds = GROUPS > 1 ? __ldg(p.adds + bond) : 1;
            equal += x.get(__ldg(p.ends + bond)) == old ? adds : 0;
        }
        u32 kind = CLASSES > 1 ? __ldg(p.classes + site) : 0;
        u32 entry = (kind * 2 + old) * SURROUNDINGS + equal;
        bool flips = true;
        if (METROPOLIS && ((close >> entry) & 1)) {
            double change = energy_change_to(p, lambda, x, site, old, 1 - old);
            if (COUNT) accepted += acceptance_of(change);
            if (!(-change >= 0.0)) flips = chance_bits(n, flip_threshold<true>(change));
            if (flips) x.set(site, 1 - old);
            continue;
        }
        if (COUNT) accepted += acceptance_of(class_change(p, lambda, kind, old, equal));
        if (!METROPOLIS || !((sure >> entry) & 1)) {
            u32 high = table[entry * THREADS], word = next_word(n);
            flips = word < high;
            // Once in 2^32 times the first word leaves it open.
            if (word == high)
                flips = next_word(n) < (u32)flip_threshold<METROPOLIS>(class_change(p, lambda, kind, old, equal));
        }
        if (flips) x.set(site, 1 - old);
#else
        if (METROPOLIS) {
            u32 value = 1 - old;
            if (Q > 2) {
                value = below(n, Q - 1);
                value += value >= old;
            }
            double change = energy_change_to(p, lambda, x, site, old, value);
            if (COUNT) accepted += acceptance_of(change);
            if (-change >= 0.0 || chance_bits(n, flip_threshold<true>(change))) x.set(site, value);
        } else if (Q == 2) {
            double change = energy_change_to(p, lambda, x, site, old, 1 - old);
            if (chance_bits(n, flip_threshold<false>(change))) x.set(site, 1 - old);
        } else {
            double energies[Q];
            energy_changes_at(p, lambda, x, site, energies);
            x.set(site, pick_energy(n, energies));
        }
#endif
    }
}

// Sweep the walkers `rows[0..count]`; sweep s draws from the stream at step `step + s`. Thread i goes by the weights
// lambda[i * stride ..]; stride 0 is one set of weights for all.
// BY_PLACE: the stream is that of the place in `rows`, not of the row found there. COUNT: add the mean acceptance of every sweep to that of
// the place.
template <bool METROPOLIS, bool BY_PLACE, bool COUNT>
__device__ __forceinline__ void sweep_rows(
    const Pairs& p, u8* states, const u32* rows, const double* lambda, u32 stride, u64 seed, u32 purpose, u64 step,
    u32 sweeps, u32 count, double* acceptance) {
    extern __shared__ u32 space[];
    u32 first = blockIdx.x * THREADS, index = first + threadIdx.x;
    bool mine = index < count;
    u32 walker = rows[mine ? index : first];
    double weights[TERMS];
#pragma unroll
    for (u32 term = 0; term < TERMS; term++) weights[term] = lambda[(size_t)(mine ? index : first) * stride + term];

    u32* table = space + threadIdx.x;
    u64 sure = 0, close = 0;
#if CLASSES > 0
    for (u32 entry = 0; entry < ENTRIES; entry++) {
        u32 kind = entry / (2 * SURROUNDINGS), old = entry / SURROUNDINGS % 2;
        double change = class_change(p, weights, kind, old, entry % SURROUNDINGS);
        table[entry * THREADS] = (u32)(flip_threshold<METROPOLIS>(change) >> 32);
        if (METROPOLIS && -change >= 0.0) sure |= 1ull << entry;
        // Up to four equal bonds that balance add up to nothing in any order; others leave what rounding made of them.
        if (METROPOLIS && fabs(change) < 1e-9) {
            u32 site = p.members[kind], degree = p.starts[site + 1] - p.starts[site];
            if (GROUPS > 1 || degree > 4 || 2 * (entry % SURROUNDINGS) != degree) close |= 1ull << entry;
        }
    }
#endif
#if STAGED
    u32 held = count - first < THREADS ? count - first : THREADS;
    u8* staged = (u8*)(space + ENTRIES * THREADS);
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (u32 w = warp; w < held; w += THREADS / 32) {
        const u8* row = states + (size_t)rows[first + w] * SITES;
        for (u32 site = lane; site < SITES; site += 32) staged[site * PITCH + w] = row[site];
    }
    __syncthreads();
    State<PITCH> x{staged + threadIdx.x};
#else
    State<1> x{states + (size_t)walker * SITES};
#endif
    if (mine) {
        const Pairs& own = pairs_of(p, walker);
        double total = COUNT ? acceptance[index] : 0.0;
        for (u32 sweep = 0; sweep < sweeps; sweep++) {
            Numbers n = numbers(seed, purpose, BY_PLACE ? index : walker, step + sweep);
            double accepted = 0.0;
            sweep_once<METROPOLIS, COUNT>(own, weights, x, table, sure, close, n, accepted);
            if (COUNT) total += accepted / (double)SITES;
        }
        if (COUNT) acceptance[index] = total;
    }
#if STAGED
    __syncthreads();
    for (u32 w = warp; w < held; w += THREADS / 32) {
        u8* row = states + (size_t)rows[first + w] * SITES;
        for (u32 site = lane; site < SITES; site += 32) row[site] = staged[site * PITCH + w];
    }
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS) heat_bath(Pairs p, Sweeps s) {
    sweep_rows<false, false, false>(p, s.states, s.rows, s.lambda, s.stride, s.seed, s.purpose, s.step, s.sweeps, s.count, 0);
}

extern "C" __global__ void __launch_bounds__(THREADS) metropolis(Pairs p, Sweeps s) {
    sweep_rows<true, false, false>(p, s.states, s.rows, s.lambda, s.stride, s.seed, s.purpose, s.step, s.sweeps, s.count, 0);
}

// Table-driven sweeps (mcmc/lanes) with a walker per thread: the walks of tile.rs, bit by bit.
//
// METROPOLIS is the rule, 0 or 1. THRESHOLDS: of all classes at one temperature. CLASS: numbers of a class. MOVE is Purpose::Move.
// THREADS, PITCH and STAGED are those of
// pairwise.cu: STAGED keeps states in shared memory, [site * PITCH + thread].
#define PER_BLOCK (METROPOLIS && Q > 2 ? 4 : 8)
// A fresh measurement of the energies every so many updates; FRESH is in sweeps.
#define PERIOD ((u64)FRESH * SITES)

// The structure Lanes is declared by cuda.rs.

// A class: how many surroundings it knows, where its thresholds start, how long one of its tables is, where its
// contributions and its local energies start, its number of neighbours.
struct Class {
    u32 entries, offset, length, contributions, local, degree;
};

__device__ __forceinline__ Class class_at(const Lanes& p, u32 number) {
    const uint4* at = (const uint4*)(p.classes + (size_t)number * CLASS);
    uint4 a = __ldg(at), b = __ldg(at + 1);
    return Class{a.x, a.y, a.z, a.w, b.x, b.y};
}

// What random numbers of one block are drawn for.
struct Draws {
    u64 seed, sweep;
    u32 walker, block;
};

// Sixteen more bits behind those of `slot`, from a block of their own.
__device__ __noinline__ u32 further(Draws d, u32 slot) {
    Words words = stream_block(d.seed, MOVE, d.walker, d.sweep, d.block | 0x80000000u);
    u32 word = slot < 2 ? words.w[0] : slot < 4 ? words.w[1] : slot < 6 ? words.w[2] : words.w[3];
    return word >> 16 * (slot % 2) & 0xffffu;
}

// Whether 32 bits are below a threshold: the lower 16 are asked for only where the upper ones tie.
template <typename Rest>
__device__ __forceinline__ bool below(u32 threshold, u32 digits, Rest rest) {
    u32 high = threshold >> 16;
    return digits == high ? rest() < (threshold & 0xffffu) : digits < high;
}

// A state whose values lie STRIDE bytes apart.
template <u32 STRIDE>
struct State {
    u8* x;
    __device__ __forceinline__ u32 get(u32 site) const { return x[(size_t)site * STRIDE]; }
    __device__ __forceinline__ void set(u32 site, u32 value) const { x[(size_t)site * STRIDE] = (u8)value; }
};

// The number of a site's surroundings.
template <typename S>
__device__ __forceinline__ u32 surroundings(const Lanes& p, const Class& c, u32 start, S x) {
    u32 index = 0;
    const u16* row = p.contributions + c.contributions;
    for (u32 slot = 0; slot < c.degree; slot++) {
        u32 value = x.get(__ldg(p.ends + start + slot));
        // Value 0 contributes nothing.
        if (Q == 2) index += value ? __ldg(row + slot * Q + 1) : 0;
        else index += __ldg(row + slot * Q + value);
    }
    return index;
}

// Update a site by the random bits of `slot`; keeps the energies in step if `follow`.
template <typename S>
__device__ __forceinline__ void update(
    const Lanes& p, const u32* __restrict__ table, S x, u32 site, u32 slot, u32 word, const Draws& draws, bool follow,
    double* energies) {
    Class c = class_at(p, __ldg(p.sites + 2 * site));
    u32 index = surroundings(p, c, __ldg(p.sites + 2 * site + 1), x);
    u32 old = x.get(site), value;
    table += c.offset;
#if !METROPOLIS || Q == 2
    u32 digits = word >> 16 * (slot % 2) & 0xffffu;
    auto more = [&]() { return further(draws, slot); };
#endif
#if METROPOLIS && Q > 2
    // word (Q - 1) = choice 2^32 + fraction, and the fraction is uniform again.
    u64 product = (u64)word * (Q - 1);
    u32 proposal = (u32)(product >> 32), fraction = (u32)product;
    proposal += proposal >= old;
    bool takes = below(table[(index * Q + old) * Q + proposal], fraction >> 16, [&]() { return fraction & 0xffffu; });
    value = takes ? proposal : old;
#elif METROPOLIS
    value = old ^ (u32)below(table[index * 2 + old], digits, more);
#else
    value = 0;
#pragma unroll
    for (u32 t = 0; t < Q - 1; t++) value += below(table[t * c.length + index], digits, more);
#endif
    if (value == old) return;
    x.set(site, value);
    if (!follow) return;
    for (u32 term = 0; term < TERMS; term++) {
        const double* local = p.local + c.local + (size_t)(term * c.entries + index) * Q;
        energies[term] += local[value] - local[old];
    }
}

// All energies afresh.
template <typename S>
__device__ __forceinline__ void measure(const Lanes& p, S x, double* energies) {
#pragma unroll
    for (u32 term = 0; term < TERMS; term++) energies[term] = p.constants[term];
    for (u32 site = 0; site < SITES; site++) {
        Class c = class_at(p, __ldg(p.sites + 2 * site));
        u32 index = surroundings(p, c, __ldg(p.sites + 2 * site + 1), x), value = x.get(site);
#pragma unroll
        for (u32 term = 0; term < TERMS; term++)
            energies[term] += __ldg(p.share + c.local + (size_t)(term * c.entries + index) * Q + value);
    }
}

// Make `updates` updates, `from` of them having been made before.
template <typename S>
__device__ __forceinline__ void advance(
    const Lanes& p, const u32* table, S x, u64 seed, u32 walker, u64 from, u64 updates, bool follow, double* energies) {
    u64 sweep = from / SITES;
    u32 position = (u32)(from % SITES);
    while (updates > 0) {
        u32 stop = updates < SITES - position ? position + (u32)updates : SITES;
        updates -= stop - position;
        for (u32 block = position / PER_BLOCK; block * PER_BLOCK < stop; block++) {
            Words words = stream_block(seed, MOVE, walker, sweep, block);
            Draws draws{seed, sweep, walker, block};
#pragma unroll
            for (u32 slot = 0; slot < PER_BLOCK; slot++) {
                u32 at = block * PER_BLOCK + slot;
                u32 word = words.w[slot / (PER_BLOCK / 4)];
                if (at >= position && at < stop)
                    update(p, table, x, __ldg(p.order + at), slot, word, draws, follow, energies);
            }
        }
        position = 0;
        sweep++;
    }
}

#if STAGED
// How many of `walkers` walkers a block holds that begins with number `start`.
__device__ __forceinline__ u32 held_from(u32 start, u32 walkers) {
    return walkers - start < THREADS ? walkers - start : THREADS;
}

// Bring the states of the first `held` threads of a block to shared memory; `row(thread)` is where one lies.
template <typename F>
__device__ __forceinline__ State<PITCH> stage(u8* staged, u32 held, F row) {
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (u32 w = warp; w < held; w += THREADS / 32) {
        const u8* own = row(w);
        for (u32 site = lane; site < SITES; site += 32) staged[site * PITCH + w] = own[site];
    }
    __syncthreads();
    return State<PITCH>{staged + threadIdx.x};
}

// Bring them back.
template <typename F>
__device__ __forceinline__ void give_back(const u8* staged, u32 held, F row) {
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    __syncthreads();
    for (u32 w = warp; w < held; w += THREADS / 32) {
        u8* own = row(w);
        for (u32 site = lane; site < SITES; site += 32) own[site] = staged[site * PITCH + w];
    }
}
#endif

// The thresholds of `blockIdx.y` times from time `first` on, as in tables.rs: a block for every class.
extern "C" __global__ void thresholds(Lanes p, u32* tables, const double* lambda, u32 first) {
    Class c = class_at(p, blockIdx.x);
    u32* table = tables + (size_t)blockIdx.y * THRESHOLDS + c.offset;
    const double* weights = lambda + (size_t)(first + blockIdx.y) * TERMS;
    auto put = [&](u32 at, double chance) {
        table[at] = __double2uint_rz(floor(__dmul_rn(chance, 4294967296.0) + 0.5)); // saturates
    };
    for (u32 index = threadIdx.x; index < c.entries; index += blockDim.x) {
        double u[Q];
        for (u32 value = 0; value < Q; value++) {
            u[value] = 0.0;
            for (u32 term = 0; term < TERMS; term++)
                u[value] = plus_product(
                    u[value], weights[term], p.local[c.local + (size_t)(term * c.entries + index) * Q + value]);
        }
#if METROPOLIS && Q > 2
        for (u32 own = 0; own < Q; own++)
            for (u32 value = 0; value < Q; value++)
                put((index * Q + own) * Q + value, fmin(exp(u[own] - u[value]), 1.0));
#elif METROPOLIS
        put(2 * index, fmin(exp(u[0] - u[1]), 1.0));
        put(2 * index + 1, fmin(exp(u[1] - u[0]), 1.0));
#else
        double least = u[0], total = 0.0, above = 0.0;
        for (u32 value = 1; value < Q; value++) least = fmin(least, u[value]);
        for (u32 value = 0; value < Q; value++) total += exp(least - u[value]);
        for (u32 value = Q - 1; value > 0; value--) {
            above += exp(least - u[value]) / total;
            put((value - 1) * c.length + index, above);
        }
#endif
    }
}

// Energies of all walkers.
extern "C" __global__ void __launch_bounds__(THREADS) measure_all(Lanes p, u8* states, double* energies, u32 walkers) {
    u32 walker = blockIdx.x * THREADS + threadIdx.x;
    if (walker >= walkers) return;
    double own[TERMS];
    measure(p, State<1>{states + (size_t)walker * SITES}, own);
    for (u32 term = 0; term < TERMS; term++) energies[(size_t)walker * TERMS + term] = own[term];
}

// Carry all walkers through `count` intervals, the first of which ends at time `first` of the grid: weigh if `weigh`, then make
// `updates` updates at the thresholds of that time, tables[0], tables[THRESHOLDS], ... The structure Carry is declared by
// cuda.rs.
extern "C" __global__ void __launch_bounds__(THREADS) carry(Lanes p, Carry c) {
    extern __shared__ u32 space[];
    u32 start = blockIdx.x * THREADS, walker = start + threadIdx.x;
    bool mine = walker < c.walkers;
#if STAGED
    auto row = [&](u32 thread) { return c.states + (size_t)(start + thread) * SITES; };
    State<PITCH> x = stage((u8*)space, held_from(start, c.walkers), row);
#else
    State<1> x{c.states + (size_t)walker * SITES};
#endif
    if (mine) {
        double own[TERMS], log_weight = c.log_weights[walker];
#pragma unroll
        for (u32 term = 0; term < TERMS; term++) own[term] = c.energies[(size_t)walker * TERMS + term];
        u64 from = c.from;
        for (u32 step = 0; step < c.count; step++) {
            const double* after = c.lambda + (size_t)(c.first + step) * TERMS;
            if (c.weigh) log_weight = plus_energy_drop<TERMS>(log_weight, after - TERMS, after, own);
            bool afresh = c.updates >= SITES || from / PERIOD != (from + c.updates) / PERIOD;
            const u32* table = c.tables + (size_t)step * THRESHOLDS;
            advance(p, table, x, c.seed, walker, from, c.updates, !afresh, own);
            if (afresh) measure(p, x, own);
            from += c.updates;
        }
        c.log_weights[walker] = log_weight;
#pragma unroll
        for (u32 term = 0; term < TERMS; term++) c.energies[(size_t)walker * TERMS + term] = own[term];
    }
#if STAGED
    give_back((u8*)space, held_from(start, c.walkers), row);
#endif
}

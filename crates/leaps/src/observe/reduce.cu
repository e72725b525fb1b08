// States of a pairwise target (pairwise.cu), reduced to what rows of observables are made of (measure.rs).
//
// A block reduces TILE states, which it holds with four states to a word: tile[site * PITCH_WORDS + group]. So many groups there are; every one
// has PARTS threads, which share the sites. IN_SHARED: tiles lie in shared memory, else in `scratch`.
// AXES of a lattice, PERIODIC or not, with DISTANCES distances (0 without a lattice); side_of(axis) and stride_of(axis) come with the source.
// A row: TERMS energies and the structure factors of a periodic lattice as doubles, then as 32-bit numbers the sites in
// values 1, 2, ..., the distance to the reference state, equal pairs at distances 1, 2, ...; ROW 64-bit words in all.
// The structures Reduction and States are declared by cuda.rs. CREW: threads of a block. HAS_FIELDS, HAS_BONDS, ALIKE: bits of what a term has.
#define GROUPS (TILE / 4)
#define PARTS (CREW / GROUPS)
#define WAVES (PERIODIC ? AXES : 0)
#define ONES 0x01010101u

// 1 in every byte in which two words agree.
__device__ __forceinline__ u32 equal_bytes(u32 a, u32 b) {
    u32 z = a ^ b;
    if (Q == 2) return z ^ ONES;
    u32 differ = ((z & 0x7f7f7f7fu) + 0x7f7f7f7fu) | z;
    return (~differ >> 7) & ONES;
}

// |a - b| in every byte.
__device__ __forceinline__ u32 distances_of(u32 a, u32 b) {
    if (Q == 2) return a ^ b;
    u32 found = 0;
#pragma unroll
    for (u32 shift = 0; shift < 32; shift += 8) {
        int difference = (int)(a >> shift & 0xffu) - (int)(b >> shift & 0xffu);
        found |= (u32)(difference < 0 ? -difference : difference) << shift;
    }
    return found;
}

// Sums of the four bytes of words, none of which is above MOST.
template <u32 MOST>
struct Sums {
    u32 of[4], bytes, held;

    __device__ __forceinline__ Sums() : of{0, 0, 0, 0}, bytes(0), held(0) {}

    __device__ __forceinline__ void flush() {
#pragma unroll
        for (u32 k = 0; k < 4; k++) of[k] += bytes >> 8 * k & 0xffu;
        bytes = held = 0;
    }

    __device__ __forceinline__ void add(u32 word) {
        bytes += word;
        if (++held == 255 / MOST) flush();
    }
};

// The sum over all sites of one byte of what `word(site)` gives, for the state of every thread below TILE. Ends with a barrier.
template <u32 MOST, typename F>
__device__ __forceinline__ u32 over_sites(u32* space, u32 group, u32 part, F word) {
    Sums<MOST> sums;
    for (u32 site = part; site < SITES; site += PARTS) sums.add(word(site));
    sums.flush();
#pragma unroll
    for (u32 k = 0; k < 4; k++) atomicAdd(space + 4 * group + k, sums.of[k]);
    __syncthreads();
    u32 sum = 0;
    if (threadIdx.x < TILE) {
        sum = space[threadIdx.x];
        space[threadIdx.x] = 0;
    }
    __syncthreads();
    return sum;
}

// One term of the energy of a state, summed in the order of Pairwise::energy. `equal`: neighbours in the same value, over all sites.
__device__ double energy_of(const Pairs& p, const Reduction& m, u32 term, const u8* x, u32 equal) {
    u32 has = m.kinds[term];
    double energy = p.constants[term];
    if (has & HAS_FIELDS) {
        const double* fields = p.fields + (size_t)term * SITES * Q;
        for (u32 site = 0; site < SITES; site++)
            energy = __dadd_rn(energy, __ldg(fields + (size_t)site * Q + x[(size_t)site * TILE_PITCH]));
    }
    if (has & HAS_BONDS) {
        double twice = 0.0;
        if (has & ALIKE) {
            twice = __dmul_rn(m.couplings[term], (double)equal); // exact, as the sum is
        } else {
            const double* couplings = p.couplings + term * p.bonds;
            for (u32 site = 0; site < SITES; site++) {
                u32 value = x[(size_t)site * TILE_PITCH], to = bonds_to(p, site);
                for (u32 bond = bonds_from(p, site); bond < to; bond++)
                    if (x[(size_t)__ldg(p.ends + bond) * TILE_PITCH] == value)
                        twice = __dadd_rn(twice, __ldg(couplings + bond));
            }
        }
        energy = __dadd_rn(energy, __dmul_rn(-0.5, twice));
    }
    return energy;
}

// State i of `count` lies in row rows[i], or, without rows, in row i. Copies states to `kept` if it is there.
extern "C" __global__ void __launch_bounds__(CREW) reduce_states(Pairs p, Reduction m, States s) {
    extern __shared__ u32 tiles[];
    __shared__ u32 counters[TILE];
#if WAVES > 0
    // PARTS * TILE is 4 * CREW.
    __shared__ double cosines[4 * CREW], sines[4 * CREW];
#endif
    u32 start = blockIdx.x * TILE, held = s.count - start < TILE ? s.count - start : TILE;
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u32 group = threadIdx.x % GROUPS, part = threadIdx.x / GROUPS;
    u32* tile = IN_SHARED ? tiles : m.scratch + (size_t)blockIdx.x * SITES * (TILE_PITCH / 4);
    for (u32 w = warp; w < TILE; w += CREW / 32) {
        // The last block may have room left: copies of its first state stand there.
        u32 item = start + (w < held ? w : 0);
        const u8* row = s.states + (size_t)(s.rows ? s.rows[item] : item) * SITES;
        for (u32 site = lane; site < SITES; site += 32) {
            u8 value = row[site];
            ((u8*)tile)[(size_t)site * TILE_PITCH + w] = value;
            if (s.kept && w < held) s.kept[(size_t)item * SITES + site] = value;
        }
    }
    if (threadIdx.x < TILE) counters[threadIdx.x] = 0;
    __syncthreads();
    auto at = [&](u32 site) { return tile[(size_t)site * (TILE_PITCH / 4) + group]; };
    bool mine = threadIdx.x < held;
    u64* row = s.out + (size_t)(start + (mine ? threadIdx.x : 0)) * ROW;

    // Whole numbers.
    u32* whole = (u32*)(row + TERMS + WAVES);
    for (u32 value = 1; value < Q; value++) {
        u32 sum = over_sites<1>(counters, group, part, [&](u32 site) { return equal_bytes(at(site), value * ONES); });
        if (mine) whole[value - 1] = sum;
    }
    u32 sum = over_sites<Q - 1>(
        counters, group, part, [&](u32 site) { return distances_of(at(site), __ldg(m.reference + site) * ONES); });
    if (mine) whole[Q - 1] = sum;
#if AXES > 0
    for (u32 r = 1; r < DISTANCES; r++) {
        sum = over_sites<AXES>(counters, group, part, [&](u32 site) {
            u32 own = at(site), equal = 0;
#pragma unroll
            for (u32 axis = 0; axis < AXES; axis++) {
                u32 side = side_of(axis), stride = stride_of(axis);
                bool inside = site / stride % side + r < side;
                if (inside || PERIODIC) equal += equal_bytes(own, at(inside ? site + r * stride : site - (side - r) * stride));
            }
            return equal;
        });
        if (mine) whole[Q - 1 + r] = sum;
    }
#endif

    // Energies.
    double* numbers = (double*)row;
    u32 equal = 0;
#if ALL_ALIKE
    equal = over_sites<(DEGREE > 0 ? DEGREE : 1)>(counters, group, part, [&](u32 site) {
        u32 own = at(site), to = bonds_to(p, site), found = 0;
        for (u32 bond = bonds_from(p, site); bond < to; bond++) found += equal_bytes(own, at(__ldg(p.ends + bond)));
        return found;
    });
#endif
    if (mine)
        for (u32 term = 0; term < TERMS; term++)
            numbers[term] = energy_of(p, m, term, (const u8*)tile + threadIdx.x, equal);

    // Structure factors: counts of the planes across an axis, each with its wave.
#if WAVES > 0
    const double* waves = m.waves;
    for (u32 axis = 0; axis < AXES; axis++) {
        u32 side = side_of(axis), stride = stride_of(axis);
        double square = 0.0;
        for (u32 value = 0; value < Q; value++) {
            double re[4] = {0.0, 0.0, 0.0, 0.0}, im[4] = {0.0, 0.0, 0.0, 0.0};
            for (u32 c = part; c < side; c += PARTS) {
                Sums<1> plane;
                for (u32 line = c * stride; line < SITES; line += side * stride)
                    for (u32 site = line; site < line + stride; site++)
                        plane.add(equal_bytes(at(site), value * ONES));
                plane.flush();
#pragma unroll
                for (u32 k = 0; k < 4; k++) {
                    re[k] = plus_product(re[k], (double)plane.of[k], __ldg(waves + 2 * c));
                    im[k] = plus_product(im[k], (double)plane.of[k], __ldg(waves + 2 * c + 1));
                }
            }
#pragma unroll
            for (u32 k = 0; k < 4; k++) {
                cosines[part * TILE + 4 * group + k] = re[k];
                sines[part * TILE + 4 * group + k] = im[k];
            }
            __syncthreads();
            if (mine) {
                double x = 0.0, y = 0.0;
                for (u32 part = 0; part < PARTS; part++) {
                    x += cosines[part * TILE + threadIdx.x];
                    y += sines[part * TILE + threadIdx.x];
                }
                square += x * x + y * y;
            }
            __syncthreads();
        }
        if (mine) numbers[TERMS + axis] = (double)Q / (double)(Q - 1) * square / (double)SITES;
        waves += 2 * side;
    }
#endif
}

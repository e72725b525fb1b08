// What a network for spin glasses reads of its bonds, as in bonds.rs, and its outputs.
//
// Given: SITES, DIRECTIONS, GLOBAL_FEATURES and ENTERING (numbers of a site beside the context, and those that enter along a direction; on
// tensor cores padded with zeros to multiples of 8), BOND_THREADS (threads of a block, a power of 2). Word is declared by
// arguments.rs, EnterBonds by bonds.rs.

#define AHEAD (DIRECTIONS / 2)
#define FACES (DIRECTIONS - 1)

// The sum over the threads of a block, always in the same order.
__device__ __forceinline__ float block_sum(float own, float* parts) {
    __syncthreads(); // nobody reads the last sum any more
    parts[threadIdx.x] = own;
    for (int half = BOND_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    __syncthreads();
    return parts[0];
}

// A block has one slot.
extern "C" __global__ void __launch_bounds__(BOND_THREADS) enter_bonds(EnterBonds pass) {
    __shared__ float parts[BOND_THREADS];
    __shared__ int all;
    u64 slot = blockIdx.x;
    u32 row = pass.rows[slot];
    const u8* x = pass.states + (u64)row * SITES;
    const float* couplings = pass.couplings + (u64)(row / pass.rows_of_instance) * (SITES * AHEAD);
    if (threadIdx.x == 0) all = 0;
    // Every bond once, at its first site.
    float sizes = 0.0f;
    for (int i = threadIdx.x; i < SITES * AHEAD; i += BOND_THREADS) {
        u32 bond = pass.bonds[i / AHEAD * DIRECTIONS + 2 * (i % AHEAD) + 1];
        if (bond != NONE) sizes += fabsf(couplings[bond]);
    }
    float unit = (block_sum(sizes, parts) + pass.least) / pass.steps, per_unit = 1.0f / unit;
    int satisfied = 0;
    for (int i = threadIdx.x; i < SITES * AHEAD; i += BOND_THREADS) {
        int site = i / AHEAD, face = site * DIRECTIONS + 2 * (i % AHEAD) + 1;
        u32 bond = pass.bonds[face];
        if (bond == NONE) continue;
        int whole = __float2int_rn(couplings[bond] * per_unit);
        satisfied += x[pass.neighbours[face]] == x[site] ? whole : -whole;
    }
    atomicAdd(&all, satisfied);
    float around = 0.0f;
    for (u32 p = threadIdx.x; p < pass.plaquette_count; p += BOND_THREADS) {
        const u32* corner = pass.plaquettes + 4 * p;
        around += couplings[corner[0]] * couplings[corner[1]] * (couplings[corner[2]] * couplings[corner[3]]);
    }
    float frustration = block_sum(around, parts) * pass.per_plaquette;
    for (int site = threadIdx.x; site < SITES; site += BOND_THREADS) {
        float v[DIRECTIONS], size[DIRECTIONS], m = 0.0f;
        int own = 0;
        for (int k = 0; k < DIRECTIONS; k++) {
            int face = site * DIRECTIONS + k;
            u32 bond = pass.bonds[face];
            v[k] = size[k] = 0.0f;
            if (bond != NONE) {
                int neighbour_value = x[pass.neighbours[face]], whole = __float2int_rn(couplings[bond] * per_unit);
                v[k] = neighbour_value == 1 ? couplings[bond] : -couplings[bond];
                size[k] = fabsf(couplings[bond]);
                own += neighbour_value == x[site] ? whole : -whole;
            }
            m += v[k];
            pass.pulls[slot * (SITES * DIRECTIONS) + face] = v[k];
        }
        float pair[2];
        u64 at = (slot * SITES + site) * GLOBAL_FEATURES, end = at + GLOBAL_FEATURES;
        auto put = [&](float number) {
            pair[at % 2] = number;
            STORE_FEATURE(pass.global_features, at, pair);
            at++;
        };
        for (int k = 0; k < DIRECTIONS; k++)
            for (int other = k + 1; other < DIRECTIONS; other++) put(v[k] * v[other]);
        for (int k = 0; k < DIRECTIONS; k++) put(m * v[k]);
        float square = m * m;
        put(square / DIRECTIONS);
        put(square * square / (DIRECTIONS * DIRECTIONS * DIRECTIONS));
        for (int k = 0; k < DIRECTIONS; k++) put(size[k]);
        // Whole numbers: what is left does not depend on the site's own value, to the last bit.
        float energy = -(float)(all - own) * unit / SITES;
        put(energy);
        put(tanhf(pass.steepness * (energy - pass.middle)));
        put(energy * energy);
        put(frustration);
        while (at < end) put(0.0f);
        for (int direction = 0; direction < DIRECTIONS; direction++) {
            at = ((slot * DIRECTIONS + direction) * SITES + site) * ENTERING;
            for (int n = 0; n < ENTERING; n++, at++) {
                float number = 0.0f;
                if (n < 2 * FACES) {
                    u32 k = pass.faces[direction * FACES + n % FACES];
                    number = n >= FACES ? size[k] : x[site] == 1 ? v[k] : -v[k];
                }
                pair[n % 2] = number;
                STORE_FEATURE(pass.entering, at, pair);
            }
        }
    }
}

// out[i] = sum over directions of o[i][direction] pulls[i][direction].
extern "C" __global__ void contract(const float* o, const float* pulls, float* out, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < DIRECTIONS; k++) sum = fmaf(o[(u64)i * DIRECTIONS + k], pulls[(u64)i * DIRECTIONS + k], sum);
    out[i] = sum;
}

// The transpose of contract.
extern "C" __global__ void expand(const float* d_out, const float* pulls, float* d_o, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int k = 0; k < DIRECTIONS; k++) d_o[(u64)i * DIRECTIONS + k] = d_out[i] * pulls[(u64)i * DIRECTIONS + k];
}

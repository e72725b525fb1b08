// What all other sites add up to, as in global_features.rs: [slot][site][GLOBAL_FEATURES].
//
// Given: GLOBAL_FEATURES, the numbers of a site (0: there are none; on tensor cores padded with zeros to a multiple of 8).

#if GLOBAL_FEATURES > 0

// Four functions of every count. Two values have one count, the sum of the spins.
#define REAL_FEATURES (4 * ((Q == 2 ? 1 : Q) + 1))

__device__ __forceinline__ float feature(int function, float count, float factor, float offset, float root) {
    float z = fmaf(count, factor, offset), square = z * z, y = z * root;
    switch (function) {
    case 0: return z;
    case 1: return fmaf(square, 2.0f, -1.0f);
    case 2: return z * fmaf(square, 4.0f, -3.0f);
    default: return y / (1.0f + fabsf(y));
    }
}

// A block has one slot. The structure Scales is declared by mod.rs.
extern "C" __global__ void __launch_bounds__(128)
write_global_features(const u8* states, const u32* rows, const u32* before, FEATURE_WORD* global_features, Scales scales) {
    __shared__ int values[Q], equal, bonds;
    const u8* x = states + (u64)rows[blockIdx.x] * SITES;
    for (int i = threadIdx.x; i < Q; i += 128) values[i] = 0;
    if (threadIdx.x == 0) equal = bonds = 0;
    __syncthreads();
    int own_equal = 0, own_bonds = 0;
    for (int site = threadIdx.x; site < SITES; site += 128) {
        atomicAdd(&values[x[site]], 1);
        for (int direction = 0; direction < DIRECTIONS; direction += 2) {
            u32 from = before[direction * SITES + site];
            own_bonds += from != NONE;
            own_equal += from != NONE && x[from] == x[site];
        }
    }
    atomicAdd(&equal, own_equal);
    atomicAdd(&bonds, own_bonds);
    __syncthreads();
    for (int site = threadIdx.x; site < SITES; site += 128) {
        int site_value = x[site], rest_equal = equal, rest_bonds = bonds;
        for (int direction = 0; direction < DIRECTIONS; direction++) {
            u32 from = before[direction * SITES + site];
            rest_bonds -= from != NONE;
            rest_equal -= from != NONE && x[from] == site_value;
        }
        float bond_count = Q == 2 ? 2 * rest_equal - rest_bonds : rest_equal;
        float numbers[2];
        for (int k = 0; k < GLOBAL_FEATURES; k++) {
            int which = k / 4;
            float value = 0.0f;
            if (k >= REAL_FEATURES - 4) {
                if (k < REAL_FEATURES) value = feature(k % 4, bond_count, scales.bond_factor, scales.bond_offset, scales.root);
            } else {
                int count = Q == 2 ? values[1] - values[0] - (site_value == 1 ? 1 : -1) : values[which] - (site_value == which);
                value = feature(k % 4, count, scales.value_factor, scales.value_offset, scales.root);
            }
            numbers[k % 2] = value;
            STORE_FEATURE(global_features, ((u64)blockIdx.x * SITES + site) * GLOBAL_FEATURES + k, numbers);
        }
    }
}

#endif

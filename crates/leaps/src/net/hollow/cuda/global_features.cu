// What all other sites add up to, as in global_features.rs: [slot][site][GLOBAL_FEATURES].
//
// Given: GLOBAL_FEATURES, the numbers of a site (0: there are none; on tensor cores padded with zeros to a multiple of 8), BOND_CLASSES, ORDERS (at most
// 7) of alternating signs.

#if GLOBAL_FEATURES > 0

// Two values have one count, the sum of the spins. Every count is read as four functions.
#define VALUE_COUNTS (Q == 2 ? 1 : Q)
#define COUNTS (VALUE_COUNTS + BOND_CLASSES + ORDERS * VALUE_COUNTS)

__device__ __forceinline__ float feature(int function, float count, float factor, float offset, float root) {
    float z = fmaf(count, factor, offset), square = z * z, y = z * root;
    switch (function) {
    case 0: return z;
    case 1: return fmaf(square, 2.0f, -1.0f);
    case 2: return z * fmaf(square, 4.0f, -3.0f);
    default: return y / (1.0f + fabsf(y));
    }
}

__device__ __forceinline__ int spin_of(int value) {
    return value == 1 ? 1 : -1;
}

// A block has one slot. Word, BondRows and Counting are declared by arguments.rs.
extern "C" __global__ void __launch_bounds__(128) write_global_features(Counting pass) {
    __shared__ int values[Q], equal[BOND_CLASSES], bonds[BOND_CLASSES];
    __shared__ int orders[ORDERS * VALUE_COUNTS + 1]; // no array is empty
    const u8* x = pass.states + (u64)pass.rows[blockIdx.x] * SITES;
    for (int i = threadIdx.x; i < Q; i += 128) values[i] = 0;
    for (int i = threadIdx.x; i < BOND_CLASSES; i += 128) equal[i] = bonds[i] = 0;
    for (int i = threadIdx.x; i < ORDERS * VALUE_COUNTS; i += 128) orders[i] = 0;
    __syncthreads();
    for (int site = threadIdx.x; site < SITES; site += 128) atomicAdd(&values[x[site]], 1);
    for (int k = 0; k < BOND_CLASSES; k++) {
        BondRows own = pass.classes[k];
        int own_equal = 0, own_bonds = 0;
        for (int site = threadIdx.x; site < SITES; site += 128)
            // Every other row leads backwards.
            for (u32 row = own.first; row < own.end; row += 2) {
                u32 to = pass.ends[row * SITES + site];
                own_bonds += to != NONE;
                own_equal += to != NONE && x[to] == x[site];
            }
        atomicAdd(&equal[k], own_equal);
        atomicAdd(&bonds[k], own_bonds);
    }
    for (int k = 0; k < ORDERS; k++) {
        int own_sum = 0;
        for (int site = threadIdx.x; site < SITES; site += 128) {
            int sign = pass.signs[site] >> k & 1 ? -1 : 1;
            if (Q == 2) own_sum += sign * spin_of(x[site]);
            else atomicAdd(&orders[k * VALUE_COUNTS + x[site]], sign);
        }
        if (Q == 2) atomicAdd(&orders[k], own_sum);
    }
    __syncthreads();
    for (int site = threadIdx.x; site < SITES; site += 128) {
        int own = x[site], signs = ORDERS > 0 ? pass.signs[site] : 0;
        for (int k = 0; k < GLOBAL_FEATURES / 4; k++) {
            // Without the site itself.
            int count = 0;
            float factor = pass.value_factor, offset = pass.value_offset;
            if (k < VALUE_COUNTS) {
                count = Q == 2 ? values[1] - values[0] - spin_of(own) : values[k] - (own == k);
            } else if (k < VALUE_COUNTS + BOND_CLASSES) {
                BondRows bond = pass.classes[k - VALUE_COUNTS];
                int rest_equal = equal[k - VALUE_COUNTS], rest_bonds = bonds[k - VALUE_COUNTS];
                for (u32 row = bond.first; row < bond.end; row++) {
                    u32 to = pass.ends[row * SITES + site];
                    rest_bonds -= to != NONE;
                    rest_equal -= to != NONE && x[to] == own;
                }
                count = Q == 2 ? 2 * rest_equal - rest_bonds : rest_equal;
                factor = bond.factor;
                offset = bond.offset;
            } else if (k < COUNTS) {
                int which = k - VALUE_COUNTS - BOND_CLASSES, value = which % VALUE_COUNTS;
                int sign = signs >> which / VALUE_COUNTS & 1 ? -1 : 1;
                count = sign * orders[which] - (Q == 2 ? spin_of(own) : own == value);
                factor = pass.order_factor;
                offset = 0.0f;
            }
            float numbers[2];
#pragma unroll
            for (int function = 0; function < 4; function++) {
                float value = feature(function, (float)count, factor, offset, pass.root);
                numbers[function % 2] = k < COUNTS ? value : 0.0f;
                STORE_FEATURE(pass.global_features, ((u64)blockIdx.x * SITES + site) * GLOBAL_FEATURES + 4 * k + function, numbers);
            }
        }
    }
}

#endif

// The parts of a gradient step that are not the network (training.rs), behind pairwise.cu and network.cu.
//
// The free energy is rate.rs: features of time, TIME_UNITS hidden units (a warp), one number times SITES.
//
// Given besides: TIME_FEATURES (the time and its FEATURES), TIME_UNITS, PART (numbers that a block of `squares` adds up).
// Where its tensors start.
#define FREE_BIAS (TIME_UNITS * FEATURES)
#define FREE_OUT (FREE_BIAS + TIME_UNITS)
#define FREE_SHIFT (FREE_OUT + TIME_UNITS)

__device__ __forceinline__ float free_unit(const float* p, const float* time, u32 unit) {
    float z = p[FREE_BIAS + unit];
#pragma unroll
    for (u32 f = 0; f < FEATURES; f++) z = fmaf(p[unit * FEATURES + f], time[1 + f], z);
    return z;
}

// dF/dt of every slot: one warp each, one thread per unit.
extern "C" __global__ void free_rates(const float* p, const float* table, float* out, u32 slots) {
    u32 slot = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5), unit = threadIdx.x & 31;
    if (slot >= slots) return;
    float sum = warp_sum(p[FREE_OUT + unit] * silu(free_unit(p, table + (size_t)slot * TIME_FEATURES, unit)));
    if (unit == 0) out[slot] = (sum + p[FREE_SHIFT]) * (float)SITES;
}

// Its gradient for weights share * residuals: one block per unit.
extern "C" __global__ void free_gradient(
    const float* p, const float* table, const double* residuals, double share, float* gradient, u32 slots) {
    __shared__ double space[33];
    u32 unit = blockIdx.x;
    double sums[FEATURES] = {}, bias = 0.0, out = 0.0, shift = 0.0;
    for (u32 slot = threadIdx.x; slot < slots; slot += blockDim.x) {
        const float* time = table + (size_t)slot * TIME_FEATURES;
        float d = (float)(share * residuals[slot]) * (float)SITES;
        float z = free_unit(p, time, unit), d_z = d * p[FREE_OUT + unit] * silu_slope(z);
#pragma unroll
        for (u32 f = 0; f < FEATURES; f++) sums[f] += d_z * time[1 + f];
        bias += d_z;
        out += d * silu(z);
        shift += d;
    }
#pragma unroll
    for (u32 f = 0; f < FEATURES; f++) sums[f] = block_sum(sums[f], space);
    bias = block_sum(bias, space);
    out = block_sum(out, space);
    shift = block_sum(shift, space);
    if (threadIdx.x != 0) return;
#pragma unroll
    for (u32 f = 0; f < FEATURES; f++) gradient[unit * FEATURES + f] = (float)sums[f];
    gradient[FREE_BIAS + unit] = (float)bias;
    gradient[FREE_OUT + unit] = (float)out;
    if (unit == 0) gradient[FREE_SHIFT] = (float)shift;
}

// Residuals K + dF/dt, and how the loss changes with the outputs: one block per slot, which holds row rows[slot].
// The structure Residuals is declared by arguments.rs.
extern "C" __global__ void __launch_bounds__(BLOCK) residuals(Pairs p, Residuals a) {
    extern __shared__ u8 values[];
    __shared__ double space[33];
    u32 slot = blockIdx.x, thread = threadIdx.x;
    const u8* row = a.states + (size_t)a.rows[slot] * SITES;
    for (u32 site = thread; site < SITES; site += BLOCK) values[site] = row[site];
    double lambda[TERMS];
#pragma unroll
    for (u32 term = 0; term < TERMS; term++) lambda[term] = a.lambdas[(size_t)slot * TERMS + term];
    const float* outputs = a.outputs + (size_t)slot * SITES * OUTPUTS;
    float* d_outputs = a.d_outputs + (size_t)slot * SITES * OUTPUTS;
    State<1> x{values};
    __syncthreads();
    double forth = 0.0, back = 0.0;
    for (u32 site = thread; site < SITES; site += BLOCK) {
        double rates[Q];
        rates_at(p, lambda, x, outputs, site, rates, forth, back);
    }
    double balance = block_sum(forth, space);
    balance -= block_sum(back, space);
    double fall = 0.0;
    for (u32 term = 0; term < TERMS; term++) {
        double field = 0.0, twice = 0.0;
        add_energy(p, term, x, thread, BLOCK, field, twice);
        field = block_sum(field, space);
        twice = block_sum(twice, space);
        fall = plus_product(fall, a.slopes[(size_t)slot * TERMS + term], (p.constants[term] + field) - 0.5 * twice);
    }
    double residual = balance - fall + (double)a.shift[slot];
    if (thread == 0) a.out[slot] = residual;
    for (u32 site = thread; site < SITES; site += BLOCK) {
        double changes[Q], own_slope = 0.0;
        energy_changes_at(p, lambda, x, site, changes);
        u32 own = x.get(site);
        const float* at = outputs + (size_t)site * OUTPUTS;
        float* d_at = d_outputs + (size_t)site * OUTPUTS;
#pragma unroll
        for (u32 value = 0; value < Q; value++) {
            if (value == own) continue;
            double d = a.share * residual * rate_slope(flux(at, own, value), changes[value]);
            if (Q == 2) {
                d_at[0] = (float)(own == 1 ? d : -d);
            } else {
                d_at[value] = (float)d;
                own_slope -= d;
            }
        }
        if (Q > 2) d_at[own] = (float)own_slope;
    }
}

// Sums of squares of stretches of PART numbers: one block each.
extern "C" __global__ void squares(const float* gradient, double* parts, u32 n) {
    __shared__ double space[33];
    u32 first = blockIdx.x * PART, stop = n - first < PART ? n : first + PART;
    double sum = 0.0;
    for (u32 i = first + threadIdx.x; i < stop; i += blockDim.x) sum += (double)gradient[i] * (double)gradient[i];
    sum = block_sum(sum, space);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// The loss, the norm of the gradient, and the first slot whose residual is not finite (`slots` if there is none): one block.
extern "C" __global__ void loss_and_norm(const double* residuals, u32 slots, const double* parts, u32 count, double* result) {
    __shared__ double space[33];
    __shared__ u32 bad;
    if (threadIdx.x == 0) bad = slots;
    __syncthreads();
    double loss = 0.0, norm = 0.0;
    for (u32 slot = threadIdx.x; slot < slots; slot += blockDim.x) {
        if (!isfinite(residuals[slot])) atomicMin(&bad, slot);
        loss += residuals[slot] * residuals[slot];
    }
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) norm += parts[i];
    loss = block_sum(loss, space);
    norm = block_sum(norm, space);
    if (threadIdx.x != 0) return;
    result[0] = loss / slots;
    result[1] = sqrt(norm);
    result[2] = bad;
}

// Adam as in adam.rs; nothing changes if the loss or the norm is not finite. The structure Adam is declared by arguments.rs.
extern "C" __global__ void adam(Adam a) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    double norm = a.result[1];
    if (i >= a.n || !isfinite(norm) || !isfinite(a.result[0])) return;
    float scale = (float)(norm > a.clip ? a.clip / norm : 1.0);
    // Every product and sum is rounded by itself, as on the CPU.
    float g = __fmul_rn(scale, a.gradient[i]);
    float m = __fadd_rn(__fmul_rn(a.b1, a.first[i]), __fmul_rn(__fsub_rn(1.0f, a.b1), g));
    float v = __fadd_rn(__fmul_rn(a.b2, a.second[i]), __fmul_rn(__fmul_rn(__fsub_rn(1.0f, a.b2), g), g));
    float step = __fdiv_rn(__fmul_rn(a.rate, m), __fadd_rn(__fsqrt_rn(v), 1e-8f));
    float p = __fsub_rn(a.parameters[i], step);
    a.first[i] = m;
    a.second[i] = v;
    a.parameters[i] = p;
    a.average[i] = __fadd_rn(__fmul_rn(a.ema, a.average[i]), __fmul_rn(__fsub_rn(1.0f, a.ema), p));
}

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

// ---- Residuals K + dF/dt, and how the loss changes with the outputs: one block per slot, which holds row rows[slot].
// The structure Residuals is declared by arguments.rs. Where there are INSTANCES the loss is that of deviations from an instance's mean, which has to be
// known first.

// A slot's state in shared memory, and the weights of the energy terms at its time.
struct Placed {
    State<1> x;
    double lambda[TERMS];
};

// Ends with a barrier.
__device__ __forceinline__ Placed place(const Residuals& a, u32 slot, u8* values) {
    const u8* row = a.states + (size_t)a.rows[slot] * SITES;
    for (u32 site = threadIdx.x; site < SITES; site += BLOCK) values[site] = row[site];
    Placed at;
    at.x.x = values;
#pragma unroll
    for (u32 term = 0; term < TERMS; term++) at.lambda[term] = a.lambdas[(size_t)slot * TERMS + term];
    __syncthreads();
    return at;
}

// K + dF/dt of a slot, known to all threads of its block.
__device__ __forceinline__ double residual_of(const Pairs& p, const Residuals& a, u32 slot, const Placed& at, double* space) {
    const float* outputs = a.outputs + (size_t)slot * SITES * OUTPUTS;
    double forth = 0.0, back = 0.0;
    for (u32 site = threadIdx.x; site < SITES; site += BLOCK) {
        double rates[Q];
        rates_at(p, at.lambda, at.x, outputs, site, rates, forth, back);
    }
    double balance = block_sum(forth, space);
    balance -= block_sum(back, space);
    double fall = 0.0;
    for (u32 term = 0; term < TERMS; term++) {
        double field = 0.0, twice = 0.0;
        add_energy(p, term, at.x, threadIdx.x, BLOCK, field, twice);
        field = block_sum(field, space);
        twice = block_sum(twice, space);
        fall = plus_product(fall, a.slopes[(size_t)slot * TERMS + term], (p.constants[term] + field) - 0.5 * twice);
    }
    return balance - fall + (double)a.shift[slot];
}

__device__ __forceinline__ void write_slopes(const Pairs& p, const Residuals& a, u32 slot, const Placed& at, double residual) {
    const float* outputs = a.outputs + (size_t)slot * SITES * OUTPUTS;
    float* d_outputs = a.d_outputs + (size_t)slot * SITES * OUTPUTS;
    for (u32 site = threadIdx.x; site < SITES; site += BLOCK) {
        double changes[Q], own_slope = 0.0;
        energy_changes_at(p, at.lambda, at.x, site, changes);
        u32 own = at.x.get(site);
        const float* from = outputs + (size_t)site * OUTPUTS;
        float* d_from = d_outputs + (size_t)site * OUTPUTS;
#pragma unroll
        for (u32 value = 0; value < Q; value++) {
            if (value == own) continue;
            double d = a.share * residual * rate_slope(flux(from, own, value), changes[value]);
            if (Q == 2) {
                d_from[0] = (float)(own == 1 ? d : -d);
            } else {
                d_from[value] = (float)d;
                own_slope -= d;
            }
        }
        if (Q > 2) d_from[own] = (float)own_slope;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) residuals(Pairs p, Residuals a) {
    extern __shared__ u8 values[];
    __shared__ double space[33];
    u32 slot = blockIdx.x;
    const Pairs& own = pairs_of(p, a.rows[slot]);
    Placed at = place(a, slot, values);
    double residual = residual_of(own, a, slot, at, space);
    if (threadIdx.x == 0) a.out[slot] = residual;
    if (!INSTANCES) write_slopes(own, a, slot, at, residual);
}

// Replace the residuals of the walkers of an instance by `spread` times their deviations from the mean: one thread each, sums in order.
extern "C" __global__ void deviations(double* residuals, u32 together, double spread, u32 instances) {
    u32 instance = blockIdx.x * blockDim.x + threadIdx.x;
    if (instance >= instances) return;
    double* own = residuals + (size_t)instance * together;
    double mean = 0.0;
    for (u32 k = 0; k < together; k++) mean += own[k];
    mean /= (double)together;
    for (u32 k = 0; k < together; k++) own[k] = spread * (own[k] - mean);
}

// What the loss gains with the outputs, by residuals that are there.
extern "C" __global__ void __launch_bounds__(BLOCK) slopes(Pairs p, Residuals a) {
    extern __shared__ u8 values[];
    u32 slot = blockIdx.x;
    const Pairs& own = pairs_of(p, a.rows[slot]);
    Placed at = place(a, slot, values);
    write_slopes(own, a, slot, at, a.out[slot]);
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

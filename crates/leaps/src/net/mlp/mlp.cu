// The multilayer perceptron in float32, parameters in their natural order: weight[(unit * SITES + i) * FAN + (j, c)] without
// j = i, bias[unit * SITES + i], out[s * HIDDEN + unit].
//
// Given: SITES, INPUTS (1 for spins, else the number of values), HIDDEN, OUTPUTS, TOGETHER (slots that read a weight at once).

#define FAN ((SITES - 1) * INPUTS)

// Where a row's weights of another site start, in the row and among the inputs.
__device__ __forceinline__ u32 other_site(u32 place, u32 own) { return place + (place >= own); }

// `sums[slot * HIDDEN * SITES + unit * SITES + i]`. A warp has a row of weights at a time.
extern "C" __global__ void mlp_sums(const float* weight, const u8* states, const u32* rows, float* sums, u32 slots) {
    __shared__ u8 values[TOGETHER * SITES];
    const float* bias = weight + (u64)HIDDEN * SITES * FAN;
    u32 first = blockIdx.x * TOGETHER, me = threadIdx.x % 32;
    for (u32 k = threadIdx.x; k < TOGETHER * SITES; k += blockDim.x) {
        u32 slot = min(first + k / SITES, slots - 1);
        values[k] = states[(u64)rows[slot] * SITES + k % SITES];
    }
    __syncthreads();
    for (u32 row = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32; row < HIDDEN * SITES; row += gridDim.y * (blockDim.x / 32)) {
        const float* w = weight + (u64)row * FAN;
        float sum[TOGETHER];
#pragma unroll
        for (int l = 0; l < TOGETHER; l++) sum[l] = 0.0f;
        for (u32 place = me; place < SITES - 1; place += 32) {
            u32 site = other_site(place, row % SITES);
#pragma unroll
            for (int l = 0; l < TOGETHER; l++) {
                u8 value = values[l * SITES + site];
#if INPUTS == 1
                sum[l] = fmaf(w[place], value == 1 ? 1.0f : -1.0f, sum[l]);
#else
                sum[l] += w[place * INPUTS + value];
#endif
            }
        }
#pragma unroll
        for (int l = 0; l < TOGETHER; l++) {
            float all = warp_sum(sum[l]) + bias[row];
            if (me == 0 && first + l < slots) sums[(u64)(first + l) * HIDDEN * SITES + row] = all;
        }
    }
}

extern "C" __global__ void mlp_out(const float* sums, const float* times, const float* weight, float* out, u32 slots) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x, slot = at / SITES, i = at % SITES;
    if (slot >= slots) return;
    times += (u64)slot * TIMES;
    float total[OUTPUTS];
    for (int s = 0; s < OUTPUTS; s++) total[s] = 0.0f;
    for (u32 unit = 0; unit < HIDDEN; unit++) {
        float sum = sums[((u64)slot * HIDDEN + unit) * SITES + i];
        float h = silu(fmaf(sum, 1.0f + times[unit], times[HIDDEN + unit]));
        for (int s = 0; s < OUTPUTS; s++) total[s] = fmaf(weight[s * HIDDEN + unit], h, total[s]);
    }
    for (int s = 0; s < OUTPUTS; s++) out[(u64)at * OUTPUTS + s] = total[s];
}

// Gradients of the sums (in place) and of a slot's functions of time, and what the slot adds to that of the output weights,
// `d_weight[slot * OUTPUTS * HIDDEN + s * HIDDEN + unit]`. A block for every slot, a warp for every unit.
extern "C" __global__ void mlp_back(float* sums, const float* times, const float* weight, const float* d_out, float* d_times,
                                    float* d_weight) {
    u32 slot = blockIdx.x, me = threadIdx.x % 32;
    times += (u64)slot * TIMES;
    d_times += (u64)slot * TIMES;
    d_out += (u64)slot * SITES * OUTPUTS;
    for (u32 unit = threadIdx.x / 32; unit < HIDDEN; unit += blockDim.x / 32) {
        float slope = 1.0f + times[unit], shift = times[HIDDEN + unit], d_slope = 0.0f, d_shift = 0.0f;
        float* row = sums + ((u64)slot * HIDDEN + unit) * SITES;
        for (int s = 0; s < OUTPUTS; s++) {
            float sum = 0.0f;
            for (u32 i = me; i < SITES; i += 32) sum = fmaf(silu(fmaf(row[i], slope, shift)), d_out[i * OUTPUTS + s], sum);
            sum = warp_sum(sum);
            if (me == 0) d_weight[((u64)slot * OUTPUTS + s) * HIDDEN + unit] = sum;
        }
        for (u32 i = me; i < SITES; i += 32) {
            float d_h = 0.0f;
            for (int s = 0; s < OUTPUTS; s++) d_h = fmaf(weight[s * HIDDEN + unit], d_out[i * OUTPUTS + s], d_h);
            float d_z = d_h * silu_slope(fmaf(row[i], slope, shift));
            d_slope = fmaf(d_z, row[i], d_slope);
            d_shift += d_z;
            row[i] = d_z * slope;
        }
        d_slope = warp_sum(d_slope);
        d_shift = warp_sum(d_shift);
        if (me == 0) {
            d_times[unit] = d_slope;
            d_times[HIDDEN + unit] = d_shift;
        }
    }
}

// The gradient of the weights: a thread for each, slots in order. A block has (some of) one row.
extern "C" __global__ void mlp_weights(const float* d_sums, const u8* states, const u32* rows, float* gradient, u32 slots) {
    u32 row = blockIdx.x, k = blockIdx.y * blockDim.x + threadIdx.x;
    if (k >= FAN) return;
    u32 site = other_site(k / INPUTS, row % SITES);
    float sum = 0.0f;
#pragma unroll 4
    for (u32 slot = 0; slot < slots; slot++) {
        u8 value = states[(u64)rows[slot] * SITES + site];
        float d = d_sums[(u64)slot * HIDDEN * SITES + row];
#if INPUTS == 1
        sum += value == 1 ? d : -d;
#else
        sum += value == k % INPUTS ? d : 0.0f;
#endif
    }
    gradient[(u64)row * FAN + k] = sum;
}

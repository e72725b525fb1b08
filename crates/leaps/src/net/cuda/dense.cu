// Functions of time for every slot: features, a hidden layer of TIME_UNITS silu units, `outputs` numbers. Parameters are in their
// natural order.

// Write `times[slot * outputs + o]`, and keep the hidden units of a slot: before and after their activation. A block for
// every slot.
extern "C" __global__ void embed_time(const float* p, const u32* time_indices, const float* table, float* saved, float* times,
                                      u32 outputs) {
    __shared__ float after[TIME_UNITS];
    u32 slot = blockIdx.x;
    const float* features = table + (u64)time_indices[slot] * TIME_FEATURES + 1;
    const float *b1 = p + TIME_UNITS * FEATURES, *w2 = b1 + TIME_UNITS, *b2 = w2 + outputs * TIME_UNITS;
    if (threadIdx.x < TIME_UNITS) {
        u32 k = threadIdx.x;
        float sum = b1[k];
        for (int i = 0; i < FEATURES; i++) sum = fmaf(p[k * FEATURES + i], features[i], sum);
        after[k] = silu(sum);
        saved[slot * 2 * TIME_UNITS + k] = sum;
        saved[(slot * 2 + 1) * TIME_UNITS + k] = after[k];
    }
    __syncthreads();
    for (u32 o = threadIdx.x; o < outputs; o += blockDim.x) {
        float sum = b2[o];
        for (int k = 0; k < TIME_UNITS; k++) sum = fmaf(w2[o * TIME_UNITS + k], after[k], sum);
        times[(u64)slot * outputs + o] = sum;
    }
}

// Write the gradient of the hidden units before their activation. A block of TIME_UNITS threads for every slot.
extern "C" __global__ void embed_time_back(const float* p, const float* saved, const float* d_times, float* d_hidden,
                                           u32 outputs) {
    u32 slot = blockIdx.x, k = threadIdx.x;
    const float* w2 = p + TIME_UNITS * (FEATURES + 1);
    float sum = 0.0f;
    for (u32 o = 0; o < outputs; o++) sum = fmaf(w2[o * TIME_UNITS + k], d_times[(u64)slot * outputs + o], sum);
    d_hidden[slot * TIME_UNITS + k] = sum * silu_slope(saved[slot * 2 * TIME_UNITS + k]);
}

// Write the gradient of the parameters: a thread for each, slots in order. TimeGradient is declared by parts.rs.
extern "C" __global__ void embed_time_sum(TimeGradient pass) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x, k = at;
    if (at >= TIME_UNITS * (FEATURES + 1) + pass.outputs * (TIME_UNITS + 1)) return;
    float sum = 0.0f;
    if (k < TIME_UNITS * FEATURES) {
        for (u32 slot = 0; slot < pass.slots; slot++)
            sum = fmaf(pass.d_hidden[slot * TIME_UNITS + k / FEATURES], pass.table[(u64)pass.time_indices[slot] * TIME_FEATURES + 1 + k % FEATURES], sum);
    } else if ((k -= TIME_UNITS * FEATURES) < TIME_UNITS) {
        for (u32 slot = 0; slot < pass.slots; slot++) sum += pass.d_hidden[slot * TIME_UNITS + k];
    } else if ((k -= TIME_UNITS) < pass.outputs * TIME_UNITS) {
        for (u32 slot = 0; slot < pass.slots; slot++)
            sum = fmaf(pass.d_times[(u64)slot * pass.outputs + k / TIME_UNITS], pass.saved[(slot * 2 + 1) * TIME_UNITS + k % TIME_UNITS], sum);
    } else {
        k -= pass.outputs * TIME_UNITS;
        for (u32 slot = 0; slot < pass.slots; slot++) sum += pass.d_times[(u64)slot * pass.outputs + k];
    }
    pass.gradient[pass.offset + at] = sum;
}

// `sum over sites of a[site * a_step] b[site * b_step]`, and of the first alone.
__device__ __forceinline__ float over_sites(const float* a, u32 a_step, const float* b, u32 b_step) {
    float sum = 0.0f;
    for (u32 site = 0; site < SITES; site++) sum = fmaf(a[site * a_step], b[site * b_step], sum);
    return sum;
}

__device__ __forceinline__ float over_sites(const float* a, u32 a_step) {
    float sum = 0.0f;
    for (u32 site = 0; site < SITES; site++) sum += a[site * a_step];
    return sum;
}

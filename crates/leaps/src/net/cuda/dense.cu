// Functions of time for every lane: features, a hidden layer of 32 silu units, `outputs` numbers. Parameters are in their
// natural order.

#define FEATURES (MOMENT - 1)
#define HIDDEN_TIME 32

// Write `times[lane * outputs + o]`, and keep the hidden units of a lane: before and after their activation. A block for
// every lane.
extern "C" __global__ void embed_time(const float* p, const u32* moments, const float* table, float* kept, float* times,
                                      u32 outputs) {
    __shared__ float after[HIDDEN_TIME];
    u32 lane = blockIdx.x;
    const float* features = table + (u64)moments[lane] * MOMENT + 1;
    const float *b1 = p + HIDDEN_TIME * FEATURES, *w2 = b1 + HIDDEN_TIME, *b2 = w2 + outputs * HIDDEN_TIME;
    if (threadIdx.x < HIDDEN_TIME) {
        u32 k = threadIdx.x;
        float sum = b1[k];
        for (int i = 0; i < FEATURES; i++) sum = fmaf(p[k * FEATURES + i], features[i], sum);
        after[k] = silu(sum);
        kept[lane * 2 * HIDDEN_TIME + k] = sum;
        kept[(lane * 2 + 1) * HIDDEN_TIME + k] = after[k];
    }
    __syncthreads();
    for (u32 o = threadIdx.x; o < outputs; o += blockDim.x) {
        float sum = b2[o];
        for (int k = 0; k < HIDDEN_TIME; k++) sum = fmaf(w2[o * HIDDEN_TIME + k], after[k], sum);
        times[(u64)lane * outputs + o] = sum;
    }
}

// Write the gradient of the hidden units before their activation. A block of 32 threads for every lane.
extern "C" __global__ void embed_time_back(const float* p, const float* kept, const float* d_times, float* d_hidden,
                                           u32 outputs) {
    u32 lane = blockIdx.x, k = threadIdx.x;
    const float* w2 = p + HIDDEN_TIME * (FEATURES + 1);
    float sum = 0.0f;
    for (u32 o = 0; o < outputs; o++) sum = fmaf(w2[o * HIDDEN_TIME + k], d_times[(u64)lane * outputs + o], sum);
    d_hidden[lane * HIDDEN_TIME + k] = sum * silu_slope(kept[lane * 2 * HIDDEN_TIME + k]);
}

// Write the gradient of the parameters: a thread for each, lanes in order.
extern "C" __global__ void embed_time_sum(const u32* moments, const float* table, const float* kept, const float* d_times,
                                          const float* d_hidden, float* gradient, u32 offset, u32 lanes, u32 outputs) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x, k = at;
    if (at >= HIDDEN_TIME * (FEATURES + 1) + outputs * (HIDDEN_TIME + 1)) return;
    float sum = 0.0f;
    if (k < HIDDEN_TIME * FEATURES) {
        for (u32 lane = 0; lane < lanes; lane++)
            sum = fmaf(d_hidden[lane * HIDDEN_TIME + k / FEATURES], table[(u64)moments[lane] * MOMENT + 1 + k % FEATURES], sum);
    } else if ((k -= HIDDEN_TIME * FEATURES) < HIDDEN_TIME) {
        for (u32 lane = 0; lane < lanes; lane++) sum += d_hidden[lane * HIDDEN_TIME + k];
    } else if ((k -= HIDDEN_TIME) < outputs * HIDDEN_TIME) {
        for (u32 lane = 0; lane < lanes; lane++)
            sum = fmaf(d_times[(u64)lane * outputs + k / HIDDEN_TIME], kept[(lane * 2 + 1) * HIDDEN_TIME + k % HIDDEN_TIME], sum);
    } else {
        k -= outputs * HIDDEN_TIME;
        for (u32 lane = 0; lane < lanes; lane++) sum += d_times[(u64)lane * outputs + k];
    }
    gradient[offset + at] = sum;
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

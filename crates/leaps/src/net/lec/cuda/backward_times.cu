// The way back through functions of time, the first convolution and embeddings, behind backward.cu.

// ---- Gradients of a function of time's outputs, from that of the layer's outputs: a block for every slot.
// `by_context` has space for what a site adds for every value, `[(slot * SITES + site) * (Q + 1) + site_value]`.
extern "C" __global__ void theta_back(ThetaBack pass) {
    u32 slot = blockIdx.x;
    const float* d = pass.d + (u64)slot * CHANNELS * SITES;
    const Context* x = pass.x + (u64)slot * PLACES;
    float* by_context = pass.by_context + (u64)slot * SITES * (Q + 1);
    for (u32 site = threadIdx.x; site < SITES; site += blockDim.x) {
#if SPINS
        float sum = 0.0f;
        for (int c = 0; c < CHANNELS; c++) sum += d[c * SITES + site];
        by_context[site] = sum;
#else
        for (int site_value = 0; site_value <= Q; site_value++) {
            float sum = 0.0f;
            for (int c = 0; c < CHANNELS; c++) sum = fmaf(pass.values[site_value * CHANNELS + c], d[c * SITES + site], sum);
            by_context[site * (Q + 1) + site_value] = sum;
        }
#endif
    }
    __syncthreads();
    u32 warp = threadIdx.x / 32, me = threadIdx.x % 32;
    for (u32 tap = warp; tap < pass.taps; tap += blockDim.x / 32) {
        float sum = 0.0f;
        for (u32 site = me; site < SITES; site += 32) {
            Context context = x[pass.near[tap * SITES + site]];
#if SPINS
            sum = fmaf(by_context[site], context, sum);
#else
            sum += by_context[site * (Q + 1) + context];
#endif
        }
        sum = warp_sum(sum);
        if (me == 0) pass.d_theta[(u64)slot * THETAS + tap] = sum;
    }
}

// ---- Functions of time: a block for every slot and layer. Keeps, for `time_sum`,
// `saved[((slot * layers + layer) * 4 + k) * UNITS + unit]`: both hidden layers, then their gradients.
extern "C" __global__ void time_back(Times times, const float* d_ends, float* d_theta, float* saved) {
    __shared__ float z1[UNITS], a1[UNITS], z2[UNITS], a2[UNITS], d2[UNITS];
    u32 slot = blockIdx.x;
    Time layer = times.layers[blockIdx.y];
    const float* p = times.parameters + layer.parameters;
    d_theta += (u64)slot * THETAS;
#if !IMPORTED
    // One layer may have both scales, and then they are one number.
    if (blockIdx.y == 0 && threadIdx.x == 0)
        d_theta[FIRST_SCALE] = d_ends[2 * slot] + (FIRST_SCALE == LAST_SCALE ? d_ends[2 * slot + 1] : 0.0f);
    if (blockIdx.y == gridDim.y - 1 && FIRST_SCALE != LAST_SCALE && threadIdx.x == 0)
        d_theta[LAST_SCALE] = d_ends[2 * slot + 1];
    __syncthreads();
#endif
    d_theta += layer.theta;
    time_hidden(p, times.turned + layer.turned, times.table[times.time_indices[slot] * TIME_FEATURES], z1, a1, z2, a2);
    const float *w2 = p + UNITS * 2, *w3 = p + UNITS * (UNITS + 3);
    saved += ((u64)slot * gridDim.y + blockIdx.y) * 4 * UNITS;
    for (int k = threadIdx.x; k < UNITS; k += blockDim.x) {
        float sum = 0.0f;
        for (u32 o = 0; o < layer.outputs; o++) sum = fmaf(w3[o * UNITS + k], d_theta[o], sum);
        d2[k] = sum * silu_slope(z2[k]);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < UNITS; k += blockDim.x) {
        float sum = 0.0f;
        for (int o = 0; o < UNITS; o++) sum = fmaf(w2[o * UNITS + k], d2[o], sum);
        saved[k] = a1[k];
        saved[UNITS + k] = a2[k];
        saved[2 * UNITS + k] = sum * silu_slope(z1[k]);
        saved[3 * UNITS + k] = d2[k];
    }
}

// All gradients of the functions of time: a thread for every parameter of layer blockIdx.y, slots in order.
extern "C" __global__ void time_sum(Times times, const float* saved, const float* d_theta, float* gradient, u32 slots) {
    Time layer = times.layers[blockIdx.y];
    u32 at = blockIdx.x * blockDim.x + threadIdx.x, k = at;
    if (at >= UNITS * (UNITS + 3) + layer.outputs * (UNITS + 1)) return;
    saved += blockIdx.y * 4 * UNITS;
    d_theta += layer.theta;
    const u64 step = (u64)gridDim.y * 4 * UNITS;
    // The gradient is the sum of left times right, a row of each for every slot; no right is a 1.
    const float *left, *right = 0;
    u64 left_step = step;
    bool with_time = false;
    if (k < 2 * UNITS) {
        left = saved + 2 * UNITS + k % UNITS;
        with_time = k < UNITS;
    } else if ((k -= 2 * UNITS) < UNITS * UNITS) {
        left = saved + 3 * UNITS + k / UNITS;
        right = saved + k % UNITS;
    } else if ((k -= UNITS * UNITS) < UNITS) {
        left = saved + 3 * UNITS + k;
    } else {
        k -= UNITS;
        bool weight = k < layer.outputs * UNITS;
        left = d_theta + (weight ? k / UNITS : k - layer.outputs * UNITS);
        left_step = THETAS;
        if (weight) right = saved + UNITS + k % UNITS;
    }
    float sum = 0.0f;
#pragma unroll 8
    for (u32 slot = 0; slot < slots; slot++) {
        float factor = with_time ? times.table[times.time_indices[slot] * TIME_FEATURES] : right ? right[slot * step] : 1.0f;
        sum = fmaf(left[slot * left_step], factor, sum);
    }
    gradient[layer.parameters + at] = sum;
}

// ---- The first convolution. For every slot, channel and tap the sum of D over sites, times the spin in the context or apart by
// values: `parts[(slot * CHANNELS + channel) * taps + tap]`, or `[((slot * CHANNELS + channel) * taps + tap) * Q + site_value]`.
extern "C" __global__ void first_back(const float* d, const Context* x, const Near* near, float* parts, u32 taps) {
    u32 slot = blockIdx.x, warp = threadIdx.x / 32, me = threadIdx.x % 32;
    d += (u64)slot * CHANNELS * SITES;
    x += (u64)slot * PLACES;
    for (u32 k = warp; k < CHANNELS * taps; k += blockDim.x / 32) {
        u32 channel = k / taps, tap = k % taps;
#if SPINS
        float sum = 0.0f;
        for (u32 site = me; site < SITES; site += 32)
            sum = fmaf(d[channel * SITES + site], x[near[tap * SITES + site]], sum);
        sum = warp_sum(sum);
        if (me == 0) parts[(u64)slot * CHANNELS * taps + k] = sum;
#else
        for (int site_value = 0; site_value < Q; site_value++) {
            float sum = 0.0f;
            for (u32 site = me; site < SITES; site += 32)
                sum += x[near[tap * SITES + site]] == site_value ? d[channel * SITES + site] : 0.0f;
            sum = warp_sum(sum);
            if (me == 0) parts[((u64)slot * CHANNELS * taps + k) * Q + site_value] = sum;
        }
#endif
    }
}

// ---- For embeddings.

// The weights of the first convolution, from the sums `total[(channel * taps + tap) * Q + site_value]`.
extern "C" __global__ void first_weights(const float* total, const float* values, float* gradient, u32 offset, u32 taps) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= CHANNELS * CHANNELS * taps) return;
    u32 tap = at % taps, plane = at / taps % CHANNELS, channel = at / taps / CHANNELS;
    float sum = 0.0f;
    for (int site_value = 0; site_value < Q; site_value++)
        sum = fmaf(total[(channel * taps + tap) * Q + site_value], values[site_value * CHANNELS + plane], sum);
    gradient[offset + at] = sum;
}

// Embeddings: what the first convolution says of them and what the layers do, `d_values[channel * Q + site_value]`.
extern "C" __global__ void embed_back(EmbedBack pass) {
    __shared__ float d[CHANNELS];
    __shared__ float space[33];
    u32 site_value = blockIdx.x;
    const float* row = pass.embedding + site_value * CHANNELS;
    double square = 0.0;
    for (int c = 0; c < CHANNELS; c++) square += (double)row[c] * row[c];
    float along = 0.0f;
    for (u32 plane = threadIdx.x; plane < CHANNELS; plane += blockDim.x) {
        float sum = 0.0f;
        for (u32 l = 0; l < pass.layers; l++) sum += pass.d_values[(l * CHANNELS + plane) * Q + site_value];
        for (u32 channel = 0; channel < CHANNELS; channel++)
            for (u32 tap = 0; tap < pass.taps; tap++)
                sum = fmaf(pass.weight[(channel * CHANNELS + plane) * pass.taps + tap], pass.total[(channel * pass.taps + tap) * Q + site_value], sum);
        d[plane] = sum;
        along = fmaf(row[plane], sum, along);
    }
    along = block_sum(along, space);
    // e' = f e with f = 1 / (|e| + tiny): de' = f de - f^2 / |e| (e . de) e.
    double length = sqrt(square), f = 1.0 / (length + 1e-7);
    bool shortened = IMPORTED && length > 1.0;
    float factor = shortened ? (float)f : 1.0f, radial = shortened ? (float)(-f * f / length) * along : 0.0f;
    for (u32 c = threadIdx.x; c < CHANNELS; c += blockDim.x)
        pass.gradient[site_value * CHANNELS + c] = fmaf(row[c], radial, d[c] * factor);
}

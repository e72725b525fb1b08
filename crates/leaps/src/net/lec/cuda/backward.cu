// The state-dependent convolutions, backward. Sums run in a fixed order: the bits of a gradient are always the same.
//
// For a position, an output channel c and a tap i, with D the gradient of the layer's outputs and x the input at the tap,
// g = D_c x, dz = g silu'(z): the gradient of A is the sum of dz h over positions (`back_weights`), that of h the sum of
// A dz over channels and taps (`back_inputs`). Both compute z again. In float32 (EXACT) every factor is two tf32 numbers.
//
// Given too: H_ROW (channels that a layer reads, padded), SPAN (positions in shared memory at a time), WARPS and ITEMS (warps of a block, output channels of a warp).

#define H_STRIDE (H_ROW + 4) // 4 more than a multiple of 8: no bank conflicts
#define X_STRIDE (SPAN + 8)
#define PARTS (CHANNELS + 2) // of a kernel element: A, the inner and the outer bias

// The slope of silu at twice y.
__device__ __forceinline__ float half_slope(float y) {
#if EXACT
    float s = reciprocal(1.0f + power_of_two(-2.0f * LOG2_E * y));
    return s * fmaf(2.0f * y, 1.0f - s, 1.0f);
#else
    float w = quick_tanh(y);
    return fmaf(0.5f, w, 0.5f) * fmaf(-y, w, 1.0f + y);
#endif
}

// A number as one or two of tf32.
struct Halves {
    u32 high;
#if EXACT
    u32 low;
#endif
};

__device__ __forceinline__ Halves halves(float value) {
    Halves h;
#if EXACT
    h.high = __float_as_uint(value) & 0xffffe000u;
    h.low = __float_as_uint(value - __uint_as_float(h.high));
#else
    h.high = rounded(value);
#endif
    return h;
}

struct Left {
    uint4 high;
#if EXACT
    uint4 low;
#endif
};

// The transpose of a product's columns, as the next product's left factor.
__device__ __forceinline__ Left as_left(const float* d) {
    Halves a = halves(d[0]), b = halves(d[2]), c = halves(d[1]), e = halves(d[3]);
    Left l;
    l.high = make_uint4(a.high, b.high, c.high, e.high);
#if EXACT
    l.low = make_uint4(a.low, b.low, c.low, e.low);
#endif
    return l;
}

__device__ __forceinline__ void multiply(float* d, const Left& a, const Halves& b0, const Halves& b1) {
#if EXACT
    multiply(d, a.low, b0.high, b1.high);
    multiply(d, a.high, b0.low, b1.low);
#endif
    multiply(d, a.high, b0.high, b1.high);
}

__device__ __forceinline__ void multiply_first(float* d, const Left& a, const Halves& b0, const Halves& b1) {
#if EXACT
    multiply_first(d, a.low, b0.high, b1.high);
    multiply(d, a.high, b0.low, b1.low);
    multiply(d, a.high, b0.high, b1.high);
#else
    multiply_first(d, a.high, b0.high, b1.high);
#endif
}

// Half of A and b as right factors for 8 taps, `high[((tile * CHANNELS + channel) * COLUMNS + j) * 32 + lane]`: two of
// (channel, tap) to compute z, two of (tap, channel) to go back. Products run over taps 0, 2, 4, 6, 1, 3, 5, 7 there.
extern "C" __global__ void pack_right(LayerWeights layer, uint4* high, uint4* low) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x, lane = at % 32, j = at / 32 % COLUMNS;
    u32 channel = at / 32 / COLUMNS % CHANNELS, tile = at / 32 / COLUMNS / CHANNELS;
    if (tile * 8 >= layer.taps) return;
    u32 g = lane / 4, t = lane % 4, tap = tile * 8;
    float v[4] = {half_weight(layer, channel, tap + g, j * 8 + t),
                  half_weight(layer, channel, tap + g, j * 8 + t + 4),
                  half_weight(layer, channel, tap + 2 * t, j * 8 + g),
                  half_weight(layer, channel, tap + 2 * t + 1, j * 8 + g)};
    u32 h[4], l[4];
    for (int i = 0; i < 4; i++) {
        h[i] = tf32(v[i]);
        l[i] = tf32(v[i] - __uint_as_float(h[i]));
    }
    high[at] = make_uint4(h[0], h[1], h[2], h[3]);
    low[at] = make_uint4(l[0], l[1], l[2], l[3]);
}

// ---- Outputs: a block for every slot. Writes the gradient of the last layer, of the weights (for the slot) and of the scale.
extern "C" __global__ void read_back(ReadBack pass) {
    __shared__ float space[33];
    u32 slot = blockIdx.x;
    float scale = pass.ends[2 * slot + 1], d_scale = 0.0f;
    const float* u = pass.u + (u64)slot * CHANNELS * SITES;
    const float* d_out = pass.d_out + (u64)slot * SITES * OUTPUTS;
    float* d = pass.d + (u64)slot * CHANNELS * SITES;
    for (u32 site = threadIdx.x; site < SITES; site += blockDim.x) {
        for (int c = 0; c < CHANNELS; c++) {
            float sum = 0.0f;
            for (int s = 0; s < OUTPUTS; s++) sum = fmaf(pass.weight[s * CHANNELS + c], d_out[site * OUTPUTS + s], sum);
            d_scale = fmaf(sum, u[c * SITES + site], d_scale);
            d[c * SITES + site] = sum * scale;
        }
    }
    d_scale = block_sum(d_scale, space);
    if (threadIdx.x == 0) pass.d_ends[2 * slot + 1] = d_scale;
    u32 warp = threadIdx.x / 32, me = threadIdx.x % 32;
    for (u32 k = warp; k < OUTPUTS * CHANNELS; k += blockDim.x / 32) {
        u32 s = k / CHANNELS, c = k % CHANNELS;
        float sum = 0.0f;
        for (u32 site = me; site < SITES; site += 32) sum = fmaf(u[c * SITES + site], d_out[site * OUTPUTS + s], sum);
        sum = warp_sum(sum);
        if (me == 0) pass.d_weight[slot * (OUTPUTS * CHANNELS) + k] = sum * scale;
    }
}

// ---- What a layer reads, `h[position * H_ROW + channel]`, behind it a 1 and zeros.
extern "C" __global__ void spread(const float* u, const float* ends, float* h, u32 slots, u32 is_first) {
    u64 position = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u32 slot = (u32)(position / SITES), site = (u32)(position % SITES);
    if (slot >= slots) return;
    float scale = is_first ? ends[2 * slot] : 1.0f;
    for (int c = 0; c < H_ROW; c++) {
        float value = c == CHANNELS ? 1.0f : 0.0f;
        if (c < CHANNELS) value = exact_silu(u[((u64)slot * CHANNELS + c) * SITES + site] * scale);
        h[position * H_ROW + c] = value;
    }
}

// ---- Gradients of A and the biases over some positions: rows are 16 taps (of blockIdx.y).
// `parts[((share * CHANNELS + channel) * taps + tap) * PARTS + k]`; for embeddings also
// `d_values[((share * tiles + tile) * CHANNELS + channel) * Q + site_value]`.
extern "C" __global__ void __launch_bounds__(WARPS * 32)
back_weights(WeightsBack pass) {
    __shared__ __align__(16) u32 h_high[SPAN * H_STRIDE];
#if EXACT
    __shared__ __align__(16) u32 h_low[SPAN * H_STRIDE];
#endif
    __shared__ float d_staged[WARPS * ITEMS * SPAN];
    __shared__ Context x_staged[16 * X_STRIDE];
    const u32 me = threadIdx.x & 31, g = me >> 2, t = me & 3, tile = blockIdx.y;
    const u32 block0 = blockIdx.z * WARPS * ITEMS, slot0 = threadIdx.x / 32 * ITEMS;
    const u32 all = pass.slots * SITES, begin = blockIdx.x * pass.share, end = min(begin + pass.share, all);
    Left w[ITEMS][COLUMNS];
    float sums[ITEMS][COLUMNS][4], outer_sum[ITEMS][2];
#if EXACT
    float accumulated[ITEMS][COLUMNS][4];
#endif
#if !SPINS
    float d_value[ITEMS][Q];
#endif
#pragma unroll
    for (int r = 0; r < ITEMS; r++) {
        u32 channel = min(block0 + slot0 + r, (u32)CHANNELS - 1);
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            u64 at = ((u64)(tile * CHANNELS + channel) * COLUMNS + j) * 32 + me;
            w[r][j].high = __ldg(&pass.high[at]);
#if EXACT
            w[r][j].low = __ldg(&pass.low[at]);
#endif
#pragma unroll
            for (int k = 0; k < 4; k++) {
                sums[r][j][k] = 0.0f;
#if EXACT
                accumulated[r][j][k] = 0.0f;
#endif
            }
        }
        outer_sum[r][0] = outer_sum[r][1] = 0.0f;
#if !SPINS
        for (int site_value = 0; site_value < Q; site_value++) d_value[r][site_value] = 0.0f;
#endif
    }
    for (u32 base = begin; base < end; base += SPAN) {
        __syncthreads();
        // Behind the end there is no gradient: any h and x will do, as long as they are numbers.
        for (u32 k = threadIdx.x; k < SPAN * (H_ROW / 4); k += WARPS * 32) {
            u32 row = k / (H_ROW / 4), column = k % (H_ROW / 4);
            float4 value = __ldg(&((const float4*)pass.h)[(u64)min(base + row, end - 1) * (H_ROW / 4) + column]);
            Halves a = halves(value.x), b = halves(value.y), c = halves(value.z), e = halves(value.w);
            ((uint4*)h_high)[row * (H_STRIDE / 4) + column] = make_uint4(a.high, b.high, c.high, e.high);
#if EXACT
            ((uint4*)h_low)[row * (H_STRIDE / 4) + column] = make_uint4(a.low, b.low, c.low, e.low);
#endif
        }
        for (u32 k = threadIdx.x; k < 16 * SPAN; k += WARPS * 32) {
            u32 position = min(base + k % SPAN, end - 1), tap = tile * 16 + k / SPAN;
            Context value = BEHIND;
            if (tap < pass.taps) value = __ldg(&pass.x[(u64)(position / SITES) * PLACES + __ldg(&pass.near[tap * SITES + position % SITES])]);
            x_staged[k / SPAN * X_STRIDE + k % SPAN] = value;
        }
        for (u32 k = threadIdx.x; k < WARPS * ITEMS * SPAN; k += WARPS * 32) {
            u32 position = base + k % SPAN, channel = block0 + k / SPAN;
            bool inside = position < end && channel < CHANNELS;
            d_staged[k] = inside ? __ldg(&pass.d[((u64)(position / SITES) * CHANNELS + channel) * SITES + position % SITES]) : 0.0f;
        }
        __syncthreads();
#pragma unroll 1
        for (u32 s = 0; s < SPAN; s += 8) {
            Halves across[COLUMNS][2], along[COLUMNS][2];
#pragma unroll
            for (int j = 0; j < COLUMNS; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    u32 one = (s + g) * H_STRIDE + j * 8 + t + e * 4, other = (s + 2 * t + e) * H_STRIDE + j * 8 + g;
                    across[j][e].high = h_high[one];
                    along[j][e].high = h_high[other];
#if EXACT
                    across[j][e].low = h_low[one];
                    along[j][e].low = h_low[other];
#endif
                }
            Context v[4];
#pragma unroll
            for (int k = 0; k < 4; k++) v[k] = x_staged[(g + k / 2 * 8) * X_STRIDE + s + 2 * t + k % 2];
#pragma unroll
            for (int r = 0; r < ITEMS; r++) {
                float y[4];
                multiply_first(y, w[r][0], across[0][0], across[0][1]);
#pragma unroll
                for (int j = 1; j < COLUMNS; j++) multiply(y, w[r][j], across[j][0], across[j][1]);
                const float* row = d_staged + (slot0 + r) * SPAN + s + 2 * t;
                float slopes[4];
#pragma unroll
                for (int k = 0; k < 4; k++) {
#if SPINS
                    float grown = row[k % 2] * v[k];
#else
                    u32 channel = min(block0 + slot0 + r, (u32)CHANNELS - 1);
                    float grown = row[k % 2] * __ldg(&pass.values[v[k] * CHANNELS + channel]);
                    u64 slot = min(base + s + 2 * t + k % 2, end - 1) / SITES;
                    u32 tap = min(tile * 16 + g + k / 2 * 8, pass.taps - 1);
                    float kernel = 2.0f * y[k] * reciprocal(1.0f + power_of_two(-2.0f * LOG2_E * y[k]));
                    kernel += __ldg(&pass.outer[channel * pass.taps + tap]) + __ldg(&pass.theta[slot * THETAS + tap]);
                    kernel *= row[k % 2];
#pragma unroll
                    for (int site_value = 0; site_value < Q; site_value++) d_value[r][site_value] += site_value == v[k] ? kernel : 0.0f;
#endif
                    outer_sum[r][k / 2] += grown;
                    slopes[k] = grown * half_slope(y[k]);
                }
                Left back = as_left(slopes);
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) multiply(sums[r][j], back, along[j][0], along[j][1]);
            }
        }
#if EXACT
        // Tensor cores do not round to nearest: let them add up few numbers only.
#pragma unroll
        for (int r = 0; r < ITEMS; r++)
#pragma unroll
            for (int j = 0; j < COLUMNS; j++)
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    accumulated[r][j][k] += sums[r][j][k];
                    sums[r][j][k] = 0.0f;
                }
#endif
    }
#pragma unroll
    for (int r = 0; r < ITEMS; r++) {
        u32 channel = block0 + slot0 + r;
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float sum = outer_sum[r][e];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            u32 tap = tile * 16 + g + e * 8;
            if (channel < CHANNELS && tap < pass.taps) {
                float* to = pass.parts + (((u64)blockIdx.x * CHANNELS + channel) * pass.taps + tap) * PARTS;
                if (t == 0) to[CHANNELS + 1] = sum;
#pragma unroll
                for (int j = 0; j < COLUMNS; j++)
#pragma unroll
                    for (int k = 0; k < 2; k++) {
                        u32 b = j * 8 + 2 * t + k;
#if EXACT
                        if (b <= CHANNELS) to[b] = accumulated[r][j][2 * e + k];
#else
                        if (b <= CHANNELS) to[b] = sums[r][j][2 * e + k];
#endif
                    }
            }
        }
#if !SPINS
        for (int site_value = 0; site_value < Q; site_value++) {
            float sum = warp_sum(d_value[r][site_value]);
            if (me == 0 && channel < CHANNELS)
                pass.d_values[(((u64)blockIdx.x * gridDim.y + tile) * CHANNELS + channel) * Q + site_value] = sum;
        }
#endif
    }
}

// Add up the parts of a layer, in order.
extern "C" __global__ void sum_weights(const float* parts, float* gradient, u32 offset, u32 taps, u32 shares) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x, n = CHANNELS * taps;
    if (at >= n * PARTS) return;
    float sum = 0.0f;
    for (u32 share = 0; share < shares; share++) sum += parts[(u64)share * n * PARTS + at];
    u32 row = at / PARTS, k = at % PARTS;
    if (k < CHANNELS) gradient[offset + row * CHANNELS + k] = sum;
    if (k == CHANNELS) gradient[offset + n * CHANNELS + row] = sum;
    if (k == CHANNELS + 1) gradient[offset + n * (CHANNELS + 1) + row] = sum;
}

// ---- Gradient of h: rows are 16 positions, columns 8 taps; a warp has twice 16 positions, a block ROWS positions and as
// many threads.
extern "C" __global__ void __launch_bounds__(ROWS, 3)
back_inputs(InputsBack pass) {
    __shared__ float d_staged[CHANNELS * ROWS];
    const u32 me = threadIdx.x & 31, g = me >> 2, t = me & 3, mine = threadIdx.x / 32 * 32;
    const u32 all = pass.slots * SITES, base = blockIdx.x * ROWS, own = base + threadIdx.x;
    for (u32 c = 0; c < CHANNELS; c++)
        d_staged[c * ROWS + threadIdx.x] = own < all ? __ldg(&pass.d[((u64)(own / SITES) * CHANNELS + c) * SITES + own % SITES]) : 0.0f;
    __syncthreads();
    Left left[2][COLUMNS];
    u32 sites[2][2], rows[2][2];
    float sums[2][COLUMNS][4];
#if EXACT
    float accumulated[2][COLUMNS][4];
#endif
#pragma unroll
    for (int m = 0; m < 2; m++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            u32 at = min(base + mine + m * 16 + g + e * 8, all - 1);
            sites[m][e] = at % SITES;
            rows[m][e] = at / SITES;
        }
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            float v[4];
#pragma unroll
            for (int k = 0; k < 4; k++) {
                u64 at = rows[m][k % 2] * SITES + sites[m][k % 2];
                v[k] = __ldg(&pass.h[at * H_ROW + j * 8 + t + k / 2 * 4]);
                sums[m][j][k] = 0.0f;
#if EXACT
                accumulated[m][j][k] = 0.0f;
#endif
            }
            Halves a = halves(v[0]), b = halves(v[1]), c = halves(v[2]), e = halves(v[3]);
            left[m][j].high = make_uint4(a.high, b.high, c.high, e.high);
#if EXACT
            left[m][j].low = make_uint4(a.low, b.low, c.low, e.low);
#endif
        }
    }
    for (u32 tile = 0; tile * 8 < pass.taps; tile++) {
        Context v[2][4];
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                u32 tap = tile * 8 + 2 * t + k % 2, e = k / 2;
                v[m][k] = tap < pass.taps ? __ldg(&pass.x[(u64)rows[m][e] * PLACES + __ldg(&pass.near[tap * SITES + sites[m][e]])]) : BEHIND;
            }
        const u32 from = tile * CHANNELS * COLUMNS * 32 + me;
#pragma unroll 1
        for (u32 channel = 0; channel < CHANNELS; channel++) {
            Halves one[COLUMNS][2], other[COLUMNS][2];
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                uint4 w = __ldg(&pass.high[from + (channel * COLUMNS + j) * 32]);
                one[j][0].high = w.x, one[j][1].high = w.y, other[j][0].high = w.z, other[j][1].high = w.w;
#if EXACT
                w = __ldg(&pass.low[from + (channel * COLUMNS + j) * 32]);
                one[j][0].low = w.x, one[j][1].low = w.y, other[j][0].low = w.z, other[j][1].low = w.w;
#endif
            }
#pragma unroll
            for (int m = 0; m < 2; m++) {
                float y[4];
                multiply_first(y, left[m][0], one[0][0], one[0][1]);
#pragma unroll
                for (int j = 1; j < COLUMNS; j++) multiply(y, left[m][j], one[j][0], one[j][1]);
                float slopes[4];
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    float grown = d_staged[channel * ROWS + mine + m * 16 + g + k / 2 * 8];
#if SPINS
                    grown *= v[m][k];
#else
                    grown *= __ldg(&pass.values[v[m][k] * CHANNELS + channel]);
#endif
                    slopes[k] = grown * half_slope(y[k]);
                }
                Left back = as_left(slopes);
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) multiply(sums[m][j], back, other[j][0], other[j][1]);
            }
        }
#if EXACT
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int j = 0; j < COLUMNS; j++)
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    accumulated[m][j][k] += sums[m][j][k];
                    sums[m][j][k] = 0.0f;
                }
#endif
    }
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
        for (int j = 0; j < COLUMNS; j++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                u32 b = j * 8 + 2 * t + k % 2;
                u32 at = base + mine + m * 16 + g + k / 2 * 8;
#if EXACT
                float value = accumulated[m][j][k];
#else
                float value = sums[m][j][k];
#endif
                // A was halved.
                if (b < CHANNELS && at < all) pass.d_h[((u64)(at / SITES) * CHANNELS + b) * SITES + at % SITES] = 2.0f * value;
            }
}

// ---- From the gradient of h to that of u, in place, and to that of the first scale: a block for every slot.
extern "C" __global__ void activate_back(const float* u, const float* ends, float* d, float* d_ends, u32 is_first) {
    __shared__ float space[33];
    u32 slot = blockIdx.x;
    u += (u64)slot * CHANNELS * SITES;
    d += (u64)slot * CHANNELS * SITES;
    float scale = is_first ? ends[2 * slot] : 1.0f, d_scale = 0.0f;
    for (u32 k = threadIdx.x; k < CHANNELS * SITES; k += blockDim.x) {
        float slope = d[k] * half_slope(0.5f * u[k] * scale);
        d_scale = fmaf(slope, u[k], d_scale);
        d[k] = slope * scale;
    }
    if (!is_first) return;
    d_scale = block_sum(d_scale, space);
    if (threadIdx.x == 0) d_ends[2 * slot] = d_scale;
}

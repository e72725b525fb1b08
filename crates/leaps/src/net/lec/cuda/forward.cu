// The state-dependent convolutions, forward.
//
// A position is a site of a slot, `slot * SITES + site`, and there are fewer than 2^31. Outputs of layers are u[(slot * CHANNELS + channel) * SITES + site].
// The input is x[slot * PLACES + site], with nothing behind the last site: spins as numbers, else values whose channels
// are in `values[site_value * CHANNELS + channel]`, zeros for nothing.
//
// Given: SITES, PLACES (sites and nothing), CHANNELS, COLUMNS (eighths of the channels and a constant), ROW (weights of a kernel
// element, its inner and its outer bias), Q, SPINS (two values, one channel), IMPORTED, UNITS (of a function of time), THETAS (what
// all functions of time give for a slot), FIRST_SCALE and LAST_SCALE (where the scales are among them), GROUP and GROUPS
// (output channels that a thread computes, and how many such groups), PER (slots of a thread), STAGED (taps in shared
// memory), EXACT (float32 instead of tf32).

#define LN_2 0.6931471805599453f
#define LOG2_E 1.4426950408889634f

// ---- Parameters, as the passes want them.

// The channels of every value, then those of nothing. Imported ones are shortened to length 1.
extern "C" __global__ void embed(const float* embedding, float* values) {
    for (int site_value = threadIdx.x; site_value <= Q; site_value += blockDim.x) {
        double square = 0.0;
        if (site_value < Q)
            for (int c = 0; c < CHANNELS; c++) square += (double)embedding[site_value * CHANNELS + c] * embedding[site_value * CHANNELS + c];
        double length = sqrt(square);
        float factor = IMPORTED && length > 1.0 ? (float)(1.0 / (length + 1e-7)) : 1.0f;
        for (int c = 0; c < CHANNELS; c++)
            values[site_value * CHANNELS + c] = site_value < Q ? embedding[site_value * CHANNELS + c] * factor : 0.0f;
    }
}

// The first convolution: `first[tap * CHANNELS + channel]` for spins, else with what a value adds,
// `first[(tap * (Q + 1) + site_value) * CHANNELS + channel]`.
extern "C" __global__ void pack_first(const float* weight, const float* values, float* first, u32 taps) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x, c = at % CHANNELS;
#if SPINS
    u32 tap = at / CHANNELS;
    if (tap < taps) first[at] = weight[c * taps + tap];
#else
    u32 site_value = at / CHANNELS % (Q + 1), tap = at / CHANNELS / (Q + 1);
    if (tap >= taps) return;
    float sum = 0.0f;
    for (u32 plane = 0; plane < CHANNELS; plane++)
        sum = fmaf(weight[(c * CHANNELS + plane) * taps + tap], values[site_value * CHANNELS + plane], sum);
    first[at] = sum;
#endif
}

// `out[input * rows + row]` of `weight[row * inputs + input]`.
extern "C" __global__ void transpose(const float* weight, float* out, u32 rows, u32 inputs) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < rows * inputs) out[at % inputs * rows + at / inputs] = weight[at];
}

// A layer for `layer_exact`: `out[(tap * GROUPS * GROUP + channel) * ROW + k]`, times -log2(e) as on the CPU.
extern "C" __global__ void pack_exact(LayerWeights layer, float* out) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    u32 k = at % ROW, channel = at / ROW % (GROUPS * GROUP), tap = at / ROW / (GROUPS * GROUP);
    if (tap >= layer.taps) return;
    float value = 0.0f;
    if (channel < CHANNELS) {
        u32 row = channel * layer.taps + tap;
        if (k < CHANNELS) value = layer.weight[row * CHANNELS + k];
        if (k == ROW - 4) value = layer.inner[row];
        if (k == ROW - 3) value = layer.outer[row];
    }
    out[at] = -LOG2_E * value;
}

__device__ __forceinline__ float half_weight(const LayerWeights& layer, u32 channel, u32 tap, u32 k) {
    if (tap >= layer.taps || k > CHANNELS) return 0.0f;
    u32 row = channel * layer.taps + tap;
    return 0.5f * (k < CHANNELS ? layer.weight[row * CHANNELS + k] : layer.inner[row]);
}

// Half of A and b as left factors, rows are 16 taps: `high[((tile * CHANNELS + channel) * COLUMNS + j) * 32 + lane]`.
// What tf32 leaves of a number is in `low`. `rest` holds the outer biases, `[(tile * CHANNELS + channel) * 16 + row]`.
extern "C" __global__ void pack_left(LayerWeights layer, uint4* high, uint4* low, float* rest) {
    u32 at = blockIdx.x * blockDim.x + threadIdx.x, lane = at % 32, j = at / 32 % COLUMNS;
    u32 channel = at / 32 / COLUMNS % CHANNELS, tile = at / 32 / COLUMNS / CHANNELS;
    if (tile * 16 >= layer.taps) return;
    u32 g = lane / 4, t = lane % 4, tap = tile * 16 + g, k = j * 8 + t;
    float v[4] = {half_weight(layer, channel, tap, k), half_weight(layer, channel, tap + 8, k),
                  half_weight(layer, channel, tap, k + 4), half_weight(layer, channel, tap + 8, k + 4)};
    u32 h[4], l[4];
    for (int i = 0; i < 4; i++) {
        h[i] = tf32(v[i]);
        l[i] = tf32(v[i] - __uint_as_float(h[i]));
    }
    high[at] = make_uint4(h[0], h[1], h[2], h[3]);
    low[at] = make_uint4(l[0], l[1], l[2], l[3]);
    if (j == 0 && lane < 16) {
        tap = tile * 16 + lane;
        rest[(tile * CHANNELS + channel) * 16 + lane] = tap < layer.taps ? layer.outer[channel * layer.taps + tap] : 0.0f;
    }
}

// ---- Input.

extern "C" __global__ void place(const u8* states, const u32* rows, Context* x, u32 slots) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u32 slot = (u32)(at / PLACES), site = (u32)(at % PLACES);
    if (slot >= slots) return;
    Context value = BEHIND;
    if (site < SITES) {
        u8 site_value = states[(u64)rows[slot] * SITES + site];
#if SPINS
        value = site_value == 1 ? 1.0f : -1.0f;
#else
        value = site_value;
#endif
    }
    x[at] = value;
}

// ---- Functions of time: t -> UNITS -> UNITS -> outputs, a block for every slot and layer.

__device__ __forceinline__ void time_hidden(const float* p, const float* turned, float t, float* z1, float* a1, float* z2,
                                            float* a2) {
    const float *w1 = p, *b1 = p + UNITS, *b2 = p + UNITS * (UNITS + 2);
    for (int k = threadIdx.x; k < UNITS; k += blockDim.x) {
        z1[k] = fmaf(w1[k], t, b1[k]);
        a1[k] = silu(z1[k]);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < UNITS; k += blockDim.x) {
        float sum = b2[k];
        for (int i = 0; i < UNITS; i++) sum = fmaf(turned[i * UNITS + k], a1[i], sum);
        z2[k] = sum;
        a2[k] = silu(sum);
    }
    __syncthreads();
}

extern "C" __global__ void time_forward(Times times, float* theta, float* ends) {
    __shared__ float z1[UNITS], a1[UNITS], z2[UNITS], a2[UNITS];
    u32 slot = blockIdx.x, outputs = times.layers[blockIdx.y].outputs;
    Time layer = times.layers[blockIdx.y];
    float t = times.table[times.time_indices[slot] * TIME_FEATURES];
    const float* w = times.turned + layer.turned;
    time_hidden(times.parameters + layer.parameters, w, t, z1, a1, z2, a2);
    w += UNITS * UNITS;
    const float* b3 = times.parameters + layer.parameters + UNITS * (UNITS + 3) + outputs * UNITS;
    float* out = theta + (u64)slot * THETAS + layer.theta;
    for (u32 o = threadIdx.x; o < outputs; o += blockDim.x) {
        float sum = b3[o];
        for (int i = 0; i < UNITS; i++) sum = fmaf(w[i * outputs + o], a2[i], sum);
        out[o] = sum;
#if !IMPORTED
        if (layer.theta + o == FIRST_SCALE) ends[2 * slot] = 1.0f + sum;
        if (layer.theta + o == LAST_SCALE) ends[2 * slot + 1] = 1.0f + sum;
#endif
    }
#if IMPORTED
    if (blockIdx.y == 0 && threadIdx.x == 0) {
        ends[2 * slot] = 1.0f + t;
        ends[2 * slot + 1] = SPINS ? 1.0f + t : 1.0f;
    }
#endif
}

// ---- The first convolution.

extern "C" __global__ void first_forward(const Context* x, const Near* near, const float* first, float* u, u32 slots, u32 taps) {
    u64 position = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u32 slot = (u32)(position / SITES), site = (u32)(position % SITES);
    if (slot >= slots) return;
    x += (u64)slot * PLACES;
    float sum[CHANNELS];
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) sum[c] = 0.0f;
    for (u32 tap = 0; tap < taps; tap++) {
        Context context = x[near[tap * SITES + site]];
#if SPINS
        const float* row = first + tap * CHANNELS;
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) sum[c] = fmaf(row[c], context, sum[c]);
#else
        const float* row = first + (tap * (Q + 1) + context) * CHANNELS;
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) sum[c] += row[c];
#endif
    }
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) u[((u64)slot * CHANNELS + c) * SITES + site] = sum[c];
}

// ---- A layer in float32. A thread (of THREADS in a block) has one site of PER slots, and GROUP output channels.

__device__ __forceinline__ float exact_silu(float z) {
    return z * reciprocal(1.0f + power_of_two(-LOG2_E * z));
}

extern "C" __global__ void __launch_bounds__(THREADS, 4)
layer_exact(LayerForward pass) {
    __shared__ float4 staged[STAGED * GROUP * (ROW / 4)];
    u32 sets = (pass.slots + PER - 1) / PER, c0 = blockIdx.y * GROUP;
    u32 all = sets * SITES, at = blockIdx.x * THREADS + threadIdx.x;
    bool live = at < all;
    if (!live) at = all - 1;
    u32 set = at / SITES, site = at % SITES, slot[PER];
    float h[PER][CHANNELS], sum[PER][GROUP], shared_sum[PER]; // what all channels share: the function of time, for spins
    u32 context[PER], angle[PER]; // where a slot's input and its function of time start
#pragma unroll
    for (int p = 0; p < PER; p++) {
        slot[p] = min(set * PER + p, pass.slots - 1);
        float scale = pass.is_first ? __ldg(&pass.ends[2 * slot[p]]) : 1.0f;
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) h[p][c] = exact_silu(__ldg(&pass.u[((u64)slot[p] * CHANNELS + c) * SITES + site]) * scale);
#pragma unroll
        for (int c = 0; c < GROUP; c++) sum[p][c] = 0.0f;
        shared_sum[p] = 0.0f;
        context[p] = slot[p] * PLACES;
        angle[p] = slot[p] * THETAS;
    }
    for (u32 start = 0; start < pass.taps; start += STAGED) {
        u32 n = min((u32)STAGED, pass.taps - start);
        __syncthreads();
        for (u32 k = threadIdx.x; k < n * GROUP * (ROW / 4); k += THREADS) {
            u32 tap = k / (GROUP * (ROW / 4)), rest = k % (GROUP * (ROW / 4));
            staged[k] = __ldg(&pass.exact[((start + tap) * (GROUPS * GROUP) + c0) * (ROW / 4) + rest]);
        }
        __syncthreads();
        for (u32 i = 0; i < n; i++) {
            u32 place = __ldg(&pass.near[(start + i) * SITES + site]);
            const float4* w = staged + i * GROUP * (ROW / 4);
            Context v[PER];
            float turn[PER];
#pragma unroll
            for (int p = 0; p < PER; p++) {
                v[p] = __ldg(&pass.x[context[p] + place]);
                turn[p] = __ldg(&pass.theta[angle[p] + start + i]);
#if SPINS
                shared_sum[p] = fmaf(turn[p], v[p], shared_sum[p]);
#else
                turn[p] *= -LOG2_E;
#endif
            }
#pragma unroll
            for (int c = 0; c < GROUP; c++) {
                float4 bias = w[c * (ROW / 4) + ROW / 4 - 1];
                float z[PER];
#pragma unroll
                for (int p = 0; p < PER; p++) z[p] = bias.x;
#pragma unroll
                for (int b = 0; b < CHANNELS; b += 4) {
                    float4 a = w[c * (ROW / 4) + b / 4];
#pragma unroll
                    for (int p = 0; p < PER; p++) {
                        z[p] = fmaf(a.x, h[p][b], z[p]);
                        if (b + 1 < CHANNELS) z[p] = fmaf(a.y, h[p][b + 1], z[p]);
                        if (b + 2 < CHANNELS) z[p] = fmaf(a.z, h[p][b + 2], z[p]);
                        if (b + 3 < CHANNELS) z[p] = fmaf(a.w, h[p][b + 3], z[p]);
                    }
                }
#pragma unroll
                for (int p = 0; p < PER; p++) {
                    float kernel = fmaf(z[p], reciprocal(1.0f + power_of_two(z[p])), bias.y);
#if SPINS
                    sum[p][c] = fmaf(kernel, v[p], sum[p][c]);
#else
                    float value = c0 + c < CHANNELS ? __ldg(&pass.values[v[p] * CHANNELS + c0 + c]) : 0.0f;
                    sum[p][c] = fmaf(kernel + turn[p], value, sum[p][c]);
#endif
                }
            }
        }
    }
    if (!live) return;
#pragma unroll
    for (int p = 0; p < PER; p++)
        if (p == 0 || set * PER + p < pass.slots)
#pragma unroll
            for (int c = 0; c < GROUP; c++)
                if (c0 + c < CHANNELS)
                    pass.out[((u64)slot[p] * CHANNELS + c0 + c) * SITES + site] = fmaf(-LN_2, sum[p][c], shared_sum[p]);
}

// ---- A layer in tf32. Rows are 16 taps, columns 8 positions; a warp has TILES times 8 positions and SOME output channels, a block
// POSITIONS positions and as many threads.

#define CONTEXT_STRIDE (POSITIONS + 8)

// What silu gives for twice y, quickly.
__device__ __forceinline__ float quick_silu(float y) {
    return fmaf(y, quick_tanh(y), y);
}

extern "C" __global__ void __launch_bounds__(POSITIONS, 3)
layer_tf32(LayerForward pass) {
    __shared__ __align__(16) Context context[2][16 * CONTEXT_STRIDE];
    __shared__ float turned[POSITIONS];
    const u32 all = pass.slots * SITES, base = blockIdx.x * POSITIONS, mine = threadIdx.x / 32 * (TILES * 8);
    const u32 me = threadIdx.x & 31, g = me >> 2, t = me & 3, c0 = blockIdx.y * SOME;
    u32 h[TILES][COLUMNS][2];
    float sum[SOME][TILES][2];
#pragma unroll
    for (int n = 0; n < TILES; n++) {
        u32 at = min(base + mine + n * 8 + g, all - 1), slot = at / SITES;
        const float* from = pass.u + (u64)slot * (CHANNELS * SITES) + at % SITES;
        auto enter = [&](float scale) {
#pragma unroll
            for (int j = 0; j < COLUMNS * 2; j++) {
                u32 c = j * 4 + t;
                h[n][j / 2][j % 2] = c < CHANNELS ? tf32(exact_silu(__ldg(&from[c * SITES]) * scale)) : c == CHANNELS ? 0x3f800000u : 0u;
            }
        };
        // Two branches: a scale that is chosen costs the loop below registers.
        if (pass.is_first) enter(__ldg(&pass.ends[2 * slot]));
        else enter(1.0f);
#pragma unroll
        for (int c = 0; c < SOME; c++) sum[c][n][0] = sum[c][n][1] = 0.0f;
    }
    // Every thread fetches what one position sees, for all.
    const u32 own = min(base + threadIdx.x, all - 1);
    const Context* own_x = pass.x + (u64)(own / SITES) * PLACES;
    const float* own_theta = pass.theta + (u64)(own / SITES) * THETAS;
    const Near* own_near = pass.near + own % SITES;
    const uint4* weights = pass.left + c0 * (COLUMNS * 32) + me;
    const float* outer = pass.outer + c0 * 16 + g;
    float own_turn = 0.0f; // what all channels share: the function of time, for spins
    for (u32 tile = 0; tile * 16 < pass.taps; tile++) {
        Context* stage = context[tile & 1];
#pragma unroll 8
        for (int r = 0; r < 16; r++) {
            u32 tap = tile * 16 + r;
            Context v = BEHIND;
            if (tap < pass.taps) {
                v = __ldg(&own_x[__ldg(&own_near[r * SITES])]);
#if SPINS
                own_turn = fmaf(__ldg(&own_theta[r]), v, own_turn);
#endif
            }
            stage[r * CONTEXT_STRIDE + threadIdx.x] = v;
        }
        own_near += 16 * SITES;
        own_theta += 16;
        __syncthreads();
        Context v[TILES][4];
#if !SPINS
        float turn[TILES][4];
#endif
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                v[n][k] = stage[(g + k / 2 * 8) * CONTEXT_STRIDE + mine + n * 8 + 2 * t + k % 2];
#if !SPINS
                u32 slot = min(base + mine + n * 8 + 2 * t + k % 2, all - 1) / SITES, tap = tile * 16 + g + k / 2 * 8;
                turn[n][k] = tap < pass.taps ? __ldg(&pass.theta[(u64)slot * THETAS + tap]) : 0.0f;
#endif
            }
#pragma unroll
        for (int c = 0; c < SOME; c++) {
            // Channels that there are not compute what the last one does.
            int row = CHANNELS % SOME == 0 ? c : (int)min(c0 + c, (u32)CHANNELS - 1) - (int)c0;
            uint4 w[COLUMNS];
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) w[j] = __ldg(&weights[(row * COLUMNS + j) * 32]);
            float low = __ldg(&outer[row * 16]), high = __ldg(&outer[row * 16 + 8]);
#pragma unroll
            for (int n = 0; n < TILES; n++) {
                float d[4];
                multiply_first(d, w[0], h[n][0][0], h[n][0][1]);
#pragma unroll
                for (int j = 1; j < COLUMNS; j++) multiply(d, w[j], h[n][j][0], h[n][j][1]);
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    float kernel = quick_silu(d[k]) + (k < 2 ? low : high);
#if SPINS
                    sum[c][n][k % 2] = fmaf(kernel, v[n][k], sum[c][n][k % 2]);
#else
                    sum[c][n][k % 2] = fmaf(kernel + turn[n][k], __ldg(&pass.values[v[n][k] * CHANNELS + c0 + row]), sum[c][n][k % 2]);
#endif
                }
            }
        }
        weights += CHANNELS * COLUMNS * 32;
        outer += CHANNELS * 16;
    }
    turned[threadIdx.x] = own_turn;
    __syncthreads();
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            u32 place = mine + n * 8 + 2 * t + e, at = base + place;
#pragma unroll
            for (int c = 0; c < SOME; c++) {
                float value = sum[c][n][e];
                for (int offset = 4; offset < 32; offset *= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
                if (g == (n * 2 + e) % 8 && at < all && c0 + c < CHANNELS)
                    pass.out[((u64)(at / SITES) * CHANNELS + c0 + c) * SITES + at % SITES] = value + turned[place];
            }
        }
}

// ---- Outputs.

extern "C" __global__ void read_out(const float* u, const float* weight, const float* ends, float* out, u32 slots) {
    u64 position = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u32 slot = (u32)(position / SITES), site = (u32)(position % SITES);
    if (slot >= slots) return;
    float scale = ends[2 * slot + 1];
    for (int s = 0; s < OUTPUTS; s++) {
        float sum = 0.0f;
        for (int c = 0; c < CHANNELS; c++) sum = fmaf(weight[s * CHANNELS + c], u[((u64)slot * CHANNELS + c) * SITES + site], sum);
        out[position * OUTPUTS + s] = sum * scale;
    }
}

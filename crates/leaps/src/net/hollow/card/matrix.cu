// The hollow convolution on matrix units: bfloat16 products, float32 sums.
//
// A block has one direction of one lane. Channels h live in registers as the accumulators of mma.sync, rows are sites:
// a residual layer writes z = silu((1 + a) h + s) to shared memory as bfloat16 and adds the convolution of z to h. Products
// gather their rows from shared memory by a table of taps, so that any lattice will do.
//
// Given: SITES, CHANNELS (a multiple of 8), LAYERS, TAPS, TOKENS, DIRECTIONS, HEAD (a multiple of 16), OUTPUTS;
// tiles of 16 rows per warp and warps of a block, forward and backward: FORWARD_TILES, FORWARD_WARPS, BACK_TILES, BACK_WARPS.

#define CHUNKS (CHANNELS / 8)
#define STRIDE (CHANNELS * 2 + (CHUNKS % 2 == 0 ? 16 : 0)) // bytes of a row: an odd number of 16, against bank conflicts
#define K_CHUNKS (TAPS * CHUNKS)
#define K_STEPS ((K_CHUNKS + 1) / 2)
#define N_TILES CHUNKS
#define N_PAIRS ((N_TILES + 1) / 2)
#define PLANE ((SITES + 1) * STRIDE + 32)
#define TIME_ROW ((LAYERS - 1) * 2 * CHANNELS + 2 * HEAD)

extern __shared__ __align__(16) u8 shared[];

__device__ __forceinline__ u32 pack(float low, float high) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

__device__ __forceinline__ float low(u32 pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }

__device__ __forceinline__ float quick_tanh(float x) {
    float r;
    asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

// As exact as bfloat16 needs: one special function each.
__device__ __forceinline__ float quick_silu(float z) {
    float y = 0.5f * z;
    return fmaf(y, quick_tanh(y), y);
}

__device__ __forceinline__ float quick_slope(float z) {
    float s = fmaf(0.5f, quick_tanh(0.5f * z), 0.5f);
    return s * fmaf(z, 1.0f - s, 1.0f);
}

__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void load_matrices(u32 address, u32* r) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

__device__ __forceinline__ void load_transposed(u32 address, u32* r) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

// d += a b for 16 rows, 8 columns and 16 products each.
__device__ __forceinline__ void multiply(float* d, const u32* a, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Copy 16 bytes to shared memory while other work goes on.
__device__ __forceinline__ void copy_16(u32 to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}
__device__ __forceinline__ void end_copies() { asm volatile("cp.async.commit_group;"); }
template <int LEFT>
__device__ __forceinline__ void await_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT)); }

// Weights come to a ring of three stages in shared memory, a few steps ahead of their use.
#define STAGE_STEPS 3
#define STAGES ((K_STEPS + STAGE_STEPS - 1) / STAGE_STEPS)
#define STAGE_VECTORS (STAGE_STEPS * N_PAIRS * 32)
#define RING (3 * STAGE_VECTORS * 16)

template <int THREADS>
__device__ __forceinline__ void fetch_weights(int stage, u32 ring, const uint4* weights) {
    if (stage < STAGES)
        for (int i = threadIdx.x; i < STAGE_VECTORS; i += THREADS) {
            int vector = stage * STAGE_VECTORS + i;
            if (vector < K_STEPS * N_PAIRS * 32) copy_16(ring + (stage % 3 * STAGE_VECTORS + i) * 16, weights + vector);
        }
    end_copies();
}

// Add the convolution of the rows at `z` to the accumulators, after the first two stages of the weights were fetched and all rows
// written. `tap` gives the byte offset of a row's neighbour.
template <int TILES, int ROWS, int THREADS>
__device__ __forceinline__ void convolve(float (&h)[TILES][N_TILES][4], u32 z, const u32* tap, u32 ring, const uint4* weights) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u32* own = tap + warp * TILES * 16 + (lane & 15);
    int part = lane >> 4;
#pragma unroll 1
    for (int stage = 0; stage < STAGES; stage++) {
        await_copies<1>();
        __syncthreads();
        fetch_weights<THREADS>(stage + 2, ring, weights);
        u32 from = ring + stage % 3 * STAGE_VECTORS * 16 + lane * 16;
#pragma unroll
        for (int s = 0; s < STAGE_STEPS; s++) {
            int step = stage * STAGE_STEPS + s;
            if (K_STEPS % STAGE_STEPS && step >= K_STEPS) break;
            int chunk = 2 * step + part;
            if (K_CHUNKS % 2 && chunk >= K_CHUNKS) chunk = K_CHUNKS - 1; // its weights are 0
            int t = chunk / CHUNKS, c = chunk % CHUNKS;
            u32 a[TILES][4];
#pragma unroll
            for (int m = 0; m < TILES; m++) load_matrices(z + own[t * ROWS + m * 16] + c * 16, a[m]);
#pragma unroll
            for (int p = 0; p < N_PAIRS; p++) {
                u32 b[4];
                asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                             : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                             : "r"(from + (s * N_PAIRS + p) * 512));
#pragma unroll
                for (int m = 0; m < TILES; m++) {
                    multiply(h[m][2 * p], a[m], b[0], b[1]);
                    if (2 * p + 1 < N_TILES) multiply(h[m][2 * p + 1], a[m], b[2], b[3]);
                }
            }
        }
    }
}

// Sum over the rows of a warp's tiles: thread (g = 0, t) ends up with columns 8 n + 2 t and 8 n + 2 t + 1.
__device__ __forceinline__ float sum_rows(float value) {
    value += __shfl_xor_sync(0xffffffffu, value, 4);
    value += __shfl_xor_sync(0xffffffffu, value, 8);
    return value + __shfl_xor_sync(0xffffffffu, value, 16);
}

#define FORWARD_ROWS (FORWARD_WARPS * FORWARD_TILES * 16)

// seen: silu of the last layer, [lane][direction][site][channel]; kept: all layers, [layer] of the same, if KEEP.
template <bool KEEP>
__device__ __forceinline__ void stack(const u8* states, const u32* rows, const u32* moments, const float* times, const u32* taps, const float* first,
    const float* biases, const uint4* weights, u32* seen, u32* kept) {
    u8* z = shared;
    u32 ring = shared_address(shared + PLANE);
    u32* tap = (u32*)(shared + PLANE + RING);
    float* time = (float*)(tap + TAPS * FORWARD_ROWS);
    float* table = time + (LAYERS - 1) * 2 * CHANNELS;
    float* bias = table + TAPS * (TOKENS + 1) * CHANNELS;
    u8* token = (u8*)(bias + LAYERS * CHANNELS);
    int item = blockIdx.x, batch_lane = item / DIRECTIONS, direction = item % DIRECTIONS;
    int thread = threadIdx.x, threads = FORWARD_WARPS * 32;
    int lane = thread & 31, warp = thread >> 5, g = lane >> 2, t = lane & 3;
    const u8* x = states + (u64)rows[batch_lane] * SITES;
    for (int i = thread; i < TAPS * FORWARD_ROWS; i += threads) tap[i] = taps[direction * TAPS * FORWARD_ROWS + i];
    for (int i = thread; i < (LAYERS - 1) * 2 * CHANNELS; i += threads) time[i] = times[(u64)moments[batch_lane] * TIME_ROW + i];
    for (int i = thread; i < TAPS * (TOKENS + 1) * CHANNELS; i += threads) table[i] = first[i];
    for (int i = thread; i < LAYERS * CHANNELS; i += threads) bias[i] = biases[i];
    for (int i = thread; i <= SITES; i += threads) token[i] = i < SITES ? x[i] : TOKENS;
    for (int i = thread; i < (STRIDE + 32) / 4; i += threads) ((u32*)(z + SITES * STRIDE))[i] = 0;
    __syncthreads();

    float h[FORWARD_TILES][N_TILES][4];
#pragma unroll
    for (int m = 0; m < FORWARD_TILES; m++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = (warp * FORWARD_TILES + m) * 16 + half * 8 + g;
#pragma unroll
            for (int n = 0; n < N_TILES; n++) {
                h[m][n][2 * half] = bias[n * 8 + 2 * t];
                h[m][n][2 * half + 1] = bias[n * 8 + 2 * t + 1];
            }
#pragma unroll 1
            for (int k = 0; k < TAPS; k++) {
                int from = token[tap[k * FORWARD_ROWS + row] / STRIDE];
                const float2* w = (const float2*)(table + (k * (TOKENS + 1) + from) * CHANNELS) + t;
#pragma unroll
                for (int n = 0; n < N_TILES; n++) {
                    h[m][n][2 * half] += w[n * 4].x;
                    h[m][n][2 * half + 1] += w[n * 4].y;
                }
            }
        }
    }
    u64 plane = (u64)SITES * (CHANNELS / 2), layer_size = (u64)gridDim.x * plane;
#pragma unroll 1
    for (int layer = 1; layer < LAYERS; layer++) {
        const float* scale = time + (layer - 1) * 2 * CHANNELS;
        const float* shift = scale + CHANNELS;
        const uint4* own = weights + (layer - 1) * K_STEPS * N_PAIRS * 32;
        __syncthreads(); // nobody reads the last layer's rows and weights any more
        fetch_weights<FORWARD_WARPS * 32>(0, ring, own);
        fetch_weights<FORWARD_WARPS * 32>(1, ring, own);
        u32* keep = kept + (layer - 1) * layer_size + item * plane;
#pragma unroll
        for (int m = 0; m < FORWARD_TILES; m++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int row = (warp * FORWARD_TILES + m) * 16 + half * 8 + g;
#pragma unroll
                for (int n = 0; n < N_TILES; n++) {
                    int c = n * 8 + 2 * t;
                    float* v = &h[m][n][2 * half];
                    if (row < SITES) {
                        float a0 = fmaf(v[0], 1.0f + scale[c], shift[c]);
                        float a1 = fmaf(v[1], 1.0f + scale[c + 1], shift[c + 1]);
                        *(u32*)(z + row * STRIDE + c * 2) = pack(quick_silu(a0), quick_silu(a1));
                        if (KEEP) keep[row * (CHANNELS / 2) + c / 2] = pack(v[0], v[1]);
                    }
                    v[0] += bias[layer * CHANNELS + c];
                    v[1] += bias[layer * CHANNELS + c + 1];
                }
            }
        }
        convolve<FORWARD_TILES, FORWARD_ROWS, FORWARD_WARPS * 32>(h, shared_address(z), tap, ring, own);
    }
    u32* keep = kept + (LAYERS - 1) * layer_size + item * plane;
#pragma unroll
    for (int m = 0; m < FORWARD_TILES; m++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = (warp * FORWARD_TILES + m) * 16 + half * 8 + g;
            if (row >= SITES) continue;
#pragma unroll
            for (int n = 0; n < N_TILES; n++) {
                float* v = &h[m][n][2 * half];
                u64 at = row * (CHANNELS / 2) + n * 4 + t;
                seen[item * plane + at] = pack(quick_silu(v[0]), quick_silu(v[1]));
                if (KEEP) keep[at] = pack(v[0], v[1]);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(FORWARD_WARPS * 32, FORWARD_BLOCKS)
stack_forward(const u8* states, const u32* rows, const u32* moments, const float* times, const u32* taps, const float* first, const float* biases,
    const uint4* weights, u32* seen, u32*) {
    stack<false>(states, rows, moments, times, taps, first, biases, weights, seen, (u32*)0);
}

extern "C" __global__ void __launch_bounds__(FORWARD_WARPS * 32, FORWARD_BLOCKS)
stack_kept(const u8* states, const u32* rows, const u32* moments, const float* times, const u32* taps, const float* first, const float* biases,
    const uint4* weights, u32* seen, u32* kept, u32*) {
    stack<true>(states, rows, moments, times, taps, first, biases, weights, seen, kept);
}

// ---- The head: every site alone.

#define HEAD_WARPS 4
#define HEAD_TILES 2
#define HEAD_ROWS (HEAD_WARPS * HEAD_TILES * 16)
#define H_TILES (HEAD / 8)
#define H_PAIRS (H_TILES / 2)
#define H_STEPS (HEAD / 16)
#define MIX_CHUNKS (DIRECTIONS * CHUNKS)
#define MIX_STEPS ((MIX_CHUNKS + 1) / 2)
#define MIX_WIDTH (DIRECTIONS * CHANNELS)
#define MIX_TILES MIX_CHUNKS

// Accumulators of two neighbouring tiles of columns as the left factor of a product.
__device__ __forceinline__ void as_factor(const float* one, const float* two, u32* a) {
    a[0] = pack(one[0], one[1]);
    a[1] = pack(one[2], one[3]);
    a[2] = pack(two[0], two[1]);
    a[3] = pack(two[2], two[3]);
}

// out: [lane][site][output]; u, v, w: what the backward pass needs, [lane][site][HEAD], if KEEP.
template <bool KEEP>
__device__ __forceinline__ void head(const u32* seen, const u32* before, const u32* moments, const float* times, const uint4* mix, const float* mix_bias,
    const uint4* hidden, const float* hidden_bias, const float* last, const float* last_bias, float* out, u32* kept_u, u32* kept_v,
    u32* kept_w) {
    __shared__ float scale[HEAD], shift[HEAD], c1[HEAD], c2[HEAD], m3[OUTPUTS * HEAD];
    int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5, g = lane >> 2, t = lane & 3;
    int batch_lane = blockIdx.x;
    for (int i = thread; i < HEAD; i += HEAD_WARPS * 32) {
        const float* time = times + (u64)moments[batch_lane] * TIME_ROW + (LAYERS - 1) * 2 * CHANNELS;
        scale[i] = 1.0f + time[i];
        shift[i] = time[HEAD + i];
        c1[i] = mix_bias[i];
        c2[i] = hidden_bias[i];
    }
    for (int i = thread; i < OUTPUTS * HEAD; i += HEAD_WARPS * 32) m3[i] = last[i];
    __syncthreads();
    int start = blockIdx.y * HEAD_ROWS + warp * HEAD_TILES * 16;
    float u[HEAD_TILES][H_TILES][4];
#pragma unroll
    for (int m = 0; m < HEAD_TILES; m++)
#pragma unroll
        for (int n = 0; n < H_TILES; n++)
#pragma unroll
            for (int k = 0; k < 4; k++) u[m][n][k] = c1[n * 8 + 2 * t + (k & 1)];
    const u32* own = seen + (u64)batch_lane * DIRECTIONS * SITES * (CHANNELS / 2);
#pragma unroll 2
    for (int step = 0; step < MIX_STEPS; step++) {
        u32 a[HEAD_TILES][4];
#pragma unroll
        for (int part = 0; part < 2; part++) {
            int chunk = 2 * step + part, direction = chunk / CHUNKS, c = chunk % CHUNKS;
#pragma unroll
            for (int m = 0; m < HEAD_TILES; m++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    int row = start + m * 16 + half * 8 + g;
                    u32 from = row < SITES && chunk < MIX_CHUNKS ? before[direction * SITES + row] : NONE;
                    a[m][2 * part + half] =
                        from == NONE ? 0 : own[(u64)(direction * SITES + from) * (CHANNELS / 2) + c * 4 + t];
                }
        }
#pragma unroll
        for (int p = 0; p < H_PAIRS; p++) {
            uint4 b = __ldg(mix + (step * H_PAIRS + p) * 32 + lane);
#pragma unroll
            for (int m = 0; m < HEAD_TILES; m++) {
                multiply(u[m][2 * p], a[m], b.x, b.y);
                multiply(u[m][2 * p + 1], a[m], b.z, b.w);
            }
        }
    }
    u32 v[HEAD_TILES][H_STEPS][4];
#pragma unroll
    for (int m = 0; m < HEAD_TILES; m++) {
#pragma unroll
        for (int n = 0; n < H_TILES; n++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int c = n * 8 + 2 * t, row = start + m * 16 + half * 8 + g;
                float* pair = &u[m][n][2 * half];
                u64 at = ((u64)batch_lane * SITES + row) * (HEAD / 2) + c / 2;
                if (KEEP && row < SITES) kept_u[at] = pack(pair[0], pair[1]);
                float v0 = quick_silu(fmaf(pair[0], scale[c], shift[c]));
                float v1 = quick_silu(fmaf(pair[1], scale[c + 1], shift[c + 1]));
                u32 both = pack(v0, v1);
                if (KEEP && row < SITES) kept_v[at] = both;
                v[m][n / 2][2 * (n % 2) + half] = both;
                pair[0] = v0 + c2[c];
                pair[1] = v1 + c2[c + 1];
            }
    }
#pragma unroll
    for (int step = 0; step < H_STEPS; step++)
#pragma unroll
        for (int p = 0; p < H_PAIRS; p++) {
            uint4 b = __ldg(hidden + (step * H_PAIRS + p) * 32 + lane);
#pragma unroll
            for (int m = 0; m < HEAD_TILES; m++) {
                multiply(u[m][2 * p], v[m][step], b.x, b.y);
                multiply(u[m][2 * p + 1], v[m][step], b.z, b.w);
            }
        }
#pragma unroll
    for (int m = 0; m < HEAD_TILES; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = start + m * 16 + half * 8 + g;
            u64 site = (u64)batch_lane * SITES + row;
            if (KEEP && row < SITES)
#pragma unroll
                for (int n = 0; n < H_TILES; n++)
                    kept_w[site * (HEAD / 2) + n * 4 + t] = pack(u[m][n][2 * half], u[m][n][2 * half + 1]);
#pragma unroll
            for (int n = 0; n < H_TILES; n++) {
                u[m][n][2 * half] = quick_silu(u[m][n][2 * half]);
                u[m][n][2 * half + 1] = quick_silu(u[m][n][2 * half + 1]);
            }
            for (int o = 0; o < OUTPUTS; o++) {
                float sum = 0.0f;
#pragma unroll
                for (int n = 0; n < H_TILES; n++) {
                    const float* w = m3 + o * HEAD + n * 8 + 2 * t;
                    sum = fmaf(u[m][n][2 * half], w[0], sum);
                    sum = fmaf(u[m][n][2 * half + 1], w[1], sum);
                }
                sum += __shfl_xor_sync(0xffffffffu, sum, 1);
                sum += __shfl_xor_sync(0xffffffffu, sum, 2);
                if (t == 0 && row < SITES) out[site * OUTPUTS + o] = sum + last_bias[o];
            }
        }
}

extern "C" __global__ void __launch_bounds__(HEAD_WARPS * 32, 2)
head_forward(const u32* seen, const u32* before, const u32* moments, const float* times, const uint4* mix, const float* mix_bias, const uint4* hidden,
    const float* hidden_bias, const float* last, const float* last_bias, float* out) {
    head<false>(seen, before, moments, times, mix, mix_bias, hidden, hidden_bias, last, last_bias, out, (u32*)0, (u32*)0, (u32*)0);
}

extern "C" __global__ void __launch_bounds__(HEAD_WARPS * 32, 2)
head_kept(const u32* seen, const u32* before, const u32* moments, const float* times, const uint4* mix, const float* mix_bias, const uint4* hidden,
    const float* hidden_bias, const float* last, const float* last_bias, float* out, u32* kept_u, u32* kept_v, u32* kept_w) {
    head<true>(seen, before, moments, times, mix, mix_bias, hidden, hidden_bias, last, last_bias, out, kept_u, kept_v, kept_w);
}

// Sums over a block's rows, one row of HEAD_SUMS numbers for each block: scale and shift of the first activation, biases of
// mix and hidden, weights and biases of the last layer.
#define HEAD_SUMS (4 * HEAD + OUTPUTS * HEAD + OUTPUTS)

// Writes d_u, d_w [lane][site][HEAD], d_seen [lane][site][direction * channel] and the sums.
extern "C" __global__ void __launch_bounds__(HEAD_WARPS * 32, 2)
head_backward(const u32* moments, const float* times, const uint4* mix_back, const uint4* hidden_back, const float* last, const float* d_out, const u32* kept_u,
    const u32* kept_w, u32* d_u_out, u32* d_w_out, u32* d_seen, float* sums) {
    __shared__ float scale[HEAD], shift[HEAD], m3[OUTPUTS * HEAD], part[HEAD_WARPS][HEAD_SUMS];
    int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5, g = lane >> 2, t = lane & 3;
    int batch_lane = blockIdx.x;
    for (int i = thread; i < HEAD; i += HEAD_WARPS * 32) {
        const float* time = times + (u64)moments[batch_lane] * TIME_ROW + (LAYERS - 1) * 2 * CHANNELS;
        scale[i] = 1.0f + time[i];
        shift[i] = time[HEAD + i];
    }
    for (int i = thread; i < OUTPUTS * HEAD; i += HEAD_WARPS * 32) m3[i] = last[i];
    __syncthreads();
    int start = blockIdx.y * HEAD_ROWS + warp * HEAD_TILES * 16;
    float* own = part[warp];
    float d[HEAD_TILES][H_TILES][4];
#pragma unroll
    for (int m = 0; m < HEAD_TILES; m++)
#pragma unroll
        for (int n = 0; n < H_TILES; n++)
#pragma unroll
            for (int k = 0; k < 4; k++) d[m][n][k] = 0.0f;
    // Through the last layer, output by output.
    for (int o = 0; o < OUTPUTS; o++) {
        float slope[HEAD_TILES][2], bias_sum = 0.0f;
#pragma unroll
        for (int m = 0; m < HEAD_TILES; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int row = start + m * 16 + half * 8 + g;
                slope[m][half] = row < SITES ? d_out[((u64)batch_lane * SITES + row) * OUTPUTS + o] : 0.0f;
                bias_sum += slope[m][half];
            }
        bias_sum = sum_rows(bias_sum);
        if (lane == 0) own[4 * HEAD + OUTPUTS * HEAD + o] = bias_sum;
#pragma unroll
        for (int n = 0; n < H_TILES; n++) {
            int c = n * 8 + 2 * t;
            float sum0 = 0.0f, sum1 = 0.0f, w0 = m3[o * HEAD + c], w1 = m3[o * HEAD + c + 1];
#pragma unroll
            for (int m = 0; m < HEAD_TILES; m++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    int row = start + m * 16 + half * 8 + g;
                    u32 w = row < SITES ? kept_w[((u64)batch_lane * SITES + row) * (HEAD / 2) + c / 2] : 0;
                    sum0 = fmaf(slope[m][half], quick_silu(low(w)), sum0);
                    sum1 = fmaf(slope[m][half], quick_silu(high(w)), sum1);
                    d[m][n][2 * half] = fmaf(slope[m][half], w0, d[m][n][2 * half]);
                    d[m][n][2 * half + 1] = fmaf(slope[m][half], w1, d[m][n][2 * half + 1]);
                }
            sum0 = sum_rows(sum0);
            sum1 = sum_rows(sum1);
            if (g == 0) {
                own[4 * HEAD + o * HEAD + c] = sum0;
                own[4 * HEAD + o * HEAD + c + 1] = sum1;
            }
        }
    }
    // d is the gradient of silu(w); then of w.
    u32 factor[HEAD_TILES][H_STEPS][4];
#pragma unroll
    for (int n = 0; n < H_TILES; n++) {
        int c = n * 8 + 2 * t;
        float sum0 = 0.0f, sum1 = 0.0f;
#pragma unroll
        for (int m = 0; m < HEAD_TILES; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int row = start + m * 16 + half * 8 + g;
                u64 at = ((u64)batch_lane * SITES + row) * (HEAD / 2) + c / 2;
                u32 w = row < SITES ? kept_w[at] : 0;
                float* pair = &d[m][n][2 * half];
                pair[0] *= quick_slope(low(w));
                pair[1] *= quick_slope(high(w));
                sum0 += pair[0];
                sum1 += pair[1];
                u32 both = pack(pair[0], pair[1]);
                factor[m][n / 2][2 * (n % 2) + half] = both;
                if (row < SITES) d_w_out[at] = both;
            }
        sum0 = sum_rows(sum0);
        sum1 = sum_rows(sum1);
        if (g == 0) {
            own[3 * HEAD + c] = sum0;
            own[3 * HEAD + c + 1] = sum1;
        }
    }
    // v = ... adds to w directly and through the hidden layer.
#pragma unroll
    for (int step = 0; step < H_STEPS; step++)
#pragma unroll
        for (int p = 0; p < H_PAIRS; p++) {
            uint4 b = __ldg(hidden_back + (step * H_PAIRS + p) * 32 + lane);
#pragma unroll
            for (int m = 0; m < HEAD_TILES; m++) {
                multiply(d[m][2 * p], factor[m][step], b.x, b.y);
                multiply(d[m][2 * p + 1], factor[m][step], b.z, b.w);
            }
        }
#pragma unroll
    for (int n = 0; n < H_TILES; n++) {
        int c = n * 8 + 2 * t;
        float scale0 = 0.0f, scale1 = 0.0f, shift0 = 0.0f, shift1 = 0.0f, bias0 = 0.0f, bias1 = 0.0f;
#pragma unroll
        for (int m = 0; m < HEAD_TILES; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int row = start + m * 16 + half * 8 + g;
                u64 at = ((u64)batch_lane * SITES + row) * (HEAD / 2) + c / 2;
                u32 u = row < SITES ? kept_u[at] : 0;
                float* pair = &d[m][n][2 * half];
                float z0 = pair[0] * quick_slope(fmaf(low(u), scale[c], shift[c]));
                float z1 = pair[1] * quick_slope(fmaf(high(u), scale[c + 1], shift[c + 1]));
                scale0 = fmaf(z0, low(u), scale0);
                scale1 = fmaf(z1, high(u), scale1);
                shift0 += z0;
                shift1 += z1;
                z0 *= scale[c];
                z1 *= scale[c + 1];
                bias0 += z0;
                bias1 += z1;
                u32 both = pack(z0, z1);
                factor[m][n / 2][2 * (n % 2) + half] = both;
                if (row < SITES) d_u_out[at] = both;
            }
        float all[6] = {scale0, scale1, shift0, shift1, bias0, bias1};
#pragma unroll
        for (int k = 0; k < 6; k++) {
            float sum = sum_rows(all[k]);
            if (g == 0) own[(k / 2) * HEAD + c + k % 2] = sum;
        }
    }
    __syncthreads();
    float* to = sums + (u64)(blockIdx.x * gridDim.y + blockIdx.y) * HEAD_SUMS;
    for (int i = thread; i < HEAD_SUMS; i += HEAD_WARPS * 32) {
        float sum = 0.0f;
        for (int w = 0; w < HEAD_WARPS; w++) sum += part[w][i];
        to[i] = sum;
    }
    // To what was seen, direction by direction.
#pragma unroll 1
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        float seen[HEAD_TILES][N_PAIRS * 2][4];
#pragma unroll
        for (int m = 0; m < HEAD_TILES; m++)
#pragma unroll
            for (int n = 0; n < N_PAIRS * 2; n++)
#pragma unroll
                for (int k = 0; k < 4; k++) seen[m][n][k] = 0.0f;
#pragma unroll
        for (int step = 0; step < H_STEPS; step++)
#pragma unroll
            for (int p = 0; p < N_PAIRS; p++) {
                uint4 b = __ldg(mix_back + ((direction * H_STEPS + step) * N_PAIRS + p) * 32 + lane);
#pragma unroll
                for (int m = 0; m < HEAD_TILES; m++) {
                    multiply(seen[m][2 * p], factor[m][step], b.x, b.y);
                    multiply(seen[m][2 * p + 1], factor[m][step], b.z, b.w);
                }
            }
#pragma unroll
        for (int m = 0; m < HEAD_TILES; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int row = start + m * 16 + half * 8 + g;
                if (row >= SITES) continue;
                u32* to = d_seen + ((u64)batch_lane * SITES + row) * (MIX_WIDTH / 2) + direction * (CHANNELS / 2);
#pragma unroll
                for (int n = 0; n < N_TILES; n++) to[n * 4 + t] = pack(seen[m][n][2 * half], seen[m][n][2 * half + 1]);
            }
    }
}

// ---- Back through the stack.

#define BACK_ROWS (BACK_WARPS * BACK_TILES * 16)
#define BACK_SUMS (3 * CHANNELS)

// Sums over sites for each lane, direction and layer: scale, shift, and bias of the layer.
// d_kept: gradient of every layer's output, [layer][lane][direction][site][channel].
extern "C" __global__ void __launch_bounds__(BACK_WARPS * 32, BACK_BLOCKS)
stack_backward(const u32* moments, const float* times, const u32* taps_back, const u32* after, const uint4* weights_back, const u32* kept, const u32* d_seen,
    u32* d_kept, float* sums, u32*) {
    u8* z = shared;              // gradient of a layer's output
    u8* below = shared + PLANE;  // the layer's input
    u32 ring = shared_address(shared + 2 * PLANE);
    u32* tap = (u32*)(shared + 2 * PLANE + RING);
    float* time = (float*)(tap + TAPS * BACK_ROWS);
    float* part = time + (LAYERS - 1) * 2 * CHANNELS; // [warp][BACK_SUMS]
    int item = blockIdx.x, batch_lane = item / DIRECTIONS, direction = item % DIRECTIONS;
    int thread = threadIdx.x, threads = BACK_WARPS * 32;
    int lane = thread & 31, warp = thread >> 5, g = lane >> 2, t = lane & 3;
    for (int i = thread; i < TAPS * BACK_ROWS; i += threads) tap[i] = taps_back[direction * TAPS * BACK_ROWS + i];
    for (int i = thread; i < (LAYERS - 1) * 2 * CHANNELS; i += threads) time[i] = times[(u64)moments[batch_lane] * TIME_ROW + i];
    for (int i = thread; i < (STRIDE + 32) / 4; i += threads) ((u32*)(z + SITES * STRIDE))[i] = 0;
    u64 plane = (u64)SITES * (CHANNELS / 2), layer_size = (u64)gridDim.x * plane;
    float d[BACK_TILES][N_TILES][4];
    const u32* top = kept + (LAYERS - 1) * layer_size + item * plane;
#pragma unroll
    for (int m = 0; m < BACK_TILES; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = (warp * BACK_TILES + m) * 16 + half * 8 + g;
            u32 to = row < SITES ? after[direction * SITES + row] : NONE;
#pragma unroll
            for (int n = 0; n < N_TILES; n++) {
                u32 seen = 0, h = 0;
                if (to != NONE) {
                    seen = d_seen[((u64)batch_lane * SITES + to) * (MIX_WIDTH / 2) + direction * (CHANNELS / 2) + n * 4 + t];
                    h = top[row * (CHANNELS / 2) + n * 4 + t];
                }
                d[m][n][2 * half] = low(seen) * quick_slope(low(h));
                d[m][n][2 * half + 1] = high(seen) * quick_slope(high(h));
            }
        }
#pragma unroll 1
    for (int layer = LAYERS - 1; layer >= 0; layer--) {
        const uint4* back = weights_back + (layer - 1) * K_STEPS * N_PAIRS * 32;
        if (layer > 0) {
            const u32* h = kept + (layer - 1) * layer_size + item * plane;
            u32 to = shared_address(below);
            for (int i = thread; i < SITES * CHUNKS; i += threads) copy_16(to + i / CHUNKS * STRIDE + i % CHUNKS * 16, h + i * 4);
            fetch_weights<BACK_WARPS * 32>(0, ring, back);
            fetch_weights<BACK_WARPS * 32>(1, ring, back);
        }
        float* own = part + warp * BACK_SUMS;
#pragma unroll
        for (int n = 0; n < N_TILES; n++) {
            int c = n * 8 + 2 * t;
            float sum0 = 0.0f, sum1 = 0.0f;
#pragma unroll
            for (int m = 0; m < BACK_TILES; m++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    int row = (warp * BACK_TILES + m) * 16 + half * 8 + g;
                    float* pair = &d[m][n][2 * half];
                    sum0 += pair[0];
                    sum1 += pair[1];
                    if (row < SITES) *(u32*)(z + row * STRIDE + c * 2) = pack(pair[0], pair[1]);
                }
            sum0 = sum_rows(sum0);
            sum1 = sum_rows(sum1);
            if (g == 0) {
                own[2 * CHANNELS + c] = sum0;
                own[2 * CHANNELS + c + 1] = sum1;
            }
        }
        __syncthreads();
        u32* keep = d_kept + layer * layer_size + item * plane;
        for (int i = thread; i < SITES * CHUNKS; i += threads)
            ((uint4*)keep)[i] = *(uint4*)(z + i / CHUNKS * STRIDE + i % CHUNKS * 16);
        if (layer > 0) {
            float dz[BACK_TILES][N_TILES][4];
#pragma unroll
            for (int m = 0; m < BACK_TILES; m++)
#pragma unroll
                for (int n = 0; n < N_TILES; n++)
#pragma unroll
                    for (int k = 0; k < 4; k++) dz[m][n][k] = 0.0f;
            convolve<BACK_TILES, BACK_ROWS, BACK_WARPS * 32>(dz, shared_address(z), tap, ring, back);
            const float* scale = time + (layer - 1) * 2 * CHANNELS;
            const float* shift = scale + CHANNELS;
#pragma unroll
            for (int n = 0; n < N_TILES; n++) {
                int c = n * 8 + 2 * t;
                float all[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
                for (int m = 0; m < BACK_TILES; m++)
#pragma unroll
                    for (int half = 0; half < 2; half++) {
                        int row = (warp * BACK_TILES + m) * 16 + half * 8 + g;
                        if (row >= SITES) continue;
                        u32 h = *(u32*)(below + row * STRIDE + c * 2);
                        float s0 = 1.0f + scale[c], s1 = 1.0f + scale[c + 1];
                        float a0 = dz[m][n][2 * half] * quick_slope(fmaf(low(h), s0, shift[c]));
                        float a1 = dz[m][n][2 * half + 1] * quick_slope(fmaf(high(h), s1, shift[c + 1]));
                        all[0] = fmaf(a0, low(h), all[0]);
                        all[1] = fmaf(a1, high(h), all[1]);
                        all[2] += a0;
                        all[3] += a1;
                        d[m][n][2 * half] = fmaf(a0, s0, d[m][n][2 * half]);
                        d[m][n][2 * half + 1] = fmaf(a1, s1, d[m][n][2 * half + 1]);
                    }
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    float sum = sum_rows(all[k]);
                    if (g == 0) own[(k / 2) * CHANNELS + c + k % 2] = sum;
                }
            }
        }
        __syncthreads();
        float* to = sums + ((u64)layer * gridDim.x + item) * BACK_SUMS;
        for (int i = thread; i < BACK_SUMS; i += threads) {
            float sum = 0.0f;
            for (int w = 0; w < BACK_WARPS; w++) sum += part[w * BACK_SUMS + i];
            to[i] = layer == 0 && i < 2 * CHANNELS ? 0.0f : sum;
        }
        __syncthreads();
    }
}

// ---- Gradients of weights: sums over rows of products of two channels.

#define M_TILES ((CHANNELS + 15) / 16)
#define SITE_STEPS ((SITES + 15) / 16)

// Weights of one layer, partial sums of one group of lanes and directions: [group][layer - 1][tap][input][output].
// A warp has one tap.
extern "C" __global__ void __launch_bounds__(OUTER_TAPS * 32, 2)
weights_backward(const u32* moments, const float* times, const u32* taps, const u32* kept, const u32* d_kept, float* parts, u32 items) {
    u8* z = shared;
    u8* d = shared + PLANE;
    u32* tap = (u32*)(d + SITE_STEPS * 16 * STRIDE + 32);
    int layer = blockIdx.y + 1, first_tap = blockIdx.z * OUTER_TAPS;
    int thread = threadIdx.x, threads = OUTER_TAPS * 32, lane = thread & 31, warp = thread >> 5, g = lane >> 2, t = lane & 3;
    u64 plane = (u64)SITES * (CHANNELS / 2), layer_size = (u64)items * plane;
    float sums[M_TILES][N_TILES][4];
#pragma unroll
    for (int m = 0; m < M_TILES; m++)
#pragma unroll
        for (int n = 0; n < N_TILES; n++)
#pragma unroll
            for (int k = 0; k < 4; k++) sums[m][n][k] = 0.0f;
    for (int i = thread; i < (STRIDE + 32) / 4; i += threads) ((u32*)(z + SITES * STRIDE))[i] = 0;
    for (int i = SITES * STRIDE / 4 + thread; i < (SITE_STEPS * 16 * STRIDE + 32) / 4; i += threads) ((u32*)d)[i] = 0;
    int k_a = (lane & 7) + ((lane >> 4) & 1) * 8, m_off = ((lane >> 3) & 1) * 16;
    int k_b = (lane & 7) + ((lane >> 3) & 1) * 8, n_off = (lane >> 4) * 16;
    // Items of one direction at a time: the table of taps stays. Groups are spread over directions.
    int direction = blockIdx.x % DIRECTIONS, groups = gridDim.x / DIRECTIONS;
    for (int i = thread; i < OUTER_TAPS * SITE_STEPS * 16; i += threads) {
        int which = first_tap + i / (SITE_STEPS * 16), row = i % (SITE_STEPS * 16);
        tap[i] = which < TAPS && row < SITES ? taps[(direction * TAPS + which) * FORWARD_ROWS + row] : SITES * STRIDE;
    }
    for (u32 batch_lane = blockIdx.x / DIRECTIONS; batch_lane < items / DIRECTIONS; batch_lane += groups) {
        u64 item = (u64)batch_lane * DIRECTIONS + direction;
        const float* time = times + (u64)moments[batch_lane] * TIME_ROW + (layer - 1) * 2 * CHANNELS;
        const u32* h = kept + (layer - 1) * layer_size + item * plane;
        const u32* dh = d_kept + layer * layer_size + item * plane;
        __syncthreads();
        u32 d_to = shared_address(d);
        for (int i = thread; i < SITES * CHUNKS; i += threads) {
            int row = i / CHUNKS, c = i % CHUNKS * 8;
            copy_16(d_to + row * STRIDE + c * 2, dh + i * 4);
            uint4 eight = ((const uint4*)h)[i];
            u32* pairs = (u32*)&eight;
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const float* own = time + c + 2 * k;
                float a0 = fmaf(low(pairs[k]), 1.0f + own[0], own[CHANNELS]);
                float a1 = fmaf(high(pairs[k]), 1.0f + own[1], own[CHANNELS + 1]);
                pairs[k] = pack(quick_silu(a0), quick_silu(a1));
            }
            *(uint4*)(z + row * STRIDE + c * 2) = eight;
        }
        end_copies();
        await_copies<0>();
        __syncthreads();
        u32 za = shared_address(z) + m_off, da = shared_address(d) + n_off;
#pragma unroll 1
        for (int step = 0; step < SITE_STEPS; step++) {
            u32 b[N_PAIRS][4], a[4];
#pragma unroll
            for (int p = 0; p < N_PAIRS; p++) load_transposed(da + (step * 16 + k_b) * STRIDE + p * 32, b[p]);
            u32 from = za + tap[warp * SITE_STEPS * 16 + step * 16 + k_a];
#pragma unroll
            for (int m = 0; m < M_TILES; m++) {
                load_transposed(from + m * 32, a);
#pragma unroll
                for (int p = 0; p < N_PAIRS; p++) {
                    multiply(sums[m][2 * p], a, b[p][0], b[p][1]);
                    if (2 * p + 1 < N_TILES) multiply(sums[m][2 * p + 1], a, b[p][2], b[p][3]);
                }
            }
        }
    }
    if (first_tap + warp >= TAPS) return;
    float* to = parts + (((u64)blockIdx.x * (LAYERS - 1) + layer - 1) * TAPS + first_tap + warp) * CHANNELS * CHANNELS;
#pragma unroll
    for (int m = 0; m < M_TILES; m++)
#pragma unroll
        for (int n = 0; n < N_TILES; n++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                int input = m * 16 + (k >> 1) * 8 + g, output = n * 8 + 2 * t + (k & 1);
                if (input < CHANNELS) to[input * CHANNELS + output] = sums[m][n][k];
            }
}

// Weights of the first layer: parts [group][tap][token][channel]. A thread has one tap and two channels, a block some tokens.
#define TOKEN_BLOCK (TOKENS < 8 ? TOKENS : 8)
extern "C" __global__ void first_backward(const u8* states, const u32* rows, const u32* taps, const u32* d_kept, float* parts, u32 items) {
    u32* d = (u32*)shared;
    u32* tap = d + SITES * (CHANNELS / 2);
    u16* token = (u16*)(tap + TAPS * SITES);
    int direction = blockIdx.x % DIRECTIONS, groups = gridDim.x / DIRECTIONS, token_0 = blockIdx.y * TOKEN_BLOCK;
    int thread = threadIdx.x, threads = blockDim.x;
    for (int i = thread; i < TAPS * SITES; i += threads) tap[i] = taps[(direction * TAPS + i / SITES) * FORWARD_ROWS + i % SITES] / STRIDE;
    float sums[2][TOKEN_BLOCK];
    int pairs = TAPS * (CHANNELS / 2);
    int own = thread;
#pragma unroll
    for (int s = 0; s < TOKEN_BLOCK; s++) sums[0][s] = sums[1][s] = 0.0f;
    for (u32 batch_lane = blockIdx.x / DIRECTIONS; batch_lane < items / DIRECTIONS; batch_lane += groups) {
        const u8* x = states + (u64)rows[batch_lane] * SITES;
        const u32* from = d_kept + ((u64)batch_lane * DIRECTIONS + direction) * SITES * (CHANNELS / 2);
        __syncthreads();
        for (int i = thread; i < SITES * (CHANNELS / 2); i += threads) d[i] = from[i];
        for (int i = thread; i <= SITES; i += threads) token[i] = i < SITES ? x[i] : 0xffff;
        __syncthreads();
        if (own < pairs) {
            int k = own / (CHANNELS / 2), c = own % (CHANNELS / 2);
            for (int row = 0; row < SITES; row++) {
                int s = token[tap[k * SITES + row]] - token_0;
                u32 pair = d[row * (CHANNELS / 2) + c];
#pragma unroll
                for (int j = 0; j < TOKEN_BLOCK; j++) {
                    sums[0][j] += s == j ? low(pair) : 0.0f;
                    sums[1][j] += s == j ? high(pair) : 0.0f;
                }
            }
        }
    }
    if (own >= pairs) return;
    int k = own / (CHANNELS / 2), c = own % (CHANNELS / 2);
#pragma unroll
    for (int j = 0; j < TOKEN_BLOCK; j++) {
        if (token_0 + j >= TOKENS) continue;
        float* to = parts + (((u64)blockIdx.x * TAPS + k) * TOKENS + token_0 + j) * CHANNELS;
        to[2 * c] = sums[0][j];
        to[2 * c + 1] = sums[1][j];
    }
}

// Products of what entered a layer of the head with the gradient of what left it, summed over sites and lanes:
// parts [group][entering channel][HEAD]. A warp has 48 entering channels. Entering rows come from `before` if that is given.
#define OUTER_TILES 3
#define OUTER_ROWS 64
#define H_STRIDE (HEAD * 2 + 16 - (HEAD / 8) % 2 * 16)

template <int WIDTH, bool GATHER>
__device__ __forceinline__ void head_outer(const u32* entering, const u32* before, const u32* d, float* parts, u32 lanes) {
    const int warps = (WIDTH + OUTER_TILES * 16 - 1) / (OUTER_TILES * 16), threads = warps * 32;
    const int stride = WIDTH * 2 + 16 - (WIDTH / 8) % 2 * 16;
    u8* a_rows = shared;
    u8* d_rows = shared + OUTER_ROWS * stride + 128;
    int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5, g = lane >> 2, t = lane & 3;
    float sums[OUTER_TILES][H_TILES][4];
#pragma unroll
    for (int m = 0; m < OUTER_TILES; m++)
#pragma unroll
        for (int n = 0; n < H_TILES; n++)
#pragma unroll
            for (int k = 0; k < 4; k++) sums[m][n][k] = 0.0f;
    int k_a = (lane & 7) + ((lane >> 4) & 1) * 8, m_off = ((lane >> 3) & 1) * 16;
    int k_b = (lane & 7) + ((lane >> 3) & 1) * 8, n_off = (lane >> 4) * 16;
    const int blocks = (SITES + OUTER_ROWS - 1) / OUTER_ROWS;
    for (u32 job = blockIdx.x; job < lanes * blocks; job += gridDim.x) {
        u32 batch_lane = job / blocks;
        int start = job % blocks * OUTER_ROWS;
        __syncthreads();
        const uint4 zero = {0, 0, 0, 0};
#pragma unroll 4
        for (int i = thread; i < OUTER_ROWS * (WIDTH / 8); i += threads) {
            int row = i / (WIDTH / 8), c = i % (WIDTH / 8), site = start + row;
            uint4 value = zero;
            if (site < SITES) {
                if (GATHER) {
                    int direction = c / CHUNKS;
                    u32 from = before[direction * SITES + site];
                    if (from != NONE)
                        value = ((const uint4*)entering)[((u64)(batch_lane * DIRECTIONS + direction) * SITES + from) * CHUNKS + c % CHUNKS];
                } else {
                    value = ((const uint4*)entering)[((u64)batch_lane * SITES + site) * (WIDTH / 8) + c];
                }
            }
            *(uint4*)(a_rows + row * stride + c * 16) = value;
        }
#pragma unroll 4
        for (int i = thread; i < OUTER_ROWS * (HEAD / 8); i += threads) {
            int row = i / (HEAD / 8), c = i % (HEAD / 8), site = start + row;
            *(uint4*)(d_rows + row * H_STRIDE + c * 16) = site < SITES ? ((const uint4*)d)[((u64)batch_lane * SITES + site) * (HEAD / 8) + c] : zero;
        }
        __syncthreads();
        u32 aa = shared_address(a_rows) + warp * OUTER_TILES * 32 + m_off, da = shared_address(d_rows) + n_off;
#pragma unroll 1
        for (int step = 0; step < OUTER_ROWS / 16; step++) {
            u32 a[OUTER_TILES][4], b[4];
#pragma unroll
            for (int m = 0; m < OUTER_TILES; m++) load_transposed(aa + (step * 16 + k_a) * stride + m * 32, a[m]);
#pragma unroll
            for (int p = 0; p < H_PAIRS; p++) {
                load_transposed(da + (step * 16 + k_b) * H_STRIDE + p * 32, b);
#pragma unroll
                for (int m = 0; m < OUTER_TILES; m++) {
                    multiply(sums[m][2 * p], a[m], b[0], b[1]);
                    multiply(sums[m][2 * p + 1], a[m], b[2], b[3]);
                }
            }
        }
    }
    float* to = parts + (u64)blockIdx.x * WIDTH * HEAD;
#pragma unroll
    for (int m = 0; m < OUTER_TILES; m++)
#pragma unroll
        for (int n = 0; n < H_TILES; n++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                int input = (warp * OUTER_TILES + m) * 16 + (k >> 1) * 8 + g, output = n * 8 + 2 * t + (k & 1);
                if (input < WIDTH) to[input * HEAD + output] = sums[m][n][k];
            }
}

extern "C" __global__ void mix_outer(const u32* seen, const u32* before, const u32* d_u, float* parts, u32 lanes) {
    head_outer<MIX_WIDTH, true>(seen, before, d_u, parts, lanes);
}

extern "C" __global__ void hidden_outer(const u32* v, const u32* d_w, float* parts, u32 lanes) {
    head_outer<HEAD, false>(v, (const u32*)0, d_w, parts, lanes);
}

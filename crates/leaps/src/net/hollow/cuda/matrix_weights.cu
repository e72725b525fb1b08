// ---- Gradients of weights: sums over rows of products of two channels.

#define SITE_STEPS ((SITES + 15) / 16)

// Weights of a layer that ENTERING_CHUNKS enter, partial sums of one group of slots: [tap][input][output]. `d_saved` is the gradient of the
// layer's output, `fill(slot, i)` the `i`-th 16 bytes of the rows that enter for a slot. A warp has one tap.
template <int ENTERING_CHUNKS, typename Fill>
__device__ __forceinline__ void weights_of(const u32* taps, const u32* d_saved, float* parts, u32 items, Fill fill) {
    const int m_tiles = (ENTERING_CHUNKS * 8 + 15) / 16, inputs = ENTERING_CHUNKS * 8;
    u8* z = shared;
    u8* d = shared + PLANE;
    u32* tap = (u32*)(d + SITE_STEPS * 16 * STRIDE + 32);
    int first_tap = blockIdx.z * OUTER_TAPS;
    int thread = threadIdx.x, threads = OUTER_TAPS * 32, lane = thread & 31, warp = thread >> 5, g = lane >> 2, t = lane & 3;
    float sums[m_tiles][N_TILES][4];
#pragma unroll
    for (int m = 0; m < m_tiles; m++)
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
    for (u32 slot = blockIdx.x / DIRECTIONS; slot < items / DIRECTIONS; slot += groups) {
        const u32* dh = d_saved + ((u64)slot * DIRECTIONS + direction) * (SITES * (CHANNELS / 2));
        __syncthreads();
        u32 d_to = shared_address(d);
        for (int i = thread; i < SITES * CHUNKS; i += threads) copy_16(d_to + i / CHUNKS * STRIDE + i % CHUNKS * 16, dh + i * 4);
        end_copies();
        for (int i = thread; i < SITES * ENTERING_CHUNKS; i += threads)
            *(uint4*)(z + i / ENTERING_CHUNKS * STRIDE + i % ENTERING_CHUNKS * 16) = fill(slot, i);
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
            for (int m = 0; m < m_tiles; m++) {
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
    float* to = parts + (u64)(first_tap + warp) * inputs * CHANNELS;
#pragma unroll
    for (int m = 0; m < m_tiles; m++)
#pragma unroll
        for (int n = 0; n < N_TILES; n++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                int input = m * 16 + (k >> 1) * 8 + g, output = n * 8 + 2 * t + (k & 1);
                if (input < inputs) to[input * CHANNELS + output] = sums[m][n][k];
            }
}

// Weights of one residual layer: [group][layer - 1][tap][input][output].
extern "C" __global__ void __launch_bounds__(OUTER_TAPS * 32, 2)
weights_backward(WeightsBackward pass) {
    int layer = blockIdx.y + 1, direction = blockIdx.x % DIRECTIONS;
    u64 plane = (u64)SITES * (CHANNELS / 2), layer_size = (u64)pass.items * plane;
    float* parts = pass.parts + ((u64)blockIdx.x * (LAYERS - 1) + layer - 1) * TAPS * CHANNELS * CHANNELS;
    weights_of<CHUNKS>(pass.taps, pass.d_saved + layer * layer_size, parts, pass.items, [&](u32 slot, int i) {
        const float* time = pass.times + (u64)pass.time_indices[slot] * TIME_ROW + (layer - 1) * 2 * CHANNELS + i % CHUNKS * 8;
        const u32* h = pass.saved + (layer - 1) * layer_size + ((u64)slot * DIRECTIONS + direction) * plane;
        uint4 eight = ((const uint4*)h)[i];
        u32* pairs = (u32*)&eight;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float* own = time + 2 * k;
            float a0 = fmaf(low(pairs[k]), 1.0f + own[0], own[CHANNELS]);
            float a1 = fmaf(high(pairs[k]), 1.0f + own[1], own[CHANNELS + 1]);
            pairs[k] = pack(quick_silu(a0), quick_silu(a1));
        }
        return eight;
    });
}

#if ENTERING > 0

// Weights of the first layer: [group][tap][number][channel].
extern "C" __global__ void __launch_bounds__(OUTER_TAPS * 32, 2)
first_backward(FirstBackward pass) {
    int direction = blockIdx.x % DIRECTIONS;
    float* parts = pass.parts + (u64)blockIdx.x * TAPS * ENTERING * CHANNELS;
    weights_of<FIRST_CHUNKS>(pass.taps, pass.d_saved, parts, pass.items, [&](u32 slot, int i) {
        const u32* entering = pass.entering + ((u64)slot * DIRECTIONS + direction) * (SITES * (ENTERING / 2));
        return ((const uint4*)entering)[i];
    });
}

#else

// Weights of the first layer: parts [group][tap][value][channel]. A thread has one tap and two channels, a block VALUE_BLOCK values.
#define VALUE_BLOCK (Q < VALUES ? Q : VALUES)
extern "C" __global__ void first_backward(FirstBackward pass) {
    u32* d = (u32*)shared;
    u32* tap = d + SITES * (CHANNELS / 2);
    u16* site_value = (u16*)(tap + TAPS * SITES);
    int direction = blockIdx.x % DIRECTIONS, groups = gridDim.x / DIRECTIONS, value_0 = blockIdx.y * VALUE_BLOCK;
    int thread = threadIdx.x, threads = blockDim.x;
    for (int i = thread; i < TAPS * SITES; i += threads) tap[i] = pass.taps[(direction * TAPS + i / SITES) * FORWARD_ROWS + i % SITES] / STRIDE;
    float sums[2][VALUE_BLOCK];
    int pairs = TAPS * (CHANNELS / 2);
    int own = thread;
#pragma unroll
    for (int s = 0; s < VALUE_BLOCK; s++) sums[0][s] = sums[1][s] = 0.0f;
    for (u32 slot = blockIdx.x / DIRECTIONS; slot < pass.items / DIRECTIONS; slot += groups) {
        const u8* x = pass.states + (u64)pass.rows[slot] * SITES;
        const u32* from = pass.d_saved + ((u64)slot * DIRECTIONS + direction) * SITES * (CHANNELS / 2);
        __syncthreads();
        for (int i = thread; i < SITES * (CHANNELS / 2); i += threads) d[i] = from[i];
        for (int i = thread; i <= SITES; i += threads) site_value[i] = i < SITES ? x[i] : 0xffff;
        __syncthreads();
        if (own < pairs) {
            int k = own / (CHANNELS / 2), c = own % (CHANNELS / 2);
            for (int row = 0; row < SITES; row++) {
                int s = site_value[tap[k * SITES + row]] - value_0;
                u32 pair = d[row * (CHANNELS / 2) + c];
#pragma unroll
                for (int j = 0; j < VALUE_BLOCK; j++) {
                    sums[0][j] += s == j ? low(pair) : 0.0f;
                    sums[1][j] += s == j ? high(pair) : 0.0f;
                }
            }
        }
    }
    if (own >= pairs) return;
    int k = own / (CHANNELS / 2), c = own % (CHANNELS / 2);
#pragma unroll
    for (int j = 0; j < VALUE_BLOCK; j++) {
        if (value_0 + j >= Q) continue;
        float* to = pass.parts + (((u64)blockIdx.x * TAPS + k) * Q + value_0 + j) * CHANNELS;
        to[2 * c] = sums[0][j];
        to[2 * c + 1] = sums[1][j];
    }
}

#endif

// Products of what entered a layer of the head with the gradient of what left it, summed over sites and slots:
// parts [group][entering channel][HEAD]. A warp has OUTER_TILES times 16 entering channels, a block OUTER_ROWS rows at a time. Entering rows come from `before` if that is given,
// followed by the global_features.
#define H_STRIDE (HEAD * 2 + 16 - (HEAD / 8) % 2 * 16)

template <int WIDTH, bool GATHER>
__device__ __forceinline__ void head_outer(const u32* entering, const u32* global_features, const u32* before, const u32* d, float* parts, u32 slots) {
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
    for (u32 job = blockIdx.x; job < slots * blocks; job += gridDim.x) {
        u32 slot = job / blocks;
        int start = job % blocks * OUTER_ROWS;
        __syncthreads();
        const uint4 zero = {0, 0, 0, 0};
#pragma unroll 4
        for (int i = thread; i < OUTER_ROWS * (WIDTH / 8); i += threads) {
            int row = i / (WIDTH / 8), c = i % (WIDTH / 8), site = start + row;
            uint4 value = zero;
            if (site < SITES) {
                if (GATHER && c >= CONTEXT_CHUNKS) {
                    value = ((const uint4*)global_features)[((u64)slot * SITES + site) * (GLOBAL_FEATURES / 8) + c - CONTEXT_CHUNKS];
                } else if (GATHER) {
                    int direction = c / CHUNKS;
                    u32 from = before[direction * SITES + site];
                    if (from != NONE)
                        value = ((const uint4*)entering)[((u64)(slot * DIRECTIONS + direction) * SITES + from) * CHUNKS + c % CHUNKS];
                } else {
                    value = ((const uint4*)entering)[((u64)slot * SITES + site) * (WIDTH / 8) + c];
                }
            }
            *(uint4*)(a_rows + row * stride + c * 16) = value;
        }
#pragma unroll 4
        for (int i = thread; i < OUTER_ROWS * (HEAD / 8); i += threads) {
            int row = i / (HEAD / 8), c = i % (HEAD / 8), site = start + row;
            *(uint4*)(d_rows + row * H_STRIDE + c * 16) = site < SITES ? ((const uint4*)d)[((u64)slot * SITES + site) * (HEAD / 8) + c] : zero;
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

extern "C" __global__ void mix_outer(const u32* context, const u32* global_features, const u32* before, const u32* d_u, float* parts, u32 slots) {
    head_outer<MIX_WIDTH, true>(context, global_features, before, d_u, parts, slots);
}

extern "C" __global__ void hidden_outer(const u32* v, const u32* d_w, float* parts, u32 slots) {
    head_outer<HEAD, false>(v, (const u32*)0, (const u32*)0, d_w, parts, slots);
}

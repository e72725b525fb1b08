// The hollow convolution in float32, written for exactness and any size: the same kernels as in matrix.cu, by name and by
// arguments.
//
// Given: SITES, CHANNELS, LAYERS, TAPS, Q, DIRECTIONS, HEAD, OUTPUTS, GLOBAL_FEATURES, ENTERING (numbers of a site that enter the first
// layer instead of its value; 0 if there are none), FORWARD_ROWS and BACK_ROWS (rows of the tables of
// taps, at least SITES), SHARED_PLANE (whether a plane of channels fits into shared memory), TILE (sites that are added up at
// a time). Blocks have THREADS threads; those of the head HEAD_ROWS sites. Arguments, Word and Weights are declared by
// arguments.rs.

#define STRIDE CHANNELS
#define PLANE ((SITES + 1) * CHANNELS)
#define TIME_ROW ((LAYERS - 1) * 2 * CHANNELS + 2 * HEAD)
#define CONTEXT_WIDTH (DIRECTIONS * CHANNELS)
#define MIX_WIDTH (CONTEXT_WIDTH + GLOBAL_FEATURES)
#define STORE_FEATURE(to, at, pair) (to)[at] = (pair)[(at) % 2]

extern __shared__ __align__(16) float space[];

// sum over taps and entering channels k of z[neighbour][k] weights[tap][k][c], in this order.
__device__ __forceinline__ float convolved(float sum, const float* z, const u32* tap, u32 rows, int site, const float* weights, int c) {
    for (int k = 0; k < TAPS; k++) {
        const float* from = z + tap[k * rows + site];
        const float* w = weights + k * CHANNELS * CHANNELS + c;
        for (int i = 0; i < CHANNELS; i++) sum = fmaf(from[i], w[i * CHANNELS], sum);
    }
    return sum;
}

template <bool SAVE>
__device__ __forceinline__ void stack(const StackForward& pass) {
    int item = blockIdx.x, slot = item / DIRECTIONS, direction = item % DIRECTIONS;
#if ENTERING > 0
    const float* entering = pass.entering + (u64)item * SITES * ENTERING;
#else
    const u8* x = pass.states + (u64)pass.rows[slot] * SITES;
#endif
    const u32* tap = pass.taps + (u64)direction * TAPS * FORWARD_ROWS;
    const float* time = pass.times + (u64)pass.time_indices[slot] * TIME_ROW;
    u64 plane = (u64)SITES * CHANNELS, layer_size = (u64)gridDim.x * plane;
    float* h = pass.context + item * plane;
    float* z = SHARED_PLANE ? space : pass.scratch + (u64)item * PLANE;
    for (int i = threadIdx.x; i < SITES * CHANNELS; i += THREADS) {
        int site = i / CHANNELS, c = i % CHANNELS;
        float sum = pass.biases[c];
        for (int k = 0; k < TAPS; k++) {
            u32 from = tap[k * FORWARD_ROWS + site] / STRIDE;
#if ENTERING > 0
            if (from >= SITES) continue;
            for (int n = 0; n < ENTERING; n++)
                sum = fmaf(entering[from * ENTERING + n], pass.first[(k * ENTERING + n) * CHANNELS + c], sum);
#else
            int site_value = from < SITES ? x[from] : Q;
            sum += pass.first[(k * (Q + 1) + site_value) * CHANNELS + c];
#endif
        }
        h[i] = sum;
    }
    for (int i = threadIdx.x; i < CHANNELS; i += THREADS) z[SITES * CHANNELS + i] = 0.0f;
    for (int layer = 1; layer < LAYERS; layer++) {
        const float* scale = time + (layer - 1) * 2 * CHANNELS;
        const float* shift = scale + CHANNELS;
        const float* w = pass.weights + (u64)(layer - 1) * TAPS * CHANNELS * CHANNELS;
        __syncthreads();
        for (int i = threadIdx.x; i < SITES * CHANNELS; i += THREADS) {
            int c = i % CHANNELS;
            if (SAVE) pass.saved[(layer - 1) * layer_size + item * plane + i] = h[i];
            z[i] = silu(fmaf(h[i], 1.0f + scale[c], shift[c]));
        }
        __syncthreads();
        for (int i = threadIdx.x; i < SITES * CHANNELS; i += THREADS) {
            int site = i / CHANNELS, c = i % CHANNELS;
            h[i] += convolved(pass.biases[layer * CHANNELS + c], z, tap, FORWARD_ROWS, site, w, c);
        }
    }
    for (int i = threadIdx.x; i < SITES * CHANNELS; i += THREADS) {
        if (SAVE) pass.saved[(LAYERS - 1) * layer_size + item * plane + i] = h[i];
        h[i] = silu(h[i]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
stack_forward(StackForward pass) { stack<false>(pass); }

extern "C" __global__ void __launch_bounds__(THREADS)
stack_train(StackForward pass) { stack<true>(pass); }

// ---- The head. A block has HEAD_ROWS sites of one slot.

#define HEAD_SUMS (4 * HEAD + OUTPUTS * HEAD + OUTPUTS)

// The context of site `row` of the block, channel by channel.
__device__ void load_context(const float* context, const float* global_features, const u32* before, float* to) {
    for (int i = threadIdx.x; i < HEAD_ROWS * MIX_WIDTH; i += THREADS) {
        int site = blockIdx.y * HEAD_ROWS + i / MIX_WIDTH, c = i % MIX_WIDTH, direction = c / CHANNELS;
        if (c >= CONTEXT_WIDTH) {
            to[i] = site < SITES ? global_features[((u64)blockIdx.x * SITES + site) * GLOBAL_FEATURES + c - CONTEXT_WIDTH] : 0.0f;
            continue;
        }
        u32 from = site < SITES ? before[direction * SITES + site] : NONE;
        to[i] = from == NONE ? 0.0f : context[((u64)(blockIdx.x * DIRECTIONS + direction) * SITES + from) * CHANNELS + c % CHANNELS];
    }
    __syncthreads();
}

template <bool SAVE>
__device__ __forceinline__ void head(const HeadForward& pass) {
    float* entering = space;
    float* v = entering + HEAD_ROWS * MIX_WIDTH;
    float* r = v + HEAD_ROWS * HEAD;
    const float* scale = pass.times + (u64)pass.time_indices[blockIdx.x] * TIME_ROW + (LAYERS - 1) * 2 * CHANNELS;
    const float* shift = scale + HEAD;
    u64 start = (u64)blockIdx.x * SITES + blockIdx.y * HEAD_ROWS;
    int rows = min(HEAD_ROWS, SITES - (int)blockIdx.y * HEAD_ROWS);
    load_context(pass.context, pass.global_features, pass.before, entering);
    for (int i = threadIdx.x; i < rows * HEAD; i += THREADS) {
        int row = i / HEAD, c = i % HEAD;
        float sum = pass.mix_bias[c];
        for (int k = 0; k < MIX_WIDTH; k++) sum = fmaf(entering[row * MIX_WIDTH + k], pass.mix[k * HEAD + c], sum);
        v[i] = silu(fmaf(sum, 1.0f + scale[c], shift[c]));
        if (SAVE) pass.u[start * HEAD + i] = sum;
        if (SAVE) pass.v[start * HEAD + i] = v[i];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < rows * HEAD; i += THREADS) {
        int row = i / HEAD, c = i % HEAD;
        float sum = pass.hidden_bias[c];
        for (int k = 0; k < HEAD; k++) sum = fmaf(v[row * HEAD + k], pass.hidden[k * HEAD + c], sum);
        sum += v[i];
        if (SAVE) pass.w[start * HEAD + i] = sum;
        r[i] = silu(sum);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < rows * OUTPUTS; i += THREADS) {
        int row = i / OUTPUTS, o = i % OUTPUTS;
        float sum = pass.last_bias[o];
        for (int k = 0; k < HEAD; k++) sum = fmaf(r[row * HEAD + k], pass.last[o * HEAD + k], sum);
        pass.out[start * OUTPUTS + i] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
head_forward(HeadForward pass) { head<false>(pass); }

extern "C" __global__ void __launch_bounds__(THREADS)
head_train(HeadForward pass) { head<true>(pass); }

extern "C" __global__ void __launch_bounds__(THREADS)
head_backward(HeadBackward pass) {
    float* d_w = space;
    float* d_v = d_w + HEAD_ROWS * HEAD;
    const float* scale = pass.times + (u64)pass.time_indices[blockIdx.x] * TIME_ROW + (LAYERS - 1) * 2 * CHANNELS;
    const float* shift = scale + HEAD;
    u64 start = (u64)blockIdx.x * SITES + blockIdx.y * HEAD_ROWS;
    int rows = min(HEAD_ROWS, SITES - (int)blockIdx.y * HEAD_ROWS);
    float* to = pass.sums + (u64)(blockIdx.x * gridDim.y + blockIdx.y) * HEAD_SUMS;
    for (int i = threadIdx.x; i < rows * HEAD; i += THREADS) {
        int row = i / HEAD, c = i % HEAD;
        float d = 0.0f;
        for (int o = 0; o < OUTPUTS; o++) d = fmaf(pass.d_out[(start + row) * OUTPUTS + o], pass.last[o * HEAD + c], d);
        d_w[i] = d * silu_slope(pass.w[start * HEAD + i]);
        pass.d_w[start * HEAD + i] = d_w[i];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < rows * HEAD; i += THREADS) {
        int row = i / HEAD, c = i % HEAD;
        float d = d_w[i];
        for (int k = 0; k < HEAD; k++) d = fmaf(d_w[row * HEAD + k], pass.hidden_back[k * HEAD + c], d);
        d_v[i] = d * silu_slope(fmaf(pass.u[start * HEAD + i], 1.0f + scale[c], shift[c]));
        pass.d_u[start * HEAD + i] = d_v[i] * (1.0f + scale[c]);
    }
    __syncthreads();
    for (int c = threadIdx.x; c < HEAD; c += THREADS) {
        float d_scale = 0.0f, d_shift = 0.0f, d_w_sum = 0.0f;
        for (int row = 0; row < rows; row++) {
            d_scale = fmaf(d_v[row * HEAD + c], pass.u[(start + row) * HEAD + c], d_scale);
            d_shift += d_v[row * HEAD + c];
            d_w_sum += d_w[row * HEAD + c];
        }
        to[c] = d_scale;
        to[HEAD + c] = d_shift;
        to[2 * HEAD + c] = d_shift * (1.0f + scale[c]);
        to[3 * HEAD + c] = d_w_sum;
        for (int o = 0; o < OUTPUTS; o++) {
            float sum = 0.0f;
            for (int row = 0; row < rows; row++)
                sum = fmaf(pass.d_out[(start + row) * OUTPUTS + o], silu(pass.w[(start + row) * HEAD + c]), sum);
            to[4 * HEAD + o * HEAD + c] = sum;
        }
    }
    for (int o = threadIdx.x; o < OUTPUTS; o += THREADS) {
        float sum = 0.0f;
        for (int row = 0; row < rows; row++) sum += pass.d_out[(start + row) * OUTPUTS + o];
        to[4 * HEAD + OUTPUTS * HEAD + o] = sum;
    }
    for (int i = threadIdx.x; i < rows * CONTEXT_WIDTH; i += THREADS) {
        int row = i / CONTEXT_WIDTH, c = i % CONTEXT_WIDTH;
        float sum = 0.0f;
        for (int k = 0; k < HEAD; k++) {
            float d_u = d_v[row * HEAD + k] * (1.0f + scale[k]);
            sum = fmaf(d_u, pass.mix_back[k * CONTEXT_WIDTH + c], sum);
        }
        pass.d_context[start * CONTEXT_WIDTH + i] = sum;
    }
}

// ---- Back through the stack.

#define BACK_SUMS (3 * CHANNELS)

extern "C" __global__ void __launch_bounds__(THREADS)
stack_backward(StackBackward pass) {
    int item = blockIdx.x, slot = item / DIRECTIONS, direction = item % DIRECTIONS;
    const u32* tap = pass.taps_back + (u64)direction * TAPS * BACK_ROWS;
    const float* time = pass.times + (u64)pass.time_indices[slot] * TIME_ROW;
    u64 plane = (u64)SITES * CHANNELS, layer_size = (u64)gridDim.x * plane;
    float* z = SHARED_PLANE ? space : pass.scratch + (u64)item * PLANE;
    const float* top = pass.saved + (LAYERS - 1) * layer_size + item * plane;
    float* d_top = pass.d_saved + (LAYERS - 1) * layer_size + item * plane;
    for (int i = threadIdx.x; i < SITES * CHANNELS; i += THREADS) {
        int site = i / CHANNELS, c = i % CHANNELS;
        u32 to = pass.after[direction * SITES + site];
        float context = to == NONE ? 0.0f : pass.d_context[((u64)slot * SITES + to) * CONTEXT_WIDTH + direction * CHANNELS + c];
        d_top[i] = context * silu_slope(top[i]);
    }
    for (int i = threadIdx.x; i < CHANNELS; i += THREADS) z[SITES * CHANNELS + i] = 0.0f;
    for (int layer = LAYERS - 1; layer >= 0; layer--) {
        const float* d = pass.d_saved + layer * layer_size + item * plane;
        float* to = pass.sums + ((u64)layer * gridDim.x + item) * BACK_SUMS;
        __syncthreads();
        for (int i = threadIdx.x; i < SITES * CHANNELS; i += THREADS) z[i] = d[i];
        __syncthreads();
        for (int c = threadIdx.x; c < CHANNELS; c += THREADS) {
            float sum = 0.0f;
            for (int site = 0; site < SITES; site++) sum += z[site * CHANNELS + c];
            to[2 * CHANNELS + c] = sum;
            if (layer == 0) to[c] = to[CHANNELS + c] = 0.0f;
        }
        if (layer == 0) break;
        const float* h = pass.saved + (layer - 1) * layer_size + item * plane;
        float* below = pass.d_saved + (layer - 1) * layer_size + item * plane;
        const float* scale = time + (layer - 1) * 2 * CHANNELS;
        const float* shift = scale + CHANNELS;
        const float* w = pass.weights_back + (u64)(layer - 1) * TAPS * CHANNELS * CHANNELS;
        for (int i = threadIdx.x; i < SITES * CHANNELS; i += THREADS) {
            int site = i / CHANNELS, c = i % CHANNELS;
            float d_z = convolved(0.0f, z, tap, BACK_ROWS, site, w, c);
            below[i] = d_z * silu_slope(fmaf(h[i], 1.0f + scale[c], shift[c]));
        }
        __syncthreads();
        for (int c = threadIdx.x; c < CHANNELS; c += THREADS) {
            float d_scale = 0.0f, d_shift = 0.0f;
            for (int site = 0; site < SITES; site++) {
                float a = below[site * CHANNELS + c];
                d_scale = fmaf(a, h[site * CHANNELS + c], d_scale);
                d_shift += a;
            }
            to[c] = d_scale;
            to[CHANNELS + c] = d_shift;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < SITES * CHANNELS; i += THREADS)
            below[i] = fmaf(below[i], 1.0f + scale[i % CHANNELS], d[i]);
    }
}

// ---- Gradients of weights. A block has a group of rows and one matrix of the weights; a thread every THREADS-th entry.

// to[i * width + o] = sum over rows of a[row][i] b[row][o]; `load` fills a tile of rows and says how many there are.
template <int HEIGHT, int WIDTH, typename Load>
__device__ __forceinline__ void outer(float* to, u32 tiles, Load load) {
    const int own = (HEIGHT * WIDTH + THREADS - 1) / THREADS;
    float* a = space;
    float* b = a + TILE * HEIGHT;
    for (int first = 0; first < own; first += 16) {
        float sums[16];
        for (int j = 0; j < 16; j++) sums[j] = 0.0f;
        for (u32 tile = 0; tile < tiles; tile++) {
            __syncthreads();
            load(tile, a, b);
            __syncthreads();
            for (int row = 0; row < TILE; row++)
#pragma unroll
                for (int j = 0; j < 16; j++) {
                    int i = (first + j) * THREADS + threadIdx.x;
                    if (i < HEIGHT * WIDTH) sums[j] = fmaf(a[row * HEIGHT + i / WIDTH], b[row * WIDTH + i % WIDTH], sums[j]);
                }
        }
#pragma unroll
        for (int j = 0; j < 16; j++) {
            int i = (first + j) * THREADS + threadIdx.x;
            if (i < HEIGHT * WIDTH) to[i] = sums[j];
        }
    }
}

#define SITE_TILES ((SITES + TILE - 1) / TILE)

extern "C" __global__ void __launch_bounds__(THREADS)
weights_backward(WeightsBackward pass) {
    int layer = blockIdx.y + 1, k = blockIdx.z;
    int direction = blockIdx.x % DIRECTIONS, groups = gridDim.x / DIRECTIONS, group = blockIdx.x / DIRECTIONS;
    u64 plane = (u64)SITES * CHANNELS, layer_size = (u64)pass.items * plane;
    u32 slots = pass.items / DIRECTIONS, own = group < slots ? (slots - group + groups - 1) / groups : 0;
    const u32* tap = pass.taps + (u64)(direction * TAPS + k) * FORWARD_ROWS;
    float* to = pass.parts + (((u64)blockIdx.x * (LAYERS - 1) + layer - 1) * TAPS + k) * CHANNELS * CHANNELS;
    outer<CHANNELS, CHANNELS>(to, own * SITE_TILES, [&](u32 tile, float* a, float* b) {
        u32 slot = group + tile / SITE_TILES * groups, start = tile % SITE_TILES * TILE;
        u64 item = (u64)slot * DIRECTIONS + direction;
        const float* scale = pass.times + (u64)pass.time_indices[slot] * TIME_ROW + (layer - 1) * 2 * CHANNELS;
        for (int i = threadIdx.x; i < TILE * CHANNELS; i += THREADS) {
            u32 site = start + i / CHANNELS, c = i % CHANNELS;
            u32 from = site < SITES ? tap[site] / STRIDE : SITES;
            float h = from < SITES ? pass.saved[(layer - 1) * layer_size + item * plane + from * CHANNELS + c] : 0.0f;
            a[i] = from < SITES ? silu(fmaf(h, 1.0f + scale[c], scale[CHANNELS + c])) : 0.0f;
            b[i] = site < SITES ? pass.d_saved[layer * layer_size + item * plane + site * CHANNELS + c] : 0.0f;
        }
    });
}

// A block has one value, or one of the numbers that enter.
extern "C" __global__ void __launch_bounds__(THREADS)
first_backward(FirstBackward pass) {
    int direction = blockIdx.x % DIRECTIONS, groups = gridDim.x / DIRECTIONS, which = blockIdx.y;
    for (int i = threadIdx.x; i < TAPS * CHANNELS; i += THREADS) {
        int k = i / CHANNELS, c = i % CHANNELS;
        const u32* tap = pass.taps + (u64)(direction * TAPS + k) * FORWARD_ROWS;
        float sum = 0.0f;
        for (u32 slot = blockIdx.x / DIRECTIONS; slot < pass.items / DIRECTIONS; slot += groups) {
            u64 item = (u64)slot * DIRECTIONS + direction;
            const float* d = pass.d_saved + item * SITES * CHANNELS;
#if ENTERING > 0
            const float* entering = pass.entering + item * SITES * ENTERING + which;
#else
            const u8* x = pass.states + (u64)pass.rows[slot] * SITES;
#endif
            for (int site = 0; site < SITES; site++) {
                u32 from = tap[site] / STRIDE;
#if ENTERING > 0
                if (from < SITES) sum = fmaf(entering[from * ENTERING], d[site * CHANNELS + c], sum);
#else
                if (from < SITES && x[from] == which) sum += d[site * CHANNELS + c];
#endif
            }
        }
        pass.parts[(((u64)blockIdx.x * TAPS + k) * gridDim.y + which) * CHANNELS + c] = sum;
    }
}

template <int WIDTH, bool GATHER>
__device__ void head_outer(const float* entering, const float* global_features, const u32* before, const float* d, float* parts, u32 slots) {
    u32 own = blockIdx.x < slots ? (slots - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
    outer<WIDTH, HEAD>(parts + (u64)blockIdx.x * WIDTH * HEAD, own * SITE_TILES, [&](u32 tile, float* a, float* b) {
        u32 slot = blockIdx.x + tile / SITE_TILES * gridDim.x, start = tile % SITE_TILES * TILE;
        for (int i = threadIdx.x; i < TILE * WIDTH; i += THREADS) {
            u32 site = start + i / WIDTH, c = i % WIDTH;
            float value = 0.0f;
            if (site < SITES) {
                if (GATHER && c >= CONTEXT_WIDTH) {
                    value = global_features[((u64)slot * SITES + site) * GLOBAL_FEATURES + c - CONTEXT_WIDTH];
                } else if (GATHER) {
                    int direction = c / CHANNELS;
                    u32 from = before[direction * SITES + site];
                    if (from != NONE) value = entering[((u64)(slot * DIRECTIONS + direction) * SITES + from) * CHANNELS + c % CHANNELS];
                } else {
                    value = entering[((u64)slot * SITES + site) * WIDTH + c];
                }
            }
            a[i] = value;
        }
        for (int i = threadIdx.x; i < TILE * HEAD; i += THREADS) {
            u32 site = start + i / HEAD;
            b[i] = site < SITES ? d[((u64)slot * SITES + site) * HEAD + i % HEAD] : 0.0f;
        }
    });
}

extern "C" __global__ void __launch_bounds__(THREADS) mix_outer(const float* context, const float* global_features, const u32* before, const float* d_u, float* parts, u32 slots) {
    head_outer<MIX_WIDTH, true>(context, global_features, before, d_u, parts, slots);
}

extern "C" __global__ void __launch_bounds__(THREADS) hidden_outer(const float* v, const float* d_w, float* parts, u32 slots) {
    head_outer<HEAD, false>(v, (const float*)0, (const u32*)0, d_w, parts, slots);
}

// The hollow convolution in float32, written for exactness and any size: the same kernels as in matrix.cu, by name and by
// arguments.
//
// Given: SITES, CHANNELS, LAYERS, TAPS, Q, DIRECTIONS, HEAD, OUTPUTS, GLOBAL_FEATURES, FORWARD_ROWS and BACK_ROWS (rows of the tables of
// taps, at least SITES), SHARED_PLANE (whether a plane of channels fits into shared memory). Blocks have THREADS threads.

#define THREADS 256
#define STRIDE CHANNELS
#define PLANE ((SITES + 1) * CHANNELS)
#define TIME_ROW ((LAYERS - 1) * 2 * CHANNELS + 2 * HEAD)
#define CONTEXT_WIDTH (DIRECTIONS * CHANNELS)
#define MIX_WIDTH (CONTEXT_WIDTH + GLOBAL_FEATURES)
#define FEATURE_WORD float
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
__device__ void stack(const u8* states, const u32* rows, const u32* time_indices, const float* times, const u32* taps, const float* first, const float* biases,
    const float* weights, float* context, float* saved, float* scratch) {
    int item = blockIdx.x, slot = item / DIRECTIONS, direction = item % DIRECTIONS;
    const u8* x = states + (u64)rows[slot] * SITES;
    const u32* tap = taps + (u64)direction * TAPS * FORWARD_ROWS;
    const float* time = times + (u64)time_indices[slot] * TIME_ROW;
    u64 plane = (u64)SITES * CHANNELS, layer_size = (u64)gridDim.x * plane;
    float* h = context + item * plane;
    float* z = SHARED_PLANE ? space : scratch + (u64)item * PLANE;
    for (int i = threadIdx.x; i < SITES * CHANNELS; i += THREADS) {
        int site = i / CHANNELS, c = i % CHANNELS;
        float sum = biases[c];
        for (int k = 0; k < TAPS; k++) {
            u32 from = tap[k * FORWARD_ROWS + site] / STRIDE;
            int site_value = from < SITES ? x[from] : Q;
            sum += first[(k * (Q + 1) + site_value) * CHANNELS + c];
        }
        h[i] = sum;
    }
    for (int i = threadIdx.x; i < CHANNELS; i += THREADS) z[SITES * CHANNELS + i] = 0.0f;
    for (int layer = 1; layer < LAYERS; layer++) {
        const float* scale = time + (layer - 1) * 2 * CHANNELS;
        const float* shift = scale + CHANNELS;
        const float* w = weights + (u64)(layer - 1) * TAPS * CHANNELS * CHANNELS;
        __syncthreads();
        for (int i = threadIdx.x; i < SITES * CHANNELS; i += THREADS) {
            int c = i % CHANNELS;
            if (SAVE) saved[(layer - 1) * layer_size + item * plane + i] = h[i];
            z[i] = silu(fmaf(h[i], 1.0f + scale[c], shift[c]));
        }
        __syncthreads();
        for (int i = threadIdx.x; i < SITES * CHANNELS; i += THREADS) {
            int site = i / CHANNELS, c = i % CHANNELS;
            h[i] += convolved(biases[layer * CHANNELS + c], z, tap, FORWARD_ROWS, site, w, c);
        }
    }
    for (int i = threadIdx.x; i < SITES * CHANNELS; i += THREADS) {
        if (SAVE) saved[(LAYERS - 1) * layer_size + item * plane + i] = h[i];
        h[i] = silu(h[i]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
stack_forward(const u8* states, const u32* rows, const u32* time_indices, const float* times, const u32* taps, const float* first, const float* biases,
    const float* weights, float* context, float*, float* scratch) {
    stack<false>(states, rows, time_indices, times, taps, first, biases, weights, context, (float*)0, scratch);
}

extern "C" __global__ void __launch_bounds__(THREADS)
stack_train(const u8* states, const u32* rows, const u32* time_indices, const float* times, const u32* taps, const float* first, const float* biases,
    const float* weights, float* context, float* saved, float* scratch) {
    stack<true>(states, rows, time_indices, times, taps, first, biases, weights, context, saved, scratch);
}

// ---- The head. A block has HEAD_ROWS sites of one slot.

#define HEAD_ROWS 16
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
__device__ void head(const float* context, const float* global_features, const u32* before, const u32* time_indices, const float* times, const float* mix, const float* mix_bias, const float* hidden,
    const float* hidden_bias, const float* last, const float* last_bias, float* out, float* saved_u, float* saved_v, float* saved_w) {
    float* entering = space;
    float* v = entering + HEAD_ROWS * MIX_WIDTH;
    float* r = v + HEAD_ROWS * HEAD;
    const float* scale = times + (u64)time_indices[blockIdx.x] * TIME_ROW + (LAYERS - 1) * 2 * CHANNELS;
    const float* shift = scale + HEAD;
    u64 start = (u64)blockIdx.x * SITES + blockIdx.y * HEAD_ROWS;
    int rows = min(HEAD_ROWS, SITES - (int)blockIdx.y * HEAD_ROWS);
    load_context(context, global_features, before, entering);
    for (int i = threadIdx.x; i < rows * HEAD; i += THREADS) {
        int row = i / HEAD, c = i % HEAD;
        float sum = mix_bias[c];
        for (int k = 0; k < MIX_WIDTH; k++) sum = fmaf(entering[row * MIX_WIDTH + k], mix[k * HEAD + c], sum);
        v[i] = silu(fmaf(sum, 1.0f + scale[c], shift[c]));
        if (SAVE) saved_u[start * HEAD + i] = sum;
        if (SAVE) saved_v[start * HEAD + i] = v[i];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < rows * HEAD; i += THREADS) {
        int row = i / HEAD, c = i % HEAD;
        float sum = hidden_bias[c];
        for (int k = 0; k < HEAD; k++) sum = fmaf(v[row * HEAD + k], hidden[k * HEAD + c], sum);
        sum += v[i];
        if (SAVE) saved_w[start * HEAD + i] = sum;
        r[i] = silu(sum);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < rows * OUTPUTS; i += THREADS) {
        int row = i / OUTPUTS, o = i % OUTPUTS;
        float sum = last_bias[o];
        for (int k = 0; k < HEAD; k++) sum = fmaf(r[row * HEAD + k], last[o * HEAD + k], sum);
        out[start * OUTPUTS + i] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
head_forward(const float* context, const float* global_features, const u32* before, const u32* time_indices, const float* times, const float* mix, const float* mix_bias, const float* hidden,
    const float* hidden_bias, const float* last, const float* last_bias, float* out, float*, float*, float*) {
    head<false>(context, global_features, before, time_indices, times, mix, mix_bias, hidden, hidden_bias, last, last_bias, out, (float*)0, (float*)0, (float*)0);
}

extern "C" __global__ void __launch_bounds__(THREADS)
head_train(const float* context, const float* global_features, const u32* before, const u32* time_indices, const float* times, const float* mix, const float* mix_bias, const float* hidden,
    const float* hidden_bias, const float* last, const float* last_bias, float* out, float* saved_u, float* saved_v, float* saved_w) {
    head<true>(context, global_features, before, time_indices, times, mix, mix_bias, hidden, hidden_bias, last, last_bias, out, saved_u, saved_v, saved_w);
}

extern "C" __global__ void __launch_bounds__(THREADS)
head_backward(const u32* time_indices, const float* times, const float* mix_back, const float* hidden_back, const float* last, const float* d_out,
    const float* saved_u, const float* saved_w, float* d_u_out, float* d_w_out, float* d_context, float* sums) {
    float* d_w = space;
    float* d_v = d_w + HEAD_ROWS * HEAD;
    const float* scale = times + (u64)time_indices[blockIdx.x] * TIME_ROW + (LAYERS - 1) * 2 * CHANNELS;
    const float* shift = scale + HEAD;
    u64 start = (u64)blockIdx.x * SITES + blockIdx.y * HEAD_ROWS;
    int rows = min(HEAD_ROWS, SITES - (int)blockIdx.y * HEAD_ROWS);
    float* to = sums + (u64)(blockIdx.x * gridDim.y + blockIdx.y) * HEAD_SUMS;
    for (int i = threadIdx.x; i < rows * HEAD; i += THREADS) {
        int row = i / HEAD, c = i % HEAD;
        float d = 0.0f;
        for (int o = 0; o < OUTPUTS; o++) d = fmaf(d_out[(start + row) * OUTPUTS + o], last[o * HEAD + c], d);
        d_w[i] = d * silu_slope(saved_w[start * HEAD + i]);
        d_w_out[start * HEAD + i] = d_w[i];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < rows * HEAD; i += THREADS) {
        int row = i / HEAD, c = i % HEAD;
        float d = d_w[i];
        for (int k = 0; k < HEAD; k++) d = fmaf(d_w[row * HEAD + k], hidden_back[k * HEAD + c], d);
        d_v[i] = d * silu_slope(fmaf(saved_u[start * HEAD + i], 1.0f + scale[c], shift[c]));
        d_u_out[start * HEAD + i] = d_v[i] * (1.0f + scale[c]);
    }
    __syncthreads();
    for (int c = threadIdx.x; c < HEAD; c += THREADS) {
        float d_scale = 0.0f, d_shift = 0.0f, d_w_sum = 0.0f;
        for (int row = 0; row < rows; row++) {
            d_scale = fmaf(d_v[row * HEAD + c], saved_u[(start + row) * HEAD + c], d_scale);
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
                sum = fmaf(d_out[(start + row) * OUTPUTS + o], silu(saved_w[(start + row) * HEAD + c]), sum);
            to[4 * HEAD + o * HEAD + c] = sum;
        }
    }
    for (int o = threadIdx.x; o < OUTPUTS; o += THREADS) {
        float sum = 0.0f;
        for (int row = 0; row < rows; row++) sum += d_out[(start + row) * OUTPUTS + o];
        to[4 * HEAD + OUTPUTS * HEAD + o] = sum;
    }
    for (int i = threadIdx.x; i < rows * CONTEXT_WIDTH; i += THREADS) {
        int row = i / CONTEXT_WIDTH, c = i % CONTEXT_WIDTH;
        float sum = 0.0f;
        for (int k = 0; k < HEAD; k++) {
            float d_u = d_v[row * HEAD + k] * (1.0f + scale[k]);
            sum = fmaf(d_u, mix_back[k * CONTEXT_WIDTH + c], sum);
        }
        d_context[start * CONTEXT_WIDTH + i] = sum;
    }
}

// ---- Back through the stack.

#define BACK_SUMS (3 * CHANNELS)

extern "C" __global__ void __launch_bounds__(THREADS)
stack_backward(const u32* time_indices, const float* times, const u32* taps_back, const u32* after, const float* weights_back, const float* saved, const float* d_context,
    float* d_saved, float* sums, float* scratch) {
    int item = blockIdx.x, slot = item / DIRECTIONS, direction = item % DIRECTIONS;
    const u32* tap = taps_back + (u64)direction * TAPS * BACK_ROWS;
    const float* time = times + (u64)time_indices[slot] * TIME_ROW;
    u64 plane = (u64)SITES * CHANNELS, layer_size = (u64)gridDim.x * plane;
    float* z = SHARED_PLANE ? space : scratch + (u64)item * PLANE;
    const float* top = saved + (LAYERS - 1) * layer_size + item * plane;
    float* d_top = d_saved + (LAYERS - 1) * layer_size + item * plane;
    for (int i = threadIdx.x; i < SITES * CHANNELS; i += THREADS) {
        int site = i / CHANNELS, c = i % CHANNELS;
        u32 to = after[direction * SITES + site];
        float context = to == NONE ? 0.0f : d_context[((u64)slot * SITES + to) * CONTEXT_WIDTH + direction * CHANNELS + c];
        d_top[i] = context * silu_slope(top[i]);
    }
    for (int i = threadIdx.x; i < CHANNELS; i += THREADS) z[SITES * CHANNELS + i] = 0.0f;
    for (int layer = LAYERS - 1; layer >= 0; layer--) {
        const float* d = d_saved + layer * layer_size + item * plane;
        float* to = sums + ((u64)layer * gridDim.x + item) * BACK_SUMS;
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
        const float* h = saved + (layer - 1) * layer_size + item * plane;
        float* below = d_saved + (layer - 1) * layer_size + item * plane;
        const float* scale = time + (layer - 1) * 2 * CHANNELS;
        const float* shift = scale + CHANNELS;
        const float* w = weights_back + (u64)(layer - 1) * TAPS * CHANNELS * CHANNELS;
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

#define TILE 16

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
weights_backward(const u32* time_indices, const float* times, const u32* taps, const float* saved, const float* d_saved, float* parts, u32 items) {
    int layer = blockIdx.y + 1, k = blockIdx.z;
    int direction = blockIdx.x % DIRECTIONS, groups = gridDim.x / DIRECTIONS, group = blockIdx.x / DIRECTIONS;
    u64 plane = (u64)SITES * CHANNELS, layer_size = (u64)items * plane;
    u32 slots = items / DIRECTIONS, own = group < slots ? (slots - group + groups - 1) / groups : 0;
    const u32* tap = taps + (u64)(direction * TAPS + k) * FORWARD_ROWS;
    float* to = parts + (((u64)blockIdx.x * (LAYERS - 1) + layer - 1) * TAPS + k) * CHANNELS * CHANNELS;
    outer<CHANNELS, CHANNELS>(to, own * SITE_TILES, [&](u32 tile, float* a, float* b) {
        u32 slot = group + tile / SITE_TILES * groups, start = tile % SITE_TILES * TILE;
        u64 item = (u64)slot * DIRECTIONS + direction;
        const float* scale = times + (u64)time_indices[slot] * TIME_ROW + (layer - 1) * 2 * CHANNELS;
        for (int i = threadIdx.x; i < TILE * CHANNELS; i += THREADS) {
            u32 site = start + i / CHANNELS, c = i % CHANNELS;
            u32 from = site < SITES ? tap[site] / STRIDE : SITES;
            float h = from < SITES ? saved[(layer - 1) * layer_size + item * plane + from * CHANNELS + c] : 0.0f;
            a[i] = from < SITES ? silu(fmaf(h, 1.0f + scale[c], scale[CHANNELS + c])) : 0.0f;
            b[i] = site < SITES ? d_saved[layer * layer_size + item * plane + site * CHANNELS + c] : 0.0f;
        }
    });
}

extern "C" __global__ void __launch_bounds__(THREADS)
first_backward(const u8* states, const u32* rows, const u32* taps, const float* d_saved, float* parts, u32 items) {
    int direction = blockIdx.x % DIRECTIONS, groups = gridDim.x / DIRECTIONS, site_value = blockIdx.y;
    for (int i = threadIdx.x; i < TAPS * CHANNELS; i += THREADS) {
        int k = i / CHANNELS, c = i % CHANNELS;
        const u32* tap = taps + (u64)(direction * TAPS + k) * FORWARD_ROWS;
        float sum = 0.0f;
        for (u32 slot = blockIdx.x / DIRECTIONS; slot < items / DIRECTIONS; slot += groups) {
            const u8* x = states + (u64)rows[slot] * SITES;
            const float* d = d_saved + ((u64)slot * DIRECTIONS + direction) * SITES * CHANNELS;
            for (int site = 0; site < SITES; site++) {
                u32 from = tap[site] / STRIDE;
                if (from < SITES && x[from] == site_value) sum += d[site * CHANNELS + c];
            }
        }
        parts[(((u64)blockIdx.x * TAPS + k) * Q + site_value) * CHANNELS + c] = sum;
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

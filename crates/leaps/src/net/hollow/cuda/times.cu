// Time embeddings of a network, and gradients from partial sums. Appended to matrix.cu or plain.cu.
//
// Arguments and Embedding are declared by arguments.rs.

#define EMBEDDINGS LAYERS // of the residual layers, and of the head

__device__ __forceinline__ u32 place(const Embedding& e, u32 output) {
    return e.start + output / e.real * e.padded + output % e.real;
}

// A block has one embedding of one time_index, a warp every eighth output. times: [time_index][TIME_ROW], 0 where padded; hidden:
// [time_index][embedding][2 * TIME_UNITS], before and after the activation.
extern "C" __global__ void embed(const float* parameters, const Embedding* embeddings, const float* table, float* times, float* hidden) {
    __shared__ float after[TIME_UNITS];
    u32 time_index = blockIdx.x, e = blockIdx.y;
    Embedding own = embeddings[e];
    const float* p = parameters + own.parameters;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    if (threadIdx.x < TIME_UNITS) {
        const float* feature = table + (u64)time_index * TIME_FEATURES + 1;
        float sum = p[TIME_UNITS * FEATURES + lane];
        for (int f = 0; f < FEATURES; f++) sum = fmaf(p[lane * FEATURES + f], feature[f], sum);
        after[lane] = silu(sum);
        float* keep = hidden + ((u64)time_index * EMBEDDINGS + e) * 2 * TIME_UNITS;
        keep[lane] = sum;
        keep[TIME_UNITS + lane] = after[lane];
    }
    __syncthreads();
    const float* weight = p + TIME_UNITS * TIME_FEATURES;
    const float* bias = weight + 2 * own.real * TIME_UNITS;
#pragma unroll 4
    for (u32 o = warp; o < 2 * own.real; o += warps) {
        float sum = warp_sum(weight[o * TIME_UNITS + lane] * after[lane]);
        if (lane == 0) times[(u64)time_index * TIME_ROW + place(own, o)] = sum + bias[o];
    }
}

// Gradient of the times from the sums of stack and head.
extern "C" __global__ void gather_times(const float* stack_sums, const float* head_sums, float* d_times, u32 slots, u32 head_blocks) {
    u32 slot = blockIdx.x;
    for (int i = threadIdx.x; i < TIME_ROW; i += blockDim.x) {
        float sum = 0.0f;
        if (i < (LAYERS - 1) * 2 * CHANNELS) {
            int layer = i / (2 * CHANNELS) + 1, c = i % (2 * CHANNELS);
            for (int direction = 0; direction < DIRECTIONS; direction++)
                sum += stack_sums[((u64)layer * slots * DIRECTIONS + slot * DIRECTIONS + direction) * BACK_SUMS + c];
        } else {
            int c = i - (LAYERS - 1) * 2 * CHANNELS;
            for (u32 block = 0; block < head_blocks; block++) sum += head_sums[((u64)slot * head_blocks + block) * HEAD_SUMS + c];
        }
        d_times[(u64)slot * TIME_ROW + i] = sum;
    }
}

// d_hidden: [slot][embedding][TIME_UNITS].
extern "C" __global__ void embed_back(const float* parameters, const Embedding* embeddings, const u32* time_indices, const float* hidden,
    const float* d_times, float* d_hidden) {
    u32 slot = blockIdx.x;
    for (int i = threadIdx.x; i < EMBEDDINGS * TIME_UNITS; i += blockDim.x) {
        Embedding own = embeddings[i / TIME_UNITS];
        const float* weight = parameters + own.parameters + TIME_UNITS * TIME_FEATURES;
        float sum = 0.0f;
        for (u32 o = 0; o < 2 * own.real; o++) sum = fmaf(weight[o * TIME_UNITS + i % TIME_UNITS], d_times[(u64)slot * TIME_ROW + place(own, o)], sum);
        float before = hidden[((u64)time_indices[slot] * EMBEDDINGS + i / TIME_UNITS) * 2 * TIME_UNITS + i % TIME_UNITS];
        d_hidden[(u64)slot * EMBEDDINGS * TIME_UNITS + i] = sum * silu_slope(before);
    }
}

// Gradients of the embeddings' parameters, in their own order, one after the other.
// Blocks have all of the first layer, or GROUP outputs (rows of the second layer); each of the EMBED_WARPS warps adds up every
// EMBED_WARPS-th slot.
extern "C" __global__ void embed_gradient(EmbedGradient pass) {
    __shared__ float part[EMBED_WARPS][FEATURES + 1][TIME_UNITS + 1];
    int e = blockIdx.x, unit = threadIdx.x % TIME_UNITS, warp = threadIdx.x / TIME_UNITS;
    Embedding own = pass.embeddings[e];
    float* to = pass.gradient + pass.starts[e];
    bool first = blockIdx.y == 0;
    u32 output = (blockIdx.y - 1) * GROUP;
    float sums[FEATURES + 1], biases[GROUP];
    for (int k = 0; k <= FEATURES; k++) sums[k] = 0.0f;
    for (int k = 0; k < GROUP; k++) biases[k] = 0.0f;
#pragma unroll 2
    for (u32 slot = warp; slot < pass.slots; slot += EMBED_WARPS) {
        if (first) {
            float d = pass.d_hidden[((u64)slot * EMBEDDINGS + e) * TIME_UNITS + unit];
            const float* feature = pass.table + (u64)pass.time_indices[slot] * TIME_FEATURES + 1;
#pragma unroll
            for (int k = 0; k < FEATURES; k++) sums[k] = fmaf(d, feature[k], sums[k]);
            sums[FEATURES] += d;
        } else {
            float after = pass.hidden[((u64)pass.time_indices[slot] * EMBEDDINGS + e) * 2 * TIME_UNITS + TIME_UNITS + unit];
#pragma unroll
            for (int k = 0; k < GROUP; k++) {
                float d = output + k < 2 * own.real ? pass.d_times[(u64)slot * TIME_ROW + place(own, output + k)] : 0.0f;
                sums[k] = fmaf(d, after, sums[k]);
                biases[k] += d;
            }
        }
    }
    for (int k = 0; k <= FEATURES; k++) part[warp][k][unit] = sums[k];
    if (unit == 0 && !first)
        for (int k = 0; k < GROUP; k++) part[warp][k][TIME_UNITS] = biases[k];
    __syncthreads();
    for (int k = warp; k <= FEATURES; k += EMBED_WARPS) {
        float sum = 0.0f, bias = 0.0f;
        for (int w = 0; w < EMBED_WARPS; w++) {
            sum += part[w][k][unit];
            if (!first && k < GROUP) bias += part[w][k][TIME_UNITS];
        }
        if (first) {
            to[k < FEATURES ? unit * FEATURES + k : TIME_UNITS * FEATURES + unit] = sum;
        } else if (k < GROUP && output + k < 2 * own.real) {
            to[TIME_UNITS * TIME_FEATURES + (output + k) * TIME_UNITS + unit] = sum;
            if (unit == 0) to[TIME_UNITS * TIME_FEATURES + 2 * own.real * TIME_UNITS + output + k] = bias;
        }
    }
}

// Sums of rows of block z of `from`: parts[part * stride + z * width + column], part p of the rows p, p + parts, ...
extern "C" __global__ void add_rows(const float* from, float* parts, u32 rows, u32 width, u32 stride) {
    u32 column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= width) return;
    from += (u64)blockIdx.z * rows * width + column;
    float sum = 0.0f;
#pragma unroll 8
    for (u32 row = blockIdx.y; row < rows; row += gridDim.y) sum += from[(u64)row * width];
    parts[(u64)blockIdx.y * stride + blockIdx.z * width + column] = sum;
}

// Add up the parts of a section: sections give where its sums and its parts start, its length and its number of parts.
extern "C" __global__ void add_parts(const float* parts, const uint4* sections, float* sums) {
    uint4 own = sections[blockIdx.y];
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < own.z; i += gridDim.x * blockDim.x) {
        float sum = 0.0f;
#pragma unroll 8
        for (u32 p = 0; p < own.w; p++) sum += parts[own.y + (u64)p * own.z + i];
        sums[own.x + i] = sum;
    }
}

// The gradient in the order of the parameters: the sum at plus[i], less that at minus[i].
extern "C" __global__ void collect(const float* sums, const u32* plus, const u32* minus, float* gradient, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) gradient[i] = sums[plus[i]] - (minus[i] == NONE ? 0.0f : sums[minus[i]]);
}

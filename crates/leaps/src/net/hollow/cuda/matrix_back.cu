// ---- Back through the stack.

#define BACK_ROWS (BACK_WARPS * BACK_TILES * 16)
#define BACK_SUMS (3 * CHANNELS)

// Sums over sites for each slot, direction and layer: scale, shift, and bias of the layer.
extern "C" __global__ void __launch_bounds__(BACK_WARPS * 32, BACK_BLOCKS)
stack_backward(StackBackward pass) {
    u8* z = shared;              // gradient of a layer's output
    u8* below = shared + PLANE;  // the layer's input
    u32 ring = shared_address(shared + 2 * PLANE);
    u32* tap = (u32*)(shared + 2 * PLANE + RING);
    float* time = (float*)(tap + TAPS * BACK_ROWS);
    float* part = time + (LAYERS - 1) * 2 * CHANNELS; // [warp][BACK_SUMS]
    int item = blockIdx.x, slot = item / DIRECTIONS, direction = item % DIRECTIONS;
    int thread = threadIdx.x, threads = BACK_WARPS * 32;
    int lane = thread & 31, warp = thread >> 5, g = lane >> 2, t = lane & 3;
    for (int i = thread; i < TAPS * BACK_ROWS; i += threads) tap[i] = pass.taps_back[direction * TAPS * BACK_ROWS + i];
    for (int i = thread; i < (LAYERS - 1) * 2 * CHANNELS; i += threads) time[i] = pass.times[(u64)pass.time_indices[slot] * TIME_ROW + i];
    for (int i = thread; i < (STRIDE + 32) / 4; i += threads) ((u32*)(z + SITES * STRIDE))[i] = 0;
    u64 plane = (u64)SITES * (CHANNELS / 2), layer_size = (u64)gridDim.x * plane;
    float d[BACK_TILES][N_TILES][4];
    const u32* top = pass.saved + (LAYERS - 1) * layer_size + item * plane;
#pragma unroll
    for (int m = 0; m < BACK_TILES; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = (warp * BACK_TILES + m) * 16 + half * 8 + g;
            u32 to = row < SITES ? pass.after[direction * SITES + row] : NONE;
#pragma unroll
            for (int n = 0; n < N_TILES; n++) {
                u32 context = 0, h = 0;
                if (to != NONE) {
                    context = pass.d_context[((u64)slot * SITES + to) * (CONTEXT_WIDTH / 2) + direction * (CHANNELS / 2) + n * 4 + t];
                    h = top[row * (CHANNELS / 2) + n * 4 + t];
                }
                d[m][n][2 * half] = low(context) * quick_slope(low(h));
                d[m][n][2 * half + 1] = high(context) * quick_slope(high(h));
            }
        }
#pragma unroll 1
    for (int layer = LAYERS - 1; layer >= 0; layer--) {
        const uint4* back = pass.weights_back + (layer - 1) * K_STEPS * N_PAIRS * 32;
        if (layer > 0) {
            const u32* h = pass.saved + (layer - 1) * layer_size + item * plane;
            u32 to = shared_address(below);
            for (int i = thread; i < SITES * CHUNKS; i += threads) copy_16(to + i / CHUNKS * STRIDE + i % CHUNKS * 16, h + i * 4);
            fetch_weights<K_STEPS, BACK_WARPS * 32>(0, ring, back);
            fetch_weights<K_STEPS, BACK_WARPS * 32>(1, ring, back);
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
        u32* keep = pass.d_saved + layer * layer_size + item * plane;
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
            convolve<CHUNKS, BACK_TILES, BACK_ROWS, BACK_WARPS * 32>(dz, shared_address(z), tap, ring, back);
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
        float* to = pass.sums + ((u64)layer * gridDim.x + item) * BACK_SUMS;
        for (int i = thread; i < BACK_SUMS; i += threads) {
            float sum = 0.0f;
            for (int w = 0; w < BACK_WARPS; w++) sum += part[w * BACK_SUMS + i];
            to[i] = layer == 0 && i < 2 * CHANNELS ? 0.0f : sum;
        }
        __syncthreads();
    }
}


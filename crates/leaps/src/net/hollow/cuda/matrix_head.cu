// ---- The head: every site alone.

#define HEAD_ROWS (HEAD_WARPS * HEAD_TILES * 16)
#define H_TILES (HEAD / 8)
#define H_PAIRS (H_TILES / 2)
#define H_STEPS (HEAD / 16)
#define CONTEXT_CHUNKS (DIRECTIONS * CHUNKS)
#define MIX_CHUNKS (CONTEXT_CHUNKS + GLOBAL_FEATURES / 8)
#define MIX_STEPS ((MIX_CHUNKS + 1) / 2)
#define CONTEXT_WIDTH (DIRECTIONS * CHANNELS)
#define MIX_WIDTH (CONTEXT_WIDTH + GLOBAL_FEATURES)
#define MIX_STRIDE ((2 * MIX_STEPS + 1) * 16) // bytes of a row in shared memory: an odd number of 16, against bank conflicts

// Accumulators of two neighbouring tiles of columns as the left factor of a product.
__device__ __forceinline__ void as_factor(const float* one, const float* two, u32* a) {
    a[0] = pack(one[0], one[1]);
    a[1] = pack(one[2], one[3]);
    a[2] = pack(two[0], two[1]);
    a[3] = pack(two[2], two[3]);
}

// d += a b for all rows of a warp, 16 products, and all columns; `left` has a for a tile of rows.
template <int COLUMNS, typename Left>
__device__ __forceinline__ void multiply_columns(float (&d)[HEAD_TILES][COLUMNS][4], Left left, const uint4* weights) {
#pragma unroll
    for (int p = 0; p < COLUMNS / 2; p++) {
        uint4 b = __ldg(weights + p * 32);
#pragma unroll
        for (int m = 0; m < HEAD_TILES; m++) {
            multiply(d[m][2 * p], left(m), b.x, b.y);
            multiply(d[m][2 * p + 1], left(m), b.z, b.w);
        }
    }
}

// Start to bring what the rows of a warp read to shared memory, in the order of the weights: contexts, then global features. Zeros where there is none.
__device__ __forceinline__ void fetch_rows(const HeadForward& pass, u32 slot, int start, u32 to) {
    const u32* own = pass.context + (u64)slot * DIRECTIONS * SITES * (CHANNELS / 2);
#pragma unroll 4
    for (int i = threadIdx.x & 31; i < HEAD_TILES * 16 * 2 * MIX_STEPS; i += 32) {
        int place = i / (2 * MIX_STEPS), chunk = i % (2 * MIX_STEPS), row = start + place;
        const u32* from = own;
        u32 bytes = 0;
        if (row < SITES && chunk < CONTEXT_CHUNKS) {
            int direction = chunk / CHUNKS;
            u32 site = pass.before[direction * SITES + row];
            if (site != NONE) {
                from = own + (u64)(direction * SITES + site) * (CHANNELS / 2) + chunk % CHUNKS * 4;
                bytes = 16;
            }
        } else if (row < SITES && chunk < MIX_CHUNKS) {
            from = pass.global_features + ((u64)slot * SITES + row) * (GLOBAL_FEATURES / 2) + (chunk - CONTEXT_CHUNKS) * 4;
            bytes = 16;
        }
        copy_16_or_zeros(to + place * MIX_STRIDE + chunk * 16, from, bytes);
    }
    end_copies();
}

// What the backward pass needs is saved if SAVE.
template <bool SAVE>
__device__ __forceinline__ void head(const HeadForward& pass) {
    __shared__ float scale[HEAD], shift[HEAD], c1[HEAD], c2[HEAD], m3[OUTPUTS * HEAD];
    int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5, g = lane >> 2, t = lane & 3;
    int slot = blockIdx.x;
    int start = blockIdx.y * HEAD_ROWS + warp * HEAD_TILES * 16;
    u32 rows = shared_address(shared) + warp * HEAD_TILES * 16 * MIX_STRIDE;
    fetch_rows(pass, slot, start, rows);
    for (int i = thread; i < HEAD; i += HEAD_WARPS * 32) {
        const float* time = pass.times + (u64)pass.time_indices[slot] * TIME_ROW + (LAYERS - 1) * 2 * CHANNELS;
        scale[i] = 1.0f + time[i];
        shift[i] = time[HEAD + i];
        c1[i] = pass.mix_bias[i];
        c2[i] = pass.hidden_bias[i];
    }
    for (int i = thread; i < OUTPUTS * HEAD; i += HEAD_WARPS * 32) m3[i] = pass.last[i];
    await_copies<0>();
    __syncthreads();
    float u[HEAD_TILES][H_TILES][4];
#pragma unroll
    for (int m = 0; m < HEAD_TILES; m++)
#pragma unroll
        for (int n = 0; n < H_TILES; n++)
#pragma unroll
            for (int k = 0; k < 4; k++) u[m][n][k] = c1[n * 8 + 2 * t + (k & 1)];
    u32 own_row = rows + (lane & 15) * MIX_STRIDE + (lane >> 4) * 16;
#pragma unroll 2
    for (int step = 0; step < MIX_STEPS; step++) {
        u32 a[HEAD_TILES][4];
#pragma unroll
        for (int m = 0; m < HEAD_TILES; m++) load_matrices(own_row + m * 16 * MIX_STRIDE + step * 32, a[m]);
        multiply_columns(u, [&](int m) { return a[m]; }, pass.mix + step * H_PAIRS * 32 + lane);
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
                u64 at = ((u64)slot * SITES + row) * (HEAD / 2) + c / 2;
                if (SAVE && row < SITES) pass.u[at] = pack(pair[0], pair[1]);
                float v0 = quick_silu(fmaf(pair[0], scale[c], shift[c]));
                float v1 = quick_silu(fmaf(pair[1], scale[c + 1], shift[c + 1]));
                u32 both = pack(v0, v1);
                if (SAVE && row < SITES) pass.v[at] = both;
                v[m][n / 2][2 * (n % 2) + half] = both;
                pair[0] = v0 + c2[c];
                pair[1] = v1 + c2[c + 1];
            }
    }
#pragma unroll
    for (int step = 0; step < H_STEPS; step++)
        multiply_columns(u, [&](int m) { return v[m][step]; }, pass.hidden + step * H_PAIRS * 32 + lane);
#pragma unroll
    for (int m = 0; m < HEAD_TILES; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = start + m * 16 + half * 8 + g;
            u64 site = (u64)slot * SITES + row;
            if (SAVE && row < SITES)
#pragma unroll
                for (int n = 0; n < H_TILES; n++)
                    pass.w[site * (HEAD / 2) + n * 4 + t] = pack(u[m][n][2 * half], u[m][n][2 * half + 1]);
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
                if (t == 0 && row < SITES) pass.out[site * OUTPUTS + o] = sum + pass.last_bias[o];
            }
        }
}

extern "C" __global__ void __launch_bounds__(HEAD_WARPS * 32, 2)
head_forward(HeadForward pass) { head<false>(pass); }

extern "C" __global__ void __launch_bounds__(HEAD_WARPS * 32, 2)
head_train(HeadForward pass) { head<true>(pass); }

// Sums over a block's rows, one row of HEAD_SUMS numbers for each block: scale and shift of the first activation, biases of
// mix and hidden, weights and biases of the last layer.
#define HEAD_SUMS (4 * HEAD + OUTPUTS * HEAD + OUTPUTS)

extern "C" __global__ void __launch_bounds__(HEAD_WARPS * 32, 2)
head_backward(HeadBackward pass) {
    __shared__ float scale[HEAD], shift[HEAD], m3[OUTPUTS * HEAD], part[HEAD_WARPS][HEAD_SUMS];
    int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5, g = lane >> 2, t = lane & 3;
    int slot = blockIdx.x;
    for (int i = thread; i < HEAD; i += HEAD_WARPS * 32) {
        const float* time = pass.times + (u64)pass.time_indices[slot] * TIME_ROW + (LAYERS - 1) * 2 * CHANNELS;
        scale[i] = 1.0f + time[i];
        shift[i] = time[HEAD + i];
    }
    for (int i = thread; i < OUTPUTS * HEAD; i += HEAD_WARPS * 32) m3[i] = pass.last[i];
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
                slope[m][half] = row < SITES ? pass.d_out[((u64)slot * SITES + row) * OUTPUTS + o] : 0.0f;
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
                    u32 w = row < SITES ? pass.w[((u64)slot * SITES + row) * (HEAD / 2) + c / 2] : 0;
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
                u64 at = ((u64)slot * SITES + row) * (HEAD / 2) + c / 2;
                u32 w = row < SITES ? pass.w[at] : 0;
                float* pair = &d[m][n][2 * half];
                pair[0] *= quick_slope(low(w));
                pair[1] *= quick_slope(high(w));
                sum0 += pair[0];
                sum1 += pair[1];
                u32 both = pack(pair[0], pair[1]);
                factor[m][n / 2][2 * (n % 2) + half] = both;
                if (row < SITES) pass.d_w[at] = both;
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
        multiply_columns(d, [&](int m) { return factor[m][step]; }, pass.hidden_back + step * H_PAIRS * 32 + lane);
#pragma unroll
    for (int n = 0; n < H_TILES; n++) {
        int c = n * 8 + 2 * t;
        float scale0 = 0.0f, scale1 = 0.0f, shift0 = 0.0f, shift1 = 0.0f, bias0 = 0.0f, bias1 = 0.0f;
#pragma unroll
        for (int m = 0; m < HEAD_TILES; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int row = start + m * 16 + half * 8 + g;
                u64 at = ((u64)slot * SITES + row) * (HEAD / 2) + c / 2;
                u32 u = row < SITES ? pass.u[at] : 0;
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
                if (row < SITES) pass.d_u[at] = both;
            }
        float all[6] = {scale0, scale1, shift0, shift1, bias0, bias1};
#pragma unroll
        for (int k = 0; k < 6; k++) {
            float sum = sum_rows(all[k]);
            if (g == 0) own[(k / 2) * HEAD + c + k % 2] = sum;
        }
    }
    __syncthreads();
    float* to = pass.sums + (u64)(blockIdx.x * gridDim.y + blockIdx.y) * HEAD_SUMS;
    for (int i = thread; i < HEAD_SUMS; i += HEAD_WARPS * 32) {
        float sum = 0.0f;
        for (int w = 0; w < HEAD_WARPS; w++) sum += part[w][i];
        to[i] = sum;
    }
    // To the context, direction by direction.
#pragma unroll 1
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        float context[HEAD_TILES][N_PAIRS * 2][4];
#pragma unroll
        for (int m = 0; m < HEAD_TILES; m++)
#pragma unroll
            for (int n = 0; n < N_PAIRS * 2; n++)
#pragma unroll
                for (int k = 0; k < 4; k++) context[m][n][k] = 0.0f;
#pragma unroll
        for (int step = 0; step < H_STEPS; step++)
            multiply_columns(context, [&](int m) { return factor[m][step]; }, pass.mix_back + (direction * H_STEPS + step) * N_PAIRS * 32 + lane);
#pragma unroll
        for (int m = 0; m < HEAD_TILES; m++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int row = start + m * 16 + half * 8 + g;
                if (row >= SITES) continue;
                u32* to = pass.d_context + ((u64)slot * SITES + row) * (CONTEXT_WIDTH / 2) + direction * (CHANNELS / 2);
#pragma unroll
                for (int n = 0; n < N_TILES; n++) to[n * 4 + t] = pack(context[m][n][2 * half], context[m][n][2 * half + 1]);
            }
    }
}


// From contexts of heads to outputs, and back: hidden units `[slot][site][EMBEDDING]`, with time as a scale and a shift.
//
// Given: HIDDEN_PARTS, into which rows are divided to sum the gradient of the hidden weights; ENDS, what a slot adds to the
// gradient of the hidden bias and of what follows it; EDGE.

// ---- Products of matrices. A block of BLOCK threads has a tile of EDGE by EDGE, a thread 4 by 4 of it.

#define DEPTH 16

// Hand `sum over k of left(m, k) right(k, n)` to `out(m, n, sum)`, for the tile at (first_m, first_n). LEFT_ALONG and RIGHT_ALONG
// say whether numbers with neighbouring k are neighbours.
template <bool LEFT_ALONG, bool RIGHT_ALONG, class Left, class Right, class Out>
__device__ __forceinline__ void product(u32 first_m, u32 all_m, u32 first_n, u32 all_n, u32 depth, Left left, Right right, Out out) {
    __shared__ __align__(16) float a[DEPTH][EDGE + 4], b[DEPTH][EDGE + 4];
    u32 x = threadIdx.x % (EDGE / 4) * 4, y = threadIdx.x / (EDGE / 4) * 4;
    float sum[4][4] = {};
    for (u32 start = 0; start < depth; start += DEPTH) {
        FOR(i, DEPTH * EDGE) {
            u32 m = LEFT_ALONG ? i / DEPTH : i % EDGE, k = LEFT_ALONG ? i % DEPTH : i / EDGE;
            a[k][m] = start + k < depth && first_m + m < all_m ? left(first_m + m, start + k) : 0.0f;
        }
        FOR(i, DEPTH * EDGE) {
            u32 n = RIGHT_ALONG ? i / DEPTH : i % EDGE, k = RIGHT_ALONG ? i % DEPTH : i / EDGE;
            b[k][n] = start + k < depth && first_n + n < all_n ? right(start + k, first_n + n) : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            float4 l = *(const float4*)&a[k][y], r = *(const float4*)&b[k][x];
            float ls[4] = {l.x, l.y, l.z, l.w}, rs[4] = {r.x, r.y, r.z, r.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) sum[i][j] = fmaf(ls[i], rs[j], sum[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (first_m + y + i < all_m && first_n + x + j < all_n) out(first_m + y + i, first_n + x + j, sum[i][j]);
}

// Write hidden units before the time's scale and shift; `sites` of all slots.
extern "C" __global__ void __launch_bounds__(BLOCK) lea_hidden(const float* p, const float* context, float* before, u32 sites) {
    product<true, true>(
        blockIdx.x * EDGE, sites, blockIdx.y * EDGE, EMBEDDING, SIZE, [&](u32 m, u32 k) { return context[(u64)m * SIZE + k]; },
        [&](u32 k, u32 n) { return p[P_HIDDEN + n * SIZE + k]; },
        [&](u32 m, u32 n, float sum) { before[(u64)m * EMBEDDING + n] = sum + p[P_HIDDEN_BIAS + n]; });
}

// Write outputs: a thread for every site of every slot.
extern "C" __global__ void lea_outputs(const float* p, const float* times, const float* before, float* out, u32 sites) {
    u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= sites) return;
    const float *scale = times + (u64)(row / SITES) * TIMES + 2 * SIZE, *shift = scale + EMBEDDING;
    float sum[OUTPUTS];
    for (int s = 0; s < OUTPUTS; s++) sum[s] = p[P_OUT_BIAS + s];
    for (u32 k = 0; k < EMBEDDING; k++) {
        float h = silu(fmaf(before[(u64)row * EMBEDDING + k], 1.0f + scale[k], shift[k]));
        for (int s = 0; s < OUTPUTS; s++) sum[s] = fmaf(p[P_OUT + s * EMBEDDING + k], h, sum[s]);
    }
    for (int s = 0; s < OUTPUTS; s++) out[(u64)row * OUTPUTS + s] = sum[s];
}

// Write hidden units after their activation, their gradients before (`d_z`) and after the time's scale (`d_hidden`), their part of
// `d_times`, and `ends[slot][ENDS]`: a block for every slot.
extern "C" __global__ void lea_hidden_back(HiddenBack pass) {
    u32 slot = blockIdx.x;
    u64 start = (u64)slot * SITES * EMBEDDING;
    const float *scale = pass.times + (u64)slot * TIMES + 2 * SIZE, *shift = scale + EMBEDDING;
    const float* d = pass.d_out + (u64)slot * SITES * OUTPUTS;
    float *d_time = pass.d_times + (u64)slot * TIMES + 2 * SIZE, *g = pass.ends + (u64)slot * ENDS;
    const float* before = pass.before + start;
    float *after = pass.after + start, *d_z = pass.d_z + start, *d_hidden = pass.d_hidden + start;
    FOR(k, SITES * EMBEDDING) {
        u32 site = k / EMBEDDING, c = k % EMBEDDING;
        float slope = 1.0f + scale[c], z = fmaf(before[k], slope, shift[c]), sum = 0.0f;
        for (u32 s = 0; s < OUTPUTS; s++) sum = fmaf(pass.parameters[P_OUT + s * EMBEDDING + c], d[site * OUTPUTS + s], sum);
        after[k] = silu(z);
        d_z[k] = sum * silu_slope(z);
        d_hidden[k] = d_z[k] * slope;
    }
    __syncthreads();
    FOR(c, EMBEDDING) {
        g[c] = over_sites(d_hidden + c, EMBEDDING);
        d_time[c] = over_sites(d_z + c, EMBEDDING, before + c, EMBEDDING);
        d_time[EMBEDDING + c] = over_sites(d_z + c, EMBEDDING);
    }
    FOR(k, OUTPUTS * EMBEDDING)
        g[EMBEDDING + k] = over_sites(d + k / EMBEDDING, OUTPUTS, after + k % EMBEDDING, EMBEDDING);
    FOR(s, OUTPUTS) g[(OUTPUTS + 1) * EMBEDDING + s] = over_sites(d + s, OUTPUTS);
}

// Write the gradient of contexts of heads.
extern "C" __global__ void __launch_bounds__(BLOCK) lea_context_back(const float* p, const float* d_hidden, float* d_context, u32 sites) {
    product<true, false>(
        blockIdx.x * EDGE, sites, blockIdx.y * EDGE, SIZE, EMBEDDING,
        [&](u32 m, u32 k) { return d_hidden[(u64)m * EMBEDDING + k]; }, [&](u32 k, u32 n) { return p[P_HIDDEN + k * SIZE + n]; },
        [&](u32 m, u32 n, float sum) { d_context[(u64)m * SIZE + n] = sum; });
}

// Write `parts[part][EMBEDDING][SIZE]`, what a part of the sites adds to the gradient of the hidden weights.
extern "C" __global__ void __launch_bounds__(BLOCK) lea_hidden_weights(const float* d_hidden, const float* context, float* parts, u32 sites) {
    u32 each = (sites + HIDDEN_PARTS - 1) / HIDDEN_PARTS, start = min(blockIdx.z * each, sites);
    float* g = parts + (u64)blockIdx.z * EMBEDDING * SIZE;
    product<false, false>(
        blockIdx.y * EDGE, EMBEDDING, blockIdx.x * EDGE, SIZE, min(each, sites - start),
        [&](u32 m, u32 k) { return d_hidden[(u64)(start + k) * EMBEDDING + m]; },
        [&](u32 k, u32 n) { return context[(u64)(start + k) * SIZE + n]; },
        [&](u32 m, u32 n, float sum) { g[m * SIZE + n] = sum; });
}

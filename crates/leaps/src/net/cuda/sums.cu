// Sums over rows, in a fixed order.

// `out[offset + k]` = sum of `from[row * n + k]`: a warp for every k.
extern "C" __global__ void sum_rows(const float* from, float* out, u32 offset, u32 n, u32 rows) {
    u32 k = (blockIdx.x * blockDim.x + threadIdx.x) / 32, me = threadIdx.x % 32;
    if (k >= n) return;
    float sum = 0.0f;
    for (u32 row = me; row < rows; row += 32) sum += from[(u64)row * n + k];
    sum = warp_sum(sum);
    if (me == 0) out[offset + k] = sum;
}

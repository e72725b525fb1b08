// What every module shares. No headers: NVRTC needs no toolkit beside it.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// Sites that do not exist, in tables of neighbours.
#define NONE 0xffffffffu

// ---- Philox 4x32-10, as in philox.rs.
struct Words {
    u32 w[4];
};

__device__ __forceinline__ Words philox(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1) {
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
        u32 n0 = (u32)(p1 >> 32) ^ c1 ^ k0, n2 = (u32)(p0 >> 32) ^ c3 ^ k1;
        c1 = (u32)p1;
        c3 = (u32)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return Words{{c0, c1, c2, c3}};
}

// Block `block` of the stream at (seed, purpose, walker, step).
__device__ __forceinline__ Words stream_block(u64 seed, u32 purpose, u32 walker, u64 step, u32 block) {
    u32 high = ((u32)(step >> 32) << 8) | purpose;
    return philox(block, (u32)step, walker, high, (u32)seed, (u32)(seed >> 32));
}

// A number in [0, 1), a multiple of 2^-53.
__device__ __forceinline__ double uniform(u32 high, u32 low) {
    u64 bits = ((u64)high << 32) | low;
    return (double)(bits >> 11) * (1.0 / 9007199254740992.0);
}

// ---- Sums.
// The product first, then the sum: roundings as on the CPU.
__device__ __forceinline__ double plus_product(double sum, double a, double b) {
    return __dadd_rn(sum, __dmul_rn(a, b));
}

// sum + (lambda_before - lambda_after) E, as sampler/grid.rs: what the weight of a walker with these energies gains when the weights of N terms change.
template <u32 N>
__device__ __forceinline__ double plus_energy_drop(
    double sum, const double* before, const double* after, const double* energies) {
#pragma unroll
    for (u32 term = 0; term < N; term++)
        sum = plus_product(sum, __dadd_rn(__ldg(before + term), -__ldg(after + term)), energies[term]);
    return sum;
}

// ---- Activations.
__device__ __forceinline__ float silu(float z) {
    return z / (1.0f + expf(-z));
}

// Its derivative.
__device__ __forceinline__ float silu_slope(float z) {
    float s = 1.0f / (1.0f + expf(-z));
    return s * (1.0f + z * (1.0f - s));
}

// ---- Reductions, in a fixed order.
__device__ __forceinline__ double warp_sum(double value) {
    for (int offset = 16; offset; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

__device__ __forceinline__ float warp_sum(float value) {
    for (int offset = 16; offset; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

// The sum over a block, known to all its threads; `space` holds 33 numbers. Ends with a barrier.
template <typename T>
__device__ T block_sum(T value, T* space) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
    value = warp_sum(value);
    __syncthreads();
    if (lane == 0) space[warp] = value;
    __syncthreads();
    if (warp == 0) {
        T sum = warp_sum(lane < warps ? space[lane] : (T)0);
        if (lane == 0) space[32] = sum;
    }
    __syncthreads();
    return space[32];
}

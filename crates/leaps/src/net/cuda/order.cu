// WeightBuffer in another order: the top bit of an entry turns the sign, all bits are a zero.
__device__ __forceinline__ float picked(const float* from, u32 entry) {
    if (entry == NONE) return 0.0f;
    float value = from[entry & 0x7fffffffu];
    return entry >> 31 ? -value : value;
}

extern "C" __global__ void reorder(const float* from, const u32* table, float* out, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = picked(from, table[i]);
}

extern "C" __global__ void reorder_bf16(const float* from, const u32* table, u16* out, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u16 rounded;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(picked(from, table[i])));
    out[i] = rounded;
}

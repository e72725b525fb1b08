// Random choices, as in random.rs.
struct Numbers {
    u64 seed, step;
    u32 purpose, walker, block, left;
    Words words;
};

__device__ __forceinline__ Numbers numbers(u64 seed, u32 purpose, u32 walker, u64 step) {
    return Numbers{seed, step, purpose, walker, 0, 0, Words{{0, 0, 0, 0}}};
}

__device__ __forceinline__ u32 next_word(Numbers& n) {
    if (n.left == 0) {
        n.words = stream_block(n.seed, n.purpose, n.walker, n.step, n.block++);
        n.left = 4;
    }
    u32 word = n.words.w[0];
    n.words.w[0] = n.words.w[1];
    n.words.w[1] = n.words.w[2];
    n.words.w[2] = n.words.w[3];
    n.left--;
    return word;
}

__device__ __forceinline__ u64 threshold(double p) {
    return p != p ? 0 : __double2ull_rz(__dmul_rn(p, 18446744073709551616.0));
}

__device__ __forceinline__ bool chance_bits(Numbers& n, u64 bits) {
    u32 word = next_word(n), high = (u32)(bits >> 32);
    return word == high ? next_word(n) < (u32)bits : word < high;
}

__device__ __forceinline__ u32 below(Numbers& n, u32 count) {
    u64 product = (u64)next_word(n) * count;
    if ((u32)product < count) {
        u32 least = (0u - count) % count;
        while ((u32)product < least) product = (u64)next_word(n) * count;
    }
    return (u32)(product >> 32);
}


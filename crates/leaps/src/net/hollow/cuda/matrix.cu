// The hollow convolution on tensor cores: bfloat16 products, float32 sums.
//
// A block has one direction of one slot. Channels h live in registers as the accumulators of mma.sync, rows are sites:
// a residual layer writes z = silu((1 + a) h + s) to shared memory as bfloat16 and adds the convolution of z to h. Products
// gather their rows from shared memory by a table of taps, so that any lattice will do.
//
// Given: SITES, CHANNELS (a multiple of 8), LAYERS, TAPS, Q, DIRECTIONS, HEAD (a multiple of 16), OUTPUTS, GLOBAL_FEATURES (a multiple of 8), ENTERING
// (numbers of a site that enter the first layer instead of its value, a multiple of 8 and at most CHANNELS; 0 if there are none);
// tiles of 16 rows per warp and warps of a block, forward and backward: FORWARD_TILES, FORWARD_WARPS, BACK_TILES, BACK_WARPS;
// those of the head: HEAD_TILES, HEAD_WARPS. Arguments, Word and Weights are declared by arguments.rs.

#define CHUNKS (CHANNELS / 8)
#define STRIDE (CHANNELS * 2 + (CHUNKS % 2 == 0 ? 16 : 0)) // bytes of a row: an odd number of 16, against bank conflicts
#define STEPS_OF(entering) ((TAPS * (entering) + 1) / 2) // of a layer that so many chunks enter
#define K_STEPS STEPS_OF(CHUNKS)
#define N_TILES CHUNKS
#define N_PAIRS ((N_TILES + 1) / 2)
#define PLANE ((SITES + 1) * STRIDE + 32)
#define TIME_ROW ((LAYERS - 1) * 2 * CHANNELS + 2 * HEAD)

// Global features are pairs of channels.
#define STORE_FEATURE(to, at, pair) \
    if ((at) % 2 == 1) (to)[(at) / 2] = pack((pair)[0], (pair)[1])

extern __shared__ __align__(16) u8 shared[];

__device__ __forceinline__ u32 pack(float low, float high) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

__device__ __forceinline__ float low(u32 pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }

__device__ __forceinline__ float quick_tanh(float x) {
    float r;
    asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

// As exact as bfloat16 needs: one special function each.
__device__ __forceinline__ float quick_silu(float z) {
    float y = 0.5f * z;
    return fmaf(y, quick_tanh(y), y);
}

__device__ __forceinline__ float quick_slope(float z) {
    float s = fmaf(0.5f, quick_tanh(0.5f * z), 0.5f);
    return s * fmaf(z, 1.0f - s, 1.0f);
}

__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void load_matrices(u32 address, u32* r) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

__device__ __forceinline__ void load_transposed(u32 address, u32* r) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

// d += a b for 16 rows, 8 columns and 16 products each.
__device__ __forceinline__ void multiply(float* d, const u32* a, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Copy 16 bytes to shared memory while other work goes on.
__device__ __forceinline__ void copy_16(u32 to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}

// The same, or zeros if `bytes` is 0 and not 16.
__device__ __forceinline__ void copy_16_or_zeros(u32 to, const void* from, u32 bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
}
__device__ __forceinline__ void end_copies() { asm volatile("cp.async.commit_group;"); }
template <int LEFT>
__device__ __forceinline__ void await_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT)); }

// Weights come to a ring of RING_STAGES stages of STAGE_STEPS steps in shared memory, two stages ahead of their use.
#define STAGE_VECTORS (STAGE_STEPS * N_PAIRS * 32)
#define RING (RING_STAGES * STAGE_VECTORS * 16)

template <int STEPS, int THREADS>
__device__ __forceinline__ void fetch_weights(int stage, u32 ring, const uint4* weights) {
    if (stage < (STEPS + STAGE_STEPS - 1) / STAGE_STEPS)
        for (int i = threadIdx.x; i < STAGE_VECTORS; i += THREADS) {
            int vector = stage * STAGE_VECTORS + i;
            if (vector < STEPS * N_PAIRS * 32) copy_16(ring + (stage % RING_STAGES * STAGE_VECTORS + i) * 16, weights + vector);
        }
    end_copies();
}

// Add the convolution of the first ENTERING_CHUNKS chunks of the rows at `z` to the accumulators, after the first two stages of the weights were fetched and all rows
// written. `tap` gives the byte offset of a row's neighbour.
template <int ENTERING_CHUNKS, int TILES, int ROWS, int THREADS>
__device__ __forceinline__ void convolve(float (&h)[TILES][N_TILES][4], u32 z, const u32* tap, u32 ring, const uint4* weights) {
    const int chunks = TAPS * ENTERING_CHUNKS, steps = STEPS_OF(ENTERING_CHUNKS), stages = (steps + STAGE_STEPS - 1) / STAGE_STEPS;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u32* own = tap + warp * TILES * 16 + (lane & 15);
    int part = lane >> 4;
#pragma unroll 1
    for (int stage = 0; stage < stages; stage++) {
        await_copies<1>();
        __syncthreads();
        fetch_weights<steps, THREADS>(stage + 2, ring, weights);
        u32 from = ring + stage % RING_STAGES * STAGE_VECTORS * 16 + lane * 16;
#pragma unroll
        for (int s = 0; s < STAGE_STEPS; s++) {
            int step = stage * STAGE_STEPS + s;
            if (steps % STAGE_STEPS && step >= steps) break;
            int chunk = 2 * step + part;
            if (chunks % 2 && chunk >= chunks) chunk = chunks - 1; // its weights are 0
            int t = chunk / ENTERING_CHUNKS, c = chunk % ENTERING_CHUNKS;
            u32 a[TILES][4];
#pragma unroll
            for (int m = 0; m < TILES; m++) load_matrices(z + own[t * ROWS + m * 16] + c * 16, a[m]);
#pragma unroll
            for (int p = 0; p < N_PAIRS; p++) {
                u32 b[4];
                asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                             : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                             : "r"(from + (s * N_PAIRS + p) * 512));
#pragma unroll
                for (int m = 0; m < TILES; m++) {
                    multiply(h[m][2 * p], a[m], b[0], b[1]);
                    if (2 * p + 1 < N_TILES) multiply(h[m][2 * p + 1], a[m], b[2], b[3]);
                }
            }
        }
    }
}

// Sum over the rows of a warp's tiles: thread (g = 0, t) ends up with columns 8 n + 2 t and 8 n + 2 t + 1.
__device__ __forceinline__ float sum_rows(float value) {
    value += __shfl_xor_sync(0xffffffffu, value, 4);
    value += __shfl_xor_sync(0xffffffffu, value, 8);
    return value + __shfl_xor_sync(0xffffffffu, value, 16);
}

#define FORWARD_ROWS (FORWARD_WARPS * FORWARD_TILES * 16)
#define FIRST_CHUNKS (ENTERING / 8)                              // chunks that enter the first layer
#define TABLE (ENTERING > 0 ? 0 : TAPS * (Q + 1) * CHANNELS) // numbers of its table of values
#define KEPT (LAYERS - 2)                                    // layers that are kept for passes after jumps

// A block has one direction of one slot, `item`; all layers are saved for the way back if SAVE. If KEEP, `kept` takes the layers between the first and the last
// in float32, as matrix_changes.cu starts from them.
template <bool SAVE, bool KEEP>
__device__ __forceinline__ void stack(const StackForward& pass, u32 item, float* kept) {
    u8* z = shared;
    u32 ring = shared_address(shared + PLANE);
    u32* tap = (u32*)(shared + PLANE + RING);
    float* time = (float*)(tap + TAPS * FORWARD_ROWS);
    float* table = time + (LAYERS - 1) * 2 * CHANNELS;
    float* bias = table + TABLE;
    u32 slot = item / DIRECTIONS, direction = item % DIRECTIONS;
    int thread = threadIdx.x, threads = FORWARD_WARPS * 32;
    int lane = thread & 31, warp = thread >> 5, g = lane >> 2, t = lane & 3;
    for (int i = thread; i < TAPS * FORWARD_ROWS; i += threads) tap[i] = pass.taps[direction * TAPS * FORWARD_ROWS + i];
    for (int i = thread; i < (LAYERS - 1) * 2 * CHANNELS; i += threads) time[i] = pass.times[(u64)pass.time_indices[slot] * TIME_ROW + i];
    for (int i = thread; i < LAYERS * CHANNELS; i += threads) bias[i] = pass.biases[i];
    for (int i = thread; i < (STRIDE + 32) / 4; i += threads) ((u32*)(z + SITES * STRIDE))[i] = 0;
#if ENTERING > 0
    const uint4* first = (const uint4*)pass.first;
    const uint4* entering = (const uint4*)(pass.entering + (u64)item * SITES * (ENTERING / 2));
    fetch_weights<STEPS_OF(FIRST_CHUNKS), FORWARD_WARPS * 32>(0, ring, first);
    fetch_weights<STEPS_OF(FIRST_CHUNKS), FORWARD_WARPS * 32>(1, ring, first);
    for (int i = thread; i < SITES * FIRST_CHUNKS; i += threads) *(uint4*)(z + i / FIRST_CHUNKS * STRIDE + i % FIRST_CHUNKS * 16) = entering[i];
#else
    u8* site_value = (u8*)(bias + LAYERS * CHANNELS);
    const u8* x = pass.states + (u64)pass.rows[slot] * SITES;
    for (int i = thread; i < TABLE; i += threads) table[i] = pass.first[i];
    for (int i = thread; i <= SITES; i += threads) site_value[i] = i < SITES ? x[i] : Q;
#endif
    __syncthreads();

    float h[FORWARD_TILES][N_TILES][4];
#pragma unroll
    for (int m = 0; m < FORWARD_TILES; m++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
#pragma unroll
            for (int n = 0; n < N_TILES; n++) {
                h[m][n][2 * half] = bias[n * 8 + 2 * t];
                h[m][n][2 * half + 1] = bias[n * 8 + 2 * t + 1];
            }
#if ENTERING == 0
            int row = (warp * FORWARD_TILES + m) * 16 + half * 8 + g;
#pragma unroll 1
            for (int k = 0; k < TAPS; k++) {
                int from = site_value[tap[k * FORWARD_ROWS + row] / STRIDE];
                const float2* w = (const float2*)(table + (k * (Q + 1) + from) * CHANNELS) + t;
#pragma unroll
                for (int n = 0; n < N_TILES; n++) {
                    h[m][n][2 * half] += w[n * 4].x;
                    h[m][n][2 * half + 1] += w[n * 4].y;
                }
            }
#endif
        }
    }
#if ENTERING > 0
    convolve<FIRST_CHUNKS, FORWARD_TILES, FORWARD_ROWS, FORWARD_WARPS * 32>(h, shared_address(z), tap, ring, first);
#endif
    u64 plane = (u64)SITES * (CHANNELS / 2), layer_size = (u64)gridDim.x * plane;
#pragma unroll 1
    for (int layer = 1; layer < LAYERS; layer++) {
        const float* scale = time + (layer - 1) * 2 * CHANNELS;
        const float* shift = scale + CHANNELS;
        const uint4* own = pass.weights + (layer - 1) * K_STEPS * N_PAIRS * 32;
        __syncthreads(); // nobody reads the last layer's rows and weights any more
        fetch_weights<K_STEPS, FORWARD_WARPS * 32>(0, ring, own);
        fetch_weights<K_STEPS, FORWARD_WARPS * 32>(1, ring, own);
        u32* keep = pass.saved + (layer - 1) * layer_size + item * plane;
        float* own_kept = kept + (((u64)slot * KEPT + layer - 2) * DIRECTIONS + direction) * SITES * CHANNELS;
#pragma unroll
        for (int m = 0; m < FORWARD_TILES; m++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int row = (warp * FORWARD_TILES + m) * 16 + half * 8 + g;
#pragma unroll
                for (int n = 0; n < N_TILES; n++) {
                    int c = n * 8 + 2 * t;
                    float* v = &h[m][n][2 * half];
                    if (row < SITES) {
                        float a0 = fmaf(v[0], 1.0f + scale[c], shift[c]);
                        float a1 = fmaf(v[1], 1.0f + scale[c + 1], shift[c + 1]);
                        *(u32*)(z + row * STRIDE + c * 2) = pack(quick_silu(a0), quick_silu(a1));
                        if (SAVE) keep[row * (CHANNELS / 2) + c / 2] = pack(v[0], v[1]);
                        if (KEEP && layer > 1) *(float2*)(own_kept + row * CHANNELS + c) = make_float2(v[0], v[1]);
                    }
                    v[0] += bias[layer * CHANNELS + c];
                    v[1] += bias[layer * CHANNELS + c + 1];
                }
            }
        }
        convolve<CHUNKS, FORWARD_TILES, FORWARD_ROWS, FORWARD_WARPS * 32>(h, shared_address(z), tap, ring, own);
    }
    u32* keep = pass.saved + (LAYERS - 1) * layer_size + item * plane;
#pragma unroll
    for (int m = 0; m < FORWARD_TILES; m++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = (warp * FORWARD_TILES + m) * 16 + half * 8 + g;
            if (row >= SITES) continue;
#pragma unroll
            for (int n = 0; n < N_TILES; n++) {
                float* v = &h[m][n][2 * half];
                u64 at = row * (CHANNELS / 2) + n * 4 + t;
                pass.context[item * plane + at] = pack(quick_silu(v[0]), quick_silu(v[1]));
                if (SAVE) keep[at] = pack(v[0], v[1]);
            }
        }
    }
}

#ifndef CHANGES // matrix_changes.cu follows instead of the head and the way back
extern "C" __global__ void __launch_bounds__(FORWARD_WARPS * 32, FORWARD_BLOCKS)
stack_forward(StackForward pass) { stack<false, false>(pass, blockIdx.x, (float*)0); }

extern "C" __global__ void __launch_bounds__(FORWARD_WARPS * 32, FORWARD_BLOCKS)
stack_train(StackForward pass) { stack<true, false>(pass, blockIdx.x, (float*)0); }
#endif


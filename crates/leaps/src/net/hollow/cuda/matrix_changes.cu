// Passes of the hollow convolution on tensor cores after jumps, for squares whose values enter: of a slot in which one site has
// changed, only what sees that site is computed again. Behind matrix.cu.
//
// Along a direction, layer l changes in a rectangle, its cone: from the site's plane to BEHIND (l + 1) planes ahead, up to l + 1 columns to its sides; it reads a frame of
// one column to each side and BEHIND planes before. Layers between the first and the last are kept in float32, before their activation: [slot][layer - 1][direction][site][channel].
// The first is computed from values where it is needed, contexts stay where the head reads them. Every sum has the order of a whole pass, so the results are the same to the bit.
//
// Given besides: BEHIND (planes that a layer sees before a site's own), PERIODIC; CHANGE_WARPS and CHANGE_BLOCKS (warps of a block, and blocks of a multiprocessor),
// CHANGE_TILES (tiles of 16 rows that a warp has at a time, at most 3), NEAR_COLUMNS, WHOLE and IDLE (what `changed` holds instead of a site).

#define ACROSS 3 // columns that a layer sees
#define CHANGE_THREADS (CHANGE_WARPS * 32)
#define PIECES 2 // four channels each, that a thread has on their way

// The largest rectangle that is read, of every direction: planes -BEHIND to BEHIND * LAYERS, columns -(LAYERS + 1) to LAYERS + 1.
#define BOX_PLANES (BEHIND * (LAYERS + 1) + 1)
#define BOX_COLUMNS (2 * LAYERS + 3)
#define BOX (BOX_PLANES * BOX_COLUMNS)

// The values around the site that the second layer's cone goes back to: planes -2 BEHIND to 2 BEHIND, columns -4 to 4.
#define NEAR_PLANES (4 * BEHIND + 1)
#define NEAR (NEAR_PLANES * NEAR_COLUMNS)

// Where things lie in shared memory; the same in changes.rs.
#define WEIGHTS_AT (DIRECTIONS * BOX * STRIDE)
#define PLACES_AT (WEIGHTS_AT + K_STEPS * N_PAIRS * 512)
#define TABLE_AT (PLACES_AT + DIRECTIONS * BOX * 4)
#define TIME_AT (TABLE_AT + TABLE * 4)
#define BIAS_AT (TIME_AT + (LAYERS - 1) * 2 * CHANNELS * 4)
#define OFFSETS_AT (BIAS_AT + LAYERS * CHANNELS * 4)
#define NEAR_AT (OFFSETS_AT + 2 * K_STEPS * 4)

// List the slots that need a whole pass, and those in which a site has changed. One block of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024) split(const u32* changed, u32* whole, u32* local, u32* counts, u32 slots) {
    __shared__ u32 found[2][32];
    u32 bases[2] = {0, 0}, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (u32 first = 0; first < slots; first += 1024) {
        u32 slot = first + threadIdx.x, mark = slot < slots ? changed[slot] : IDLE;
        u32 masks[2] = {__ballot_sync(0xffffffffu, mark == WHOLE), __ballot_sync(0xffffffffu, mark < SITES)};
        if (lane == 0) {
            found[0][warp] = __popc(masks[0]);
            found[1][warp] = __popc(masks[1]);
        }
        __syncthreads();
#pragma unroll
        for (int kind = 0; kind < 2; kind++) {
            u32 at = bases[kind] + __popc(masks[kind] & ((1u << lane) - 1));
            for (u32 w = 0; w < 32; w++) {
                if (w < warp) at += found[kind][w];
                bases[kind] += found[kind][w];
            }
            if (masks[kind] >> lane & 1) (kind == 0 ? whole : local)[at] = slot;
        }
        __syncthreads();
    }
    if (threadIdx.x < 2) counts[threadIdx.x] = bases[threadIdx.x];
}

// Whole passes of the slots that need them. Blocks take items in turn.
extern "C" __global__ void __launch_bounds__(FORWARD_WARPS * 32, FORWARD_BLOCKS)
stack_keep(StackForward pass, const u32* whole, const u32* counts, float* kept) {
    u32 items = counts[0] * DIRECTIONS;
    for (u32 i = blockIdx.x; i < items; i += gridDim.x) {
        __syncthreads(); // nobody reads the tables of the item before any more
        stack<false, true>(pass, whole[i / DIRECTIONS] * DIRECTIONS + i % DIRECTIONS, kept);
    }
}

// The coordinate that lies so many steps from that of a site, -1 if there is none.
__device__ __forceinline__ int moved(const Axis& axis, u32 site, int steps) {
    int side = axis.side, at = (int)(site / axis.stride % axis.side) + (axis.backwards ? -steps : steps);
    if (PERIODIC) return (at % side + side) % side;
    return at < side ? at : -1;
}

// The site that lies `planes` ahead and `columns` aside of another along a direction, NONE if there is none. The same as in changes.rs.
__device__ __forceinline__ u32 site_at(const Axis* axes, u32 direction, u32 site, int planes, int columns) {
    Axis along = axes[2 * direction], across = axes[2 * direction + 1];
    int x = moved(along, site, planes), y = moved(across, site, columns);
    return x < 0 || y < 0 ? NONE : x * along.stride + y * across.stride;
}

// Rectangles of all directions, row by row, and how a number is divided by their sizes.
struct Rectangles {
    u32 rows, area, columns, by_area, by_columns;
    __device__ Rectangles(u32 planes, u32 columns)
        : rows(DIRECTIONS * planes * columns), area(planes * columns), columns(columns), by_area(0xffffffffu / area + 1), by_columns(0xffffffffu / columns + 1) {}
};

// Where a row lies. Rows are fewer than 2^16 and divisors odd or more than 2, for which multiplication by a rounded reciprocal is exact.
struct Place {
    u32 direction, plane, column;
    __device__ __forceinline__ Place(const Rectangles& all, u32 row) {
        direction = __umulhi(row, all.by_area);
        row -= direction * all.area;
        plane = __umulhi(row, all.by_columns);
        column = row - plane * all.columns;
    }
    __device__ __forceinline__ u32 cell(u32 aside) const { return direction * BOX + plane * BOX_COLUMNS + column + aside; }
    __device__ __forceinline__ u32 near(u32 before, u32 aside) const {
        return direction * NEAR + (plane + before) * NEAR_COLUMNS + column + aside;
    }
};

// What the layers of a block share: everything but `places` and the layers themselves lies in shared memory.
struct Layers {
    u8* z;
    const u32* places; // direction * SITES + site of every cell of the boxes
    const float* table;
    const float* bias;
    const u32* offsets; // of what a chunk reads, from the first row that its row sees
    const u8* near;
    const uint4* weights;
    // The layer below and the one that is computed, [direction][site][channel], and the context.
    const float* below;
    float* above;
    u32* context;
};

// Four channels after the activation.
__device__ __forceinline__ void activate(u8* to, float4 v, const float* scale, const float* shift) {
    float one = fmaf(v.x, 1.0f + scale[0], shift[0]), two = fmaf(v.y, 1.0f + scale[1], shift[1]);
    float three = fmaf(v.z, 1.0f + scale[2], shift[2]), four = fmaf(v.w, 1.0f + scale[3], shift[3]);
    *(uint2*)to = make_uint2(pack(quick_silu(one), quick_silu(two)), pack(quick_silu(three), quick_silu(four)));
}

// Write the activations of the layer below `layer` wherever its cone reads them, zeros where there is no site.
__device__ __forceinline__ void fill(const Layers& own, int layer, const float* scale, const float* shift) {
    const u32 pieces = CHANNELS / 4;
    Rectangles all(BEHIND * (layer + 2) + 1, 2 * layer + 5);
    u32 aside = LAYERS - 1 - layer, n = all.rows * pieces;
    if (layer == 1) {
#pragma unroll 1
        for (u32 i = threadIdx.x; i < n; i += CHANGE_THREADS) {
            Place at(all, i / pieces);
            u32 c = i % pieces * 4, cell = at.cell(aside);
            u8* to = own.z + cell * STRIDE + c * 2;
            if (own.places[cell] == NONE) {
                *(uint2*)to = make_uint2(0, 0);
                continue;
            }
            float4 v = *(const float4*)(own.bias + c);
            for (int k = 0; k < TAPS; k++) {
                u32 value = own.near[at.near(k / ACROSS, k % ACROSS)];
                float4 w = *(const float4*)(own.table + (k * (Q + 1) + value) * CHANNELS + c);
                v.x += w.x;
                v.y += w.y;
                v.z += w.z;
                v.w += w.w;
            }
            activate(to, v, scale + c, shift + c);
        }
        return;
    }
#pragma unroll 1
    for (u32 first = threadIdx.x; first < n; first += PIECES * CHANGE_THREADS) {
        // All on their way before the first is needed.
        float4 v[PIECES];
        u32 cells[PIECES];
        bool inside[PIECES];
#pragma unroll
        for (int k = 0; k < PIECES; k++) {
            u32 i = first + k * CHANGE_THREADS;
            if (i >= n) break;
            cells[k] = Place(all, i / pieces).cell(aside);
            u32 place = own.places[cells[k]];
            inside[k] = place != NONE;
            if (inside[k]) v[k] = *(const float4*)(own.below + (u64)place * CHANNELS + i % pieces * 4);
        }
#pragma unroll
        for (int k = 0; k < PIECES; k++) {
            u32 i = first + k * CHANGE_THREADS;
            if (i >= n) break;
            u32 c = i % pieces * 4;
            u8* to = own.z + cells[k] * STRIDE + c * 2;
            if (inside[k]) activate(to, v[k], scale + c, shift + c);
            else *(uint2*)to = make_uint2(0, 0);
        }
    }
}

// Tiles `first`, `first` + CHANGE_WARPS, ... of the cone: a warp has TILES of them.
template <int TILES>
__device__ __forceinline__ void compute(const Layers& own, int layer, const Rectangles& all, u32 first) {
    u32 lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, aside = LAYERS - 1 - layer;
    float h[TILES][N_TILES][4];
    u32 from[TILES], places[TILES][2];
#pragma unroll
    for (int m = 0; m < TILES; m++) {
        // Rows past the last one are the last one again, and not written.
        u32 start = (first + m * CHANGE_WARPS) * 16, last = all.rows - 1;
        Place at(all, min(start + (lane & 15), last));
        u32 cell = at.cell(aside), near = at.near(BEHIND, 1); // the first that the row sees
        from[m] = shared_address(own.z) + cell * STRIDE;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            u32 first_cell = __shfl_sync(0xffffffffu, cell, half * 8 + g), first_value = __shfl_sync(0xffffffffu, near, half * 8 + g);
            u32 place = start + half * 8 + g <= last ? own.places[first_cell + BEHIND * BOX_COLUMNS + 1] : NONE;
            places[m][half] = place;
            const float* bias = own.bias + 2 * t;
            if (layer == 1) {
#pragma unroll
                for (int n = 0; n < N_TILES; n++) {
                    h[m][n][2 * half] = bias[n * 8];
                    h[m][n][2 * half + 1] = bias[n * 8 + 1];
                }
#pragma unroll 1
                for (int k = 0; k < TAPS; k++) {
                    u32 value = own.near[first_value + k / ACROSS * NEAR_COLUMNS + k % ACROSS];
                    const float2* w = (const float2*)(own.table + (k * (Q + 1) + value) * CHANNELS) + t;
#pragma unroll
                    for (int n = 0; n < N_TILES; n++) {
                        h[m][n][2 * half] += w[n * 4].x;
                        h[m][n][2 * half + 1] += w[n * 4].y;
                    }
                }
            } else {
                // The first place is as good as another for rows that are not written.
                const float2* below = (const float2*)(own.below + (u64)(place == NONE ? 0 : place) * CHANNELS) + t;
#pragma unroll
                for (int n = 0; n < N_TILES; n++) {
                    float2 v = below[n * 4];
                    h[m][n][2 * half] = v.x;
                    h[m][n][2 * half + 1] = v.y;
                }
            }
#pragma unroll
            for (int n = 0; n < N_TILES; n++) {
                h[m][n][2 * half] += bias[layer * CHANNELS + n * 8];
                h[m][n][2 * half + 1] += bias[layer * CHANNELS + n * 8 + 1];
            }
        }
    }
#pragma unroll 1
    for (int step = 0; step < K_STEPS; step++) {
        u32 offset = own.offsets[2 * step + (lane >> 4)], a[TILES][4];
#pragma unroll
        for (int m = 0; m < TILES; m++) load_matrices(from[m] + offset, a[m]);
#pragma unroll
        for (int p = 0; p < N_PAIRS; p++) {
            uint4 b = own.weights[(step * N_PAIRS + p) * 32 + lane];
#pragma unroll
            for (int m = 0; m < TILES; m++) {
                multiply(h[m][2 * p], a[m], b.x, b.y);
                if (2 * p + 1 < N_TILES) multiply(h[m][2 * p + 1], a[m], b.z, b.w);
            }
        }
    }
#pragma unroll
    for (int m = 0; m < TILES; m++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            u64 place = places[m][half];
            if (place == NONE) continue;
#pragma unroll
            for (int n = 0; n < N_TILES; n++) {
                const float* v = &h[m][n][2 * half];
                if (layer + 1 < LAYERS) *(float2*)(own.above + place * CHANNELS + n * 8 + 2 * t) = make_float2(v[0], v[1]);
                else own.context[place * (CHANNELS / 2) + n * 4 + t] = pack(quick_silu(v[0]), quick_silu(v[1]));
            }
        }
    }
}

// The stacks of a slot in which a site has changed: a block has all directions of one, one after the other in the rows of its tiles.
extern "C" __global__ void __launch_bounds__(CHANGE_THREADS, CHANGE_BLOCKS) stack_changes(StackChanges pass) {
    if (blockIdx.x >= pass.counts[1]) return;
    u32* places = (u32*)(shared + PLACES_AT);
    float* table = (float*)(shared + TABLE_AT);
    float* time = (float*)(shared + TIME_AT);
    float* bias = (float*)(shared + BIAS_AT);
    u32* offsets = (u32*)(shared + OFFSETS_AT);
    u8* near = shared + NEAR_AT;
    u32 slot = pass.local[blockIdx.x], changed = pass.changed[slot], thread = threadIdx.x;
    const u8* x = pass.states + (u64)pass.rows[slot] * SITES;
    const float* own_times = pass.times + (u64)pass.time_indices[slot] * TIME_ROW;
    for (u32 i = thread; i < TABLE; i += CHANGE_THREADS) table[i] = pass.first[i];
    for (u32 i = thread; i < (LAYERS - 1) * 2 * CHANNELS; i += CHANGE_THREADS) time[i] = own_times[i];
    for (u32 i = thread; i < LAYERS * CHANNELS; i += CHANGE_THREADS) bias[i] = pass.biases[i];
    for (u32 i = thread; i < 2 * K_STEPS; i += CHANGE_THREADS) {
        u32 chunk = i < TAPS * CHUNKS ? i : TAPS * CHUNKS - 1; // the weights of one more are 0
        u32 tap = chunk / CHUNKS;
        offsets[i] = (tap / ACROSS * BOX_COLUMNS + tap % ACROSS) * STRIDE + chunk % CHUNKS * 16;
    }
#pragma unroll 1
    for (u32 i = thread; i < DIRECTIONS * BOX; i += CHANGE_THREADS) {
        u32 direction = i / BOX, plane = i % BOX / BOX_COLUMNS, column = i % BOX_COLUMNS;
        u32 site = site_at(pass.axes, direction, changed, (int)plane - BEHIND, (int)column - (LAYERS + 1));
        places[i] = site == NONE ? NONE : direction * SITES + site;
    }
#pragma unroll 1
    for (u32 i = thread; i < DIRECTIONS * NEAR; i += CHANGE_THREADS) {
        u32 direction = i / NEAR, plane = i % NEAR / NEAR_COLUMNS, column = i % NEAR_COLUMNS;
        u32 site = site_at(pass.axes, direction, changed, (int)plane - 2 * BEHIND, (int)column - 4);
        near[i] = site == NONE ? Q : x[site];
    }
    Layers own = {shared, places, table, bias, offsets, near, (const uint4*)(shared + WEIGHTS_AT)};
    own.context = pass.context + (u64)slot * DIRECTIONS * SITES * (CHANNELS / 2);
    own.below = own.above = pass.kept + (u64)slot * KEPT * DIRECTIONS * SITES * CHANNELS;

#pragma unroll 1
    for (int layer = 1; layer < LAYERS; layer++) {
        __syncthreads(); // tables are there; nobody reads the last layer's rows and weights any more, and its channels are written
        const uint4* weights = pass.weights + (layer - 1) * K_STEPS * N_PAIRS * 32;
        for (u32 i = thread; i < K_STEPS * N_PAIRS * 32; i += CHANGE_THREADS)
            copy_16(shared_address(shared + WEIGHTS_AT) + i * 16, weights + i);
        end_copies();
        const float* scale = time + (layer - 1) * 2 * CHANNELS;
        fill(own, layer, scale, scale + CHANNELS);
        await_copies<0>();
        __syncthreads();
        Rectangles all(BEHIND * (layer + 1) + 1, 2 * layer + 3);
        u32 tiles = (all.rows + 15) / 16, warp = thread >> 5;
        for (u32 first = warp; first < tiles; first += CHANGE_WARPS * CHANGE_TILES) {
            u32 left = (tiles - first + CHANGE_WARPS - 1) / CHANGE_WARPS;
            if (left >= CHANGE_TILES) compute<CHANGE_TILES>(own, layer, all, first);
            else if (CHANGE_TILES > 2 && left == 2) compute<2>(own, layer, all, first);
            else compute<1>(own, layer, all, first);
        }
        // The first layer is not kept.
        own.below = own.above;
        own.above += DIRECTIONS * SITES * CHANNELS;
    }
}

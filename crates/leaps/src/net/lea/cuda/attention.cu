// Attend from every site to all others, forward and back, one head of one slot in a block (or in PARTS of them).
//
// SLICES threads share a row, SLICE numbers each, with zeros beyond WIDTH; a thread has its slice of ROWS rows in registers and meets
// the rows of all sites, which come through shared memory, TILE sites at a time. So many numbers are multiplied for each that is
// read. Scores are in units of log 2.
//
// Given: SLICES (a power of 2, up to 32), SLICE (even), STRIDE (from slice to slice), ROW (from row to row), TILE; ROWS, THREADS and
// PARTS, and the same with BACK_ on the way back.

#define LOG2_E 1.44269504f
#define LOG_2 0.69314718f
// A score whose weight is 0, and a first one for weights to be relative to, which others may exceed by SLACK until it is replaced.
#define NEVER -3e38f
#define LOWEST -1e30f
#define SLACK 8.0f

// What a block works on, and its thread.
struct Place {
    u32 slot, head, first, step, slice;
};

// Rows of a thread are `first + r * step`.
__device__ __forceinline__ Place place(u32 parts, u32 rows) {
    u32 item = blockIdx.x / parts, step = blockDim.x / SLICES;
    return {item / HEADS, item % HEADS, blockIdx.x % parts * rows * step + threadIdx.x / SLICES, step, threadIdx.x % SLICES};
}

// Query d of a head's site, such that keys times it are scores.
struct Queries {
    const float *table, *scale, *shift;
    __device__ Queries(const float* tables, const float* times, const Place& at)
        : table(tables + T_QUERY + at.head * WIDTH), scale(times + (u64)at.slot * TIMES + at.head * WIDTH), shift(scale + SIZE) {}
    __device__ float operator()(u32 site, u32 d) const {
        return fmaf(table[site * SIZE + d], 1.0f + scale[d], shift[d]) * (LOG2_E * rsqrtf((float)WIDTH));
    }
};

// Key or value d of a head's site.
struct Lookup {
    const float* table;
    const u8* x;
    __device__ Lookup(const float* tables, const u8* x, const Place& at) : table(tables + at.head * WIDTH), x(x) {}
    __device__ float operator()(u32 site, u32 d) const { return table[x[site] * TABLE + site * SIZE + d]; }
};

// This thread's slice of a site's row.
template <class Of>
__device__ __forceinline__ void take(float* to, const Place& at, u32 site, const Of& of) {
#pragma unroll
    for (int e = 0; e < SLICE; e++) {
        u32 d = at.slice * SLICE + e;
        to[e] = d < WIDTH && site < SITES ? of(site, d) : 0.0f;
    }
}

// Rows of `count` sites for all threads.
template <class Of>
__device__ __forceinline__ void fill(float* tile, u32 start, u32 count, const Of& of) {
    FOR(k, count * SLICES * SLICE) {
        u32 s = k / (SLICES * SLICE), d = k % (SLICES * SLICE);
        tile[s * ROW + d / SLICE * STRIDE + d % SLICE] = d < WIDTH ? of(start + s, d) : 0.0f;
    }
}

__device__ __forceinline__ void read(float* to, const float* tile, u32 s, u32 slice) {
    const float2* pairs = (const float2*)(tile + s * ROW + slice * STRIDE);
#pragma unroll
    for (int e = 0; e < SLICE / 2; e++) {
        to[2 * e] = pairs[e].x;
        to[2 * e + 1] = pairs[e].y;
    }
}

// The product of two rows: the same bits in all threads that share them.
__device__ __forceinline__ float dot(const float* a, const float* b) {
    float sum = 0.0f;
#pragma unroll
    for (int e = 0; e < SLICE; e++) sum = fmaf(a[e], b[e], sum);
#pragma unroll
    for (int k = 1; k < SLICES; k *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, k);
    return sum;
}

__device__ __forceinline__ void multiply(float* row, float factor) {
#pragma unroll
    for (int e = 0; e < SLICE; e++) row[e] *= factor;
}

__device__ __forceinline__ void clear(float* row) {
#pragma unroll
    for (int e = 0; e < SLICE; e++) row[e] = 0.0f;
}

__device__ __forceinline__ void add(float* sum, float factor, const float* row) {
#pragma unroll
    for (int e = 0; e < SLICE; e++) sum[e] = fmaf(factor, row[e], sum[e]);
}

__device__ __forceinline__ void put(float* to, const Place& at, u32 site, const float* from, float factor) {
    to += at.slot * TABLE + (u64)site * SIZE + at.head * WIDTH;
#pragma unroll
    for (int e = 0; e < SLICE; e++) {
        u32 d = at.slice * SLICE + e;
        if (d < WIDTH && site < SITES) to[d] = from[e] * factor;
    }
}

// Write `context[slot][site][SIZE]`, and `logs[slot][head][site]`: of the sum that weights are divided by.
extern "C" __global__ void __launch_bounds__(THREADS)
lea_attend(const float* tables, const float* times, const u8* states, const u32* rows, float* context, float* logs) {
    __shared__ __align__(16) float keys[TILE * ROW], values[TILE * ROW];
    Place at = place(PARTS, ROWS);
    const u8* x = states + (u64)rows[at.slot] * SITES;
    Queries queries(tables, times, at);
    Lookup key(tables, x, at), value(tables + T_VALUE, x, at);
    float query[ROWS][SLICE], sum[ROWS][SLICE], top[ROWS], total[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        take(query[r], at, at.first + r * at.step, queries);
        clear(sum[r]);
        top[r] = LOWEST;
        total[r] = 0.0f;
    }
    for (u32 start = 0; start < SITES; start += TILE) {
        u32 count = min((u32)TILE, SITES - start);
        __syncthreads();
        fill(keys, start, count, key);
        fill(values, start, count, value);
        __syncthreads();
        for (u32 s = 0; s < count; s++) {
            float k[SLICE], v[SLICE];
            read(k, keys, s, at.slice);
            read(v, values, s, at.slice);
            float score[ROWS];
            bool higher = false;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                score[r] = dot(query[r], k);
                // The own site has no weight, whatever its value.
                if (at.first + r * at.step == start + s) score[r] = NEVER;
                higher |= score[r] > top[r] + SLACK;
            }
            if (higher) {
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    // What one row meets leaves the others as they are, to the last bit.
                    float next = score[r] > top[r] + SLACK ? score[r] : top[r], factor = exp2f(top[r] - next);
                    multiply(sum[r], factor);
                    total[r] *= factor;
                    top[r] = next;
                }
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float weight = exp2f(score[r] - top[r]);
                total[r] += weight;
                add(sum[r], weight, v);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        u32 site = at.first + r * at.step;
        put(context, at, site, sum[r], 1.0f / total[r]);
        if (at.slice == 0 && site < SITES) logs[((u64)at.slot * HEADS + at.head) * SITES + site] = top[r] + log2f(total[r]);
    }
}

// Write `means[slot][head][site]`, the mean over weights of the gradient of a weight, which is that of `context` times `context`.
extern "C" __global__ void lea_means(const float* context, const float* d_context, float* means, u32 slots) {
    u64 k = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= (u64)slots * SITES * HEADS) return;
    u64 head = k % HEADS, site = k / HEADS % SITES, slot = k / HEADS / SITES;
    float sum = 0.0f;
    for (int d = 0; d < WIDTH; d++) sum = fmaf(context[k * WIDTH + d], d_context[k * WIDTH + d], sum);
    means[(slot * HEADS + head) * SITES + site] = sum;
}

// Write the gradients of keys and values, for rows of sites that are read.
extern "C" __global__ void __launch_bounds__(BACK_THREADS)
lea_keys_back(AttentionBack pass, const float* d_context, float* d_key, float* d_value) {
    __shared__ __align__(16) float queries[TILE * ROW], slopes[TILE * ROW];
    __shared__ float log[TILE], mean[TILE];
    Place at = place(BACK_PARTS, BACK_ROWS);
    const u8* x = pass.states + (u64)pass.rows[at.slot] * SITES;
    const float* d_a = d_context + at.slot * TABLE + at.head * WIDTH;
    Queries query(pass.tables, pass.times, at);
    auto slope = [&](u32 site, u32 d) { return d_a[site * SIZE + d]; };
    float key[BACK_ROWS][SLICE], value[BACK_ROWS][SLICE], to_key[BACK_ROWS][SLICE], to_value[BACK_ROWS][SLICE];
#pragma unroll
    for (int r = 0; r < BACK_ROWS; r++) {
        take(key[r], at, at.first + r * at.step, Lookup(pass.tables, x, at));
        take(value[r], at, at.first + r * at.step, Lookup(pass.tables + T_VALUE, x, at));
        clear(to_key[r]);
        clear(to_value[r]);
    }
    for (u32 start = 0; start < SITES; start += TILE) {
        u32 count = min((u32)TILE, SITES - start);
        u64 stats = ((u64)at.slot * HEADS + at.head) * SITES + start;
        __syncthreads();
        fill(queries, start, count, query);
        fill(slopes, start, count, slope);
        FOR(i, count) {
            log[i] = pass.logs[stats + i];
            mean[i] = pass.means[stats + i];
        }
        __syncthreads();
        for (u32 i = 0; i < count; i++) {
            float q[SLICE], d[SLICE];
            read(q, queries, i, at.slice);
            read(d, slopes, i, at.slice);
#pragma unroll
            for (int r = 0; r < BACK_ROWS; r++) {
                float score = dot(q, key[r]), d_weight = dot(d, value[r]);
                float weight = exp2f((at.first + r * at.step == start + i ? NEVER : score) - log[i]);
                add(to_key[r], weight * (d_weight - mean[i]), q);
                add(to_value[r], weight, d);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < BACK_ROWS; r++) {
        put(d_key, at, at.first + r * at.step, to_key[r], LOG_2);
        put(d_value, at, at.first + r * at.step, to_value[r], 1.0f);
    }
}

// Write the gradients of queries over those of their contexts: each is read by the threads that write it, and before.
extern "C" __global__ void __launch_bounds__(BACK_THREADS)
lea_queries_back(AttentionBack pass, float* d_context) {
    __shared__ __align__(16) float keys[TILE * ROW], values[TILE * ROW];
    Place at = place(BACK_PARTS, BACK_ROWS);
    const u8* x = pass.states + (u64)pass.rows[at.slot] * SITES;
    const float* d_a = d_context + at.slot * TABLE + at.head * WIDTH;
    Queries queries(pass.tables, pass.times, at);
    Lookup key(pass.tables, x, at), value(pass.tables + T_VALUE, x, at);
    auto slope = [&](u32 site, u32 d) { return d_a[site * SIZE + d]; };
    float query[BACK_ROWS][SLICE], d[BACK_ROWS][SLICE], sum[BACK_ROWS][SLICE], log[BACK_ROWS], mean[BACK_ROWS];
#pragma unroll
    for (int r = 0; r < BACK_ROWS; r++) {
        u32 site = at.first + r * at.step;
        u64 stats = ((u64)at.slot * HEADS + at.head) * SITES + min(site, (u32)SITES - 1);
        take(query[r], at, site, queries);
        take(d[r], at, site, slope);
        clear(sum[r]);
        log[r] = pass.logs[stats];
        mean[r] = pass.means[stats];
    }
    for (u32 start = 0; start < SITES; start += TILE) {
        u32 count = min((u32)TILE, SITES - start);
        __syncthreads();
        fill(keys, start, count, key);
        fill(values, start, count, value);
        __syncthreads();
        for (u32 s = 0; s < count; s++) {
            float k[SLICE], v[SLICE];
            read(k, keys, s, at.slice);
            read(v, values, s, at.slice);
#pragma unroll
            for (int r = 0; r < BACK_ROWS; r++) {
                float score = dot(query[r], k), d_weight = dot(d[r], v);
                float weight = exp2f((at.first + r * at.step == start + s ? NEVER : score) - log[r]);
                add(sum[r], weight * (d_weight - mean[r]), k);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < BACK_ROWS; r++) put(d_context, at, at.first + r * at.step, sum[r], rsqrtf((float)WIDTH));
}

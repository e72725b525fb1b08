// Attention over all other sites, in float32, parameters in their natural order. A block has a lane (forward) or some lanes,
// one after the other (backward), and keeps their rows in global memory.
//
// Given: SITES, INPUTS (1 for spins, else the number of tokens), EMBEDDING, HEADS, WIDTH, OUTPUTS.

#define SIZE (HEADS * WIDTH)
#define P_TOKENS 0
#define P_PLACES (INPUTS * EMBEDDING)
#define P_KEY (P_PLACES + SITES * EMBEDDING)
#define P_VALUE (P_KEY + SIZE * EMBEDDING)
#define P_QUERY (P_VALUE + SIZE * EMBEDDING)
#define P_HIDDEN (P_QUERY + SIZE * EMBEDDING)
#define P_HIDDEN_BIAS (P_HIDDEN + EMBEDDING * SIZE)
#define P_OUT (P_HIDDEN_BIAS + EMBEDDING)
#define P_OUT_BIAS (P_OUT + OUTPUTS * EMBEDDING)
#define P_ALL (P_OUT_BIAS + OUTPUTS)

// What the forward pass keeps of a lane: [site][EMBEDDING] of u; [site][SIZE] of keys, values, queries before and after the
// time's scale and shift, attention.
#define KEPT (SITES * (EMBEDDING + 5 * SIZE))
#define K_KEY (SITES * EMBEDDING)
#define K_VALUE (K_KEY + SITES * SIZE)
#define K_BASE (K_VALUE + SITES * SIZE)
#define K_QUERY (K_BASE + SITES * SIZE)
#define K_SEEN (K_QUERY + SITES * SIZE)

// Space of a block of the backward pass: [site][EMBEDDING] of hidden units before and after their activation, of their
// gradients before and after the time's scale, of d_u; [site][SIZE] of gradients; [site][head] of top, share and mean.
#define SPACE (SITES * (5 * EMBEDDING + 4 * SIZE + 3 * HEADS))
#define S_AFTER (SITES * EMBEDDING)
#define S_DZ (2 * SITES * EMBEDDING)
#define S_DHIDDEN (3 * SITES * EMBEDDING)
#define S_DU (4 * SITES * EMBEDDING)
#define S_DSEEN (5 * SITES * EMBEDDING)
#define S_DKEY (S_DSEEN + SITES * SIZE)
#define S_DVALUE (S_DKEY + SITES * SIZE)
#define S_DQUERY (S_DVALUE + SITES * SIZE)
#define S_STATS (S_DQUERY + SITES * SIZE)

#define FOR(k, n) for (u32 k = threadIdx.x; k < (n); k += blockDim.x)

__device__ __forceinline__ float score(const float* key, const float* query) {
    float sum = 0.0f;
#pragma unroll
    for (int d = 0; d < WIDTH; d++) sum = fmaf(key[d], query[d], sum);
    return sum * rsqrtf((float)WIDTH);
}

// `sum_i w[i * step] v[i]`.
__device__ __forceinline__ float dot(const float* w, const float* v, u32 n, u32 step) {
    float sum = 0.0f;
    for (u32 i = 0; i < n; i++) sum = fmaf(w[i * step], v[i], sum);
    return sum;
}

// `sum over sites of a[site * a_step] b[site * b_step]`.
__device__ __forceinline__ float over_sites(const float* a, u32 a_step, const float* b, u32 b_step) {
    float sum = 0.0f;
    for (u32 site = 0; site < SITES; site++) sum = fmaf(a[site * a_step], b[site * b_step], sum);
    return sum;
}

__device__ __forceinline__ float over_sites(const float* a, u32 a_step) {
    float sum = 0.0f;
    for (u32 site = 0; site < SITES; site++) sum += a[site * a_step];
    return sum;
}

extern "C" __global__ void lea_forward(const float* p, const float* times, const u8* states, const u32* rows, float* kept,
                                       float* out) {
    u32 lane = blockIdx.x;
    const u8* x = states + (u64)rows[lane] * SITES;
    const float* time = times + (u64)lane * TIMES;
    float* u = kept + (u64)lane * KEPT;
    float *key = u + K_KEY, *value = u + K_VALUE, *base = u + K_BASE, *query = u + K_QUERY, *seen = u + K_SEEN;
    FOR(k, SITES * EMBEDDING) {
        u32 site = k / EMBEDDING, c = k % EMBEDDING;
#if INPUTS == 1
        u[k] = fmaf(p[P_TOKENS + c], x[site] == 1 ? 1.0f : -1.0f, p[P_PLACES + k]);
#else
        u[k] = p[P_PLACES + k] + p[P_TOKENS + x[site] * EMBEDDING + c];
#endif
    }
    __syncthreads();
    FOR(k, SITES * SIZE) {
        u32 site = k / SIZE, c = k % SIZE;
        key[k] = dot(p + P_KEY + c * EMBEDDING, u + site * EMBEDDING, EMBEDDING, 1);
        value[k] = dot(p + P_VALUE + c * EMBEDDING, u + site * EMBEDDING, EMBEDDING, 1);
        base[k] = dot(p + P_QUERY + c * EMBEDDING, p + P_PLACES + site * EMBEDDING, EMBEDDING, 1);
        query[k] = fmaf(base[k], 1.0f + time[c], time[SIZE + c]);
    }
    __syncthreads();
    FOR(k, SITES * HEADS) {
        u32 i = k / HEADS, at = k % HEADS * WIDTH;
        const float* q = query + i * SIZE + at;
        float top = -1e30f, total = 0.0f, sum[WIDTH];
        for (u32 s = 0; s < SITES; s++)
            if (s != i) top = fmaxf(top, score(key + s * SIZE + at, q));
#pragma unroll
        for (int d = 0; d < WIDTH; d++) sum[d] = 0.0f;
        for (u32 s = 0; s < SITES; s++) {
            if (s == i) continue;
            float weight = expf(score(key + s * SIZE + at, q) - top);
            total += weight;
#pragma unroll
            for (int d = 0; d < WIDTH; d++) sum[d] = fmaf(weight, value[s * SIZE + at + d], sum[d]);
        }
#pragma unroll
        for (int d = 0; d < WIDTH; d++) seen[i * SIZE + at + d] = sum[d] / total;
    }
    __syncthreads();
    time += 2 * SIZE;
    FOR(site, SITES) {
        float sum[OUTPUTS];
        for (int s = 0; s < OUTPUTS; s++) sum[s] = p[P_OUT_BIAS + s];
        for (u32 k = 0; k < EMBEDDING; k++) {
            float z = dot(p + P_HIDDEN + k * SIZE, seen + site * SIZE, SIZE, 1) + p[P_HIDDEN_BIAS + k];
            float h = silu(fmaf(z, 1.0f + time[k], time[EMBEDDING + k]));
            for (int s = 0; s < OUTPUTS; s++) sum[s] = fmaf(p[P_OUT + s * EMBEDDING + k], h, sum[s]);
        }
        for (int s = 0; s < OUTPUTS; s++) out[((u64)lane * SITES + site) * OUTPUTS + s] = sum[s];
    }
}

// Every block writes `parts[block * P_ALL]`, what its lanes add to the gradient.
extern "C" __global__ void lea_backward(const float* p, const float* times, const u8* states, const u32* rows,
                                        const float* kept, const float* d_out, float* spaces, float* d_times, float* parts,
                                        u32 lanes) {
    float* g = parts + (u64)blockIdx.x * P_ALL;
    float *before = spaces + (u64)blockIdx.x * SPACE, *after = before + S_AFTER, *dz = before + S_DZ;
    float *d_hidden = before + S_DHIDDEN, *d_u = before + S_DU, *d_seen = before + S_DSEEN, *d_key = before + S_DKEY;
    float *d_value = before + S_DVALUE, *d_query = before + S_DQUERY, *stats = before + S_STATS;
    FOR(k, P_ALL) g[k] = 0.0f;
    for (u32 lane = blockIdx.x; lane < lanes; lane += gridDim.x) {
        const u8* x = states + (u64)rows[lane] * SITES;
        const float* time = times + (u64)lane * TIMES;
        float* d_time = d_times + (u64)lane * TIMES;
        const float* d = d_out + (u64)lane * SITES * OUTPUTS;
        const float* u = kept + (u64)lane * KEPT;
        const float *key = u + K_KEY, *value = u + K_VALUE, *base = u + K_BASE, *query = u + K_QUERY, *seen = u + K_SEEN;
        __syncthreads();
        // The read-out.
        FOR(k, SITES * EMBEDDING) {
            u32 site = k / EMBEDDING, c = k % EMBEDDING;
            float sum = dot(p + P_HIDDEN + c * SIZE, seen + site * SIZE, SIZE, 1) + p[P_HIDDEN_BIAS + c];
            float slope = 1.0f + time[2 * SIZE + c], z = fmaf(sum, slope, time[2 * SIZE + EMBEDDING + c]);
            before[k] = sum;
            after[k] = silu(z);
            dz[k] = dot(p + P_OUT + c, d + site * OUTPUTS, OUTPUTS, EMBEDDING) * silu_slope(z);
            d_hidden[k] = dz[k] * slope;
        }
        __syncthreads();
        FOR(k, OUTPUTS * EMBEDDING) g[P_OUT + k] += over_sites(d + k / EMBEDDING, OUTPUTS, after + k % EMBEDDING, EMBEDDING);
        FOR(s, OUTPUTS) g[P_OUT_BIAS + s] += over_sites(d + s, OUTPUTS);
        FOR(c, EMBEDDING) {
            g[P_HIDDEN_BIAS + c] += over_sites(d_hidden + c, EMBEDDING);
            d_time[2 * SIZE + c] = over_sites(dz + c, EMBEDDING, before + c, EMBEDDING);
            d_time[2 * SIZE + EMBEDDING + c] = over_sites(dz + c, EMBEDDING);
        }
        FOR(k, EMBEDDING * SIZE) g[P_HIDDEN + k] += over_sites(d_hidden + k / SIZE, EMBEDDING, seen + k % SIZE, SIZE);
        FOR(k, SITES * SIZE) d_seen[k] = dot(p + P_HIDDEN + k % SIZE, d_hidden + k / SIZE * EMBEDDING, EMBEDDING, SIZE);
        __syncthreads();
        // Attention, as its reader sees it.
        FOR(k, SITES * HEADS) {
            u32 i = k / HEADS, at = k % HEADS * WIDTH;
            const float *q = query + i * SIZE + at, *d_a = d_seen + i * SIZE + at;
            float top = -1e30f, total = 0.0f, mean = 0.0f, sum[WIDTH];
            for (u32 s = 0; s < SITES; s++)
                if (s != i) top = fmaxf(top, score(key + s * SIZE + at, q));
            for (u32 s = 0; s < SITES; s++) {
                if (s == i) continue;
                float weight = expf(score(key + s * SIZE + at, q) - top);
                total += weight;
                mean = fmaf(weight, dot(value + s * SIZE + at, d_a, WIDTH, 1), mean);
            }
            float share = 1.0f / total;
            mean *= share;
#pragma unroll
            for (int e = 0; e < WIDTH; e++) sum[e] = 0.0f;
            for (u32 s = 0; s < SITES; s++) {
                if (s == i) continue;
                float weight = expf(score(key + s * SIZE + at, q) - top) * share;
                float d_score = weight * (dot(value + s * SIZE + at, d_a, WIDTH, 1) - mean) * rsqrtf((float)WIDTH);
#pragma unroll
                for (int e = 0; e < WIDTH; e++) sum[e] = fmaf(d_score, key[s * SIZE + at + e], sum[e]);
            }
#pragma unroll
            for (int e = 0; e < WIDTH; e++) d_query[i * SIZE + at + e] = sum[e];
            stats[3 * k] = top;
            stats[3 * k + 1] = share;
            stats[3 * k + 2] = mean;
        }
        __syncthreads();
        // And as the one that is read.
        FOR(k, SITES * HEADS) {
            u32 s = k / HEADS, head = k % HEADS, at = head * WIDTH;
            float to_key[WIDTH], to_value[WIDTH];
#pragma unroll
            for (int e = 0; e < WIDTH; e++) to_key[e] = to_value[e] = 0.0f;
            for (u32 i = 0; i < SITES; i++) {
                if (s == i) continue;
                const float *q = query + i * SIZE + at, *d_a = d_seen + i * SIZE + at, *stat = stats + 3 * (i * HEADS + head);
                float weight = expf(score(key + s * SIZE + at, q) - stat[0]) * stat[1];
                float d_score = weight * (dot(value + s * SIZE + at, d_a, WIDTH, 1) - stat[2]) * rsqrtf((float)WIDTH);
#pragma unroll
                for (int e = 0; e < WIDTH; e++) {
                    to_key[e] = fmaf(d_score, q[e], to_key[e]);
                    to_value[e] = fmaf(weight, d_a[e], to_value[e]);
                }
            }
#pragma unroll
            for (int e = 0; e < WIDTH; e++) {
                d_key[s * SIZE + at + e] = to_key[e];
                d_value[s * SIZE + at + e] = to_value[e];
            }
        }
        __syncthreads();
        FOR(k, SIZE * EMBEDDING) {
            u32 c = k / EMBEDDING, b = k % EMBEDDING;
            g[P_KEY + k] += over_sites(d_key + c, SIZE, u + b, EMBEDDING);
            g[P_VALUE + k] += over_sites(d_value + c, SIZE, u + b, EMBEDDING);
            g[P_QUERY + k] += (1.0f + time[c]) * over_sites(d_query + c, SIZE, p + P_PLACES + b, EMBEDDING);
        }
        FOR(c, SIZE) {
            d_time[c] = over_sites(d_query + c, SIZE, base + c, SIZE);
            d_time[SIZE + c] = over_sites(d_query + c, SIZE);
        }
        FOR(k, SITES * EMBEDDING) {
            u32 site = k / EMBEDDING, b = k % EMBEDDING;
            float sum = dot(p + P_KEY + b, d_key + site * SIZE, SIZE, EMBEDDING);
            sum += dot(p + P_VALUE + b, d_value + site * SIZE, SIZE, EMBEDDING);
            d_u[k] = sum;
            for (u32 c = 0; c < SIZE; c++)
                sum = fmaf(d_query[site * SIZE + c] * (1.0f + time[c]), p[P_QUERY + c * EMBEDDING + b], sum);
            g[P_PLACES + k] += sum;
        }
        __syncthreads();
        FOR(k, INPUTS * EMBEDDING) {
            u32 b = k % EMBEDDING;
            float sum = 0.0f;
            for (u32 site = 0; site < SITES; site++) {
                float one = d_u[site * EMBEDDING + b];
#if INPUTS == 1
                sum += x[site] == 1 ? one : -one;
#else
                sum += x[site] == k / EMBEDDING ? one : 0.0f;
#endif
            }
            g[P_TOKENS + k] += sum;
        }
    }
}

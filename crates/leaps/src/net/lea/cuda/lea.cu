// Attention over all other sites, in float32, parameters in their natural order.
//
// What a site's key and value are depends on its place and its value alone, and its query, but for the time, on its place: they
// are looked up in tables that are written once for given parameters. Gradients take the same way back: of the tables, summed over
// slots, then of the parameters. What is left for every slot is attention itself (attention.cu) and the read-out (readout.cu).
// All sums are in a fixed order.
//
// Given: SITES, INPUTS (1 for spins, else the number of values), Q (values), EMBEDDING, HEADS, WIDTH, SIZE (of all heads), OUTPUTS,
// TIMES, where parameters (P_) start, BLOCK (threads of most blocks); and what attention.cu and readout.cu say.

// Tables of [site][SIZE]: keys with every value, values with every value, queries before the time's scale and shift. Given are
// TABLE_LENGTH and where those of values and queries start.
#define TABLE ((u64)TABLE_LENGTH)
#define T_VALUE ((u64)VALUE_TABLES)
#define T_QUERY ((u64)QUERY_TABLE)

#define FOR(k, n) for (u32 k = threadIdx.x; k < (n); k += blockDim.x)

// Number c of what describes a site that has a value.
__device__ __forceinline__ float described(const float* p, u32 value, u32 site, u32 c) {
    float place = p[P_PLACES + site * EMBEDDING + c];
#if INPUTS == 1
    return fmaf(p[P_TOKENS + c], value == 1 ? 1.0f : -1.0f, place);
#else
    return place + p[P_TOKENS + value * EMBEDDING + c];
#endif
}

// Write the tables: a block for every site and table.
extern "C" __global__ void lea_tables(const float* p, float* tables) {
    __shared__ float u[EMBEDDING];
    u32 site = blockIdx.x, table = blockIdx.y;
    bool query = table == 2 * Q;
    FOR(c, EMBEDDING) u[c] = query ? p[P_PLACES + site * EMBEDDING + c] : described(p, table % Q, site, c);
    __syncthreads();
    const float* weight = p + (query ? P_QUERY : table < Q ? P_KEY : P_VALUE);
    FOR(c, SIZE) {
        float sum = 0.0f;
        for (u32 b = 0; b < EMBEDDING; b++) sum = fmaf(weight[c * EMBEDDING + b], u[b], sum);
        tables[table * TABLE + site * SIZE + c] = sum;
    }
}

// ---- Sums along columns. A block of BLOCK threads has COLUMNS columns and STRIPES stripes, so that neighbours read neighbours.

#define COLUMN(block) ((block) * COLUMNS + threadIdx.x % COLUMNS)
#define FIRST_STRIPE (threadIdx.x < COLUMNS)

// The sum of `of(i)` for i < n over the threads of a column.
template <class Of>
__device__ float column_sum(u32 n, Of of) {
    __shared__ float stripes[STRIPES][COLUMNS];
    u32 column = threadIdx.x % COLUMNS, stripe = threadIdx.x / COLUMNS;
    float sum = 0.0f;
#pragma unroll 4
    for (u32 i = stripe; i < n; i += STRIPES) sum += of(i);
    __syncthreads();
    stripes[stripe][column] = sum;
    __syncthreads();
    sum = 0.0f;
    for (u32 k = 0; k < STRIPES; k++) sum += stripes[k][column];
    return sum;
}

// The gradient of a value's table of keys or values, given `d[slot][site][SIZE]`: the slots that have the value at the site.
extern "C" __global__ void lea_sum_table(const float* d, const u8* states, const u32* rows, float* d_table, u32 slots) {
    u32 k = COLUMN(blockIdx.x), value = blockIdx.y;
    float sum = column_sum(slots, [&](u32 slot) {
        bool has = k < TABLE && states[(u64)rows[slot] * SITES + k / SIZE] == value;
        return has ? d[slot * TABLE + k] : 0.0f;
    });
    if (FIRST_STRIPE && k < TABLE) d_table[value * TABLE + k] = sum;
}

// The same of queries.
extern "C" __global__ void lea_sum_queries(const float* d, const float* times, float* d_table, u32 slots) {
    u32 k = COLUMN(blockIdx.x);
    float sum = column_sum(slots, [&](u32 slot) {
        return k < TABLE ? d[slot * TABLE + k] * (1.0f + times[(u64)slot * TIMES + k % SIZE]) : 0.0f;
    });
    if (FIRST_STRIPE && k < TABLE) d_table[k] = sum;
}

// The gradient of the queries' scales and shifts: blocks for every slot.
extern "C" __global__ void lea_sum_times(const float* d, const float* tables, float* d_times) {
    u32 slot = blockIdx.x, c = COLUMN(blockIdx.y);
    const float *d_query = d + slot * TABLE, *query = tables + T_QUERY;
    float* d_time = d_times + (u64)slot * TIMES;
    float scale = column_sum(SITES, [&](u32 i) { return c < SIZE ? d_query[i * SIZE + c] * query[i * SIZE + c] : 0.0f; });
    float shift = column_sum(SITES, [&](u32 i) { return c < SIZE ? d_query[i * SIZE + c] : 0.0f; });
    if (FIRST_STRIPE && c < SIZE) {
        d_time[c] = scale;
        d_time[SIZE + c] = shift;
    }
}

// ---- From the gradient of the tables to that of the parameters.

// What describes a site with a value, `d_u[value][site][EMBEDDING]`: blocks for each.
extern "C" __global__ void lea_described_back(const float* p, const float* d_tables, float* d_u) {
    u32 site = blockIdx.x, value = blockIdx.y, b = COLUMN(blockIdx.z);
    const float *d_key = d_tables + value * TABLE + site * SIZE, *d_value = d_key + T_VALUE;
    float sum = column_sum(SIZE, [&](u32 c) {
        if (b >= EMBEDDING) return 0.0f;
        return fmaf(d_key[c], p[P_KEY + c * EMBEDDING + b], d_value[c] * p[P_VALUE + c * EMBEDDING + b]);
    });
    if (FIRST_STRIPE && b < EMBEDDING) d_u[(value * SITES + site) * EMBEDDING + b] = sum;
}

// Places and values: blocks for every place, then for every value.
extern "C" __global__ void lea_embeddings_back(const float* p, const float* d_tables, const float* d_u, float* gradient) {
    u32 site = blockIdx.x, b = COLUMN(blockIdx.y);
    if (site < SITES) {
        const float* d_query = d_tables + T_QUERY + site * SIZE;
        float sum = column_sum(SIZE, [&](u32 c) { return b < EMBEDDING ? d_query[c] * p[P_QUERY + c * EMBEDDING + b] : 0.0f; });
        if (!FIRST_STRIPE || b >= EMBEDDING) return;
        for (u32 value = 0; value < Q; value++) sum += d_u[(value * SITES + site) * EMBEDDING + b];
        gradient[P_PLACES + site * EMBEDDING + b] = sum;
    } else {
        u32 value = site - SITES;
        const float* d = d_u + value * SITES * EMBEDDING;
        float sum = column_sum(SITES, [&](u32 s) {
            u32 k = s * EMBEDDING + b;
            if (b >= EMBEDDING) return 0.0f;
            return INPUTS == 1 ? d[SITES * EMBEDDING + k] - d[k] : d[k];
        });
        if (FIRST_STRIPE && b < EMBEDDING) gradient[P_TOKENS + value * EMBEDDING + b] = sum;
    }
}

// Weights of keys, values and queries, in this order along z; a number of the embedding along y.
extern "C" __global__ void lea_projections_back(const float* p, const float* d_tables, float* gradient) {
    u32 c = COLUMN(blockIdx.x), b = blockIdx.y, which = blockIdx.z;
    bool query = which == 2;
    const float* d = d_tables + which * T_VALUE;
    float sum = column_sum(query ? SITES : Q * SITES, [&](u32 i) {
        if (c >= SIZE) return 0.0f;
        float u = query ? p[P_PLACES + i * EMBEDDING + b] : described(p, i / SITES, i % SITES, b);
        return d[(u64)i * SIZE + c] * u;
    });
    if (FIRST_STRIPE && c < SIZE) gradient[P_KEY + (which * SIZE + c) * EMBEDDING + b] = sum;
}

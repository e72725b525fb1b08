// Judge the weights of walkers and resample them on a GPU. The structures Record, Judgement and Carried are declared by resample.rs.

// Given: RESAMPLE, which is Purpose::Resample; BLOCK, the threads of a block of `decide`; and the outcomes of a record.

__device__ double block_max(double value, double* space) {
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int offset = 16; offset; offset >>= 1) value = fmax(value, __shfl_xor_sync(0xffffffffu, value, offset));
    __syncthreads();
    if (lane == 0) space[warp] = value;
    __syncthreads();
    value = space[lane];
    for (int offset = 16; offset; offset >>= 1) value = fmax(value, __shfl_xor_sync(0xffffffffu, value, offset));
    return value;
}

// Number `i` of the stream at step k.
__device__ __forceinline__ double stream_number(u64 seed, u64 k, u32 i) {
    Words words = stream_block(seed, RESAMPLE, 0, k, i / 2);
    return i % 2 ? uniform(words.w[2], words.w[3]) : uniform(words.w[0], words.w[1]);
}

// Judge the log-weights after interval k, and draw ancestors if their effective sample size is below `threshold`. One block:
// thread i has a stretch of walkers, and sums go from walker to walker and then from thread to thread, so that running sums
// never fall. `stratified` draws a number for every walker, else one for all.
extern "C" __global__ void __launch_bounds__(BLOCK) decide(Judgement j) {
    __shared__ double space[33], stretches[BLOCK + 1];
    __shared__ u32 bad, last;
    const double NOTHING = -1.0 / 0.0;
    u32 thread = threadIdx.x, length = (j.walkers + BLOCK - 1) / BLOCK;
    u32 from = min(thread * length, j.walkers), to = min(from + length, j.walkers);
    if (thread == 0) {
        bad = NONE;
        last = 0;
    }
    __syncthreads();

    double most_before = NOTHING, most = NOTHING;
    for (u32 i = from; i < to; i++) {
        // Neither NaN nor +inf is a log-weight.
        if (!(j.after[i] < 1.0 / 0.0)) atomicMin(&bad, i);
        most_before = fmax(most_before, j.before[i]);
        most = fmax(most, j.after[i]);
    }
    most_before = block_max(most_before, space);
    most = block_max(most, space);
    __syncthreads();
    if (bad != NONE || most == NOTHING) {
        if (thread == 0) {
            bool none = bad == NONE;
            *j.record = Record{none ? 0.0 : j.after[bad], none ? 0.0 : (double)bad, 0.0, (double)(none ? NO_WEIGHTS : NOT_A_WEIGHT)};
        }
        return;
    }

    double top = NOTHING;
    for (u32 i = from; i < to; i++)
        if (exp(j.before[i] - most_before) > 0.0) top = fmax(top, j.after[i] - j.before[i]);
    top = block_max(top, space);
    double sum = 0.0, squares = 0.0, old = 0.0, first = 0.0, second = 0.0;
    for (u32 i = from; i < to; i++) {
        double weight = exp(j.after[i] - most), past = exp(j.before[i] - most_before);
        sum += weight;
        j.sums[i] = sum;
        squares += weight * weight;
        if (weight > 0.0) atomicMax(&last, i);
        if (past > 0.0) {
            double growth = exp(j.after[i] - j.before[i] - top);
            old += past;
            first += past * growth;
            second += past * growth * growth;
        }
    }
    squares = block_sum(squares, space);
    old = block_sum(old, space);
    first = block_sum(first, space);
    second = block_sum(second, space);
    stretches[thread + 1] = sum;
    __syncthreads();
    if (thread == 0) {
        stretches[0] = 0.0;
        for (u32 i = 1; i <= BLOCK; i++) stretches[i] += stretches[i - 1];
    }
    __syncthreads();
    double total = stretches[BLOCK];
    double ess = fmin(total * total / ((double)j.walkers * squares), 1.0);
    bool resamples = ess < j.threshold;
    if (thread == 0) {
        double conditional = fmin(first * first / (old * second), 1.0);
        *j.record = Record{ess, conditional, most + log(total / (double)j.walkers), (double)(resamples ? RESAMPLED : WENT_ON)};
    }
    if (!resamples) return;

    for (u32 i = from; i < to; i++) j.sums[i] += stretches[thread];
    __syncthreads();
    double shift = stream_number(j.seed, j.k, 0);
    for (u32 i = thread; i < j.walkers; i += BLOCK) {
        if (j.stratified) shift = stream_number(j.seed, j.k, i);
        double point = __dmul_rn(((double)i + shift) / (double)j.walkers, total);
        // The first walker whose running sum is beyond the point; rounding may leave none.
        u32 low = 0, high = last;
        while (low < high) {
            u32 middle = (low + high) / 2;
            if (j.sums[middle] <= point) low = middle + 1;
            else high = middle;
        }
        j.ancestors[i] = low;
    }
}

// If walkers are resampled: every row of `spare` becomes what walker i takes over from its ancestor.
extern "C" __global__ void spread(const Record* record, Carried c, u8* spare, const u32* ancestors, u32 walkers) {
    if (record->outcome != RESAMPLED) return;
    u64 row = c.bytes[0] + c.bytes[1] + c.bytes[2] + c.bytes[3];
    for (u32 i = blockIdx.x; i < walkers; i += gridDim.x) {
        u8* to = spare + i * row;
        for (u32 array = 0; array < 4; array++) {
            const u8* from = c.arrays[array] + ancestors[i] * c.bytes[array];
            for (u32 byte = threadIdx.x; byte < c.bytes[array]; byte += blockDim.x) to[byte] = from[byte];
            to += c.bytes[array];
        }
    }
}

// And it is taken over, with a weight of one.
extern "C" __global__ void settle(const Record* record, Carried c, const u8* spare, double* log_weights, u32 walkers) {
    if (record->outcome != RESAMPLED) return;
    u64 row = c.bytes[0] + c.bytes[1] + c.bytes[2] + c.bytes[3];
    for (u32 i = blockIdx.x; i < walkers; i += gridDim.x) {
        const u8* from = spare + i * row;
        for (u32 array = 0; array < 4; array++) {
            u8* to = c.arrays[array] + i * c.bytes[array];
            for (u32 byte = threadIdx.x; byte < c.bytes[array]; byte += blockDim.x) to[byte] = from[byte];
            from += c.bytes[array];
        }
        if (threadIdx.x == 0) log_weights[i] = 0.0;
    }
}

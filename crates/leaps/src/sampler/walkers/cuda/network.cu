// Walkers that follow a network on a GPU (walkers::cuda::network.rs), behind pairwise.cu.
//
// PARAMETRISATION: 0 relu, 1 barker, 2 sqrt, 3 metropolis. SCHEME: 0 euler, 1 trapezoid, 2 events.
#define OUTPUTS (Q == 2 ? 1 : Q)
#define BLOCK 128
#define CHUNK ((SITES + BLOCK - 1) / BLOCK)
// Purpose::Jump.
#define JUMP 8

// ---- Rates, as in rates.rs.

// g(exp(-du)); for relu the factor of a negative flux.
__device__ __forceinline__ double balanced(double du) {
#if PARAMETRISATION == 0
    return exp(-du);
#elif PARAMETRISATION == 1
    return 2.0 / (1.0 + exp(du));
#elif PARAMETRISATION == 2
    return exp(-0.5 * du);
#else
    return fmin(exp(-du), 1.0);
#endif
}

__device__ __forceinline__ double rate_factor(double j, double du) {
    return PARAMETRISATION == 0 && j >= 0.0 ? 1.0 : balanced(du);
}

// The derivative of out - back with respect to the flux.
__device__ __forceinline__ double rate_slope(double j, double du) {
    if (PARAMETRISATION == 0 && j >= 0.0) return j > 0.0 ? 1.0 : 0.0;
    return balanced(du);
}

// The flux of a site towards `site_value`, from its outputs.
__device__ __forceinline__ double flux(const float* outputs, u32 own, u32 site_value) {
    if (Q == 2) return own == 1 ? (double)outputs[0] : -(double)outputs[0];
    return (double)outputs[site_value] - (double)outputs[own];
}

// Rates out of x at a site, 0 for the value in place; adds up the rates of both directions.
template <typename S>
__device__ __forceinline__ void rates_at(
    const Pairs& p, const double* lambda, S x, const float* outputs, u32 site, double* rates, double& out, double& back) {
    double changes[Q];
    energy_changes_at(p, lambda, x, site, changes);
    u32 own = x.get(site);
#pragma unroll
    for (u32 site_value = 0; site_value < Q; site_value++) {
        rates[site_value] = 0.0;
        if (site_value == own) continue;
        double j = flux(outputs + (size_t)site * OUTPUTS, own, site_value);
        double rate = fabs(j) * rate_factor(j, changes[site_value]);
        if (j >= 0.0) {
            rates[site_value] = rate;
            out += rate;
        } else {
            back += rate;
        }
    }
}

// The index whose stretch of the summed weights holds `point`; `last` if none does.
__device__ __forceinline__ bool find_value(const double* weights, double& point, u32& last) {
    bool open = true;
#pragma unroll
    for (u32 site_value = 0; site_value < Q; site_value++) {
        if (open && weights[site_value] > 0.0) {
            last = site_value;
            if (point < weights[site_value]) open = false;
            else point -= weights[site_value];
        }
    }
    return !open;
}

// ---- Walkers in lanes.

// The structure Following is declared by network.rs.

// Places of the counters.
#define WAITING 0
#define FINISHED 1
#define CROSSED 2
#define FAILED 3
#define FAILED_WALKER 4
#define FAILED_INTERVAL 5
#define FAILED_VALUE 6

// Keep the first number that is not finite: kind 1 is the sum of the rates, 2 + k is energy term k.
__device__ void fail(const Following& f, u64 kind, u32 walker, u32 interval, double value) {
    if (atomicCAS(f.counters + FAILED, 0ull, kind) != 0) return;
    f.counters[FAILED_WALKER] = walker;
    f.counters[FAILED_INTERVAL] = interval;
    f.counters[FAILED_VALUE] = (u64)__double_as_longlong(value);
}

// U_{t_{k-1}}(x) - U_{t_k}(x), which only events weighs by.
__device__ double energy_drop(const Following& f, u32 walker, u32 k) {
    double sum = 0.0;
    if (SCHEME == 2)
        for (u32 term = 0; term < TERMS; term++)
            sum = plus_product(
                sum, __dadd_rn(f.lambda[(k - 1) * TERMS + term], -f.lambda[k * TERMS + term]),
                f.energies[(size_t)walker * TERMS + term]);
    return sum;
}

// Let the walker of a lane, done with interval k, into the next one that needs the network; if it has arrived, let the next
// waiting walker in. One thread does it.
__device__ void enter(const Following& f, u32 lane, u32 walker, u32 k) {
    for (;;) {
        while (++k < f.end) {
            if (f.weigh) f.log_weights[walker] += energy_drop(f, walker, k);
            if (f.durations[k] > 0.0) {
                f.rows[lane] = walker;
                f.moments[lane] = SCHEME == 2 ? k : k - 1;
                f.intervals[lane] = k;
                f.passed[lane] = 0;
                f.left[lane] = f.durations[k];
                return;
            }
            atomicAdd(f.counters + CROSSED, 1ull);
        }
        atomicAdd(f.counters + FINISHED, 1ull);
        u64 next = atomicAdd(f.counters + WAITING, 1ull);
        if (next >= f.walkers) {
            f.intervals[lane] = 0;
            return;
        }
        walker = (u32)next;
        k = (u32)f.start - 1;
    }
}

// Fill the lanes with the first walkers.
extern "C" __global__ void begin(Following f, u32 lanes) {
    u32 lane = blockIdx.x * blockDim.x + threadIdx.x;
    if (lane < lanes) enter(f, lane, lane, (u32)f.start - 1);
}

// Weigh all walkers for interval k.
extern "C" __global__ void weigh(Following f, u32 k) {
    u32 walker = blockIdx.x * blockDim.x + threadIdx.x;
    if (walker < f.walkers) f.log_weights[walker] += energy_drop(f, walker, k);
}

// Look at all energies.
extern "C" __global__ void check(Following f, u32 k) {
    u32 walker = blockIdx.x * blockDim.x + threadIdx.x;
    if (walker >= f.walkers) return;
    for (u32 term = 0; term < TERMS; term++) {
        double energy = f.energies[(size_t)walker * TERMS + term];
        if (!isfinite(energy)) fail(f, 2 + term, walker, k, energy);
    }
}

// Move lanes that hold walkers to the front, in order; the rest of the first `keep` becomes empty. One block of 1024 threads.
extern "C" __global__ void compact(Following f, u32 lanes, u32 keep) {
    __shared__ u32 counts[32];
    u32 base = 0, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (u32 first = 0; first < lanes; first += 1024) {
        u32 i = first + threadIdx.x;
        bool there = i < lanes;
        u32 k = there ? f.intervals[i] : 0, row = there ? f.rows[i] : 0, moment = there ? f.moments[i] : 0;
        u32 passed = there ? f.passed[i] : 0;
        double left = there ? f.left[i] : 0.0;
        u32 mask = __ballot_sync(0xffffffffu, k != 0);
        if (lane == 0) counts[warp] = __popc(mask);
        __syncthreads();
        u32 to = base + __popc(mask & ((1u << lane) - 1));
        for (u32 w = 0; w < 32; w++) {
            if (w < warp) to += counts[w];
            base += counts[w];
        }
        if (k != 0) {
            f.intervals[to] = k;
            f.rows[to] = row;
            f.moments[to] = moment;
            f.passed[to] = passed;
            f.left[to] = left;
        }
        __syncthreads();
    }
    for (u32 i = base + threadIdx.x; i < keep; i += 1024) f.intervals[i] = 0;
}

// Use the network's outputs for the walkers in the lanes: one block each.
extern "C" __global__ void __launch_bounds__(BLOCK) act(Pairs p, Following f) {
    extern __shared__ u8 values[];
    __shared__ double space[33], parts[BLOCK / 32], measured[TERMS];
#if SCHEME == 2
    __shared__ u32 chosen;
    if (threadIdx.x == 0) chosen = 0;
    u32 passed = f.passed[blockIdx.x];
#endif
    u32 lane = blockIdx.x, thread = threadIdx.x;
    u32 k = f.intervals[lane];
    if (k == 0) return;
    u32 walker = f.rows[lane], moment = f.moments[lane];
    double left = f.left[lane];
    u8* row = f.states + (size_t)walker * SITES;
    for (u32 site = thread; site < SITES; site += BLOCK) values[site] = row[site];
    double lambda[TERMS];
#pragma unroll
    for (u32 term = 0; term < TERMS; term++) lambda[term] = f.lambda[moment * TERMS + term];
    const float* outputs = f.outputs + (size_t)lane * SITES * OUTPUTS;
    State<1> x{values};
#if SCHEME != 2
    State<1> y{values + SITES};
#endif
    __syncthreads();

    // Every thread has a stretch of sites.
    u32 first = thread * CHUNK, stop = first + CHUNK < SITES ? first + CHUNK : SITES;
    double out = 0.0, back = 0.0, rates[Q];
    for (u32 site = first; site < stop; site++) {
        rates_at(p, lambda, x, outputs, site, rates, out, back);
#if SCHEME != 2
        u32 site_value = x.get(site);
        double total = 0.0;
#pragma unroll
        for (u32 t = 0; t < Q; t++) total += rates[t];
        if (total > 0.0) {
            Words words = stream_block(f.seed, JUMP, walker, k, site);
            if (uniform(words.w[0], words.w[1]) < left * total) {
                double point = uniform(words.w[2], words.w[3]) * total;
                find_value(rates, point, site_value);
            }
        }
        y.set(site, site_value);
#endif
    }

    // Sums over the stretches before this one.
    double sum = out;
    for (int offset = 1; offset < 32; offset <<= 1) {
        double lower = __shfl_up_sync(0xffffffffu, sum, offset);
        if ((int)(thread & 31) >= offset) sum += lower;
    }
    double prefix = __shfl_up_sync(0xffffffffu, sum, 1);
    if ((thread & 31) == 0) prefix = 0.0;
    if ((thread & 31) == 31) parts[thread >> 5] = sum;
    double total_back = block_sum(back, space);
    double offset = 0.0, total_out = 0.0;
    for (u32 warp = 0; warp < BLOCK / 32; warp++) {
        if (warp < thread >> 5) offset += parts[warp];
        total_out += parts[warp];
    }
    prefix += offset;
    double balance = total_out - total_back;
    if (thread == 0) f.passes[walker]++;
    if (!isfinite(balance)) {
        if (thread == 0) {
            fail(f, 1, walker, k, balance);
            f.intervals[lane] = 0;
            atomicAdd(f.counters + FINISHED, 1ull);
        }
        return;
    }

#if SCHEME == 2
    Words words = stream_block(f.seed, JUMP, walker, k, passed);
    double wait = -log(1.0 - uniform(words.w[0], words.w[1])) / total_out;
    double stay = fmin(wait, left);
    left -= stay;
    if (thread == 0) f.log_weights[walker] = plus_product(f.log_weights[walker], stay, balance);
    if (!(wait > stay || left <= 0.0)) {
        // The last stretch that starts at or before the point.
        double point = uniform(words.w[2], words.w[3]) * total_out;
        if (out > 0.0 && prefix <= point) atomicMax(&chosen, thread);
        __syncthreads();
        if (thread == chosen) {
            double rest = point - prefix;
            u32 site = first, site_value = 0, last_site = first;
            for (; site < stop; site++) {
                double ignored = 0.0;
                u32 candidate = Q;
                rates_at(p, lambda, x, outputs, site, rates, ignored, ignored);
                bool found = find_value(rates, rest, candidate);
                if (candidate < Q) {
                    site_value = candidate;
                    last_site = site;
                }
                if (found) break;
            }
            row[last_site] = (u8)site_value;
            f.left[lane] = left;
            f.passed[lane] = passed + 1;
        }
        return;
    }
#else
    double pending = f.pending[walker], slope = 0.0;
    for (u32 term = 0; term < TERMS; term++)
        slope = plus_product(slope, f.energies[(size_t)walker * TERMS + term], f.slopes[moment * TERMS + term]);
    double k_value = balance - slope;
    bool closing = pending < 0.0;
    double share = SCHEME == 1 ? 0.5 * left : left;
    __syncthreads(); // all have read what one will write
    if (closing) {
        // The pass at the end of the last step.
        if (thread == 0) {
            f.log_weights[walker] = plus_product(f.log_weights[walker], -pending, k_value);
            f.pending[walker] = 0.0;
            atomicAdd(f.counters + CROSSED, 1ull);
            enter(f, lane, walker, k);
        }
        return;
    }
    for (u32 site = thread; site < SITES; site += BLOCK) {
        u8 site_value = (u8)y.get(site);
        values[site] = site_value;
        row[site] = site_value;
    }
    __syncthreads();
#endif

    for (u32 term = 0; term < TERMS; term++) {
        double field = 0.0, twice = 0.0;
        add_energy(p, term, x, thread, BLOCK, field, twice);
        field = block_sum(field, space);
        twice = block_sum(twice, space);
        if (thread == 0) measured[term] = (p.constants[term] + field) - 0.5 * twice;
    }
    if (thread != 0) return;
    for (u32 term = 0; term < TERMS; term++) {
        f.energies[(size_t)walker * TERMS + term] = measured[term];
        if (!isfinite(measured[term])) fail(f, 2 + term, walker, k, measured[term]);
    }
#if SCHEME != 2
    f.log_weights[walker] = plus_product(f.log_weights[walker], share + pending, k_value);
    pending = left - share;
    if (SCHEME == 1 && k + 1 == f.closing) {
        // One more pass at the end of the stretch.
        f.pending[walker] = -pending;
        f.intervals[lane] = k + 1;
        f.moments[lane] = k;
        f.left[lane] = 0.0;
        return;
    }
    f.pending[walker] = pending;
#endif
    atomicAdd(f.counters + CROSSED, 1ull);
    enter(f, lane, walker, k);
}

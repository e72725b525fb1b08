// Walkers that follow a network on a GPU (walkers::cuda::network.rs), behind pairwise.cu.
//
// PARAMETRISATION: RELU, BARKER, SQRT or metropolis. SCHEME: euler, TRAPEZOID or EVENTS. BLOCK: threads of a block
// of `act`; COMPACTORS: of `compact`. JUMP: Purpose::Jump. The other constants are described in arguments.rs.
#define OUTPUTS (Q == 2 ? 1 : Q)
#define CHUNK ((SITES + BLOCK - 1) / BLOCK)

// ---- Rates, as in rates.rs.

// g(exp(-du)); for relu the factor of a negative flux.
__device__ __forceinline__ double balanced(double du) {
#if PARAMETRISATION == RELU
    return exp(-du);
#elif PARAMETRISATION == BARKER
    return 2.0 / (1.0 + exp(du));
#elif PARAMETRISATION == SQRT
    return exp(-0.5 * du);
#else
    return fmin(exp(-du), 1.0);
#endif
}

__device__ __forceinline__ double rate_factor(double j, double du) {
    return PARAMETRISATION == RELU && j >= 0.0 ? 1.0 : balanced(du);
}

// The derivative of out - back with respect to the flux.
__device__ __forceinline__ double rate_slope(double j, double du) {
    if (PARAMETRISATION == RELU && j >= 0.0) return j > 0.0 ? 1.0 : 0.0;
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
        // Back in time, what was the time reversal is the way out, as Parametrisation::reversed_rates.
        if ((j >= 0.0) != REVERSED) {
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

// ---- Walkers in slots.

// The structure WalkArguments and the places of the counters are declared by arguments.rs.

// Keep the first number that is not finite: the sum of the rates (RATES_FAILED), or energy term k (TERMS_FAILED + k).
__device__ void fail(const WalkArguments& a, u64 kind, u32 walker, u32 interval, double value) {
    if (atomicCAS(a.counters + FAILED, 0ull, kind) != 0) return;
    a.counters[FAILED_WALKER] = walker;
    a.counters[FAILED_INTERVAL] = interval;
    a.counters[FAILED_VALUE] = (u64)__double_as_longlong(value);
}

// U_{t_{k-1}}(x) - U_{t_k}(x), which only events weighs by.
__device__ double energy_drop(const WalkArguments& a, u32 walker, u32 k) {
    if (SCHEME != EVENTS) return 0.0;
    const double* after = a.lambda + (size_t)k * TERMS;
    return plus_energy_drop<TERMS>(0.0, after - TERMS, after, a.energies + (size_t)walker * TERMS);
}

// Let the walker of a slot, done with interval k, into the next one that needs the network; if it has arrived, let the next
// waiting walker in. One thread does it.
__device__ void enter(const WalkArguments& a, u32 slot, u32 walker, u32 k) {
    for (;;) {
        while (++k < a.end) {
            if (a.weigh) a.log_weights[walker] += energy_drop(a, walker, k);
            if (a.durations[k] > 0.0) {
                a.rows[slot] = walker;
                a.time_indices[slot] = SCHEME == EVENTS ? k : k - 1;
                a.intervals[slot] = k;
                a.passed[slot] = 0;
                a.left[slot] = a.durations[k];
                a.jumped[slot] = WHOLE;
                return;
            }
            atomicAdd(a.counters + CROSSED, 1ull);
        }
        atomicAdd(a.counters + FINISHED, 1ull);
        u64 next = atomicAdd(a.counters + WAITING, 1ull);
        if (next >= a.walkers) {
            a.intervals[slot] = 0;
            a.jumped[slot] = IDLE;
            return;
        }
        walker = (u32)next;
        k = (u32)a.start - 1;
    }
}

// Fill the slots with the first walkers.
extern "C" __global__ void begin(WalkArguments a, u32 slots) {
    u32 slot = blockIdx.x * blockDim.x + threadIdx.x;
    if (slot < slots) enter(a, slot, slot, (u32)a.start - 1);
}

// Weigh all walkers for interval k.
extern "C" __global__ void weigh(WalkArguments a, u32 k) {
    u32 walker = blockIdx.x * blockDim.x + threadIdx.x;
    if (walker < a.walkers) a.log_weights[walker] += energy_drop(a, walker, k);
}

// Look at all energies.
extern "C" __global__ void check(WalkArguments a, u32 k) {
    u32 walker = blockIdx.x * blockDim.x + threadIdx.x;
    if (walker >= a.walkers) return;
    for (u32 term = 0; term < TERMS; term++) {
        double energy = a.energies[(size_t)walker * TERMS + term];
        if (!isfinite(energy)) fail(a, TERMS_FAILED + term, walker, k, energy);
    }
}

// Move slots that hold walkers to the front, in order; the rest of the first `keep` becomes empty. One block of COMPACTORS threads.
extern "C" __global__ void compact(WalkArguments a, u32 slots, u32 keep) {
    __shared__ u32 counts[COMPACTORS / 32];
    u32 base = 0, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (u32 first = 0; first < slots; first += COMPACTORS) {
        u32 i = first + threadIdx.x;
        bool there = i < slots;
        u32 k = there ? a.intervals[i] : 0, row = there ? a.rows[i] : 0, time_index = there ? a.time_indices[i] : 0;
        u32 passed = there ? a.passed[i] : 0;
        double left = there ? a.left[i] : 0.0;
        u32 mask = __ballot_sync(0xffffffffu, k != 0);
        if (lane == 0) counts[warp] = __popc(mask);
        __syncthreads();
        u32 to = base + __popc(mask & ((1u << lane) - 1));
        for (u32 w = 0; w < COMPACTORS / 32; w++) {
            if (w < warp) to += counts[w];
            base += counts[w];
        }
        if (k != 0) {
            a.intervals[to] = k;
            a.rows[to] = row;
            a.time_indices[to] = time_index;
            a.passed[to] = passed;
            a.left[to] = left;
            a.jumped[to] = WHOLE; // what the network keeps of a slot does not move
        }
        __syncthreads();
    }
    for (u32 i = base + threadIdx.x; i < keep; i += COMPACTORS) {
        a.intervals[i] = 0;
        a.jumped[i] = IDLE;
    }
}

// Whether the outputs for interval k are those for the next one, too: a substep of the same interval of the network.
__device__ __forceinline__ bool goes_on(const WalkArguments& a, u32 k) {
    return k + 1 < a.end && a.durations[k + 1] > 0.0 && a.calls[k + 1] == a.calls[k];
}

// Use the network's outputs for the walkers in the slots: one block each. A walker that does not jump goes on through the
// substeps that have the same outputs.
extern "C" __global__ void __launch_bounds__(BLOCK) act(Pairs p, WalkArguments a) {
    extern __shared__ u8 values[];
    __shared__ double space[33], parts[BLOCK / 32], measured[TERMS];
#if SCHEME == EVENTS
    __shared__ u32 chosen;
    if (threadIdx.x == 0) chosen = 0;
    u32 passed = a.passed[blockIdx.x];
    bool in_step = false;
#endif
    u32 slot = blockIdx.x, thread = threadIdx.x;
    u32 k = a.intervals[slot];
    if (k == 0) return;
    u32 walker = a.rows[slot], time_index = a.time_indices[slot];
    double left = a.left[slot];
    u8* row = a.states + (size_t)walker * SITES;
    for (u32 site = thread; site < SITES; site += BLOCK) values[site] = row[site];
    const float* outputs = a.outputs + (size_t)slot * SITES * OUTPUTS;
    State<1> x{values};
#if SCHEME != EVENTS
    State<1> y{values + SITES};
#endif
    if (thread == 0) a.passes[walker]++;

    for (;;) {
        double lambda[TERMS];
#pragma unroll
        for (u32 term = 0; term < TERMS; term++) lambda[term] = a.lambda[time_index * TERMS + term];
        __syncthreads(); // values are there, and all have read the sums of the substep before

        // Every thread has a stretch of sites.
        u32 first = thread * CHUNK, stop = first + CHUNK < SITES ? first + CHUNK : SITES;
        double out = 0.0, back = 0.0, rates[Q];
        for (u32 site = first; site < stop; site++) {
            rates_at(p, lambda, x, outputs, site, rates, out, back);
#if SCHEME != EVENTS
            u32 site_value = x.get(site);
            double total = 0.0;
#pragma unroll
            for (u32 t = 0; t < Q; t++) total += rates[t];
            if (total > 0.0) {
                Words words = stream_block(a.seed, JUMP, walker, k, site);
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
        if (!isfinite(balance)) {
            if (thread == 0) {
                fail(a, RATES_FAILED, walker, k, balance);
                a.intervals[slot] = 0;
                a.jumped[slot] = IDLE;
                atomicAdd(a.counters + FINISHED, 1ull);
            }
            return;
        }

#if SCHEME == EVENTS
        Words words = stream_block(a.seed, JUMP, walker, k, passed);
        double wait = -log(1.0 - uniform(words.w[0], words.w[1])) / total_out;
        double stay = fmin(wait, left);
        left -= stay;
        if (thread == 0) a.log_weights[walker] = plus_product(a.log_weights[walker], stay, balance);
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
                a.intervals[slot] = k;
                a.time_indices[slot] = time_index;
                a.left[slot] = left;
                a.jumped[slot] = last_site;
                a.passed[slot] = passed + 1;
            }
            return;
        }
        if (!in_step)
#else
        double pending = a.pending[walker], slope = 0.0;
        for (u32 term = 0; term < TERMS; term++)
            slope = plus_product(slope, a.energies[(size_t)walker * TERMS + term], a.slopes[time_index * TERMS + term]);
        double k_value = balance - slope;
        bool closing = pending < 0.0;
        double share = SCHEME == TRAPEZOID ? 0.5 * left : left;
        __syncthreads(); // all have read what one will write
        if (closing) {
            // The pass at the end of the last step.
            if (thread == 0) {
                a.log_weights[walker] = plus_product(a.log_weights[walker], -pending, k_value);
                a.pending[walker] = 0.0;
                atomicAdd(a.counters + CROSSED, 1ull);
                enter(a, slot, walker, k);
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
        {
            for (u32 term = 0; term < TERMS; term++) {
                double field = 0.0, twice = 0.0;
                add_energy(p, term, x, thread, BLOCK, field, twice);
                field = block_sum(field, space);
                twice = block_sum(twice, space);
                if (thread == 0) measured[term] = (p.constants[term] + field) - 0.5 * twice;
            }
            if (thread == 0) {
                for (u32 term = 0; term < TERMS; term++) {
                    a.energies[(size_t)walker * TERMS + term] = measured[term];
                    if (!isfinite(measured[term])) fail(a, TERMS_FAILED + term, walker, k, measured[term]);
                }
            }
        }
#if SCHEME == EVENTS
        if (goes_on(a, k)) {
            in_step = true;
            time_index = ++k;
            left = a.durations[k];
            passed = 0;
            if (thread == 0) {
                atomicAdd(a.counters + CROSSED, 1ull);
                if (a.weigh) a.log_weights[walker] += energy_drop(a, walker, k);
            }
            continue;
        }
#else
        if (thread == 0) a.log_weights[walker] = plus_product(a.log_weights[walker], share + pending, k_value);
        pending = left - share;
        if (SCHEME == TRAPEZOID && k + 1 == a.closing) {
            // One more pass at the end of the stretch.
            if (thread == 0) {
                a.pending[walker] = -pending;
                a.intervals[slot] = k + 1;
                a.time_indices[slot] = k;
                a.left[slot] = 0.0;
            }
            return;
        }
        if (thread == 0) a.pending[walker] = pending;
#endif
        if (thread == 0) {
            atomicAdd(a.counters + CROSSED, 1ull);
            enter(a, slot, walker, k);
        }
        return;
    }
}

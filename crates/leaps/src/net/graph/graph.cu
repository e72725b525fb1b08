// Messages along orders of the sites, in float32, parameters in their natural order. A block has a slot (forward) or some
// slots, one after the other (backward), and keeps their rows in global memory.
//
// Given: SITES, INPUTS (1 for spins, else the number of values), CHANNELS, ORDERS, ALL (channels of all orders at one step or
// site), BONDS (directed), HEAD, OUTPUTS; and where the parts of parameters (P_), of what a slot saves (K_) and of the
// space of a block of the backward pass (S_) start, which cuda.rs describes.

#define FOR(k, n) for (u32 k = threadIdx.x; k < (n); k += blockDim.x)

// The orders: [order][step] of sites and [order][site] of steps; [order][step] of where messages start that arrive there,
// with the steps they come from and their bonds, and of those that leave, with the steps they go to; sites of bonds.
struct Orders {
    const u32 *sites, *steps, *starts, *from, *bond, *leave, *to, *leave_bond, *bond_to, *bond_from;
};

__device__ __forceinline__ Orders orders(const u32* tables) {
    Orders o;
    o.sites = tables;
    o.steps = o.sites + ORDERS * SITES;
    o.starts = o.steps + ORDERS * SITES;
    o.leave = o.starts + ORDERS * SITES + 1;
    o.bond_to = o.leave + ORDERS * SITES + 1;
    o.bond_from = o.bond_to + BONDS;
    u32 messages = o.starts[ORDERS * SITES];
    o.from = o.bond_from + BONDS;
    o.bond = o.from + messages;
    o.to = o.bond + messages;
    o.leave_bond = o.to + messages;
    return o;
}

// Channel `i` of what a value adds.
__device__ __forceinline__ float of_value(const float* value, u8 x, u32 i) {
#if INPUTS == 1
    return x == 1 ? value[i] : -value[i];
#else
    return value[x * CHANNELS + i];
#endif
}

__device__ __forceinline__ float dot(const float* w, const float* v, u32 n, u32 step) {
    float sum = 0.0f;
    for (u32 i = 0; i < n; i++) sum = fmaf(w[i * step], v[i], sum);
    return sum;
}

// The structures Batch and Gradients are declared by cuda.rs.
extern "C" __global__ void graph_forward(Batch b, float* saved, float* out) {
    u32 slot = blockIdx.x;
    const float* p = b.parameters;
    const u8* x = b.states + (u64)b.rows[slot] * SITES;
    const float *scale = b.times + (u64)slot * 2 * CHANNELS, *shift = scale + CHANNELS;
    const float *slope = b.head_times + (u64)slot * 2 * HEAD, *offset = slope + HEAD;
    float* collected = saved + (u64)slot * SAVED;
    float *own = collected + K_OWN, *passed = collected + K_PASSED, *context = collected + K_CONTEXT;
    float *u = collected + K_U, *v = collected + K_V, *w = collected + K_W;
    const Orders o = orders(b.tables);
    for (u32 step = 0; step < SITES; step++) {
        FOR(t, ALL) {
            u32 k = t / CHANNELS, i = t % CHANNELS, at = k * SITES + step, site = o.sites[at];
            float sum = p[P_BIAS + site * CHANNELS + i];
            for (u32 m = o.starts[at]; m < o.starts[at + 1]; m++)
                sum = fmaf(p[P_BOND + o.bond[m] * CHANNELS + i], passed[o.from[m] * ALL + t], sum);
            collected[step * ALL + t] = sum;
            context[site * ALL + t] = silu(sum);
            own[step * ALL + t] = silu(fmaf(sum + of_value(p, x[site], i), 1.0f + scale[i], shift[i]));
        }
        __syncthreads();
        FOR(t, ALL) {
            u32 first = t / CHANNELS * CHANNELS;
            passed[step * ALL + t] = dot(p + P_PASS + t % CHANNELS, own + step * ALL + first, CHANNELS, CHANNELS);
        }
        __syncthreads();
    }
    FOR(k, SITES * HEAD) {
        u32 site = k / HEAD, c = k % HEAD;
        u[k] = p[P_MIX_BIAS + c] + dot(p + P_MIX + c * ALL, context + site * ALL, ALL, 1);
        v[k] = silu(fmaf(u[k], 1.0f + slope[c], offset[c]));
    }
    __syncthreads();
    FOR(k, SITES * HEAD) {
        u32 site = k / HEAD, c = k % HEAD;
        w[k] = v[k] + (p[P_HIDDEN_BIAS + c] + dot(p + P_HIDDEN + c * HEAD, v + site * HEAD, HEAD, 1));
    }
    __syncthreads();
    FOR(k, SITES * OUTPUTS) {
        u32 site = k / OUTPUTS, s = k % OUTPUTS;
        float sum = p[P_OUT_BIAS + s];
        for (u32 c = 0; c < HEAD; c++) sum = fmaf(p[P_OUT + s * HEAD + c], silu(w[site * HEAD + c]), sum);
        out[(u64)slot * SITES * OUTPUTS + k] = sum;
    }
}

// Every block writes `parts[block * P_ALL]`, what its slots add to the gradient (nothing for functions of time).
extern "C" __global__ void graph_backward(Batch b, Gradients gradients, const float* saved, const float* d_out, u32 slots) {
    const Orders o = orders(b.tables);
    const float* p = b.parameters;
    float* g = gradients.parts + (u64)blockIdx.x * P_ALL;
    float *d_passed = gradients.spaces + (u64)blockIdx.x * SPACE, *d_collected = d_passed + S_COLLECTED, *d_active = d_passed + S_ACTIVE;
    float *zs = d_passed + S_Z, *d_context = d_passed + S_CONTEXT, *r = d_passed + S_R, *d_w = d_passed + S_W;
    float *d_z = d_passed + S_DZ, *d_u = d_passed + S_U;
    FOR(k, P_ALL) g[k] = 0.0f;
    for (u32 slot = blockIdx.x; slot < slots; slot += gridDim.x) {
        const u8* x = b.states + (u64)b.rows[slot] * SITES;
        const float *scale = b.times + (u64)slot * 2 * CHANNELS, *shift = scale + CHANNELS;
        const float *slope = b.head_times + (u64)slot * 2 * HEAD, *offset = slope + HEAD;
        float *d_scale = gradients.d_times + (u64)slot * 2 * CHANNELS, *d_slope = gradients.d_head_times + (u64)slot * 2 * HEAD;
        const float* d = d_out + (u64)slot * SITES * OUTPUTS;
        const float* collected = saved + (u64)slot * SAVED;
        const float *own = collected + K_OWN, *passed = collected + K_PASSED, *context = collected + K_CONTEXT;
        const float *u = collected + K_U, *v = collected + K_V, *w = collected + K_W;
        __syncthreads();
        // The head.
        FOR(k, SITES * HEAD) {
            u32 site = k / HEAD, c = k % HEAD;
            r[k] = silu(w[k]);
            d_w[k] = dot(p + P_OUT + c, d + site * OUTPUTS, OUTPUTS, HEAD) * silu_slope(w[k]);
        }
        __syncthreads();
        FOR(k, OUTPUTS * HEAD) g[P_OUT + k] += over_sites(d + k / HEAD, OUTPUTS, r + k % HEAD, HEAD);
        FOR(s, OUTPUTS) g[P_OUT_BIAS + s] += over_sites(d + s, OUTPUTS);
        FOR(c, HEAD) g[P_HIDDEN_BIAS + c] += over_sites(d_w + c, HEAD);
        FOR(k, HEAD * HEAD) g[P_HIDDEN + k] += over_sites(d_w + k / HEAD, HEAD, v + k % HEAD, HEAD);
        FOR(k, SITES * HEAD) {
            u32 site = k / HEAD, c = k % HEAD;
            float d_v = d_w[k] + dot(p + P_HIDDEN + c, d_w + site * HEAD, HEAD, HEAD);
            d_z[k] = d_v * silu_slope(fmaf(u[k], 1.0f + slope[c], offset[c]));
            d_u[k] = d_z[k] * (1.0f + slope[c]);
        }
        __syncthreads();
        FOR(c, HEAD) {
            g[P_MIX_BIAS + c] += over_sites(d_u + c, HEAD);
            d_slope[c] = over_sites(d_z + c, HEAD, u + c, HEAD);
            d_slope[HEAD + c] = over_sites(d_z + c, HEAD);
        }
        FOR(k, HEAD * ALL) g[P_MIX + k] += over_sites(d_u + k / ALL, HEAD, context + k % ALL, ALL);
        FOR(k, SITES * ALL) d_context[k] = dot(p + P_MIX + k % ALL, d_u + k / ALL * HEAD, HEAD, ALL);
        __syncthreads();
        // The messages, from the last step to the first.
        for (u32 step = SITES; step-- > 0;) {
            FOR(t, ALL) {
                u32 at = t / CHANNELS * SITES + step, i = t % CHANNELS;
                float sum = 0.0f;
                for (u32 m = o.leave[at]; m < o.leave[at + 1]; m++)
                    sum = fmaf(p[P_BOND + o.leave_bond[m] * CHANNELS + i], d_collected[o.to[m] * ALL + t], sum);
                d_passed[step * ALL + t] = sum;
            }
            __syncthreads();
            FOR(t, ALL) {
                u32 k = t / CHANNELS, i = t % CHANNELS, site = o.sites[k * SITES + step], at = step * ALL + t;
                float d_own = dot(p + P_PASS + i * CHANNELS, d_passed + step * ALL + k * CHANNELS, CHANNELS, 1);
                float z = collected[at] + of_value(p, x[site], i), growth = 1.0f + scale[i];
                float active = d_own * silu_slope(fmaf(z, growth, shift[i]));
                zs[at] = z;
                d_active[at] = active;
                d_collected[at] = fmaf(d_context[site * ALL + t], silu_slope(collected[at]), active * growth);
            }
            __syncthreads();
        }
        FOR(i, CHANNELS) {
            float sum = 0.0f, shifts = 0.0f;
            for (u32 row = 0; row < SITES * ORDERS; row++) {
                sum = fmaf(d_active[row * CHANNELS + i], zs[row * CHANNELS + i], sum);
                shifts += d_active[row * CHANNELS + i];
            }
            d_scale[i] = sum;
            d_scale[CHANNELS + i] = shifts;
        }
        FOR(n, INPUTS * CHANNELS) {
            u32 i = n % CHANNELS;
            float sum = 0.0f;
            for (u32 k = 0; k < ORDERS; k++)
                for (u32 step = 0; step < SITES; step++) {
                    float one = d_active[step * ALL + k * CHANNELS + i];
                    u8 value = x[o.sites[k * SITES + step]];
#if INPUTS == 1
                    sum += value == 1 ? one : -one;
#else
                    sum += value == n / CHANNELS ? one : 0.0f;
#endif
                }
            g[n] += sum * (1.0f + scale[i]);
        }
        FOR(n, SITES * CHANNELS) {
            float sum = 0.0f;
            for (u32 k = 0; k < ORDERS; k++)
                sum += d_collected[o.steps[k * SITES + n / CHANNELS] * ALL + k * CHANNELS + n % CHANNELS];
            g[P_BIAS + n] += sum;
        }
        FOR(n, BONDS * CHANNELS) {
            u32 bond = n / CHANNELS;
            float sum = 0.0f;
            for (u32 k = 0; k < ORDERS; k++) {
                u32 to = o.steps[k * SITES + o.bond_to[bond]], from = o.steps[k * SITES + o.bond_from[bond]];
                u32 t = k * CHANNELS + n % CHANNELS;
                if (from < to) sum = fmaf(d_collected[to * ALL + t], passed[from * ALL + t], sum);
            }
            g[P_BOND + n] += sum;
        }
        FOR(n, CHANNELS * CHANNELS) {
            float sum = 0.0f;
            for (u32 row = 0; row < SITES * ORDERS; row++)
                sum = fmaf(own[row * CHANNELS + n / CHANNELS], d_passed[row * CHANNELS + n % CHANNELS], sum);
            g[P_PASS + n] += sum;
        }
    }
}

// The multilayer perceptron (mlp/mod.rs) with one thread per number that is wanted. For tests.
#define INPUTS (Q == 2 ? 1 : Q)
#define FAN ((SITES - 1) * INPUTS)
#define FEATURES 9
#define UNITS 32
// Where tensors start.
#define BIAS (HIDDEN * SITES * FAN)
#define OMEGA (BIAS + HIDDEN * SITES)
#define TIME (OMEGA + INPUTS * HIDDEN)
#define TIME_BIAS (TIME + UNITS * FEATURES)
#define SCALE (TIME_BIAS + UNITS)
#define SCALE_BIAS (SCALE + 2 * HIDDEN * UNITS)
#define ALL (SCALE_BIAS + 2 * HIDDEN)

__device__ float input(const u8* x, u32 site, u32 channel) {
    if (INPUTS == 1) return x[site] == 1 ? 1.0f : -1.0f;
    return x[site] == channel ? 1.0f : 0.0f;
}

__device__ float time_unit(const float* p, const float* moment, u32 unit) {
    float z = p[TIME_BIAS + unit];
    for (u32 f = 0; f < FEATURES; f++) z = fmaf(p[TIME + unit * FEATURES + f], moment[1 + f], z);
    return z;
}

extern "C" __global__ void plain_times(const float* p, const float* table, const u32* moments, float* scale, u32 lanes) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= lanes * 2 * HIDDEN) return;
    u32 lane = i / (2 * HIDDEN), o = i % (2 * HIDDEN);
    float sum = p[SCALE_BIAS + o];
    for (u32 unit = 0; unit < UNITS; unit++)
        sum = fmaf(p[SCALE + o * UNITS + unit], silu(time_unit(p, table + moments[lane] * (1 + FEATURES), unit)), sum);
    scale[i] = sum;
}

extern "C" __global__ void plain_forward(
    const float* p, const u8* states, const u32* rows, const float* scale, float* sums, float* out, u32 lanes) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= lanes * SITES) return;
    u32 lane = i / SITES, site = i % SITES;
    const u8* x = states + (size_t)rows[lane] * SITES;
    for (u32 s = 0; s < INPUTS; s++) out[(size_t)i * INPUTS + s] = 0.0f;
    for (u32 unit = 0; unit < HIDDEN; unit++) {
        const float* weight = p + (size_t)(unit * SITES + site) * FAN;
        float sum = p[BIAS + unit * SITES + site];
        for (u32 j = 0; j < SITES; j++) {
            if (j == site) continue;
            for (u32 c = 0; c < INPUTS; c++) sum = fmaf(weight[(j - (j > site)) * INPUTS + c], input(x, j, c), sum);
        }
        sums[((size_t)lane * HIDDEN + unit) * SITES + site] = sum;
        const float* own = scale + lane * 2 * HIDDEN;
        float h = silu(fmaf(sum, 1.0f + own[unit], own[HIDDEN + unit]));
        for (u32 s = 0; s < INPUTS; s++) {
            float* o = out + (size_t)i * INPUTS + s;
            *o = fmaf(p[OMEGA + s * HIDDEN + unit], h, *o);
        }
    }
}

extern "C" __global__ void plain_back(
    const float* p, const float* scale, const float* sums, const float* d_out, float* d_sums, float* d_scale, u32 lanes) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= lanes * HIDDEN) return;
    u32 lane = i / HIDDEN, unit = i % HIDDEN;
    const float* own = scale + lane * 2 * HIDDEN;
    float slope = 1.0f + own[unit], d_slope = 0.0f, d_shift = 0.0f;
    for (u32 site = 0; site < SITES; site++) {
        float sum = sums[(size_t)i * SITES + site], d_h = 0.0f;
        for (u32 s = 0; s < INPUTS; s++)
            d_h = fmaf(p[OMEGA + s * HIDDEN + unit], d_out[((size_t)lane * SITES + site) * INPUTS + s], d_h);
        float d_z = d_h * silu_slope(fmaf(sum, slope, own[HIDDEN + unit]));
        d_slope = fmaf(d_z, sum, d_slope);
        d_shift += d_z;
        d_sums[(size_t)i * SITES + site] = d_z * slope;
    }
    d_scale[lane * 2 * HIDDEN + unit] = d_slope;
    d_scale[lane * 2 * HIDDEN + HIDDEN + unit] = d_shift;
}

extern "C" __global__ void plain_gradient(
    const float* p, const u8* states, const u32* rows, const u32* moments, const float* table, const float* scale,
    const float* sums, const float* d_out, const float* d_sums, const float* d_scale, float* gradient, u32 lanes) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= ALL) return;
    float sum = 0.0f;
    for (u32 lane = 0; lane < lanes; lane++) {
        const float* moment = table + moments[lane] * (1 + FEATURES);
        const float* own = scale + lane * 2 * HIDDEN;
        const float* d_own = d_scale + lane * 2 * HIDDEN;
        if (i < BIAS) {
            u32 unit = i / (SITES * FAN), site = i / FAN % SITES, j = i % FAN / INPUTS, c = i % FAN % INPUTS;
            const u8* x = states + (size_t)rows[lane] * SITES;
            sum += d_sums[((size_t)lane * HIDDEN + unit) * SITES + site] * input(x, j + (j >= site), c);
        } else if (i < OMEGA) {
            sum += d_sums[(size_t)lane * HIDDEN * SITES + (i - BIAS)];
        } else if (i < TIME) {
            u32 s = (i - OMEGA) / HIDDEN, unit = (i - OMEGA) % HIDDEN;
            for (u32 site = 0; site < SITES; site++) {
                float before = sums[((size_t)lane * HIDDEN + unit) * SITES + site];
                float h = silu(fmaf(before, 1.0f + own[unit], own[HIDDEN + unit]));
                sum = fmaf(h, d_out[((size_t)lane * SITES + site) * INPUTS + s], sum);
            }
        } else if (i < SCALE) {
            u32 unit = i < TIME_BIAS ? (i - TIME) / FEATURES : i - TIME_BIAS;
            float d = 0.0f;
            for (u32 o = 0; o < 2 * HIDDEN; o++) d = fmaf(p[SCALE + o * UNITS + unit], d_own[o], d);
            d *= silu_slope(time_unit(p, moment, unit));
            sum += i < TIME_BIAS ? d * moment[1 + (i - TIME) % FEATURES] : d;
        } else if (i < SCALE_BIAS) {
            sum += d_own[(i - SCALE) / UNITS] * silu(time_unit(p, moment, (i - SCALE) % UNITS));
        } else {
            sum += d_own[i - SCALE_BIAS];
        }
    }
    gradient[i] = sum;
}

// Places of chains or of rungs (pairwise.cu has the sweeps): `rows` says which state is at which place. Random numbers belong to the place.
extern "C" __global__ void __launch_bounds__(THREADS) heat_bath_places(
    Pairs p, Places a, u8* states, u64 seed, u64 step, u32 sweeps) {
    sweep_rows<false, true, false>(p, states, a.rows, a.lambda, a.stride, seed, MOVE, step, sweeps, a.count, 0);
}

extern "C" __global__ void __launch_bounds__(THREADS) metropolis_places(
    Pairs p, Places a, u8* states, u64 seed, u64 step, u32 sweeps) {
    sweep_rows<true, true, false>(p, states, a.rows, a.lambda, a.stride, seed, MOVE, step, sweeps, a.count, 0);
}

// The same, and add the mean acceptance of every sweep.
extern "C" __global__ void __launch_bounds__(THREADS) metropolis_counted(
    Pairs p, Places a, u8* states, u64 seed, u64 step, u32 sweeps) {
    sweep_rows<true, true, true>(
        p, states, a.rows, a.lambda, a.stride, seed, MOVE, step, sweeps, a.count, a.acceptance);
}

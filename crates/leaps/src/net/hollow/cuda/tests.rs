//! Whether the kernels of the hollow convolution compile.

use super::sizes::embedding_defines;
use super::source;
use crate::device::cuda::testing::compiles;
use crate::net::features::features_with;

#[test]
#[cfg_attr(not(has_nvrtc), ignore = "needs NVRTC: set LEAPS_NVRTC to its folder")]
fn kernels_compile() {
    let shape = [
        ("SITES", 35),
        ("CHANNELS", 24),
        ("LAYERS", 2),
        ("TAPS", 9),
        ("Q", 3),
        ("DIRECTIONS", 4),
        ("HEAD", 48),
        ("OUTPUTS", 3),
        ("GLOBAL_FEATURES", 16),
    ];
    let plain = [("FORWARD_ROWS", 48), ("BACK_ROWS", 48), ("SHARED_PLANE", 1)];
    let matrix = [
        ("FORWARD_TILES", 1),
        ("FORWARD_WARPS", 3),
        ("FORWARD_BLOCKS", 4),
        ("BACK_TILES", 1),
        ("BACK_WARPS", 3),
        ("BACK_BLOCKS", 4),
        ("OUTER_TAPS", 9),
    ];
    let mut without = shape;
    without[8].1 = 0;
    for (conditions, shape) in [(0, shape), (0, without), (1, shape), (2, shape)] {
        let times = embedding_defines(features_with(conditions));
        compiles(&source(false), &[&shape[..], &plain, &times].concat());
        compiles(&source(true), &[&shape[..], &matrix, &times].concat());
    }
}

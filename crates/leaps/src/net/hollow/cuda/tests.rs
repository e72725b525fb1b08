//! Compilation of the kernels of the hollow convolution.

use super::changes;
use super::sizes::{MATRIX, PLAIN, embedding_defines};
use super::{arguments, source};
use crate::device::cuda::testing::compiles;
use crate::net::glass;
use crate::net::time_features::features_with;

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
        ("BOND_CLASSES", 1),
        ("ORDERS", 0),
        ("ENTERING", 0),
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
    // Counts of three values, two classes of bonds and three orders of three values.
    let mut bonded = shape;
    (bonded[8].1, bonded[9].1, bonded[10].1) = (56, 2, 3);
    for (conditions, shape) in [(0, shape), (0, without), (0, bonded), (1, shape), (2, shape)] {
        let times = embedding_defines(features_with(conditions));
        compiles(&source(false, false), &[&shape[..], &PLAIN, &plain, &times].concat());
        compiles(&source(true, false), &[&shape[..], &MATRIX, &matrix, &times].concat());
    }
    // Passes after jumps.
    for (channels, layers, tiles, warps) in [(24, 6, 3, 8), (48, 6, 3, 16), (8, 2, 1, 8)] {
        let times = embedding_defines(features_with(0));
        let own = changes::tests::defines(warps, tiles);
        let mut shape = shape;
        (shape[1].1, shape[2].1) = (channels, layers);
        let source = [&arguments::source(true), changes::KERNELS].concat();
        compiles(&source, &[&shape[..], &MATRIX, &matrix, &times, &own].concat());
    }
    // Of one to three dimensions; on tensor cores numbers are padded.
    for (taps, directions, entering, padded) in [(3, 2, 2, 8), (9, 4, 6, 8), (27, 6, 10, 16)] {
        let times = embedding_defines(features_with(0));
        let shape = |entering: usize, features: usize| {
            let mut shape = shape;
            for (name, value) in [
                ("TAPS", taps),
                ("Q", 2),
                ("DIRECTIONS", directions),
                ("OUTPUTS", directions),
                ("GLOBAL_FEATURES", features),
                ("ENTERING", entering),
            ] {
                if let Some(define) = shape.iter_mut().find(|define| define.0 == name) {
                    define.1 = value;
                }
            }
            [&shape[..], &glass::cuda::defines(), &times].concat()
        };
        let matrix = matrix
            .map(|(name, value)| (name, if name == "OUTER_TAPS" { taps.min(9) } else { value }));
        compiles(&source(false, true), &[&shape(entering, 33)[..], &PLAIN, &plain].concat());
        compiles(&source(true, true), &[&shape(padded, 40)[..], &MATRIX, &matrix].concat());
    }
}

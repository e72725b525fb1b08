//! Thermodynamic integration: log Z from the mean energies of a ladder of temperatures.
//!
//! $\log Z(\beta) = \log Z(0) - \int_0^\beta \langle H \rangle\, d\beta'$. Between rungs the energy is a cubic polynomial with the right values and, from
//! $d\langle H \rangle/d\beta = -\mathrm{Var}(H)$, the right slopes at both ends, so that the error falls with the fourth power of the distances.

use super::ladder::LadderTable;
use super::{Estimate, Jackknife};

/// log Z at the last of `betas` by integration from the first, where it is `log_z0`. The error is that of a jackknife over groups, joined
/// to what leaving out every second rung says about the distances between rungs.
pub fn integrated_log_z(betas: &[f64], groups: &[LadderTable], log_z0: f64) -> Estimate {
    let width = 2 * betas.len();
    let origin: Vec<f64> = groups[0].rungs.iter().flat_map(|r| [r[1] / r[0], 0.0]).collect();
    let (mut weights, mut sums) = (Vec::new(), Vec::new());
    for group in groups {
        weights.push(group.rungs[0][0]);
        for (rung, origin) in group.rungs.iter().zip(origin.chunks_exact(2)) {
            let shift = origin[0];
            sums.push(rung[1] - rung[0] * shift);
            // About the origin, or the variance of a large energy would lose its digits.
            sums.push(rung[2] - 2.0 * shift * rung[1] + rung[0] * shift * shift);
        }
    }
    debug_assert_eq!(sums.len(), width * groups.len());
    let jackknife = Jackknife::from_sums(origin.clone(), weights, sums);
    let integral = |m: &[f64], rungs: &[usize]| -> f64 {
        let point = |k: usize| (m[2 * k], (m[2 * k] - origin[2 * k]).powi(2) - m[2 * k + 1]);
        rungs
            .windows(2)
            .map(|pair| {
                let h = betas[pair[1]] - betas[pair[0]];
                let ((e0, slope0), (e1, slope1)) = (point(pair[0]), point(pair[1]));
                0.5 * h * (e0 + e1) + h * h / 12.0 * (slope0 - slope1)
            })
            .sum()
    };
    let all: Vec<usize> = (0..betas.len()).collect();
    let mut half: Vec<usize> = (0..betas.len()).step_by(2).collect();
    if half.last() != all.last() {
        half.push(betas.len() - 1);
    }
    let estimate = jackknife.estimate(|m| log_z0 - integral(m, &all));
    let means = jackknife.means();
    // The error of a rule of fourth order is a fifteenth of what halving the distances changes, once they are small; before that nobody knows.
    let share = match betas.len() {
        0..=4 => return Estimate::new(estimate.mean, f64::INFINITY),
        5..=8 => 1.0,
        _ => 15.0,
    };
    let rule = (integral(&means, &all) - integral(&means, &half)) / share;
    Estimate::new(estimate.mean, estimate.error.hypot(rule))
}

//! Evaluate the modes of Kaufman's formula as functions of $v$, without cancellation at either end or at criticality.
//!
//! The notation is that of [`kaufman`](super::kaufman).

use super::jet::Jet;

/// Sums over the odd or the even modes.
#[derive(Default)]
pub(super) struct Sector {
    /// `sum a_l`.
    pub modes: Jet,
    /// `sum log(1 + y_l^m)`.
    pub cosh: Jet,
    /// `sum log(1 - y_l^m)`, without the zero mode.
    pub sinh: Jet,
}

impl Sector {
    pub fn add(&mut self, mode: &Mode, m: usize) {
        self.modes = self.modes + mode.a;
        let power = mode.power(m);
        let minus = -(-(m as f64) * mode.gamma).exp_m1();
        self.cosh = self.cosh + Jet::new(1.0 + power.value, power.first, power.second).ln();
        self.sinh = self.sinh + Jet::new(minus, -power.first, -power.second).ln();
    }
}

/// One mode as a function of `v`.
pub(super) struct Mode {
    pub gamma: f64,
    /// $a_l = \gamma_l + \ln v$, with $\cos\theta_l$ added to its slope: over a sector the cosines sum to
    /// zero, and without them the slope is small where `v` is small.
    pub a: Jet,
    /// $y_l = e^{-\gamma_l}$.
    pub y: Jet,
}

impl Mode {
    /// Mode `l > 0`, at angle $\theta = \pi l / n$:
    /// $e^{a} = p + r$ with $p = 1 + v^2 - v\cos\theta$ and $r = \sqrt{p^2 - v^2}$.
    pub fn new(v: f64, l: usize, n: usize) -> Self {
        let half_angle = std::f64::consts::PI * l as f64 / (2 * n) as f64;
        let sine2 = 2.0 * half_angle.sin().powi(2);
        let cosine = (2.0 * half_angle).cos();
        let u = v * v - v * cosine;
        let p = 1.0 + u;
        let r = (((1.0 - v).powi(2) + v * sine2) * (1.0 + v * v + v * sine2)).sqrt();
        let delta = (1.0 - v).powi(2) / v + sine2;
        let gamma = (delta + (delta * (2.0 + delta)).sqrt()).ln_1p();
        let inverse = 1.0 / (p + r);
        let y = v * inverse;
        // The slope of v sinh(gamma) = r, and -v gamma' = (1 - v^2)/r: no differences of large numbers.
        let r_slope = 0.5
            * ((sine2 - 2.0 * (1.0 - v)) * (1.0 + v * v + v * sine2)
                + ((1.0 - v).powi(2) + v * sine2) * (2.0 * v + sine2))
            / r;
        let fall = (1.0 - v) * (1.0 + v) / r;
        let y_slope = inverse * fall;
        let (slope, second, reduced) = if v > 0.5 {
            // Through gamma, which is stationary at v = 1.
            let slope = (1.0 - fall) / v;
            (slope, (2.0 + fall * r_slope / v) / r - slope / v, slope + cosine)
        } else {
            // Through p + r, regular at v = 0.
            let slope = (2.0 * v - cosine - y) / r;
            let one_less_r = (v * v - 2.0 * u - u * u) / (1.0 + r);
            let reduced = (2.0 * v - y - cosine * one_less_r) / r;
            (slope, (2.0 - y_slope - slope * r_slope) / r, reduced)
        };
        Mode {
            gamma,
            a: Jet::new((p + r).ln(), reduced, second),
            y: Jet::new(y, y_slope, inverse * (v * slope * slope - 2.0 * slope - v * second)),
        }
    }

    /// Mode 0, where $r$ vanishes at the critical point but $e^{a} = (1 + h)(h - v)$ with
    /// $h = \sqrt{1 + v^2}$ does not. `gamma` is negative where the branch continues beyond it.
    pub fn zero(v: f64, k: f64, below: bool) -> Self {
        let h = (1.0 + v * v).sqrt();
        let inverse = (h + v) / (1.0 + h);
        let slope = (v / (1.0 + h) - 1.0) / h;
        let product = h * (1.0 + h);
        let second =
            1.0 / product - v * v * (1.0 / h + 2.0) / (product * product) + v / (h * h * h);
        let gamma = 2.0 * k + k.tanh().ln();
        Mode {
            gamma: if below { -gamma } else { gamma },
            a: Jet::new(-inverse.ln(), v * (1.0 + v) / product, second),
            y: Jet::new(
                v * inverse,
                inverse * (1.0 - v * slope),
                inverse * (v * slope * slope - 2.0 * slope - v * second),
            ),
        }
    }

    /// `y^m`, for `m >= 2`.
    pub fn power(&self, m: usize) -> Jet {
        let (y, m_real) = (self.y, m as f64);
        let less2 = if m == 2 { 1.0 } else { (-(m_real - 2.0) * self.gamma).exp() };
        let less1 = less2 * y.value;
        Jet {
            value: less1 * y.value,
            first: m_real * less1 * y.first,
            second: m_real * ((m_real - 1.0) * less2 * y.first * y.first + less1 * y.second),
        }
    }
}

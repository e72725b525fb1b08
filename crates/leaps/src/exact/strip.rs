//! Strips: the sites of a pairwise model in the order of a plan, and passes that sum over them one by one.

use super::band::{Domain, Entry, Shift, Site, step};
use super::plan::Plan;
use crate::target::{Pairwise, Target};

/// An energy of equal values: `(partner, u, h)`.
type Bond = (usize, f64, f64);

/// A strip ready to be summed over.
pub(super) struct Strip<'a, D> {
    pub plan: &'a Plan,
    /// Per ordered site: bonds to ordered sites before it, by period of the digit in the index.
    near: Vec<Vec<(usize, Shift)>>,
    /// Per ordered site: the bond at distance `width`.
    pub oldest: Vec<Shift>,
    /// Per ordered site: bonds to fixed sites, by position in the list of these.
    to_fixed: Vec<Vec<Bond>>,
    /// Per fixed site: bonds to fixed sites before it.
    inside: Vec<Vec<Bond>>,
    fields_u: Vec<f64>,
    fields_h: Vec<f64>,
    domain: std::marker::PhantomData<D>,
}

impl<'a, D: Domain> Strip<'a, D> {
    pub fn new(model: &Pairwise, plan: &'a Plan, lambda: &[f64], couplings: &[f64]) -> Self {
        let ones = vec![1.0; lambda.len()];
        let plain = model.total_couplings(&ones);
        let all = [&plan.fixed[..], &plan.order[..]].concat();
        let mut rank = vec![0; model.sites()];
        for (i, &site) in all.iter().enumerate() {
            rank[site] = i;
        }
        let cut = plan.fixed.len();
        let none = Shift::new::<D>(0.0, 0.0);
        let mut strip = Strip {
            plan,
            near: vec![Vec::new(); plan.order.len()],
            oldest: vec![none; plan.order.len()],
            to_fixed: vec![Vec::new(); plan.order.len()],
            inside: vec![Vec::new(); cut],
            fields_u: model.total_fields(lambda),
            fields_h: model.total_fields(&ones),
            domain: std::marker::PhantomData,
        };
        for (i, &site) in all.iter().enumerate() {
            // Parallel bonds add up.
            let mut earlier: std::collections::BTreeMap<usize, (f64, f64)> = Default::default();
            for (&end, entry) in model.neighbours(site).iter().zip(model.directed(site)) {
                let end = rank[end as usize];
                if end < i {
                    let sum = earlier.entry(end).or_default();
                    sum.0 -= couplings[entry];
                    sum.1 -= plain[entry];
                }
            }
            for (end, (u, h)) in earlier {
                if i < cut {
                    strip.inside[i].push((end, u, h));
                } else if end < cut {
                    strip.to_fixed[i - cut].push((end, u, h));
                } else if i - end == plan.width {
                    strip.oldest[i - cut] = Shift::new::<D>(u, h);
                } else {
                    let period = plan.q.pow((i - end - 1) as u32);
                    strip.near[i - cut].push((period, Shift::new::<D>(u, h)));
                }
            }
        }
        strip
    }

    /// The values of the fixed sites in configuration `code`, and their energy.
    pub fn fixed(&self, code: u64) -> Fixed {
        let (plan, q) = (self.plan, self.plan.q);
        let mut rest = if plan.symmetric { code * q as u64 } else { code };
        let mut fixed = Fixed { values: Vec::with_capacity(plan.fixed.len()), u: 0.0, h: 0.0 };
        for (i, &site) in plan.fixed.iter().enumerate() {
            let site_value = (rest % q as u64) as usize;
            rest /= q as u64;
            fixed.u += self.fields_u[site * q + site_value];
            fixed.h += self.fields_h[site * q + site_value];
            for &(end, bond_u, bond_h) in &self.inside[i] {
                if fixed.values[end] == site_value {
                    fixed.u += bond_u;
                    fixed.h += bond_h;
                }
            }
            fixed.values.push(site_value);
        }
        fixed
    }

    /// Sum over one more site, with the fixed ones at these values.
    pub fn advance(&self, fixed: &Fixed, pass: &mut Pass) {
        let (plan, q, i) = (self.plan, self.plan.q, pass.done);
        let site = plan.order[i];
        let shift = |site_value: usize| Shift {
            factor: D::ONE,
            u: self.fields_u[site * q + site_value],
            h: self.fields_h[site * q + site_value],
        };
        let mut local: Vec<Shift> = (0..q).map(shift).collect();
        for &(end, bond_u, bond_h) in &self.to_fixed[i] {
            local[fixed.values[end]].u += bond_u;
            local[fixed.values[end]].h += bond_h;
        }
        // Weights relative to the likeliest value, and to the largest weight before.
        let lowest = local.iter().map(|shift| shift.u).fold(f64::INFINITY, f64::min);
        pass.log_scale += pass.top - lowest;
        for shift in &mut local {
            shift.factor = D::from_log(lowest - shift.u - pass.top);
        }
        let full = i >= plan.width;
        let length = if full { pass.band.len() } else { pass.band.len() * q };
        pass.next.resize(length, Entry::default());
        let site = Site { local: &local, near: &self.near[i], oldest: self.oldest[i], full };
        pass.top = D::to_log(step::<D>(q, &pass.band, &mut pass.next, &site));
        std::mem::swap(&mut pass.band, &mut pass.next);
        pass.done += 1;
    }

    /// What is left at the end of a pass: the weight as a logarithm, with the energy of the fixed sites.
    pub fn total(&self, fixed: &Fixed, pass: &Pass) -> Entry {
        let band = &pass.band;
        let sum = band.iter().skip(1).fold(band[0], |sum, &entry| sum.mix::<D>(entry));
        Entry {
            weight: D::to_log(sum.weight) + pass.log_scale - fixed.u,
            u: sum.u + fixed.u,
            variance: sum.variance,
            h: sum.h + fixed.h,
        }
    }
}

/// A configuration of the fixed sites.
pub(super) struct Fixed {
    /// By position in the list of fixed sites.
    pub values: Vec<usize>,
    u: f64,
    h: f64,
}

/// A pass along a strip: some ordered sites are done.
#[derive(Clone, Default)]
pub(super) struct Pass {
    /// How many.
    pub done: usize,
    /// Sums over them, for every configuration of the last `width`.
    pub band: Vec<Entry>,
    next: Vec<Entry>,
    /// The logarithm of the largest weight of the band.
    top: f64,
    /// The logarithm of every scale that was taken out of the weights.
    log_scale: f64,
}

impl Pass {
    /// Before the first site. Keeps the memory of the pass before.
    pub fn restart<D: Domain>(&mut self) {
        (self.done, self.top, self.log_scale) = (0, 0.0, 0.0);
        self.band.clear();
        self.band.push(Entry { weight: D::ONE, ..Entry::default() });
    }
}

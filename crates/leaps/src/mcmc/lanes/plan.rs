//! The sites of a model, grouped by their surroundings, and the numbers of those surroundings.

use std::collections::HashMap;

use super::counts::Counts;
use super::effects::Effects;
use super::factors::factors_len;
use crate::target::{Colouring, Pairwise, Target, pairwise_for_gpu};
use crate::{Error, Result};

/// The rule by which a site gets its new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Draw from the conditional distribution.
    HeatBath,
    /// Propose another value uniformly and accept with `min(1, r)`.
    Metropolis,
}

/// The order in which sites are visited; the same in every sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Scan {
    /// 0, 1, 2, ...
    #[default]
    Systematic,
    /// Colour after colour of a proper colouring.
    Coloured,
}

/// How the values of a site's neighbours become one index: a sum over neighbours of
/// `contribution[slot][value]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Code {
    /// Two values, equal couplings: the number of neighbours with value 1.
    Sum,
    /// Two values, any couplings: neighbour `slot` is bit `slot`; at most 8 neighbours.
    Bits,
    /// `contribution[slot * q + value]`.
    General(Vec<u16>),
}

/// Sites with the same couplings and fields, in every energy term.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) code: Code,
    /// Number of index values.
    pub(super) entries: usize,
    /// Local energy of term `k`, `f(value) - sum_{x_j = value} A_j`, at
    /// `[(k * entries + index) * q + value]`.
    pub(super) local: Vec<f64>,
    /// The same with half of each bond, so that the sum over sites is the energy.
    pub(super) share: Vec<f64>,
    /// Where the class' thresholds start in [`super::Tables`].
    pub(super) offset: usize,
    /// The index by counting in the place of `code`, in plans that GPUs do not have.
    pub(super) counts: Option<Counts>,
    /// Where the class' factors start, if they stand in the place of thresholds.
    pub(super) factors: Option<usize>,
}

/// A model prepared for tiles.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) rule: Rule,
    pub(super) q: usize,
    pub(super) sites: usize,
    pub(super) terms: usize,
    pub(super) order: Vec<u32>,
    pub(super) class_of: Vec<u32>,
    pub(super) starts: Vec<u32>,
    pub(super) ends: Vec<u32>,
    pub(super) classes: Vec<Class>,
    pub(super) constants: Vec<f64>,
    /// Thresholds in all classes together.
    pub(super) thresholds: usize,
    /// Factors in all classes together.
    pub(super) factors: usize,
}

/// Most neighbours whose values are the bits of a byte.
const MOST_BITS: usize = 8;
/// Most thresholds in one class: indices are 16 bits wide.
const MAX_CLASS: usize = 1 << 16;
/// Most thresholds in all: 64 MiB.
const MAX_THRESHOLDS: usize = 1 << 24;
/// Most thresholds of a class whose surroundings are counted, and the same where all classes together have more than `ALL_COUNTED`: to make
/// more takes longer than to multiply factors.
const COUNTED: [usize; 2] = [1 << 13, 1 << 10];
const ALL_COUNTED: usize = 1 << 15;
/// Most factors in all: 2 MiB.
const MAX_FACTORS: usize = 1 << 18;

impl Plan {
    /// The same with the sites in the opposite order, so that its sweeps are the time reversals of these.
    pub fn reversed(mut self) -> Self {
        self.order.reverse();
        self
    }

    /// Prepare any model for `rule`: by values or counts of neighbours ([`Plan::new`]) where their table is small, else by coordinates of
    /// the surroundings, which serve clusters of any number of sites, too. Graphs that are no lattices have the former alone.
    ///
    /// Fails with [`Error::NotApplicable`] if the target is neither [`Pairwise`] nor a [`LatticeModel`](crate::target::LatticeModel), or has too many kinds of
    /// sites; [`crate::mcmc::HeatBath`] and [`crate::mcmc::Metropolis`] serve such targets one walker at a time. GPUs have not run it.
    pub fn of(target: &dyn Target, rule: Rule, scan: Scan) -> Result<Self> {
        let Some(model) = target.pairwise() else {
            let reason = "the target is neither pairwise nor a lattice model";
            let model = target
                .lattice_model()
                .ok_or_else(|| Error::not_applicable("the table-driven sweep", reason))?;
            let order = || Colouring::of_clusters(model).order().to_vec();
            return Self::counted(Effects::of_clusters(model)?, (rule, scan), order, COUNTED);
        };
        let plan = Self::new(model, rule, scan);
        let small = |plan: &Plan| plan.thresholds <= COUNTED[1] * plan.classes.len();
        if plan.as_ref().is_ok_and(small) || model.lattice().is_none() {
            return plan;
        }
        let order = || Colouring::new(model).order().to_vec();
        Effects::of_pairs(model)
            .and_then(|effects| Self::counted(effects, (rule, scan), order, COUNTED))
            .or(plan)
    }

    /// [`Plan::new`] for a target that is pairwise: what GPUs have.
    pub(crate) fn of_pairs(target: &dyn Target, rule: Rule, scan: Scan) -> Result<Self> {
        Self::new(pairwise_for_gpu(target)?, rule, scan)
    }

    /// As [`Plan::signed`] where that serves the target, else as [`Plan::of`].
    pub fn signed_or_of(target: &dyn Target, rule: Rule, scan: Scan) -> Result<Self> {
        let signed = target.pairwise().and_then(|model| Self::signed(model, rule, scan).ok());
        signed.map_or_else(|| Self::of(target, rule, scan), Ok)
    }

    /// Prepare a pairwise model for `rule`. Fails with [`Error::NotApplicable`] if some site has too many neighbours or values for a table.
    pub fn new(model: &Pairwise, rule: Rule, scan: Scan) -> Result<Self> {
        Self::build(model, rule, scan, false)
    }

    /// The same for sites with many neighbours of two values too, if their couplings differ in sign alone: what counts is how many
    /// neighbours pull to value 1. GPUs have not run it.
    pub fn signed(model: &Pairwise, rule: Rule, scan: Scan) -> Result<Self> {
        Self::build(model, rule, scan, true)
    }

    /// By coordinates, with tables of at most so many thresholds for a class.
    pub(super) fn counted(
        effects: Effects,
        (rule, scan): (Rule, Scan),
        coloured: impl Fn() -> Vec<u32>,
        most: [usize; 2],
    ) -> Result<Self> {
        let q = effects.q;
        let all: Vec<Counts> =
            effects.kinds.iter().map(|kind| Counts::new(&effects, kind)).collect::<Result<_>>()?;
        // Thresholds of those that have at most so many.
        let size = |counts: &Counts| {
            let each = if rule == Rule::HeatBath { q - 1 } else { q * q };
            counts.entries().and_then(|entries| entries.checked_mul(each))
        };
        let fits = |counts: &Counts, most: usize| size(counts).filter(|&size| size <= most);
        let sum: usize = all.iter().filter_map(|counts| fits(counts, most[0])).sum();
        let most = if sum <= ALL_COUNTED { most[0] } else { most[1] };
        let (mut classes, mut thresholds, mut factors) = (Vec::new(), 0, 0);
        for counts in all {
            let mut class = Class {
                code: Code::Sum,
                entries: 0,
                local: Vec::new(),
                share: Vec::new(),
                offset: thresholds,
                counts: None,
                factors: None,
            };
            match fits(&counts, most).and(counts.entries()) {
                Some(entries) => {
                    class.entries = entries;
                    class.local = counts.whole(entries, q, false);
                    class.share = counts.whole(entries, q, true);
                    thresholds += class.thresholds(q, rule);
                }
                None => {
                    class.factors = Some(factors);
                    factors += factors_len(&counts.digits, q);
                }
            }
            if factors > MAX_FACTORS {
                return Err(too_large());
            }
            class.counts = Some(counts);
            classes.push(class);
        }
        let sites = effects.of_site.len();
        Ok(Plan {
            rule,
            q,
            sites,
            terms: effects.constants.len(),
            order: match scan {
                Scan::Systematic => (0..sites as u32).collect(),
                Scan::Coloured => coloured(),
            },
            class_of: effects.of_site,
            starts: effects.starts,
            ends: effects.ends,
            classes,
            constants: effects.constants,
            thresholds,
            factors,
        })
    }

    fn build(model: &Pairwise, rule: Rule, scan: Scan, signed: bool) -> Result<Self> {
        let (n, q) = (model.sites(), model.q());
        let terms = model.energy_terms();
        let mut classes: Vec<Class> = Vec::new();
        let mut known: HashMap<Vec<u64>, u32> = HashMap::new();
        let mut class_of = Vec::with_capacity(n);
        let mut thresholds = 0;
        for site in 0..n {
            let range = model.directed(site);
            let couplings: Vec<&[f64]> =
                terms.iter().map(|t| t.couplings.get(range.clone()).unwrap_or(&[])).collect();
            let fields: Vec<&[f64]> = terms
                .iter()
                .map(|t| t.fields.get(site * q..(site + 1) * q).unwrap_or(&[]))
                .collect();
            let mut signature = vec![range.len() as u64];
            for list in couplings.iter().chain(&fields) {
                signature.push(list.len() as u64);
                signature.extend(list.iter().map(|v| v.to_bits()));
            }
            let next = classes.len() as u32;
            let class = *known.entry(signature).or_insert(next);
            if class == next {
                let by_sign = signed && q == 2 && range.len() > MOST_BITS;
                let made = match by_sign.then(|| Class::signed(&couplings, &fields)).flatten() {
                    Some(class) => Ok(class),
                    None => Class::new(q, range.len(), &couplings, &fields),
                };
                let mut made = made?;
                made.offset = thresholds;
                thresholds += made.thresholds(q, rule);
                if thresholds > MAX_THRESHOLDS {
                    return Err(too_large());
                }
                classes.push(made);
            }
            class_of.push(class);
        }
        let mut starts = vec![0];
        let mut ends = Vec::new();
        for site in 0..n {
            ends.extend_from_slice(model.neighbours(site));
            starts.push(ends.len() as u32);
        }
        let order = match scan {
            Scan::Systematic => (0..n as u32).collect(),
            Scan::Coloured => Colouring::new(model).order().to_vec(),
        };
        let constants = terms.iter().map(|t| t.constant).collect();
        Ok(Plan {
            rule,
            q,
            sites: n,
            terms: terms.len(),
            order,
            class_of,
            starts,
            ends,
            classes,
            constants,
            thresholds,
            factors: 0,
        })
    }

    /// Number of sites: updates in a sweep.
    pub fn sites(&self) -> usize {
        self.sites
    }

    /// Number of energy terms.
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// Updates that one Philox block of four words serves. A comparison needs 16 bits, and 16 more only
    /// when those are equal to the threshold's; a proposal among several values needs a whole word, whose
    /// lower digits then serve the comparison.
    pub(super) fn updates_per_block(&self) -> usize {
        if self.rule == Rule::Metropolis && self.q > 2 { 4 } else { 8 }
    }

    /// Energy evaluations charged for one update: one per value for a conditional draw, one for a proposal.
    pub fn calls_per_update(&self) -> f64 {
        match self.rule {
            Rule::HeatBath => self.q as f64,
            Rule::Metropolis => 1.0,
        }
    }

    /// Bytes of one set of thresholds.
    pub fn table_bytes(&self) -> usize {
        4 * self.thresholds + 16 * self.factors
    }

    pub(super) fn ends(&self, site: usize) -> &[u32] {
        &self.ends[self.starts[site] as usize..self.starts[site + 1] as usize]
    }
}

pub(super) fn too_large() -> Error {
    Error::not_applicable(
        "the table-driven sweep",
        "a site has too many neighbours or values for a table of its surroundings",
    )
}

impl Class {
    fn new(q: usize, degree: usize, couplings: &[&[f64]], fields: &[&[f64]]) -> Result<Self> {
        let uniform = couplings.iter().all(|list| list.windows(2).all(|pair| pair[0] == pair[1]));
        // Counts of the values 1, 2, ... if couplings are equal, else the values themselves.
        let radix = if uniform { degree + 1 } else { q };
        let digits = if uniform { q - 1 } else { degree };
        let entries = (0..digits)
            .try_fold(1usize, |n, _| n.checked_mul(radix).filter(|&n| n * q * q <= MAX_CLASS))
            .ok_or_else(too_large)?;
        let code = match (q, uniform) {
            (2, true) if degree < 256 => Code::Sum,
            (2, false) if degree <= MOST_BITS => Code::Bits,
            _ => Code::General(
                (0..degree * q)
                    .map(|at| {
                        let (slot, value) = (at / q, at % q);
                        match (uniform, value) {
                            (_, 0) => 0,
                            (true, _) => radix.pow(value as u32 - 1) as u16,
                            (false, _) => (value * radix.pow(slot as u32)) as u16,
                        }
                    })
                    .collect(),
            ),
        };
        let mut class = Class {
            code,
            entries,
            local: vec![0.0; couplings.len() * entries * q],
            share: vec![0.0; couplings.len() * entries * q],
            offset: 0,
            counts: None,
            factors: None,
        };
        for index in 0..entries {
            let digit = |d: usize| index / radix.pow(d as u32) % radix;
            for (k, (couplings, fields)) in couplings.iter().zip(fields).enumerate() {
                let row = (k * entries + index) * q;
                for value in 0..q {
                    let bonds: f64 = if couplings.is_empty() {
                        0.0
                    } else if uniform {
                        let others: usize = (0..digits).map(digit).sum();
                        let count = match value {
                            // Indices whose counts exceed the degree never occur.
                            0 => degree.saturating_sub(others),
                            _ => digit(value - 1),
                        };
                        couplings.first().map_or(0.0, |c| c * count as f64)
                    } else {
                        (0..degree).filter(|&s| digit(s) == value).map(|s| couplings[s]).sum()
                    };
                    let field = fields.get(value).copied().unwrap_or(0.0);
                    class.local[row + value] = field - bonds;
                    class.share[row + value] = field - 0.5 * bonds;
                }
            }
        }
        Ok(class)
    }

    /// A site of two values whose couplings are one number up to their signs, the same signs in every term; `None` if they are not, or all are equal.
    ///
    /// A neighbour pulls to value 1 if it has value 1 and a positive coupling or value 0 and a negative one. Where `k` neighbours pull
    /// to a value, and `n` couplings are negative, `sum_{x_j = value} A_j = A (k - n)`.
    fn signed(couplings: &[&[f64]], fields: &[&[f64]]) -> Option<Self> {
        let first = couplings.iter().find(|list| !list.is_empty())?;
        let degree = first.len();
        let signs: Vec<f64> = first.iter().map(|c| c.signum()).collect();
        let strength = |list: &[f64]| list.first().map_or(0.0, |c| c * signs[0]);
        let fits =
            |list: &&[f64]| list.iter().zip(&signs).all(|(c, sign)| *c == sign * strength(list));
        let negative = signs.iter().filter(|sign| **sign < 0.0).count();
        if !couplings.iter().all(fits) || negative == 0 || (degree + 1) * 4 > MAX_CLASS {
            return None;
        }
        let contribution = |sign: &f64| if *sign < 0.0 { [1, 0] } else { [0, 1] };
        let entries = degree + 1;
        let size = couplings.len() * entries * 2;
        let code = Code::General(signs.iter().flat_map(contribution).collect());
        let mut class = Class {
            code,
            entries,
            local: vec![0.0; size],
            share: vec![0.0; size],
            offset: 0,
            counts: None,
            factors: None,
        };
        for (k, (couplings, fields)) in couplings.iter().zip(fields).enumerate() {
            for index in 0..entries {
                for (value, pulling) in [degree - index, index].into_iter().enumerate() {
                    let bonds = strength(couplings) * (pulling as f64 - negative as f64);
                    let field = fields.get(value).copied().unwrap_or(0.0);
                    let at = (k * entries + index) * 2 + value;
                    class.local[at] = field - bonds;
                    class.share[at] = field - 0.5 * bonds;
                }
            }
        }
        Some(class)
    }

    /// Length of one of the class' tables.
    pub(super) fn table_len(&self, q: usize, rule: Rule) -> usize {
        let len = match rule {
            Rule::HeatBath => self.entries,
            Rule::Metropolis if q == 2 => self.entries * 2,
            Rule::Metropolis => self.entries * q * q,
        };
        // One entry more than is used: a gather of 16-bit entries reads the next one, too.
        (len + 1).next_multiple_of(32)
    }

    fn thresholds(&self, q: usize, rule: Rule) -> usize {
        let tables = if rule == Rule::HeatBath { q - 1 } else { 1 };
        tables * self.table_len(q, rule)
    }
}

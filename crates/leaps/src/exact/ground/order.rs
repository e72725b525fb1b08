//! Orders in which sites are eliminated; the narrowest of several is taken.

use std::collections::{BTreeSet, VecDeque};

use super::{BYTES, MAX_SITES};
use crate::exact::LITTLE_WORK;
use crate::target::{Pairwise, Target};

/// Sites in the order in which they are eliminated, each with those that are left and share an energy with it.
#[derive(Debug)]
pub(super) struct Order {
    pub steps: Vec<(usize, Vec<usize>)>,
    /// How many sums of energies are compared.
    work: f64,
}

/// Who is next.
#[derive(Debug)]
pub(super) enum Rule {
    /// The site with the fewest partners.
    Fewest,
    /// As listed.
    Listed(Vec<usize>),
}

impl Order {
    /// The cheapest order that takes no more than the effort; `None` if there is none.
    ///
    /// The site with the fewest partners first serves strips, trees and sparse graphs, and is taken wherever it needs
    /// no more than one unit of effort. On a long torus it closes rings of many sites, where going along the array, or in layers
    /// around a site, never has more than two rows between what is done and what is not.
    pub fn of(model: &Pairwise, effort: f64) -> Option<Self> {
        let sites = model.sites();
        if sites as f64 > MAX_SITES * effort.clamp(1.0, 20.0) {
            return None;
        }
        if let Some(quick) = Self::by(model, effort.min(1.0), Rule::Fewest) {
            return Some(quick);
        }
        let rules = [Rule::Fewest, Rule::Listed((0..sites).collect()), Rule::Listed(layers(model))];
        let orders = rules.into_iter().filter_map(|rule| Self::by(model, effort, rule));
        orders.min_by(|a, b| a.work.total_cmp(&b.work))
    }

    /// The most sites that a table is over.
    #[cfg(test)]
    pub fn width(&self) -> usize {
        self.steps.iter().map(|(_, scope)| scope.len()).max().unwrap_or(0)
    }

    /// The order of a rule, if it takes no more than the effort.
    pub fn by(model: &Pairwise, effort: f64, rule: Rule) -> Option<Self> {
        let (sites, q) = (model.sites(), model.q() as f64);
        let mut partners: Vec<BTreeSet<usize>> = (0..sites)
            .map(|site| model.neighbours(site).iter().map(|&end| end as usize).collect())
            .collect();
        let mut queue: BTreeSet<(usize, usize)> = match &rule {
            Rule::Fewest => {
                partners.iter().enumerate().map(|(site, own)| (own.len(), site)).collect()
            }
            Rule::Listed(list) => list.iter().copied().enumerate().collect(),
        };
        let (mut steps, mut work, mut bytes) = (Vec::with_capacity(sites), 0.0, 0.0);
        while let Some((_, site)) = queue.pop_first() {
            let degree = partners[site].len();
            let entries = q.powi(degree as i32);
            work += entries * q * (degree as f64 + 1.0) / 2.0;
            bytes += 9.0 * entries; // an energy and a choice
            if work > effort * LITTLE_WORK || bytes > effort.clamp(1.0, 16.0) * BYTES {
                return None;
            }
            let own: Vec<usize> = std::mem::take(&mut partners[site]).into_iter().collect();
            for &end in &own {
                let before = partners[end].len();
                partners[end].remove(&site);
                partners[end].extend(own.iter().copied().filter(|&other| other != end));
                if let Rule::Fewest = rule {
                    queue.remove(&(before, end));
                    queue.insert((partners[end].len(), end));
                }
            }
            steps.push((site, own));
        }
        Some(Order { steps, work })
    }
}

/// Sites in layers around one that is as far out as any, part by part.
pub(super) fn layers(model: &Pairwise) -> Vec<usize> {
    let mut seen = vec![false; model.sites()];
    let mut order = Vec::with_capacity(model.sites());
    for site in 0..model.sites() {
        if !seen[site] {
            // The last of the layers around any site is at an end.
            let end = around(model, site, &mut seen.clone()).pop().unwrap_or(site);
            order.extend(around(model, end, &mut seen));
        }
    }
    order
}

/// The sites that can be reached from one, the nearest first.
fn around(model: &Pairwise, site: usize, seen: &mut [bool]) -> Vec<usize> {
    let (mut order, mut waiting) = (Vec::new(), VecDeque::from([site]));
    seen[site] = true;
    while let Some(site) = waiting.pop_front() {
        order.push(site);
        for &end in model.neighbours(site) {
            if !std::mem::replace(&mut seen[end as usize], true) {
                waiting.push_back(end as usize);
            }
        }
    }
    order
}

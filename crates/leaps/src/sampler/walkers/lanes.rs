//! Walkers that table-driven sweeps move 64 at a time, in SIMD lanes: for models of pairs and clusters.

use rayon::prelude::*;

use crate::Result;
use crate::device::lanes::LANES;
use crate::device::{Progress, SimdLevel};
use crate::mcmc::lanes::{FRESH, Plan, Tables, Tile, Updates};
use crate::sampler::walkers::{Cost, Lineage, Population, Walkers, interval_by_interval};
use crate::sampler::{Interval, Resampling, Span};
use crate::target::{Target, initial_state};

/// A tile and the energies of its walkers, `[term * 64 + lane]`.
struct Group {
    tile: Tile,
    energies: Vec<f64>,
}

/// Walkers that make `updates` single-site updates per interval, the scan going on where the last
/// interval left it.
pub struct LaneWalkers {
    plan: Plan,
    groups: Vec<Group>,
    walkers: usize,
    updates: u64,
    level: SimdLevel,
    /// Updates made so far.
    made: u64,
}

/// Bytes of threshold tables kept at once: they should stay in the second-level cache.
const TABLE_BYTES: usize = 1 << 18;
/// Updates of one tile between two looks at the progress.
const UPDATES_PER_CHECK: u64 = 1 << 22;

impl LaneWalkers {
    /// Walkers in uniformly random states of `target`, which `plan` was made for.
    pub fn new(target: &dyn Target, plan: Plan, updates: u64, population: Population) -> Self {
        let level = SimdLevel::detect();
        let Population { walkers, seed, .. } = population;
        let groups = (0..walkers.div_ceil(LANES))
            .into_par_iter()
            .map(|g| {
                let number = |lane: usize| population.number(g * LANES + lane);
                let mut tile = Tile::new(plan.sites(), seed, number(0));
                for lane in 0..LANES {
                    tile.set(lane, &initial_state(target, seed, number(lane)));
                }
                let mut energies = vec![0.0; plan.terms() * LANES];
                tile.energies(&plan, level, &mut energies);
                Group { tile, energies }
            })
            .collect();
        LaneWalkers { plan, groups, walkers, updates, level, made: 0 }
    }
}

impl Group {
    fn weigh(&self, at: Interval<'_>, log_weights: &mut [f64]) {
        for (energies, drop) in self.energies.chunks_exact(LANES).zip(at.drops()) {
            for (log_weight, energy) in log_weights.iter_mut().zip(energies) {
                *log_weight += drop * energy;
            }
        }
    }

    fn mutate(
        &mut self,
        plan: &Plan,
        tables: &Tables,
        level: SimdLevel,
        updates: Updates,
        progress: &dyn Progress,
    ) -> Result<()> {
        let Updates { from, count } = updates;
        let n = plan.sites() as u64;
        // Keeping the energies in step costs about as much per update as measuring them afresh costs
        // per site.
        let period = FRESH * n;
        if count >= n || from / period != (from + count) / period {
            let mut made = 0;
            while made < count {
                progress.check()?;
                let some = UPDATES_PER_CHECK.min(count - made);
                let part = Updates { from: from + made, count: some };
                self.tile.update(plan, tables, level, part);
                made += some;
            }
            self.tile.energies(plan, level, &mut self.energies);
        } else {
            self.tile.update_with_energies(plan, tables, level, updates, &mut self.energies);
        }
        Ok(())
    }
}

impl Walkers for LaneWalkers {
    fn walkers(&self) -> usize {
        self.walkers
    }

    fn weigh(&mut self, at: Interval<'_>, log_weights: &mut [f64]) -> Result<()> {
        for (group, log_weights) in self.groups.iter().zip(log_weights.chunks_mut(LANES)) {
            group.weigh(at, log_weights);
        }
        Ok(())
    }

    fn mutate(&mut self, at: Interval<'_>, _: &mut [f64], progress: &dyn Progress) -> Result<()> {
        let tables = Tables::new(&self.plan, at.lambda());
        let (plan, level) = (&self.plan, self.level);
        let updates = Updates { from: self.made, count: self.updates };
        self.groups
            .par_iter_mut()
            .try_for_each(|group| group.mutate(plan, &tables, level, updates, progress))?;
        self.made += self.updates;
        Ok(())
    }

    fn advance(
        &mut self,
        span: Span<'_>,
        rule: &Resampling,
        lineage: &mut Lineage,
        progress: &dyn Progress,
    ) -> Result<()> {
        if !rule.is_never() {
            return interval_by_interval(self, span, rule, lineage, progress);
        }
        let Span { grid, intervals } = span;
        let log_weights = &mut lineage.log_weights;
        // A tile stays in the first-level cache while it runs through a block of intervals, whose
        // tables all tiles share.
        let by_memory = TABLE_BYTES / self.plan.table_bytes().max(1);
        let by_time = UPDATES_PER_CHECK / self.updates.max(1) / self.groups.len().max(1) as u64;
        let block = by_memory.min(by_time.min(1 << 16) as usize).max(1);
        let mut tables: Vec<Tables> = Vec::new();
        let (plan, level, updates) = (&self.plan, self.level, self.updates);
        let mut start = intervals.start;
        while start < intervals.end {
            progress.check()?;
            let end = (start + block).min(intervals.end);
            tables.resize_with(block, Tables::default);
            tables.par_iter_mut().zip(start..end).with_min_len(16).for_each(|(tables, k)| {
                tables.set(plan, grid.lambda(k));
            });
            let from = self.made;
            self.groups.par_iter_mut().zip(log_weights.par_chunks_mut(LANES)).try_for_each(
                |(group, log_weights)| {
                    let mut from = from;
                    for (k, tables) in (start..end).zip(&tables) {
                        group.weigh(Interval { grid, k }, log_weights);
                        let some = Updates { from, count: updates };
                        group.mutate(plan, tables, level, some, progress)?;
                        from += updates;
                    }
                    Ok(())
                },
            )?;
            self.made += (end - start) as u64 * updates;
            progress.advance((end - start) as u64 * self.walkers as u64);
            start = end;
        }
        Ok(())
    }

    fn resample(&mut self, ancestors: &[u32]) -> Result<()> {
        let old: Vec<Tile> = self.groups.iter().map(|group| group.tile.clone()).collect();
        let energies: Vec<Vec<f64>> =
            self.groups.iter().map(|group| group.energies.clone()).collect();
        let terms = self.plan.terms();
        self.groups.par_iter_mut().zip(ancestors.par_chunks(LANES)).for_each(
            |(group, ancestors)| {
                group.tile.gather(&old, ancestors);
                for (lane, &ancestor) in ancestors.iter().enumerate() {
                    let (tile, from) = (ancestor as usize / LANES, ancestor as usize % LANES);
                    for term in 0..terms {
                        group.energies[term * LANES + lane] = energies[tile][term * LANES + from];
                    }
                }
            },
        );
        Ok(())
    }

    fn start_at(&mut self, states: &[u8]) -> Result<()> {
        let (plan, level, sites) = (&self.plan, self.level, self.plan.sites());
        let starts = states.par_chunks(LANES * sites);
        self.groups.par_iter_mut().zip(starts).for_each(|(group, starts)| {
            for (lane, x) in starts.chunks_exact(sites).enumerate() {
                group.tile.set(lane, x);
            }
            group.tile.energies(plan, level, &mut group.energies);
        });
        Ok(())
    }

    fn energies(&self) -> Result<Vec<f64>> {
        let terms = self.plan.terms();
        let mut out = vec![0.0; self.walkers * terms];
        for (walker, row) in out.chunks_exact_mut(terms).enumerate() {
            let energies = &self.groups[walker / LANES].energies;
            for (term, out) in row.iter_mut().enumerate() {
                *out = energies[term * LANES + walker % LANES];
            }
        }
        Ok(out)
    }

    fn states(&self) -> Result<Vec<u8>> {
        let mut out = vec![0; self.walkers * self.plan.sites()];
        for (walker, x) in out.chunks_exact_mut(self.plan.sites()).enumerate() {
            self.groups[walker / LANES].tile.get(walker % LANES, x);
        }
        Ok(out)
    }

    fn cost(&self) -> Result<Cost> {
        let energy_calls = 1.0 + self.made as f64 * self.plan.calls_per_update();
        Ok(Cost { energy_calls, network_passes: 0.0 })
    }
}

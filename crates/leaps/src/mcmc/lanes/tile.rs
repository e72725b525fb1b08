//! Hold 64 walkers site by site and update one site of all of them at a time.

use super::plan::{Code, Plan, Rule};
use super::tables::Tables;
use crate::device::lanes::{LANES, Lanes, Words, dispatch};
use crate::device::{Key, Level, Purpose, random};

/// One site's tokens in every lane.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(64))]
pub(super) struct Row(pub(super) [u8; LANES]);

/// Up to 64 walkers with consecutive numbers.
#[derive(Clone, Debug)]
pub struct Tile {
    /// Number of the walker in lane 0.
    first: u32,
    key: Key,
    rows: Vec<Row>,
    /// The current Philox block of every lane, and its (sweep, block) so that runs of updates can stop
    /// anywhere.
    words: Words,
    at: (u64, u32),
}

/// No block: forces the first one to be computed.
const NOWHERE: (u64, u32) = (u64::MAX, u32::MAX);

impl Tile {
    /// Walkers per tile.
    pub const WALKERS: usize = LANES;

    /// Walkers `first..first + 64` in state 0.
    pub fn new(sites: usize, seed: u64, first: u32) -> Self {
        Tile {
            first,
            key: random::key(seed),
            rows: vec![Row([0; LANES]); sites],
            words: [[0; LANES]; 4],
            at: NOWHERE,
        }
    }

    /// The token of `site` in lane `lane`.
    pub fn token(&self, lane: usize, site: usize) -> u8 {
        self.rows[site].0[lane]
    }

    /// Set the state of one lane.
    pub fn set(&mut self, lane: usize, x: &[u8]) {
        for (row, &token) in self.rows.iter_mut().zip(x) {
            row.0[lane] = token;
        }
    }

    /// Read the state of one lane.
    pub fn get(&self, lane: usize, x: &mut [u8]) {
        for (row, token) in self.rows.iter().zip(x) {
            *token = row.0[lane];
        }
    }

    /// Copy walker `ancestors[lane]` of the run, which `tiles` hold, into every lane.
    pub fn gather(&mut self, tiles: &[Tile], ancestors: &[u32]) {
        for (site, row) in self.rows.iter_mut().enumerate() {
            for (token, &ancestor) in row.0.iter_mut().zip(ancestors) {
                let ancestor = ancestor as usize;
                *token = tiles[ancestor / LANES].rows[site].0[ancestor % LANES];
            }
        }
    }

    /// Make `count` single-site updates; update `p` since the start of the run visits the site
    /// `p mod sites` of the scan.
    pub fn update(&mut self, plan: &Plan, tables: &Tables, level: Level, from: u64, count: u64) {
        let (tile, none) = (self, &mut []);
        dispatch!(level, run, (tile: &mut Tile, plan: &Plan, tables: &Tables, from: u64, count: u64, none: &mut [f64]));
    }

    /// As [`update`](Self::update), and keep `energies[k * 64 + lane]` of every term in step.
    pub fn update_with_energies(
        &mut self,
        plan: &Plan,
        tables: &Tables,
        level: Level,
        from: u64,
        count: u64,
        energies: &mut [f64],
    ) {
        let tile = self;
        dispatch!(level, run, (tile: &mut Tile, plan: &Plan, tables: &Tables, from: u64, count: u64, energies: &mut [f64]));
    }

    /// Write `energies[k * 64 + lane]`, every term of every lane.
    pub fn energies(&self, plan: &Plan, level: Level, energies: &mut [f64]) {
        let tile = self;
        dispatch!(level, measure, (tile: &Tile, plan: &Plan, energies: &mut [f64]));
    }

    /// The index of the surroundings of `site` in every lane.
    #[inline(always)]
    fn surroundings(&self, code: &Code, tokens: usize, ends: &[u32]) -> [u16; LANES] {
        match code {
            Code::Sum => {
                let mut sum = [0u8; LANES];
                for &end in ends {
                    let row = &self.rows[end as usize].0;
                    for lane in 0..LANES {
                        sum[lane] = sum[lane].wrapping_add(row[lane]);
                    }
                }
                widen(&sum)
            }
            Code::Bits => {
                let mut bits = [0u8; LANES];
                for &end in ends.iter().rev() {
                    let row = &self.rows[end as usize].0;
                    for lane in 0..LANES {
                        bits[lane] = (bits[lane] << 1) | row[lane];
                    }
                }
                widen(&bits)
            }
            Code::General(contribution) => {
                let mut index = [0u16; LANES];
                for (&end, contribution) in ends.iter().zip(contribution.chunks_exact(tokens)) {
                    let row = &self.rows[end as usize].0;
                    for (token, &value) in contribution.iter().enumerate().skip(1) {
                        for lane in 0..LANES {
                            index[lane] += if row[lane] == token as u8 { value } else { 0 };
                        }
                    }
                }
                index
            }
        }
    }
}

#[inline(always)]
fn widen(bytes: &[u8; LANES]) -> [u16; LANES] {
    let mut words = [0; LANES];
    for lane in 0..LANES {
        words[lane] = u16::from(bytes[lane]);
    }
    words
}

#[inline(always)]
unsafe fn run<L: Lanes>(
    tile: &mut Tile,
    plan: &Plan,
    tables: &Tables,
    from: u64,
    count: u64,
    energies: &mut [f64],
) {
    let (n, q, words) = (plan.sites as u64, plan.tokens, plan.words());
    let (mut sweep, mut position) = (from / n, (from % n) as usize);
    for _ in 0..count {
        let at = (sweep, (position * words / 4) as u32);
        if at != tile.at {
            let mut address = random::address(Purpose::Move, tile.first, sweep);
            address[0] = at.1;
            unsafe { L::philox(address, tile.key, &mut tile.words) };
            tile.at = at;
        }
        let site = plan.order[position] as usize;
        let class = &plan.classes[plan.class_of[site] as usize];
        let index = tile.surroundings(&class.code, q, plan.ends(site));
        let len = class.table_len(q, plan.rule);
        let table = &tables.thresholds[class.offset..];
        let word = &tile.words[position * words % 4];
        let old = tile.rows[site].0;
        let mut new = [0u8; LANES];
        match plan.rule {
            Rule::HeatBath => {
                for token in 1..q {
                    let mut above = [0u8; LANES];
                    let thresholds = &table[(token - 1) * len..token * len];
                    unsafe { L::below(thresholds, &index, word, &mut above) };
                    for lane in 0..LANES {
                        new[lane] += above[lane];
                    }
                }
            }
            Rule::Metropolis if q == 2 => {
                let mut entry = index;
                for lane in 0..LANES {
                    entry[lane] = 2 * entry[lane] + u16::from(old[lane]);
                }
                unsafe { L::below(&table[..len], &entry, word, &mut new) };
                for lane in 0..LANES {
                    new[lane] ^= old[lane];
                }
            }
            Rule::Metropolis => {
                let choice = &tile.words[position * words % 4 + 1];
                let mut proposal = [0u8; LANES];
                let mut entry = index;
                for lane in 0..LANES {
                    let other = ((u64::from(choice[lane]) * (q as u64 - 1)) >> 32) as u8;
                    proposal[lane] = other + u8::from(other >= old[lane]);
                    entry[lane] = (entry[lane] * q as u16 + u16::from(old[lane])) * q as u16
                        + u16::from(proposal[lane]);
                }
                let mut accept = [0u8; LANES];
                unsafe { L::below(&table[..len], &entry, word, &mut accept) };
                for lane in 0..LANES {
                    new[lane] = if accept[lane] == 1 { proposal[lane] } else { old[lane] };
                }
            }
        }
        tile.rows[site].0 = new;
        for (k, energies) in energies.chunks_exact_mut(LANES).enumerate() {
            let local = &class.local[k * class.entries * q..(k + 1) * class.entries * q];
            for lane in 0..LANES {
                let row = index[lane] as usize * q;
                energies[lane] += local[row + new[lane] as usize] - local[row + old[lane] as usize];
            }
        }
        position += 1;
        if position == plan.sites {
            position = 0;
            sweep += 1;
        }
    }
}

#[inline(always)]
unsafe fn measure<L: Lanes>(tile: &Tile, plan: &Plan, energies: &mut [f64]) {
    let q = plan.tokens;
    for (energies, &constant) in energies.chunks_exact_mut(LANES).zip(&plan.constants) {
        energies.fill(constant);
    }
    for site in 0..plan.sites {
        let class = &plan.classes[plan.class_of[site] as usize];
        let index = tile.surroundings(&class.code, q, plan.ends(site));
        let row = &tile.rows[site].0;
        for (k, energies) in energies.chunks_exact_mut(LANES).enumerate() {
            let share = &class.share[k * class.entries * q..(k + 1) * class.entries * q];
            for lane in 0..LANES {
                energies[lane] += share[index[lane] as usize * q + row[lane] as usize];
            }
        }
    }
}

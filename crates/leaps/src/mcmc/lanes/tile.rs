//! Tiles of 64 walkers, held site by site; one site of all of them is updated at a time.

use super::plan::{Code, Plan, Rule};
use super::tables::Tables;
use crate::device::lanes::{LANES, Lanes, Words};
use crate::device::level::dispatch;
use crate::device::{Key, Purpose, SimdLevel, philox4x32, random};

/// One site's values in every lane.
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

/// Single-site updates one after the other; update `p` since the start of a run visits the site `p mod sites` of the scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Updates {
    /// The first of them.
    pub from: u64,
    /// How many.
    pub count: u64,
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

    /// Number of sites.
    pub fn sites(&self) -> usize {
        self.rows.len()
    }

    /// The value of `site` in lane `lane`.
    pub fn value(&self, lane: usize, site: usize) -> u8 {
        self.rows[site].0[lane]
    }

    /// Set the state of one lane.
    pub fn set(&mut self, lane: usize, x: &[u8]) {
        for (row, &site_value) in self.rows.iter_mut().zip(x) {
            row.0[lane] = site_value;
        }
    }

    /// Read the state of one lane.
    pub fn get(&self, lane: usize, x: &mut [u8]) {
        for (row, site_value) in self.rows.iter().zip(x) {
            *site_value = row.0[lane];
        }
    }

    /// Exchange the states of the lanes where `lanes` is 255 with another tile; 0 leaves a lane as it is.
    pub fn exchange(&mut self, other: &mut Tile, lanes: &[u8; LANES]) {
        for (own, other) in self.rows.iter_mut().zip(&mut other.rows) {
            for ((a, b), lane) in own.0.iter_mut().zip(&mut other.0).zip(lanes) {
                let change = (*a ^ *b) & lane;
                *a ^= change;
                *b ^= change;
            }
        }
    }

    /// How many sites have every value, `counts[value * 64 + lane]`.
    pub fn counts(&self, q: usize, counts: &mut [u32]) {
        counts[..q * LANES].fill(0);
        // Bytes hold the counts of 255 sites, so that many lanes are counted at once.
        for rows in self.rows.chunks(255) {
            for (value, counts) in counts.chunks_exact_mut(LANES).take(q).enumerate() {
                let mut few = [0u8; LANES];
                for row in rows {
                    for (few, own) in few.iter_mut().zip(&row.0) {
                        *few += u8::from(*own == value as u8);
                    }
                }
                counts.iter_mut().zip(few).for_each(|(count, few)| *count += u32::from(few));
            }
        }
    }

    /// Copy walker `ancestors[lane]` of the run, which `tiles` hold, into every lane.
    pub fn gather(&mut self, tiles: &[Tile], ancestors: &[u32]) {
        for (site, row) in self.rows.iter_mut().enumerate() {
            for (site_value, &ancestor) in row.0.iter_mut().zip(ancestors) {
                let ancestor = ancestor as usize;
                *site_value = tiles[ancestor / LANES].rows[site].0[ancestor % LANES];
            }
        }
    }

    /// Make some updates.
    pub fn update(&mut self, plan: &Plan, tables: &Tables, level: SimdLevel, updates: Updates) {
        self.update_with_energies(plan, tables, level, updates, &mut []);
    }

    /// As [`update`](Self::update), and keep `energies[k * 64 + lane]` of every term in step.
    pub fn update_with_energies(
        &mut self,
        plan: &Plan,
        tables: &Tables,
        level: SimdLevel,
        updates: Updates,
        energies: &mut [f64],
    ) {
        let tile = self;
        dispatch!(level, run, (tile: &mut Tile, plan: &Plan, tables: &Tables, updates: Updates, energies: &mut [f64]));
    }

    /// Write `energies[k * 64 + lane]`, every term of every lane.
    pub fn energies(&self, plan: &Plan, level: SimdLevel, energies: &mut [f64]) {
        let tile = self;
        dispatch!(level, measure, (tile: &Tile, plan: &Plan, energies: &mut [f64]));
    }

    /// The address of the current block in lane 0.
    #[inline(always)]
    fn address(&self) -> [u32; 4] {
        let mut address = random::address(Purpose::Move, self.first, self.at.0);
        address[0] = self.at.1;
        address
    }

    /// Sixteen more bits behind those of `slot`, for one lane: from a block of their own, whose number no
    /// sweep reaches.
    #[cold]
    fn further(&self, lane: usize, slot: usize) -> u16 {
        let mut address = self.address();
        address[0] |= 1 << 31;
        address[2] = address[2].wrapping_add(lane as u32);
        (philox4x32(address, self.key)[slot / 2] >> (16 * (slot as u32 % 2))) as u16
    }

    /// The index of the surroundings of a site in every lane.
    #[inline(always)]
    unsafe fn surroundings<L: Lanes>(&self, code: &Code, q: usize, ends: &[u32]) -> L::Halves {
        // SAFETY: the caller has the instructions of the level.
        let row = |end: &u32| unsafe { L::load(&self.rows[*end as usize].0) };
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            match code {
                Code::Sum => {
                    L::widen(ends.iter().fold(L::zero(), |sum, end| L::add(sum, row(end))))
                }
                Code::Bits => L::widen(
                    ends.iter()
                        .rev()
                        .fold(L::zero(), |bits, end| L::add(L::add(bits, bits), row(end))),
                ),
                Code::General(contribution) => {
                    let mut index = L::widen(L::zero());
                    for (end, contribution) in ends.iter().zip(contribution.chunks_exact(q)) {
                        let row = row(end);
                        for (site_value, &value) in contribution.iter().enumerate() {
                            if value != 0 {
                                index = L::add_where(index, row, site_value as u8, value);
                            }
                        }
                    }
                    index
                }
            }
        }
    }
}

/// `less[lane] = (digits, further digits) < threshold` in 32 bits, of which the lower 16 are asked of `low`
/// only where the upper 16 tie: once in a thousand calls.
#[inline(always)]
unsafe fn below<L: Lanes>(
    (high, low): (&[u16], &[u16]),
    index: L::Halves,
    digits: L::Halves,
    further: impl Fn(usize) -> u16,
) -> L::Bytes {
    // SAFETY: the caller has the instructions of the level. Tables are padded to multiples of 32, beyond every index of
    // the surroundings.
    unsafe {
        let (less, mut ties) = L::below(high, index, digits);
        if ties == 0 {
            return less;
        }
        let (mut mended, mut at) = ([0; LANES], [0; LANES]);
        L::store(less, &mut mended);
        L::store_halves(index, &mut at);
        while ties != 0 {
            let lane = ties.trailing_zeros() as usize;
            mended[lane] = u8::from(further(lane) < low[at[lane] as usize]);
            ties &= ties - 1;
        }
        L::load(&mended)
    }
}

#[inline(always)]
unsafe fn run<L: Lanes>(
    tile: &mut Tile,
    plan: &Plan,
    tables: &Tables,
    Updates { from, count }: Updates,
    energies: &mut [f64],
) {
    let (n, q, per_block) = (plan.sites as u64, plan.q, plan.updates_per_block());
    let (mut sweep, mut position) = (from / n, (from % n) as usize);
    for _ in 0..count {
        let at = (sweep, (position / per_block) as u32);
        if at != tile.at {
            tile.at = at;
            // SAFETY: the caller has the instructions of the level.
            unsafe { L::philox(tile.address(), tile.key, &mut tile.words) };
        }
        let site = plan.order[position] as usize;
        let class = &plan.classes[plan.class_of[site] as usize];
        // SAFETY: the caller has the instructions of the level.
        let index = unsafe { tile.surroundings::<L>(&class.code, q, plan.ends(site)) };
        let len = class.table_len(q, plan.rule);
        let table = |t: usize| {
            let range = class.offset + t * len..class.offset + (t + 1) * len;
            (&tables.high[range.clone()], &tables.low[range])
        };
        let slot = position % per_block;
        let further = |lane| tile.further(lane, slot);
        let before = tile.rows[site].0;
        // SAFETY: the caller has the instructions of the level. Tables are padded to multiples of 32, beyond every index of
        // the surroundings.
        let new = unsafe {
            let old = L::load(&before);
            match plan.rule {
                Rule::HeatBath => {
                    let digits = L::half(&tile.words[slot / 2], slot % 2 == 1);
                    let mut new = L::zero();
                    for site_value in 1..q {
                        new =
                            L::add(new, below::<L>(table(site_value - 1), index, digits, further));
                    }
                    new
                }
                Rule::Metropolis if q == 2 => {
                    let digits = L::half(&tile.words[slot / 2], slot % 2 == 1);
                    let entry = L::scale_add(index, 2, L::widen(old));
                    L::xor(old, below::<L>(table(0), entry, digits, further))
                }
                Rule::Metropolis => {
                    // word (q - 1) = choice 2^32 + fraction, and the fraction is uniform again.
                    let (words, others) = (&tile.words[slot], q as u32 - 1);
                    let (choice, digits) = L::propose(words, others);
                    let proposal = L::add(choice, L::at_least(choice, old));
                    let entry = L::scale_add(index, q as u16, L::widen(old));
                    let entry = L::scale_add(entry, q as u16, L::widen(proposal));
                    let rest = |lane: usize| words[lane].wrapping_mul(others) as u16;
                    L::select(below::<L>(table(0), entry, digits, rest), old, proposal)
                }
            }
        };
        let row = &mut tile.rows[site].0;
        // SAFETY: the caller has the instructions of the level.
        unsafe { L::store(new, row) };
        if !energies.is_empty() {
            let mut at = [0; LANES];
            // SAFETY: the caller has the instructions of the level.
            unsafe { L::store_halves(index, &mut at) };
            for (k, energies) in energies.chunks_exact_mut(LANES).enumerate() {
                let local = &class.local[k * class.entries * q..(k + 1) * class.entries * q];
                for lane in 0..LANES {
                    let entry = at[lane] as usize * q;
                    energies[lane] +=
                        local[entry + row[lane] as usize] - local[entry + before[lane] as usize];
                }
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
    let q = plan.q;
    for (energies, &constant) in energies.chunks_exact_mut(LANES).zip(&plan.constants) {
        energies.fill(constant);
    }
    for site in 0..plan.sites {
        let class = &plan.classes[plan.class_of[site] as usize];
        let mut index = [0; LANES];
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let halves = tile.surroundings::<L>(&class.code, q, plan.ends(site));
            L::store_halves(halves, &mut index);
        }
        let row = &tile.rows[site].0;
        for (k, energies) in energies.chunks_exact_mut(LANES).enumerate() {
            let share = &class.share[k * class.entries * q..(k + 1) * class.entries * q];
            for lane in 0..LANES {
                energies[lane] += share[index[lane] as usize * q + row[lane] as usize];
            }
        }
    }
}

//! Tiles of 64 walkers, held site by site; one site of all of them is updated at a time.

use super::counts::Digit;
use super::plan::{Class, Code, Plan, Rule};
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
    scratch: Scratch,
}

/// Numbers of the site that is updated, where chances are products of factors.
#[derive(Clone, Debug, Default)]
struct Scratch {
    /// The digits of its surroundings.
    places: Vec<[u8; LANES]>,
    /// `[value][lane]`.
    weights: Vec<[f64; LANES]>,
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
            scratch: Scratch::default(),
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

    /// The index of the surroundings of a site whose class has thresholds.
    #[cfg(test)]
    pub(super) fn index(&self, plan: &Plan, site: usize) -> [u16; LANES] {
        use crate::device::level::Portable;
        let class = &plan.classes[plan.class_of[site] as usize];
        // SAFETY: plain code runs everywhere.
        unsafe { self.surroundings::<Portable>(class, plan.q, plan.ends(site)) }
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

    /// A digit of the surroundings of a site in every lane.
    #[inline(always)]
    unsafe fn digit<L: Lanes>(&self, digit: &Digit, q: usize, ends: &[u32]) -> L::Bytes {
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let mut sum = L::zero();
            for part in &digit.parts {
                let mut combination = L::zero();
                for (place, end) in ends[part.from..][..part.others].iter().enumerate() {
                    if place > 0 {
                        combination = times::<L>(combination, q);
                    }
                    let row = L::load(&self.rows[*end as usize].0);
                    combination = if place > 0 { L::add(combination, row) } else { row };
                }
                if !part.plain {
                    combination = L::look_up(&part.adds, combination);
                }
                sum = L::add(sum, combination);
            }
            sum
        }
    }

    /// All digits of the surroundings of a site.
    #[inline(always)]
    unsafe fn places<L: Lanes>(
        &self,
        digits: &[Digit],
        q: usize,
        site: (&Plan, usize),
        places: &mut Vec<[u8; LANES]>,
    ) {
        places.resize(digits.len(), [0; LANES]);
        for (digit, place) in digits.iter().zip(places) {
            // SAFETY: the caller has the instructions of the level.
            unsafe { L::store(self.digit::<L>(digit, q, site.0.ends(site.1)), place) };
        }
    }

    /// The index of the surroundings of a site in every lane.
    #[inline(always)]
    unsafe fn surroundings<L: Lanes>(&self, class: &Class, q: usize, ends: &[u32]) -> L::Halves {
        if let Some(counts) = &class.counts {
            // SAFETY: the caller has the instructions of the level.
            unsafe {
                let mut digits = counts.digits.iter().rev();
                let Some(last) = digits.next() else { return L::widen(L::zero()) };
                let mut index = L::widen(self.digit::<L>(last, q, ends));
                for digit in digits {
                    let own = L::widen(self.digit::<L>(digit, q, ends));
                    index = L::scale_add(index, digit.entries as u16, own);
                }
                return index;
            }
        }
        let code = &class.code;
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

/// Bytes times a number.
#[inline(always)]
unsafe fn times<L: Lanes>(bytes: L::Bytes, factor: usize) -> L::Bytes {
    // SAFETY: the caller has the instructions of the level.
    unsafe {
        let (mut product, mut power, mut left) = (L::zero(), bytes, factor);
        while left > 0 {
            if left % 2 == 1 {
                product = L::add(product, power);
            }
            power = L::add(power, power);
            left /= 2;
        }
        product
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
        if class.factors.is_some() {
            // SAFETY: the caller has the instructions of the level.
            unsafe { by_factors::<L>(tile, plan, tables, (site, position % per_block), energies) };
            position += 1;
            if position == plan.sites {
                position = 0;
                sweep += 1;
            }
            continue;
        }
        // SAFETY: the caller has the instructions of the level.
        let index = unsafe { tile.surroundings::<L>(class, q, plan.ends(site)) };
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

/// Update a site whose class has factors, with the random digits of `slot`.
#[inline(always)]
unsafe fn by_factors<L: Lanes>(
    tile: &mut Tile,
    plan: &Plan,
    tables: &Tables,
    (site, slot): (usize, usize),
    energies: &mut [f64],
) {
    let (number, q) = (plan.class_of[site], plan.q);
    let class = &plan.classes[number as usize];
    let (Some(own), Some(counts)) = (tables.factors.of(plan, number), &class.counts) else {
        return;
    };
    let mut scratch = std::mem::take(&mut tile.scratch);
    scratch.weights.resize(q, [0.0; LANES]);
    let before = tile.rows[site].0;
    let mut digits = [0; LANES];
    // SAFETY: the caller has the instructions of the level.
    unsafe {
        tile.places::<L>(&counts.digits, q, (plan, site), &mut scratch.places);
        let places = &scratch.places;
        let further = |lane| tile.further(lane, slot);
        let new = match plan.rule {
            Rule::HeatBath => {
                let half = L::half(&tile.words[slot / 2], slot % 2 == 1);
                L::store_halves(half, &mut digits);
                own.draw(places, &digits, &mut scratch.weights, further)
            }
            Rule::Metropolis if q == 2 => {
                let half = L::half(&tile.words[slot / 2], slot % 2 == 1);
                L::store_halves(half, &mut digits);
                let mut new = before;
                new.iter_mut().for_each(|value| *value ^= 1);
                let accepted = own.accept(places, (&before, &new), &digits, further);
                chosen(&accepted, before, &new)
            }
            Rule::Metropolis => {
                let (words, others) = (&tile.words[slot], q as u32 - 1);
                let (choice, half) = L::propose(words, others);
                L::store_halves(half, &mut digits);
                let mut new = [0; LANES];
                L::store(L::add(choice, L::at_least(choice, L::load(&before))), &mut new);
                let rest = |lane: usize| words[lane].wrapping_mul(others) as u16;
                let accepted = own.accept(places, (&before, &new), &digits, rest);
                chosen(&accepted, before, &new)
            }
        };
        tile.rows[site].0 = new;
    }
    let new = &tile.rows[site].0;
    for (k, energies) in energies.chunks_exact_mut(LANES).enumerate() {
        for lane in 0..LANES {
            let of = |value: u8| {
                let at = (k * q + value as usize, lane);
                Class::sum_of_digits(&counts.digits, &scratch.places, |d| &d.local, at)
            };
            energies[lane] += of(new[lane]) - of(before[lane]);
        }
    }
    tile.scratch = scratch;
}

/// `new` where `accepted` is 1, else `old`.
#[inline(always)]
fn chosen(accepted: &[u8; LANES], mut old: [u8; LANES], new: &[u8; LANES]) -> [u8; LANES] {
    for lane in 0..LANES {
        old[lane] = if accepted[lane] == 1 { new[lane] } else { old[lane] };
    }
    old
}

#[inline(always)]
unsafe fn measure<L: Lanes>(tile: &Tile, plan: &Plan, energies: &mut [f64]) {
    let q = plan.q;
    let mut places = Vec::new();
    for (energies, &constant) in energies.chunks_exact_mut(LANES).zip(&plan.constants) {
        energies.fill(constant);
    }
    for site in 0..plan.sites {
        let class = &plan.classes[plan.class_of[site] as usize];
        let row = &tile.rows[site].0;
        if let (Some(_), Some(counts)) = (class.factors, &class.counts) {
            // SAFETY: the caller has the instructions of the level.
            unsafe { tile.places::<L>(&counts.digits, q, (plan, site), &mut places) };
            for (k, energies) in energies.chunks_exact_mut(LANES).enumerate() {
                for lane in 0..LANES {
                    let at = (k * q + row[lane] as usize, lane);
                    energies[lane] +=
                        Class::sum_of_digits(&counts.digits, &places, |d| &d.share, at);
                }
            }
            continue;
        }
        let mut index = [0; LANES];
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let halves = tile.surroundings::<L>(class, q, plan.ends(site));
            L::store_halves(halves, &mut index);
        }
        for (k, energies) in energies.chunks_exact_mut(LANES).enumerate() {
            let share = &class.share[k * class.entries * q..(k + 1) * class.entries * q];
            for lane in 0..LANES {
                energies[lane] += share[index[lane] as usize * q + row[lane] as usize];
            }
        }
    }
}

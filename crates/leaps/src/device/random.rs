//! Random choices from an addressed stream.
//!
//! Kernels ask for *choices* ([`Draw`]) rather than for numbers. A [`Stream`] answers them with
//! Philox words; a test can answer them with every possibility in turn and so obtain a kernel's
//! exact transition matrix from the very code that runs.

use super::philox::{Key, ROUNDS, bump, philox4x32, round};

/// What a stream's numbers are for: streams of different purposes never share an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Purpose {
    /// Initial states.
    Initial = 1,
    /// Moves of walkers or chains.
    Move = 2,
    /// Resampling.
    Resample = 3,
    /// Quenched disorder (spin-glass couplings).
    Disorder = 4,
    /// Reference states of statistics (for example DISCS' x0).
    Statistic = 5,
    /// Exchanges between replicas.
    Exchange = 6,
    /// Initial parameters of networks.
    Parameters = 7,
    /// Jumps of walkers that follow a network.
    Jump = 8,
    /// Reference states of training.
    Reference = 9,
    /// Independent samples of an exact solution.
    Exact = 10,
    /// States of infinite temperature beside a ladder of temperatures.
    Uniform = 11,
}

/// A source of random choices.
pub trait Draw {
    /// A uniform choice among `0..n`; `n` is at least 1.
    fn below(&mut self, n: usize) -> usize;

    /// True with probability `p`; values outside [0, 1] count as the nearer bound.
    fn chance(&mut self, p: f64) -> bool;

    /// True with probability `threshold / 2^64`. A choice made millions of times with one
    /// probability is cheapest this way; see [`threshold`].
    #[inline]
    fn chance_bits(&mut self, threshold: u64) -> bool {
        self.chance(threshold as f64 / TWO_64)
    }

    /// Index `i` with probability `weights[i] / sum(weights)`; the weights are finite, not
    /// negative, and not all zero.
    fn pick(&mut self, weights: &[f64]) -> usize;
}

const TWO_64: f64 = 18_446_744_073_709_551_616.0;

/// The threshold for [`Draw::chance_bits`] of a probability: exact to 2^-53, as `p` itself.
#[inline]
pub fn threshold(p: f64) -> u64 {
    (p * TWO_64) as u64 // saturates at both ends
}

/// A stream of random numbers at the address (seed, purpose, walker, step).
///
/// Cheap to make: open a new one for every step of every walker.
#[derive(Clone, Debug)]
pub struct Stream {
    key: Key,
    counter: [u32; 4],
    words: [u32; AHEAD],
    used: usize,
    drawn: usize,
}

/// Most words drawn ahead. The first block of a stream is drawn alone, since many steps need no
/// more; then four at a time, which the CPU can work on side by side.
const AHEAD: usize = 16;

/// Largest step that an address can hold.
const MAX_STEP: u64 = 1 << 56;

/// The counter of block 0 at (purpose, walker, step).
#[inline(always)]
pub(crate) fn address(purpose: Purpose, walker: u32, step: u64) -> [u32; 4] {
    debug_assert!(step < MAX_STEP);
    [0, step as u32, walker, (((step >> 32) as u32) << 8) | purpose as u32]
}

/// The key of a seed.
#[inline(always)]
pub(crate) fn key(seed: u64) -> Key {
    [seed as u32, (seed >> 32) as u32]
}

impl Stream {
    /// The stream at (seed, purpose, walker, step); `step` below 2^56.
    pub fn new(seed: u64, purpose: Purpose, walker: u32, step: u64) -> Self {
        let counter = address(purpose, walker, step);
        Stream { key: key(seed), counter, words: [0; AHEAD], used: 0, drawn: 0 }
    }

    /// Go to block `number` of the stream: its four words come next. Choices that many CPUs make side by side
    /// draw from blocks of their own.
    #[inline]
    pub fn go_to(&mut self, number: u32) {
        self.counter[0] = number;
        (self.used, self.drawn) = (0, 0);
    }

    /// The next 32 random bits.
    #[inline]
    pub fn word(&mut self) -> u32 {
        if self.used == self.drawn {
            self.refill();
        }
        let word = self.words[self.used % AHEAD];
        self.used += 1;
        word
    }

    #[inline(never)]
    fn refill(&mut self) {
        let ahead = if self.drawn == 0 { 4 } else { AHEAD };
        if ahead == 4 {
            self.words[..4].copy_from_slice(&philox4x32(self.counter, self.key));
        } else {
            self.words = four_blocks(self.counter, self.key);
        }
        self.counter[0] = self.counter[0].wrapping_add(ahead as u32 / 4);
        (self.used, self.drawn) = (0, ahead);
    }

    /// A number in [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        let bits = (u64::from(self.word()) << 32) | u64::from(self.word());
        (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A standard normal number (Box-Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// The words of four blocks in a row, as [`philox4x32`] gives them one by one.
fn four_blocks(counter: [u32; 4], key: Key) -> [u32; AHEAD] {
    let mut lanes: [[u32; 4]; 4] = std::array::from_fn(|word| match word {
        0 => std::array::from_fn(|lane| counter[0].wrapping_add(lane as u32)),
        _ => [counter[word]; 4],
    });
    let mut key = key;
    for _ in 0..ROUNDS {
        let [a, b, c, d] = lanes;
        for lane in 0..4 {
            let mixed = round([a[lane], b[lane], c[lane], d[lane]], key);
            for word in 0..4 {
                lanes[word][lane] = mixed[word];
            }
        }
        key = bump(key);
    }
    std::array::from_fn(|k| lanes[k % 4][k / 4])
}

impl Draw for Stream {
    #[inline]
    fn below(&mut self, n: usize) -> usize {
        debug_assert!(n >= 1 && n <= u32::MAX as usize);
        // Lemire's method: the rejected sliver makes the choice exactly uniform.
        let n = n as u32;
        let mut product = u64::from(self.word()) * u64::from(n);
        if (product as u32) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u32) < threshold {
                product = u64::from(self.word()) * u64::from(n);
            }
        }
        (product >> 32) as usize
    }

    #[inline]
    fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// The second word is drawn only if the first leaves the answer open, once in 2^32 times.
    #[inline]
    fn chance_bits(&mut self, threshold: u64) -> bool {
        let (word, high) = (self.word(), (threshold >> 32) as u32);
        if word == high { self.word() < threshold as u32 } else { word < high }
    }

    fn pick(&mut self, weights: &[f64]) -> usize {
        let total: f64 = weights.iter().sum();
        let mut left = self.uniform() * total;
        let mut last = 0;
        for (i, &weight) in weights.iter().enumerate() {
            if weight > 0.0 {
                if left < weight {
                    return i;
                }
                left -= weight;
                last = i;
            }
        }
        last // rounding can leave a sliver past the end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_do_not_collide() {
        let mut seen = std::collections::HashSet::new();
        for purpose in [Purpose::Initial, Purpose::Move, Purpose::Resample] {
            for walker in [0, 1, u32::MAX] {
                for step in [0, 1, 1 << 32, (1 << 56) - 1] {
                    assert!(seen.insert(address(purpose, walker, step)));
                }
            }
        }
    }

    #[test]
    fn words_are_the_blocks_in_order() {
        let mut stream = Stream::new(9, Purpose::Move, 3, 1 << 40);
        let mut counter = address(Purpose::Move, 3, 1 << 40);
        for block in 0..23 {
            counter[0] = block;
            let words: [u32; 4] = std::array::from_fn(|_| stream.word());
            assert_eq!(words, philox4x32(counter, key(9)));
        }
        for block in [7, 7, 0, 40] {
            stream.go_to(block);
            for block in block..block + 3 {
                counter[0] = block;
                let words: [u32; 4] = std::array::from_fn(|_| stream.word());
                assert_eq!(words, philox4x32(counter, key(9)));
            }
        }
    }

    #[test]
    fn choices_have_the_stated_frequencies() {
        let mut stream = Stream::new(7, Purpose::Move, 0, 0);
        let n = 120_000;
        let (mut below, mut pick, mut chance) = ([0; 3], [0; 4], 0);
        for _ in 0..n {
            below[stream.below(3)] += 1;
            pick[stream.pick(&[1.0, 0.0, 3.0, 2.0])] += 1;
            chance += usize::from(stream.chance(0.25));
        }
        // |z| < 5 detects a probability off by 0.7 %.
        let z = |count: usize, p: f64| {
            (count as f64 - n as f64 * p) / (n as f64 * p * (1.0 - p)).sqrt()
        };
        assert!(below.iter().all(|&c| z(c, 1.0 / 3.0).abs() < 5.0));
        assert_eq!(pick[1], 0);
        assert!(z(pick[0], 1.0 / 6.0).abs() < 5.0 && z(pick[2], 0.5).abs() < 5.0);
        assert!(z(chance, 0.25).abs() < 5.0);
        let bits = threshold(0.3);
        let often = (0..n).filter(|_| stream.chance_bits(bits)).count();
        assert!(z(often, 0.3).abs() < 5.0);
        assert!((0..1000).all(|_| stream.chance_bits(threshold(1.0)) && !stream.chance_bits(0)));
    }

    #[test]
    fn normal_numbers_have_unit_variance() {
        let mut stream = Stream::new(7, Purpose::Disorder, 0, 0);
        let n = 100_000;
        let (mut sum, mut square) = (0.0, 0.0);
        for _ in 0..n {
            let x = stream.normal();
            sum += x;
            square += x * x;
        }
        let n = n as f64;
        assert!((sum / n.sqrt()).abs() < 5.0);
        assert!(((square - n) / (2.0 * n).sqrt()).abs() < 5.0);
    }
}

//! Exchanges of values that leave tables of pair energies as they are.

/// What counts as rounding, as a part of the largest energy of a table.
const ROUNDING: f64 = 1e-13;

/// Up to so many values every exchange is tried.
const FEW: usize = 6;

/// A table of pair energies, `[s * q + t]`, without what the values of either site cost by themselves.
#[derive(Clone, Debug)]
pub(super) struct PairTable {
    /// The rest, with no mean over either site.
    pub energies: Vec<f64>,
    /// What the values of the first and of the second site cost; empty if nothing.
    pub alone: [Vec<f64>; 2],
    /// Differences below this are rounding.
    pub rounding: f64,
}

impl PairTable {
    pub fn new(energies: &[f64], q: usize) -> Self {
        let scale = energies.iter().fold(0.0, |most: f64, e| most.max(e.abs()));
        let rounding = ROUNDING * scale;
        let mean = energies.iter().sum::<f64>() / (q * q) as f64;
        let of = |at: &dyn Fn(usize, usize) -> usize| -> Vec<f64> {
            let one = |s| (0..q).map(|t| energies[at(s, t)]).sum::<f64>() / q as f64 - mean;
            (0..q).map(one).collect()
        };
        let alone = [of(&|s, t| s * q + t), of(&|t, s| s * q + t)];
        if alone.iter().flatten().all(|cost| cost.abs() <= rounding) {
            let alone = [Vec::new(), Vec::new()];
            return PairTable { energies: energies.to_vec(), alone, rounding };
        }
        let rest = |pair: usize| energies[pair] - alone[0][pair / q] - alone[1][pair % q];
        let rest = (0..q * q).map(rest).collect();
        PairTable { energies: rest, alone, rounding }
    }

    /// Whether $V(Rs, Rt) = V(s, t)$ for all values.
    pub fn keeps(&self, exchange: &[u8]) -> bool {
        let q = exchange.len();
        let same = |s: usize, t: usize| {
            let (to, from) = (exchange[s] as usize * q + exchange[t] as usize, s * q + t);
            (self.energies[to] - self.energies[from]).abs() <= self.rounding
        };
        let moved = (0..q).filter(|&s| exchange[s] as usize != s);
        moved.into_iter().all(|s| (0..q).all(|t| same(s, t) && same(t, s)))
    }
}

/// Exchanges of `q` values, all their own inverses: every one of few values; of many those of two values, reflections and half a turn of a clock, and
/// those of the bits of numbers.
pub(super) fn candidates(q: usize) -> Vec<Vec<u8>> {
    let identity: Vec<u8> = (0..q).map(|s| s as u8).collect();
    let mut found = Vec::new();
    if q <= FEW {
        complete(identity.clone(), 0, &mut found);
    } else {
        let swap = |a: usize, b: usize| {
            let mut swapped = identity.clone();
            swapped.swap(a, b);
            swapped
        };
        found.extend((0..q).flat_map(|b| (0..b).map(move |a| (a, b))).map(|(a, b)| swap(a, b)));
        let map = |to: &dyn Fn(usize) -> usize| (0..q).map(|s| to(s) as u8).collect();
        found.extend((0..q).map(|k| map(&|s| (q + k - s) % q)));
        if q.is_multiple_of(2) {
            found.push(map(&|s| (s + q / 2) % q));
        }
        if q.is_power_of_two() {
            found.extend((1..q).map(|bits| map(&|s| s ^ bits)));
        }
    }
    found.sort_unstable();
    found.dedup();
    found.retain(|exchange| *exchange != identity);
    found
}

/// All ways to pair the values from `from` on, of which those before are settled.
fn complete(exchange: Vec<u8>, from: usize, found: &mut Vec<Vec<u8>>) {
    let Some(s) = (from..exchange.len()).find(|&s| exchange[s] as usize == s) else {
        return found.push(exchange);
    };
    complete_next(&exchange, s, found);
    for t in s + 1..exchange.len() {
        if exchange[t] as usize == t {
            let mut paired = exchange.clone();
            paired.swap(s, t);
            complete_next(&paired, s, found);
        }
    }
}

fn complete_next(exchange: &[u8], s: usize, found: &mut Vec<Vec<u8>>) {
    complete(exchange.to_vec(), s + 1, found);
}

/// Whether the exchanges, one after the other, make any value of any other.
pub(super) fn join(exchanges: &[Vec<u8>], q: usize) -> bool {
    let mut reached = vec![false; q];
    reached[0] = true;
    let mut waiting = vec![0];
    while let Some(s) = waiting.pop() {
        for exchange in exchanges {
            let t = exchange[s] as usize;
            if !std::mem::replace(&mut reached[t], true) {
                waiting.push(t);
            }
        }
    }
    reached.iter().all(|&reached| reached)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_are_their_own_inverses_and_all_there() {
        for (q, count) in
            [(2, 1), (3, 3), (4, 9), (5, 25), (6, 75), (7, 21 + 7), (8, 28 + 8 + 1 + 4)]
        {
            let found = candidates(q);
            assert_eq!(found.len(), count, "{q}");
            for exchange in &found {
                assert!((0..q).all(|s| exchange[exchange[s] as usize] as usize == s));
                assert!((0..q).any(|s| exchange[s] as usize != s));
            }
        }
        assert!(candidates(255).len() >= 255 * 127);
    }

    #[test]
    fn clocks_have_their_reflections() {
        for q in [5, 6, 9, 12] {
            let hour = |s: usize, t: usize| {
                let apart = s.abs_diff(t).min(q - s.abs_diff(t));
                -(std::f64::consts::TAU * apart as f64 / q as f64).cos()
            };
            let table: Vec<f64> = (0..q * q).map(|pair| hour(pair / q, pair % q)).collect();
            let table = PairTable::new(&table, q);
            let own: Vec<_> = candidates(q).into_iter().filter(|r| table.keeps(r)).collect();
            assert_eq!(own.len(), q + usize::from(q % 2 == 0), "{q}");
            assert!(join(&own, q));
        }
    }

    #[test]
    fn what_values_cost_alone_is_no_part_of_pairs() {
        // -s t of n = 0, 1, 2 is that of spins -1, 0, 1 but for site energies.
        let table: Vec<f64> = (0..9).map(|pair| -((pair / 3 * (pair % 3)) as f64)).collect();
        let table = PairTable::new(&table, 3);
        let spins = |pair: usize| -((pair / 3) as f64 - 1.0) * ((pair % 3) as f64 - 1.0);
        let shift = table.energies[4];
        for pair in 0..9 {
            assert!((table.energies[pair] - shift - spins(pair)).abs() < 1e-12);
        }
        let own: Vec<_> = candidates(3).into_iter().filter(|r| table.keeps(r)).collect();
        assert_eq!(own, [vec![2, 1, 0]]);
        assert!(!join(&own, 3));
    }
}

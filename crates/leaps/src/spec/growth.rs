//! The smaller lattices that training goes through first, as far as a configuration determines them.
//!
//! Planes of Ising and Potts models with sides of at least 21 grow without being asked: decision 12. With `train.grow = true` every uniform model grows
//! that a hollow network serves, as long as the smaller lattice has room for the network's depth, which is the same on all of them.

use super::RunSpec;
use crate::net::NetworkKind;
use crate::target::{Boundary, Kind, Size};
use crate::{Error, Result};

/// The shortest side of a smaller lattice where nobody asked for one: on less, networks would have to be shallower than on the large one.
const SHORTEST: usize = 14;

/// The least depth of a network that grows, if none is given.
const LEAST_DEPTH: usize = 2;

/// The most, as where nothing grows.
const MOST_DEPTH: usize = 6;

/// Axes of lattices that hollow networks serve.
const AXES: usize = 3;

impl RunSpec {
    /// The sizes of the smaller lattices that training goes through first, the smallest first.
    pub(crate) fn smaller_sizes(&self) -> Vec<Size> {
        let mut sizes = Vec::new();
        while let Some(size) = self.smaller(sizes.last()) {
            sizes.push(size);
        }
        sizes.reverse();
        sizes
    }

    /// Whether training grows without being asked.
    fn grows_by_itself(&self) -> bool {
        self.two_thirds(None).is_some()
    }

    /// The next smaller lattice than `size`, at first than the target's, if training goes through one.
    pub(crate) fn smaller(&self, size: Option<&Size>) -> Option<Size> {
        if self.start.grow == Some(false) || self.start.from.is_some() {
            return None;
        }
        if self.start.grow == Some(true) && !self.grows_by_itself() {
            return self.smaller_as_asked(size).ok();
        }
        self.two_thirds(size)
    }

    /// What the run on the next smaller lattice says of growing.
    pub(crate) fn grow_of_smaller(&self, size: &Size) -> Option<bool> {
        let further = self.start.grow == Some(true) && !self.grows_by_itself();
        (further && self.smaller(Some(size)).is_some()).then_some(true)
    }

    /// Two thirds of the sides, on a large plane with an Ising or Potts model.
    fn two_thirds(&self, size: Option<&Size>) -> Option<Size> {
        let target = &self.target;
        let uniform = matches!(target.kind, Some(Kind::Ising | Kind::Potts))
            && target.is_uniform()
            && matches!(target.boundary, None | Some(Boundary::Periodic))
            && matches!(self.network.kind, Some(NetworkKind::Hollow));
        let sides = self.sides(size)?;
        // Antiferromagnets are frustrated on odd sides and not on even ones; stripes fit on even ones.
        let keep_parity = target.has_opposed_bonds() || self.sees_alternating_order();
        let two_thirds = sides.iter().map(|&side| {
            let shorter = two_thirds(side);
            if keep_parity { shorter + (side - shorter) % 2 } else { shorter }
        });
        let two_thirds: Vec<usize> = two_thirds.collect();
        let shortest = SHORTEST.max(2 * target.reach() + 1);
        let large = sides.len() == 2 && two_thirds.iter().all(|&side| side >= shortest);
        (uniform && large).then_some(Size(two_thirds))
    }

    /// The next smaller lattice where one is asked for.
    ///
    /// # Errors
    /// [`Error::Invalid`] says why there is none.
    pub(crate) fn smaller_as_asked(&self, size: Option<&Size>) -> Result<Size> {
        let refuse = |condition: &str, advice: &str| {
            Err(Error::invalid("train.grow", true, format!("left out {condition}"), advice))
        };
        let target = &self.target;
        if self.start.from.is_some() {
            return refuse("beside train.from", "a run has one beginning");
        }
        if target.kind == Some(Kind::File) {
            return refuse("for a file", "it has one size; describe the lattice by flags");
        }
        if !target.is_uniform() {
            let advice = "what is learnt at one site of a smaller lattice would be wrong at others";
            return refuse("where sites differ", advice);
        }
        let Some(sides) = self.sides(size).filter(|sides| sides.len() <= AXES) else {
            return refuse(
                "without a lattice of up to three axes",
                "hollow networks have no other",
            );
        };
        if !matches!(self.network.kind, None | Some(NetworkKind::Hollow)) {
            return refuse("for networks other than hollow", "use network.kind = hollow");
        }
        let Some(depth) = self.network.depth.or_else(|| self.depth_that_grows()) else {
            let advice = "network.depth = 1 has room on sides of 4";
            return refuse("on a lattice as small as this", advice);
        };
        let least = (self.reach_of_layer() * depth + 2).max(2 * target.reach() + 1);
        let smaller: Vec<usize> =
            sides.iter().map(|&side| self.shorter(side, least).unwrap_or(side)).collect();
        if smaller == sides {
            let sides = Size(sides);
            let condition = format!(
                "where a depth of {depth}, which needs sides of {least}, has no room on a smaller lattice than {sides} on which the same order fits"
            );
            return refuse(&condition, "a smaller network.depth may have");
        }
        Ok(Size(smaller))
    }

    /// The depth of a network that grows because it is asked to, if none is given: so deep that a site still sees all planes of the large lattice, or as
    /// deep as usual.
    pub(crate) fn depth_that_grows(&self) -> Option<usize> {
        let asked = self.start.grow == Some(true) && self.start.from.is_none();
        let hollow = matches!(self.network.kind, None | Some(NetworkKind::Hollow));
        let grows = asked && hollow && self.target.is_uniform();
        if !grows || self.network.depth.is_some() || self.grows_by_itself() {
            return None;
        }
        let (sides, reach) = (self.sides(None)?, self.reach_of_layer());
        let (shortest, longest) = (*sides.iter().min()?, *sides.iter().max()?);
        let deepest = shortest.checked_sub(2)? / reach;
        let all = longest.saturating_sub(4).div_ceil(2 * reach);
        let depth = all.clamp(LEAST_DEPTH, MOST_DEPTH).min(deepest);
        (depth >= LEAST_DEPTH).then_some(depth)
    }

    /// The side of a smaller lattice: about two thirds, at least `least`, on which the same order fits.
    fn shorter(&self, side: usize, least: usize) -> Option<usize> {
        let usual = two_thirds(side).max(least);
        let largest = 4 * side / 5;
        let above = usual..=largest;
        let below = (least.max(side.div_ceil(2))..usual.min(side)).rev();
        above.chain(below).find(|&shorter| self.fits_as_well(side, shorter))
    }

    /// Whether a shorter side frustrates the order that such models may have no more than the longer one does.
    fn fits_as_well(&self, side: usize, shorter: usize) -> bool {
        let (twos, threes) = self.target.periods();
        let alike = |period: usize| side.is_multiple_of(period) == shorter.is_multiple_of(period);
        (alike(2) || !(twos || self.sees_alternating_order())) && (alike(3) || !threes)
    }

    /// Whether the network may be shown the order of alternating signs, of which there is one for every choice of even sides.
    fn sees_alternating_order(&self) -> bool {
        let network = &self.network;
        let shown = network.global_features != Some(false) && network.bond_features != Some(false);
        shown && self.target.has_further_bonds()
    }

    /// Planes that a layer of the network reaches back.
    fn reach_of_layer(&self) -> usize {
        self.network.rows.unwrap_or(3).saturating_sub(1).max(1)
    }

    fn sides(&self, size: Option<&Size>) -> Option<Vec<usize>> {
        let Size(sides) = size.or(self.target.size.as_ref())?;
        Some(match (sides.len(), self.target.dimensions) {
            (1, Some(axes)) => vec![sides[0]; axes],
            _ => sides.clone(),
        })
    }
}

fn two_thirds(side: usize) -> usize {
    (2 * side + 1) / 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::RunSpec;

    fn spec(text: &str) -> RunSpec {
        RunSpec::parse(text, "test".as_ref()).unwrap().resolve().unwrap()
    }

    fn sizes(target: &str, more: &str) -> String {
        let spec = spec(&format!("[target]\n{target}\n{more}"));
        let sizes: Vec<String> = spec.smaller_sizes().iter().map(Size::to_string).collect();
        sizes.join(" ")
    }

    #[test]
    fn large_planes_grow_by_themselves_as_ever() {
        for (target, first) in [
            ("kind = 'ising'\nsize = 32", "14x14 21x21"),
            ("kind = 'potts'\nsize = [22, 28]", "15x19"),
            ("kind = 'ising'\nsize = 24\ncoupling = -1", "16x16"),
            ("kind = 'ising'\nsize = 20", ""),
            ("kind = 'ising'\nsize = 24\nboundary = 'free'", ""),
            ("kind = 'ising'\nsize = [24, 24, 24]", ""),
            ("kind = 'blume-capel'\nsize = 32", ""),
            // Networks are shown an order for every even side.
            ("kind = 'ising'\nsize = 22\nj2 = 0.5", "16x16"),
        ] {
            assert_eq!(sizes(target, ""), first, "{target}");
            assert_eq!(sizes(target, "[train]\ngrow = false"), "", "{target}");
        }
        // Whoever asks for what happens anyway changes nothing.
        assert_eq!(sizes("kind = 'ising'\nsize = 32", "[train]\ngrow = true"), "14x14 21x21");
        assert_eq!(
            spec("[target]\nkind = 'ising'\nsize = 32\n[train]\ngrow = true").network.depth,
            None
        );
    }

    #[test]
    fn every_uniform_lattice_grows_where_it_is_asked_to() {
        let ask = |target: &str, network: &str| {
            sizes(target, &format!("[train]\ngrow = true\n[network]\n{network}"))
        };
        for (target, network, first) in [
            ("kind = 'ising'\nsize = 16", "", "8x8 11x11"),
            ("kind = 'ising'\nsize = 16\nj2 = -0.6", "", "8x8 12x12"),
            ("kind = 'ising'\nsize = 8\nj2 = -0.6", "", "6x6"),
            ("kind = 'ising'\nsize = 6\ndimensions = 3", "depth = 1", "4x4x4"),
            ("kind = 'ising'\nsize = 8\ndimensions = 3", "", "6x6x6"),
            ("kind = 'ising'\nsize = 8\nlattice = 'fcc'\ncoupling = -1", "", "6x6x6"),
            ("kind = 'ising'\nsize = 10\nlattice = 'bcc'", "", "6x6x6 8x8x8"),
            ("kind = 'ising'\nsize = 40\ndimensions = 1", "depth = 6", "14 18 27"),
            ("kind = 'ising'\nsize = 12\nlattice = 'triangular'\ncoupling = -1", "", "6x6"),
            ("kind = 'baxter-wu'\nsize = 12", "", "6x6 9x9"),
            ("kind = 'baxter-wu'\nsize = 18", "depth = 2", "6x6 9x9 12x12"),
            ("kind = 'blume-capel'\nsize = 12", "", "6x6 8x8"),
            ("kind = 'clock'\nsize = 12\ncoupling = -1", "", "6x6 8x8"),
            ("kind = 'potts'\nsize = 12\nboundary = 'free'", "", "6x6 8x8"),
            ("kind = 'ising'\nsize = [8, 30]", "depth = 3", "8x9 8x13 8x20"),
        ] {
            assert_eq!(ask(target, network), first, "{target} {network}");
        }
    }

    #[test]
    fn the_depth_is_the_same_on_all_lattices() {
        for (size, depth) in [(8, 2), (12, 2), (16, 3), (18, 4)] {
            let text = |size: usize, depth: &str| {
                format!(
                    "[target]\nkind = 'ising'\nj2 = -0.6\nsize = {size}\n[train]\ngrow = true\n{depth}"
                )
            };
            let large = spec(&text(size, ""));
            assert_eq!(large.network.depth, Some(depth), "{size}");
            let all = large.smaller_sizes();
            assert!(!all.is_empty());
            // The run on a smaller lattice goes through what is left of the same sizes.
            for (k, Size(sides)) in all.iter().enumerate() {
                let own = spec(&text(sides[0], &format!("[network]\ndepth = {depth}")));
                assert_eq!(own.smaller_sizes(), all[..k], "{size} {sides:?}");
                assert_eq!(large.grow_of_smaller(&all[k]), (k > 0).then_some(true));
                assert!(sides.iter().all(|&side| side >= 2 * depth + 2), "{sides:?}");
            }
        }
    }

    #[test]
    fn what_cannot_grow_is_refused_with_a_reason() {
        for (text, words) in [
            ("kind = 'ising'\nsize = 4", "as small as this"),
            (
                "kind = 'ising'\nsize = 8\n[network]\ndepth = 3",
                "depth of 3, which needs sides of 8",
            ),
            ("kind = 'ising'\nsize = 12\n[network]\nkind = 'mlp'", "other than hollow"),
            ("kind = 'spin-glass'\nsize = 12\n[network]\nkind = 'hollow'", "sites differ"),
            ("kind = 'ising'\nsize = 3\nfield = [1,2,3,4,5,6,7,8,9]", "sites differ"),
            ("kind = 'rbm'", "sites differ"),
            ("kind = 'ising'\nsize = [4, 4, 4, 4]\n[network]\nkind = 'mlp'", "three axes"),
        ] {
            let spec = spec(&format!("[target]\n{text}\n[train]\ngrow = true"));
            let error = spec.smaller_as_asked(None).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("train.grow"), "{text}: {error}");
            assert!(spec.smaller_sizes().is_empty(), "{text}");
        }
    }
}

//! Families of walkers: those of different families are independent of each other.

use std::borrow::Cow;

/// The family of every walker, numbered from 0.
///
/// Without resampling every walker is a family of its own. After resampling a family is all walkers that
/// descend from the same walker at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Families {
    index: Vec<u32>,
    count: usize,
}

impl Families {
    /// Every one of `walkers` walkers on its own.
    pub fn separate(walkers: usize) -> Self {
        Families { index: (0..walkers as u32).collect(), count: walkers }
    }

    /// Walkers with the same id, for example the number of their ancestor, are a family.
    pub fn new(ids: &[u32]) -> Self {
        let mut distinct = ids.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let number = |id| distinct.partition_point(|d| d < id) as u32;
        Families { index: ids.iter().map(number).collect(), count: distinct.len() }
    }

    /// Number of walkers.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is no walker.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Number of families.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The family of walker `i`, in `0..count()`.
    pub fn of(&self, i: usize) -> usize {
        self.index[i] as usize
    }

    /// The same with neighbouring families joined, so that there are at most `most` of them.
    pub(crate) fn joined(&self, most: usize) -> Cow<'_, Self> {
        if self.count <= most {
            return Cow::Borrowed(self);
        }
        let join = |&family: &u32| (u64::from(family) * most as u64 / self.count as u64) as u32;
        Cow::Owned(Families { index: self.index.iter().map(join).collect(), count: most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_numbered_densely() {
        let families = Families::new(&[7, 3, 7, u32::MAX]);
        assert_eq!((families.len(), families.count()), (4, 3));
        let numbers: Vec<usize> = (0..4).map(|i| families.of(i)).collect();
        assert_eq!(numbers, [1, 0, 1, 2]);
        assert_eq!(Families::new(&[0, 1, 2]), Families::separate(3));
    }

    #[test]
    fn joining_is_even_and_keeps_families_together() {
        let families = Families::new(&(0..3000).map(|i| i / 10).collect::<Vec<_>>());
        assert_eq!(*families.joined(300), families);
        let joined = families.joined(100);
        let mut sizes = vec![0; joined.count()];
        (0..joined.len()).for_each(|i| sizes[joined.of(i)] += 1);
        assert!(sizes.iter().all(|&size| size == 30));
        assert!((1..3000).all(|i| i % 10 == 0 || joined.of(i) == joined.of(i - 1)));
    }
}

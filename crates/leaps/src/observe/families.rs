//! Say which walkers are independent of each other: those of different families.

/// More families than this are left out in groups: the error of the error is then 0.3 %.
const MAX_BLOCKS: usize = 1 << 16;

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

    /// Number of groups of families that are left out together; the number of families unless it is huge.
    pub(crate) fn blocks(&self) -> usize {
        self.count.min(MAX_BLOCKS)
    }

    /// The group of walker `i`'s family.
    pub(crate) fn block(&self, i: usize) -> usize {
        let family = self.of(i);
        if self.count <= MAX_BLOCKS { family } else { family * MAX_BLOCKS / self.count }
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
    fn huge_numbers_of_families_are_grouped_evenly() {
        let families = Families::separate(3 * MAX_BLOCKS);
        let mut sizes = vec![0; families.blocks()];
        (0..families.len()).for_each(|i| sizes[families.block(i)] += 1);
        assert!(sizes.iter().all(|&size| size == 3));
    }
}

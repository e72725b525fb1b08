//! Division of the attention of a head among the threads of a GPU.

/// Numbers of shared memory that blocks of attention have for rows: what any GPU has without being asked.
const SHARED: usize = 10 << 10;

/// See the [module](self) and `attention.cu`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division {
    pub(super) slices: usize,
    pub(super) slice: usize,
    /// From slice to slice: an uneven number of pairs, so that the slices of a row lie in different banks.
    pub(super) stride: usize,
    pub(super) tile: usize,
    pub(super) forward: Rows,
    pub(super) back: Rows,
}

/// Rows of a thread, threads of a block, blocks of a head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub(super) rows: usize,
    pub(super) threads: usize,
    pub(super) parts: usize,
}

impl Rows {
    fn new(sites: usize, slices: usize, rows: usize) -> Self {
        let threads = sites.div_ceil(rows) * slices;
        let parts = threads.div_ceil(256);
        Rows { rows, threads: threads.div_ceil(parts).next_multiple_of(32), parts }
    }
}

impl Division {
    /// From row to row.
    pub(super) fn row(&self) -> usize {
        self.slices * self.stride
    }

    pub(super) fn new(sites: usize, width: usize) -> Self {
        // With slices of up to 10 numbers four rows and their sums leave registers for two blocks on a multiprocessor. On the
        // way back a row is twice as much.
        let slices = width.div_ceil(10).next_power_of_two().min(32);
        let slice = width.div_ceil(slices).next_multiple_of(2);
        let stride = slice + if slice.is_multiple_of(4) { 2 } else { 0 };
        let row = slices * stride;
        // Few sites go to more threads instead.
        let rows = match sites * slices {
            512.. => 4,
            128.. => 2,
            _ => 1,
        };
        Division {
            slices,
            slice,
            stride,
            tile: (SHARED / (2 * row + 2)).clamp(1, sites),
            forward: Rows::new(sites, slices, rows),
            back: Rows::new(sites, slices, rows.min(2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_all_rows_and_all_numbers() {
        for sites in 2..700 {
            for width in (1..70).chain([127, 128, 129, 300, 512, 513, 4000]) {
                let division = Division::new(sites, width);
                let (row, Division { slices, slice, tile, forward, back, .. }) =
                    (division.row(), division);
                assert!(slices * slice >= width && slice.is_multiple_of(2) && 32 % slices == 0);
                assert!((row / slices / 2) % 2 == 1);
                assert!((1..=sites).contains(&tile) && 4 * tile * (2 * row + 2) <= 48 << 10);
                for Rows { rows, threads, parts } in [forward, back] {
                    let each = threads / slices * rows;
                    assert!(threads <= 256 && threads.is_multiple_of(32));
                    assert!(parts * each >= sites && (parts - 1) * each < sites);
                }
            }
        }
    }
}

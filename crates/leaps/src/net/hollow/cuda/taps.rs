//! Tables of the sites that the taps of a convolution read, and of the sites that read them.

use super::sizes::Sizes;
use crate::net::hollow::Hollow;
use crate::net::hollow::geometry::{Frame, Geometry, odometer};

/// The site that a tap of a direction's convolution reads, the number of sites where there is none: `[tap * sites + site]`.
pub(super) fn sites_read(geometry: &Geometry, direction: usize) -> Vec<usize> {
    let frame = Frame::along(&geometry.lattice, direction);
    let (d, none) = (geometry.dimensions(), geometry.sites);
    let at = |position: &[isize]| frame.site(position).unwrap_or(none);
    let mut window = vec![3; d];
    window[0] = geometry.behind + 1;
    let window = odometer(&window);
    let mut taps = vec![0; window.len() * none];
    let sides: Vec<usize> = (0..d).map(|j| frame.side(j)).collect();
    for position in odometer(&sides) {
        let position: Vec<isize> = position.iter().map(|&p| p as isize).collect();
        let site = at(&position);
        for (tap, offset) in window.iter().enumerate() {
            let from: Vec<isize> = (0..d)
                .map(|j| {
                    let back = if j == 0 { geometry.behind } else { 1 };
                    position[j] + offset[j] as isize - back as isize
                })
                .collect();
            taps[tap * none + site] = at(&from);
        }
    }
    taps
}

/// Byte offsets, or offsets, of the rows that every row's taps read: `[direction][tap][row]`.
pub(super) fn taps(network: &Hollow, sizes: &Sizes) -> Vec<u32> {
    table(network, sizes, sizes.forward_rows(), |site, from| Some((site, from)))
}

/// The same the other way round: the rows whose taps read a row.
pub(super) fn taps_back(network: &Hollow, sizes: &Sizes) -> Vec<u32> {
    let sites = sizes.sites;
    table(network, sizes, sizes.back_rows(), |site, from| (from < sites).then_some((from, site)))
}

/// A table that holds the offset of one site in the row of another, both chosen by `entry` from a site and what a tap reads there.
fn table(
    network: &Hollow,
    sizes: &Sizes,
    rows: usize,
    entry: impl Fn(usize, usize) -> Option<(usize, usize)>,
) -> Vec<u32> {
    let (sites, stride) = (sizes.sites, sizes.stride());
    let mut out = vec![(sites * stride) as u32; sizes.directions * sizes.taps * rows];
    for d in 0..sizes.directions {
        let read = sites_read(&network.geometry, d);
        for tap in 0..sizes.taps {
            for site in 0..sites {
                if let Some((row, to)) = entry(site, read[tap * sites + site]) {
                    out[(d * sizes.taps + tap) * rows + row] = (to * stride) as u32;
                }
            }
        }
    }
    out
}

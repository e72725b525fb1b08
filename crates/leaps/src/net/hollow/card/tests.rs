use std::sync::Arc;

use super::*;
use crate::device::cuda::testing::{card, compiles};
use crate::device::vector::WIDTH;
use crate::net::card::moment;
use crate::net::hollow::Sizes as Shape;
use crate::net::hollow::tests::{Case, in_double_precision};
use crate::target::{Boundary, Lattice};

#[test]
fn kernels_compile() {
    let shape = [
        ("SITES", 35),
        ("CHANNELS", 24),
        ("LAYERS", 2),
        ("TAPS", 9),
        ("TOKENS", 3),
        ("DIRECTIONS", 4),
        ("HEAD", 48),
        ("OUTPUTS", 3),
    ];
    let plain = [("FORWARD_ROWS", 48), ("BACK_ROWS", 48), ("SHARED_PLANE", 1)];
    let matrix = [
        ("FORWARD_TILES", 1),
        ("FORWARD_WARPS", 3),
        ("FORWARD_BLOCKS", 4),
        ("BACK_TILES", 1),
        ("BACK_WARPS", 3),
        ("BACK_BLOCKS", 4),
        ("OUTER_TAPS", 9),
    ];
    compiles(&source(false), &[&shape[..], &plain].concat());
    compiles(&source(true), &[&shape[..], &matrix].concat());
}

/// A batch on a card: `copies` times the 16 configurations of a case, rows and moments in another order than lanes.
struct OnCard {
    states: CudaSlice<u8>,
    rows: CudaSlice<u32>,
    moments: CudaSlice<u32>,
    table: CudaSlice<f32>,
    d_out: CudaSlice<f32>,
    lanes: usize,
}

impl OnCard {
    fn new(card: &Card, case: &Case, tokens: usize, copies: usize) -> Self {
        let (sites, channels) = (case.sites, case.channels);
        let lanes = WIDTH * copies;
        let mut states = vec![0u8; lanes * sites];
        for row in 0..lanes {
            let lane = WIDTH - 1 - row % WIDTH;
            for site in 0..sites {
                states[row * sites + site] = if tokens == 2 {
                    u8::from(case.x[site].0[lane] > 0.0)
                } else {
                    let at = |c: &usize| case.x[site * channels + c].0[lane] == 1.0;
                    (0..channels).find(at).unwrap() as u8
                };
            }
        }
        let rows: Vec<u32> = (0..lanes)
            .map(|lane| (lane / WIDTH * WIDTH + WIDTH - 1 - lane % WIDTH) as u32)
            .collect();
        let moments: Vec<u32> =
            (0..lanes).map(|lane| ((lane % WIDTH + 5) % WIDTH) as u32).collect();
        let table: Vec<f32> =
            (0..WIDTH).flat_map(|m| moment(case.t[(m + WIDTH - 5) % WIDTH])).collect();
        let d_out: Vec<f32> = (0..lanes)
            .flat_map(|lane| {
                (0..sites * channels).map(move |i| ((i + 3 * (lane % WIDTH)) as f64).sin() as f32)
            })
            .collect();
        OnCard {
            states: card.upload(&states).unwrap(),
            rows: card.upload(&rows).unwrap(),
            moments: card.upload(&moments).unwrap(),
            table: card.upload(&table).unwrap(),
            d_out: card.upload(&d_out).unwrap(),
            lanes,
        }
    }

    fn batch(&self) -> CardBatch<'_> {
        CardBatch {
            lanes: self.lanes,
            states: &self.states,
            rows: &self.rows,
            moments: &self.moments,
            table: &self.table,
        }
    }
}

fn worst(a: &[f64], b: &[f64]) -> f64 {
    let largest = b.iter().fold(0.0f64, |m, b| m.max(b.abs()));
    a.iter().zip(b).fold(0.0f64, |m, (a, b)| m.max((a - b).abs())) / largest
}

fn compare(
    card: &Arc<Card>,
    lattice: &Lattice,
    tokens: usize,
    shape: &Shape,
    precision: Precision,
) -> (f64, f64, bool, bool) {
    let io = if tokens == 2 { 1 } else { tokens };
    let network = Hollow::build(shape, lattice, io, io);
    let case = Case::new(network, lattice.sites(), tokens, 7);
    let (want, slopes) = case.run(in_double_precision);
    let on_card = OnCard::new(card, &case, tokens, 1);
    let mut hollow =
        CardHollow::new(&case.network, tokens, card, on_card.lanes + 3, precision).unwrap();
    let parameters: Vec<f32> = case.parameters.iter().map(|&p| p as f32).collect();
    hollow.refresh(&card.upload(&parameters).unwrap()).unwrap();
    let n = case.sites * io;
    let mut out = card.zeros::<f32>(on_card.lanes * n).unwrap();
    hollow.forward(&on_card.batch(), &mut out).unwrap();
    let first = card.download(&out).unwrap();
    hollow.forward_kept(&on_card.batch(), &mut out).unwrap();
    let got = card.download(&out).unwrap();
    let same = first.iter().zip(&got).all(|(a, b)| a.to_bits() == b.to_bits());
    let got: Vec<f64> = (0..n * WIDTH).map(|i| f64::from(got[i % WIDTH * n + i / WIDTH])).collect();
    let mut gradient = card.zeros::<f32>(parameters.len()).unwrap();
    hollow.backward(&on_card.batch(), &on_card.d_out, &mut gradient.as_view_mut()).unwrap();
    let gradient: Vec<f64> = card.download(&gradient).unwrap().into_iter().map(f64::from).collect();
    (worst(&got, &want), worst(&gradient, &slopes), same, hollow.sizes.matrix)
}

#[test]
fn values_and_gradients_are_those_of_the_processor() {
    use Boundary::{Free, Periodic};
    let Some(card) = card() else { return };
    let mut failures = Vec::new();
    for (shape, boundary, tokens, sizes) in [
        (&[8, 8][..], Periodic, 2, Shape { channels: 16, depth: 3, rows: 3, head: 32 }),
        (&[7], Periodic, 3, Shape { channels: 5, depth: 2, rows: 3, head: 9 }),
        (&[6], Free, 2, Shape { channels: 13, depth: 3, rows: 3, head: 4 }),
        (&[9, 8], Periodic, 2, Shape { channels: 24, depth: 3, rows: 3, head: 48 }),
        (&[5, 7], Periodic, 5, Shape { channels: 11, depth: 1, rows: 3, head: 10 }),
        (&[3, 5], Periodic, 2, Shape { channels: 6, depth: 1, rows: 2, head: 7 }),
        (&[2, 4], Periodic, 2, Shape { channels: 6, depth: 3, rows: 1, head: 7 }),
        (&[3, 5], Free, 3, Shape { channels: 10, depth: 3, rows: 3, head: 7 }),
        (&[4, 5, 4], Periodic, 2, Shape { channels: 7, depth: 1, rows: 3, head: 8 }),
        (&[5, 6, 7], Free, 3, Shape { channels: 16, depth: 2, rows: 3, head: 32 }),
        (&[15, 15], Periodic, 2, Shape { channels: 48, depth: 6, rows: 3, head: 96 }),
        (&[15, 15], Periodic, 3, Shape { channels: 24, depth: 6, rows: 3, head: 48 }),
        (&[24, 24], Periodic, 2, Shape { channels: 48, depth: 9, rows: 3, head: 96 }),
        (&[32, 32], Periodic, 2, Shape { channels: 32, depth: 4, rows: 3, head: 64 }),
    ] {
        let lattice = Lattice::new(shape, boundary).unwrap();
        if std::env::var("QUICK").is_ok()
            && !(shape == [15, 15] || shape == [9, 8] || shape == [5, 6, 7])
        {
            continue;
        }
        for (precision, allowed) in [(Precision::Float32, 1e-5), (Precision::Bf16, 3e-2)] {
            let (value, slope, same, matrix) = compare(&card, &lattice, tokens, &sizes, precision);
            let line = format!(
                "{shape:?} q={tokens} {}x{} {precision:?}{}: values {value:.1e}, gradient {slope:.1e}, kept {same}",
                sizes.channels,
                sizes.depth,
                if matrix { " on matrix units" } else { "" },
            );
            eprintln!("{line}");
            if !(value < allowed && slope < allowed && same) {
                failures.push(line);
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

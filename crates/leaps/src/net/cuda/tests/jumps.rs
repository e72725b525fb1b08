//! Passes after jumps compute what whole passes compute.

use super::*;

/// Networks that can compute what a jump has changed alone: tori and free squares, few and many values, channels that are padded.
fn changing_cases() -> Vec<(Pairwise, NetSpec)> {
    use Boundary::{Free, Periodic};
    let hollow = |channels, depth, rows| {
        NetSpec::Hollow(HollowSpec {
            channels,
            depth: Some(depth),
            rows: Some(rows),
            ..HollowSpec::default()
        })
    };
    vec![
        (on_lattice(&[8, 8], Periodic, 2), hollow(16, 3, 3)),
        (on_lattice(&[15, 15], Periodic, 2), hollow(24, 6, 3)),
        (on_lattice(&[15, 15], Periodic, 2), hollow(48, 6, 3)),
        (on_lattice(&[16, 16], Periodic, 2), hollow(32, 6, 3)),
        (on_lattice(&[15, 15], Periodic, 3), hollow(24, 6, 3)),
        (on_lattice(&[9, 20], Periodic, 5), hollow(13, 2, 3)),
        (on_lattice(&[7, 12], Periodic, 3), hollow(10, 5, 2)),
        (on_lattice(&[9, 11], Free, 2), hollow(24, 4, 3)),
        (on_lattice(&[16, 13], Free, 3), hollow(16, 6, 3)),
        (on_lattice(&[6, 5], Periodic, 2), hollow(8, 3, 1)),
        (bonded(&[12, 16], Periodic, 2, &JAY), hollow(32, 4, 3)),
        (on_lattice(&[32, 32], Periodic, 2), hollow(24, 6, 3)),
    ]
}

/// Jump in some slots of a batch, give others another state or time and let some be idle: what has changed.
fn jump(batch: &mut Batch, q: usize, stream: &mut Stream) -> Vec<u32> {
    let sites = batch.states[0].len();
    (0..batch.len())
        .map(|slot| {
            let state = &mut batch.states[batch.rows[slot] as usize];
            match stream.below(8) {
                0 => {
                    state.iter_mut().for_each(|value| *value = stream.below(q) as u8);
                    batch.time_indices[slot] = stream.below(batch.times.len()) as u32;
                    WHOLE
                }
                1 => IDLE,
                _ => {
                    let site = stream.below(sites);
                    state[site] = (state[site] + 1 + stream.below(q - 1) as u8) % q as u8;
                    site as u32
                }
            }
        })
        .collect()
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib cuda -- --ignored --skip speed"]
fn passes_after_jumps_are_whole_passes_to_the_bit() {
    let gpu = Gpu::open(0).unwrap();
    let mut good = true;
    for (target, spec) in changing_cases() {
        let (net, q, slots) = (Net::new(&spec, &target).unwrap(), target.q(), 70);
        let parameters = parameters(&net);
        let new = || Harness::new(&gpu, &net, &parameters, slots, Precision::Bf16);
        let (mut whole, mut kept) = (new(), new());
        assert!(kept.network.keep(Keep::Always).unwrap(), "{spec:?} keeps nothing");
        let mut batch = Batch::new(&net, q, slots, 5);
        let mut stream = Stream::new(5, Purpose::Statistic, 3, 0);
        let mut changed = vec![WHOLE; slots];
        let (mut wrong, mut moved, mut last) = (0, 0, Vec::new());
        for _ in 0..40 {
            let (on_gpu, marks) = (kept.place(&batch), gpu.upload(&changed).unwrap());
            let mut out = gpu.upload(&vec![f32::NAN; slots * kept.size]).unwrap();
            kept.network.forward_changed(&on_gpu.batch(slots), &marks, &mut out).unwrap();
            let (got, want) = (gpu.download(&out).unwrap(), whole.forward(&batch));
            let size = kept.size;
            for slot in (0..slots).filter(|&slot| changed[slot] != IDLE) {
                let range = slot * size..(slot + 1) * size;
                wrong += usize::from(!same_bits(&got[range.clone()], &want[range.clone()]));
                moved +=
                    usize::from(last.is_empty() || !same_bits(&want[range.clone()], &last[range]));
            }
            last = want;
            changed = jump(&mut batch, q, &mut stream);
        }
        println!("{spec:?}, {} sites: {wrong} of {moved} passes differ", target.sites());
        good &= wrong == 0 && moved > 40 * slots / 2;
    }
    assert!(good);
}

#[test]
#[ignore = "needs a GPU: cargo test -p leaps --lib speed -- --ignored --nocapture"]
fn speed_of_passes_after_jumps() {
    let gpu = Gpu::open(0).unwrap();
    for (side, channels, slots) in
        [(15, 24, 16384), (15, 48, 16384), (16, 32, 16384), (32, 24, 16384)]
    {
        let target = on_lattice(&[side, side], Boundary::Periodic, 2);
        let depth = Some(6);
        let spec = NetSpec::Hollow(HollowSpec { channels, depth, ..HollowSpec::default() });
        let net = Net::new(&spec, &target).unwrap();
        let mut harness = Harness::new(&gpu, &net, &parameters(&net), slots, Precision::Bf16);
        let batch = Batch::new(&net, 2, slots, 5);
        let (on_gpu, sites) = (harness.place(&batch), side * side);
        let mut out = gpu.zeros(slots * harness.size).unwrap();
        let mut milliseconds = |harness: &mut Harness<'_>, changed: Option<&[u32]>| {
            let marks = gpu.upload(changed.unwrap_or(&[0])).unwrap();
            let mut start = std::time::Instant::now();
            for round in 0..12 {
                if round == 2 {
                    gpu.wait().unwrap();
                    start = std::time::Instant::now();
                }
                match changed {
                    None => harness.network.forward(&on_gpu.batch(slots), &mut out).unwrap(),
                    Some(_) => harness
                        .network
                        .forward_changed(&on_gpu.batch(slots), &marks, &mut out)
                        .unwrap(),
                }
            }
            gpu.wait().unwrap();
            start.elapsed().as_secs_f64() * 100.0
        };
        let whole = milliseconds(&mut harness, None);
        assert!(harness.network.keep(Keep::Always).unwrap());
        let marks = |share: usize| -> Vec<u32> {
            // One in so many slots is whole.
            let mark = |slot: usize| {
                if slot.is_multiple_of(share) { WHOLE } else { (slot * 7 % sites) as u32 }
            };
            (0..slots).map(mark).collect()
        };
        let kept = milliseconds(&mut harness, Some(&vec![WHOLE; slots]));
        let local = milliseconds(&mut harness, Some(&marks(usize::MAX)));
        let mixed = milliseconds(&mut harness, Some(&marks(6)));
        let idle = milliseconds(&mut harness, Some(&vec![IDLE; slots]));
        println!(
            "{side}x{side}, {channels} channels, {slots} slots: whole {whole:.2} ms, and kept {kept:.2}, after jumps \
             {local:.2}, one in six whole {mixed:.2}, the head and what is beside it {idle:.2}"
        );
    }
}

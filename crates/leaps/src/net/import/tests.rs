//! Checkpoints whole, cut short and damaged.

use proptest::prelude::*;

use super::writer::{Writer, archive_of, checkpoint, number, whole};
use super::*;
use crate::net::authors::fixtures;
use crate::target::Interaction;

#[test]
fn a_checkpoint_is_read() {
    for q in [2, 3] {
        let imported = import(&whole(q)).unwrap();
        let NetSpec::Lec(spec) = &imported.spec else { panic!() };
        assert_eq!((spec.kernels.as_slice(), spec.channels, spec.time_units), (&[3, 3][..], 2, 3));
        assert!(spec.imported);
        assert_eq!(imported.free_energy, FreeEnergySpec::Mlp { hidden: vec![4] });
        assert_eq!(imported.free_energy_parameters.len(), 12);
        let target = &imported.target;
        assert_eq!((target.side, target.coupling, target.beta, target.q), (4, 1.5, 0.4, q));
        let ising = target.interaction == Interaction::Ising;
        assert_eq!(ising, q == 2);
        assert_eq!(target.path().unwrap().ends()[0], 0.4);
        // The centre, number 4 of every 9, is left out; embeddings come first and the outputs last.
        let start = if ising { 0 } else { 6 };
        let want: Vec<f32> = (0..9).filter(|i| *i != 4).map(|i| number(0, i)).collect();
        assert_eq!(imported.parameters[start..start + 8], want);
        let last = imported.parameters.len() - 1;
        assert_eq!(imported.parameters[last], number(11, if ising { 1 } else { 5 }));
        if !ising {
            assert_eq!(imported.parameters[5], number(12, 5));
        }
    }
}

#[test]
fn strides_offsets_and_kinds_are_respected() {
    let read = |kind: &str, bytes: Vec<u8>, length, offset, shape: &[usize], strides: &[usize]| {
        let mut w = Writer::default();
        w.op(b"\x80\x02}").text("state_dict").op(b"}").text("a");
        w.tensor(kind, 0, length, offset, shape, strides).op(b"ss.");
        let file = archive_of(&w.0, &[bytes]);
        let archive = archive::Archive::new(&file).unwrap();
        let pickle = pickle::read(archive.entry("data.pkl").unwrap()).unwrap();
        state::state_dict(&pickle, &archive, 100).map(|state| state["a"].values.clone())
    };
    let six: Vec<u8> = (0..6).flat_map(|i| (i as f64).to_le_bytes()).collect();
    let double = |offset, shape: &[usize], strides: &[usize]| {
        read("DoubleStorage", six.clone(), 6, offset, shape, strides)
    };
    assert_eq!(double(0, &[3, 2], &[1, 3]).unwrap(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(double(1, &[2, 2], &[3, 1]).unwrap(), [1.0, 2.0, 4.0, 5.0]);
    assert_eq!(double(5, &[], &[]).unwrap(), [5.0]);
    assert_eq!(double(2, &[3], &[0]).unwrap(), [2.0; 3]);
    assert!(double(9, &[0, 4], &[4, 1]).unwrap().is_empty());
    assert!(double(1, &[6], &[1]).is_err() && double(6, &[], &[]).is_err());
    assert!(double(0, &[1 << 30, 1 << 30, 1 << 30], &[0; 3]).is_err());
    assert!(double(0, &[2, 101], &[0; 2]).is_err(), "more numbers than the limit");
    let half = read("HalfStorage", vec![0, 0x3C, 0, 0xC0], 2, 0, &[2], &[1]);
    assert_eq!(half.unwrap(), [1.0, -2.0]);
    assert!(read("HalfStorage", vec![0; 3], 2, 0, &[2], &[1]).is_err());
}

#[test]
fn programs_are_refused_by_name() {
    let refused = |bytes: &[u8]| pickle::read(bytes).unwrap_err().reason;
    assert!(refused(b"\x80\x02cos\nsystem\n").contains("os.system"));
    assert!(refused(b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.").contains("builtins.eval"));
    assert!(refused(b"\x80\x02i").contains("instruction 0x69"));
    assert!(refused(b"\x80\x01.").contains("version"));
    for wrong in [
        &b""[..],
        b".",
        b"\x80\x02h\x05.",
        b"N\x85R.",
        b"NNR.",
        b"(.",
        b"t.",
        b"]Na]s.",
        b"}(Nu.",
        b"K\x01K\x01a.",
        b"\x8a\x09123456789.",
        b"N}b.",
        b"NQ.",
        b"X\xff\xff\xff\xff.",
        b"(((NN\x87.",
        b"X\x01\0\0\0\xff.",
        b"ctorch\nSize\n",
        b"ctorch._utils\n_rebuild_tensor_v2\n)R.",
        b"\x8c",
    ] {
        assert!(pickle::read(wrong).is_err(), "{wrong:?}");
    }
    // Containers that hold themselves are harmless.
    assert!(pickle::read(b"\x80\x02]q\0h\0a.").is_ok());
}

#[test]
fn what_does_not_fit_is_named() {
    let reason = |edit: &[(&str, f64)]| {
        let (pickle, storages) = checkpoint(2, edit);
        import(&archive_of(&pickle, &storages)).unwrap_err()
    };
    assert_eq!(reason(&[("mu_1", 0.1)]).what, "config.mu_1");
    assert!(reason(&[("J_0", 0.1)]).what.contains("config.J_0"));
    assert_eq!(reason(&[("J_1", f64::NAN)]).what, "config.J_1");
    let (pickle, storages) = checkpoint(2, &[]);
    let renamed = |from: &[u8], to: &[u8]| {
        let at = pickle.windows(from.len()).position(|w| w == from).unwrap();
        let mut pickle = pickle.clone();
        pickle[at..at + from.len()].copy_from_slice(to);
        import(&archive_of(&pickle, &storages)).unwrap_err().what
    };
    assert_eq!(renamed(b"convs.0.b1", b"convs.0.c1"), "net.network.convs.0.b1");
    assert_eq!(renamed(b"ising", b"potts"), "config.target");
    assert_eq!(renamed(b"state_dict", b"state_duct"), "state_dict");
    let folder = tempfile_path("import");
    std::fs::write(&folder, b"nothing").unwrap();
    let error = import_checkpoint(&folder).unwrap_err();
    assert!(
        matches!(error, Error::Corrupt { .. }) && error.to_string().contains("not a checkpoint")
    );
    std::fs::remove_file(&folder).unwrap();
    assert!(matches!(import_checkpoint(&folder), Err(Error::Io { .. })));
}

fn tempfile_path(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("leaps-{name}-{}", std::process::id()))
}

#[test]
fn compressed_entries_are_refused() {
    let mut file = whole(2);
    let list = file.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    file[list + 10] = 8;
    assert!(import(&file).unwrap_err().reason.contains("compressed"));
}

#[test]
fn every_truncation_is_an_error() {
    for q in [2, 3] {
        let file = whole(q);
        for n in 0..file.len() {
            assert!(import(&file[..n]).is_err(), "{n} bytes");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    /// Damage in the archive: never a panic, and never other numbers than those written.
    #[test]
    fn flipped_bits_of_the_archive_never_panic(flips in prop::collection::vec((0usize..1 << 20, 0u8..8), 1..4)) {
        let good = import(&whole(2)).unwrap();
        let mut file = whole(2);
        for (at, bit) in flips {
            let n = file.len();
            file[at % n] ^= 1 << bit;
        }
        if let Ok(imported) = import(&file) {
            prop_assert_eq!(imported.parameters, good.parameters);
        }
    }

    /// Damage in the pickle itself, with a checksum that fits.
    #[test]
    fn flipped_bits_of_the_pickle_never_panic(flips in prop::collection::vec((0usize..1 << 20, 0u8..8), 1..4), q in 2usize..4) {
        let (mut pickle, storages) = checkpoint(q, &[]);
        for (at, bit) in flips {
            let n = pickle.len();
            pickle[at % n] ^= 1 << bit;
        }
        let _ = import(&archive_of(&pickle, &storages));
    }

    /// Instructions in any order.
    #[test]
    fn random_pickles_never_panic(ops in prop::collection::vec(0usize..30, 0..60)) {
        const OPS: [&[u8]; 30] = [
            b"N", b"(", b"t", b"]", b"}", b")", b"a", b"e", b"s", b"u", b"\x85", b"\x86", b"\x87", b"q\0", b"q\x01",
            b"h\0", b"h\x01", b"R", b"\x81", b"b", b"Q", b"K\x03", b"X\x07\0\0\0storage", b"ctorch\nFloatStorage\n",
            b"ctorch._utils\n_rebuild_tensor_v2\n", b"ccollections\nOrderedDict\n", b"cargparse\nNamespace\n",
            b"ctorch\nSize\n", b"\x94", b"\x93",
        ];
        let mut bytes: Vec<u8> = b"\x80\x02".to_vec();
        for op in ops {
            bytes.extend_from_slice(OPS[op]);
        }
        bytes.push(b'.');
        let _ = pickle::read(&bytes);
    }
}

#[test]
#[cfg_attr(not(has_fixtures), ignore = "needs the authors' numbers: set LEAPS_FIXTURES")]
fn the_authors_checkpoint_is_what_their_weights_are() {
    let folder = fixtures("ising");
    let imported = import_checkpoint(&folder.join("ising_final.ckpt")).unwrap();
    let NetSpec::Lec(spec) = &imported.spec else { panic!() };
    assert_eq!((spec.kernels.as_slice(), spec.channels), (&[3, 5, 7, 9, 15][..], 20));
    assert_eq!((imported.target.side, imported.target.beta), (15, 0.4407));
    assert_eq!((imported.target.q, imported.target.coupling), (2, 1.0));
    let weights = crate::net::authors::weights(&folder);
    let same = |a: &[f32], b: &[f64]| a.iter().map(|&v| f64::from(v)).eq(b.iter().copied());
    assert!(same(&imported.parameters, &weights.parameters));
    assert!(same(&imported.free_energy_parameters, &weights.free_energy_parameters));
}

//! Instances as files of any format.

use std::path::Path;

use super::atomic;
use super::npz::NpzWriter;
use crate::Result;
use crate::target::{FIELD, Format, Instance, OFFSET};

/// Write an instance as a file of some format; nobody sees half of it.
///
/// # Errors
/// What the format cannot say, and a file that cannot be written.
pub fn write_instance(instance: &Instance, path: &Path, format: Format) -> Result<()> {
    instance.check_format(format)?;
    match format {
        Format::Npz => matrix(&instance.spins()?, path, -1.0),
        Format::NpzQubo => matrix(&instance.bits()?, path, 1.0),
        _ => atomic::write(path, instance.to_text(format)?.as_bytes()),
    }
}

/// A sparse matrix in coordinates with `sign * w` above its diagonal; a QUBO has its linear part on it, spins beside it.
fn matrix(instance: &Instance, path: &Path, sign: f64) -> Result<()> {
    let mut entries = instance.merged();
    let fields = instance.all_fields();
    let qubo = sign > 0.0;
    if qubo {
        let diagonal = fields.iter().enumerate().filter(|(_, h)| **h != 0.0);
        entries.extend(diagonal.map(|(site, &h)| (site as u32, site as u32, h)));
    }
    let sites = instance.sites as i64;
    let count = [entries.len()];
    let column = |pick: fn(&(u32, u32, f64)) -> u32| -> Vec<i64> {
        entries.iter().map(|entry| i64::from(pick(entry))).collect()
    };
    let values: Vec<f64> = entries.iter().map(|entry| 0.0 + sign * entry.2).collect();
    let mut file = NpzWriter::create(path)?;
    file.integers("row", &count, &column(|entry| entry.0))?;
    file.integers("col", &count, &column(|entry| entry.1))?;
    file.text("format", "coo")?;
    file.integers("shape", &[2], &[sites, sites])?;
    file.floats("data", &count, &values)?;
    if !qubo && fields.iter().any(|&h| h != 0.0) {
        file.floats(FIELD, &[fields.len()], &fields)?;
    }
    if instance.constant != 0.0 {
        file.floats(OFFSET, &[], &[instance.constant])?;
    }
    file.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::target::Variables;

    fn states(sites: usize) -> impl Iterator<Item = Vec<u8>> {
        (0..1u32 << sites).map(move |k| (0..sites).map(|i| (k >> i & 1) as u8).collect())
    }

    proptest! {
        #[test]
        fn energies_survive_matrices(
            pairs in proptest::collection::vec((0u32..5, 0u32..5, -2.0..2.0f64), 0..9),
            fields in proptest::collection::vec(-1.0..1.0f64, 5),
            constant in -1.0..1.0f64,
            binary in any::<bool>(),
        ) {
            let pairs = pairs.into_iter().filter(|pair| pair.0 != pair.1).collect();
            let variables = if binary { Variables::Bits } else { Variables::Spins };
            let instance = Instance { variables, sites: 5, pairs, clusters: Vec::new(), fields, constant, lattice: None };
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.npz");
            for format in [Format::Npz, Format::NpzQubo] {
                write_instance(&instance, &path, format).unwrap();
                let (back, _) = Instance::read(&path, Some(format)).unwrap();
                for x in states(5) {
                    prop_assert!((back.energy(&x) - instance.energy(&x)).abs() < 1e-12);
                }
            }
        }
    }

    /// A matrix as SciPy has it, written array by array.
    fn matrix(path: &Path, format: &str, arrays: &[(&str, &[i64])], data: &[f64], sites: i64) {
        let mut file = NpzWriter::create(path).unwrap();
        for (name, values) in arrays {
            file.integers(name, &[values.len()], values).unwrap();
        }
        file.text("format", format).unwrap();
        file.integers("shape", &[2], &[sites, sites]).unwrap();
        file.floats("data", &[data.len()], data).unwrap();
        file.finish().unwrap();
    }

    #[test]
    fn rows_and_columns_are_those_of_scipy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        // [[0, 1, 0], [0, 0, -2], [3, 0, 0]]: every pair once.
        let by_rows: [(&str, &[i64]); 2] = [("indices", &[1, 2, 0]), ("indptr", &[0, 1, 2, 3])];
        let by_columns: [(&str, &[i64]); 2] = [("indices", &[2, 0, 1]), ("indptr", &[0, 1, 2, 3])];
        let by_entry: [(&str, &[i64]); 2] = [("row", &[1, 0, 2]), ("col", &[2, 1, 0])];
        for (format, arrays, data) in [
            ("csr", by_rows, [1.0, -2.0, 3.0]),
            ("csc", by_columns, [3.0, 1.0, -2.0]),
            ("coo", by_entry, [-2.0, 1.0, 3.0]),
        ] {
            matrix(&path, format, &arrays, &data, 3);
            let (instance, found) = Instance::read(&path, None).unwrap();
            assert_eq!((found, instance.variables), (Format::Npz, Variables::Spins));
            for x in states(3) {
                let s: Vec<f64> = x.iter().map(|&v| 2.0 * f64::from(v) - 1.0).collect();
                let wanted = -s[0] * s[1] + 2.0 * s[1] * s[2] - 3.0 * s[0] * s[2];
                assert_eq!(instance.energy(&x), wanted, "{format}");
            }
            let (qubo, _) = Instance::read(&path, Some(Format::NpzQubo)).unwrap();
            assert_eq!(qubo.energy(&[1, 1, 1]), 2.0);
            assert_eq!(qubo.energy(&[0, 1, 1]), -2.0);
        }
    }

    #[test]
    fn matrices_that_mean_nothing_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        for (rows, columns, data, sites, words) in [
            (&[0, 1][..], &[1, 0][..], &[1.0, 2.0][..], 3, "symmetric"),
            (&[0, 1, 1], &[1, 0, 2], &[1.0, 1.0, 1.0], 3, "once"),
            (&[1], &[1], &[1.0], 3, "npz-qubo"),
            (&[0], &[3], &[1.0], 3, "not below 3"),
            (&[-1], &[0], &[1.0], 3, "negative"),
            (&[0], &[1], &[f64::NAN], 3, "not finite"),
            (&[0], &[1], &[1.0], 1_000_000_000_000, "more than a file"),
            (&[0], &[1], &[1.0, 2.0], 3, "one value"),
        ] {
            matrix(&path, "coo", &[("row", rows), ("col", columns)], data, sites);
            let error = Instance::read(&path, None).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("SciPy"), "{error}");
        }
        matrix(&path, "csr", &[("indices", &[1]), ("indptr", &[0, 2, 1, 1])], &[1.0], 3);
        assert!(Instance::read(&path, None).unwrap_err().to_string().contains("indptr"));
        matrix(&path, "dia", &[], &[1.0], 3);
        assert!(Instance::read(&path, None).unwrap_err().to_string().contains("'dia'"));
    }

    /// Glasses that others wrote with SciPy, compressed: `LEAPS_FIXTURES/twobo`.
    #[test]
    #[cfg_attr(not(has_fixtures), ignore = "needs files of others: set LEAPS_FIXTURES")]
    fn glasses_of_others_are_lattices() {
        use crate::device::NoProgress;
        use crate::target::Target;
        let folder = std::env::var("LEAPS_FIXTURES").unwrap();
        for (name, shape) in [
            ("2D_EA_PM_L4_0", &[4, 4][..]),
            ("2D_EA_PM_L16_3", &[16, 16]),
            ("2D_EA_PM_L32_0", &[32, 32]),
            ("3D_EA_PM_L8_0", &[8, 8, 8]),
        ] {
            let path = Path::new(&folder).join(format!("twobo/{name}.npz"));
            let (instance, _) = Instance::read(&path, None).unwrap();
            assert!(instance.pairs.iter().all(|pair| pair.2.abs() == 1.0));
            let model = instance.model().unwrap();
            assert_eq!(model.lattice().unwrap().shape(), shape);
            if shape == [4, 4] {
                let log_z = |method| {
                    crate::exact::solve(&model, &[1.0], method, &NoProgress).unwrap().log_z
                };
                let band = log_z(Some(crate::exact::Method::TransferMatrix));
                assert!((log_z(None) - band).abs() < 1e-9);
            }
        }
    }
}

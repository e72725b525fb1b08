//! Write model directories of an older schema anew, with the names of today; tensors keep their bytes.
//! ```sh
//! cargo run --example upgrade_models -- crates/leaps/models/*/
//! ```

use leaps::store::Model;

fn main() -> leaps::Result<()> {
    for directory in std::env::args_os().skip(1).map(std::path::PathBuf::from) {
        if !directory.join("model.json").is_file() {
            continue;
        }
        let model = Model::load(&directory)?;
        let before = model.checksum()?;
        model.save(&directory)?;
        let after = Model::load(&directory)?.checksum()?;
        assert_eq!(before, after, "{}: tensors have changed", directory.display());
        println!("{}: tensors {}", directory.display(), &after[..16]);
    }
    Ok(())
}

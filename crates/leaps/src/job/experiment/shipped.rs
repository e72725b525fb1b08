//! The experiments that the library brings along.

/// The experiments that the library brings along, by name.
pub const EXPERIMENTS: [(&str, &str); 18] = [
    ("ablation", include_str!("../../../experiments/ablation.toml")),
    ("ising-critical", include_str!("../../../experiments/ising-critical.toml")),
    ("ais-ising", include_str!("../../../experiments/ais-ising.toml")),
    ("ais-potts", include_str!("../../../experiments/ais-potts.toml")),
    ("discs-ising", include_str!("../../../experiments/discs-ising.toml")),
    ("discs-potts", include_str!("../../../experiments/discs-potts.toml")),
    ("bias", include_str!("../../../experiments/bias.toml")),
    ("temperatures", include_str!("../../../experiments/temperatures.toml")),
    ("methods", include_str!("../../../experiments/methods.toml")),
    ("records", include_str!("../../../experiments/records.toml")),
    ("records-16", include_str!("../../../experiments/records-16.toml")),
    ("free-energy", include_str!("../../../experiments/free-energy.toml")),
    ("free-energy-cpu", include_str!("../../../experiments/free-energy-cpu.toml")),
    ("glass", include_str!("../../../experiments/glass.toml")),
    ("glasses", include_str!("../../../experiments/glasses.toml")),
    ("frustrated", include_str!("../../../experiments/frustrated.toml")),
    ("three-dimensions", include_str!("../../../experiments/three-dimensions.toml")),
    ("potts", include_str!("../../../experiments/potts.toml")),
];

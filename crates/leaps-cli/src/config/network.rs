//! Describe the network, once for the command line and for the configuration file.

use clap::{Args, ValueEnum};
use leaps::net::NetSpec;
use leaps::rates::Parametrisation;
use leaps::target::{Boundary, Lattice};
use leaps::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::value::count;

/// The families of networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkKind {
    Hollow,
    HollowGraph,
    Lec,
    Lea,
    Mlp,
}

/// How fluxes become rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParametrisationName {
    Relu,
    Barker,
    Sqrt,
    Metropolis,
}

impl From<ParametrisationName> for Parametrisation {
    fn from(name: ParametrisationName) -> Parametrisation {
        match name {
            ParametrisationName::Relu => Parametrisation::Relu,
            ParametrisationName::Barker => Parametrisation::Barker,
            ParametrisationName::Sqrt => Parametrisation::Sqrt,
            ParametrisationName::Metropolis => Parametrisation::Metropolis,
        }
    }
}

/// Which network, and how large. Sizes have defaults that depend on the kind.
///
/// Where a plain name is a key of the target as well, the argument is called by section and key.
#[derive(Clone, Debug, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Network")]
pub struct NetworkSpec {
    /// Network: hollow, hollow-graph, lec, lea or mlp [default: hollow on a uniform lattice, else mlp]
    #[arg(id = "network.kind", long = "network", value_enum, value_name = "KIND")]
    #[arg(hide_possible_values = true)]
    pub kind: Option<NetworkKind>,
    /// From fluxes to rates: relu (the paper), barker, sqrt or metropolis
    #[arg(long, value_enum, default_value = "barker", value_name = "HOW")]
    #[arg(hide_possible_values = true)]
    pub parametrisation: ParametrisationName,
    /// Channels of convolutions or messages (hollow, lec, hollow-graph) [default: 24, 20 or 16]
    #[arg(long, value_name = "N", value_parser = count)]
    pub channels: Option<usize>,
    /// Layers (hollow) [default: the most that the lattice allows, at most 6]
    #[arg(long, value_name = "N", value_parser = count)]
    pub depth: Option<usize>,
    /// Planes that a layer looks at, 1 to 3 (hollow) [default: 3, or what the lattice allows]
    #[arg(long, value_name = "N", value_parser = count, hide_short_help = true)]
    pub rows: Option<usize>,
    /// Orders of the sites, each followed forwards and backwards (hollow-graph) [default: 2]
    #[arg(long, value_name = "N", value_parser = count, hide_short_help = true)]
    pub orders: Option<usize>,
    /// Channels of the layers that mix directions or orders (hollow, hollow-graph) [default: twice the channels]
    #[arg(long, value_name = "N", value_parser = count, hide_short_help = true)]
    pub head: Option<usize>,
    /// Tell every site what all others add up to, their values and their bonds (hollow) [default: true]
    #[arg(long, value_name = "BOOL", hide_short_help = true)]
    pub global_features: Option<bool>,
    /// Widths of the kernels, odd, the first convolution's first (lec) [default: 3,5,7,9,15 as far as they fit]
    #[arg(long, value_name = "K,...", value_delimiter = ',', value_parser = count)]
    #[arg(hide_short_help = true)]
    pub kernels: Option<Vec<usize>>,
    /// Units in the hidden layers of the functions of time (lec) [default: 64]
    #[arg(long, value_name = "N", value_parser = count, hide_short_help = true)]
    pub time_units: Option<usize>,
    /// Attention heads (lea) [default: 4]
    #[arg(long, value_name = "N", value_parser = count, hide_short_help = true)]
    pub heads: Option<usize>,
    /// Numbers in a key, query and value of a head (lea) [default: 8]
    #[arg(long, value_name = "N", value_parser = count, hide_short_help = true)]
    pub width: Option<usize>,
    /// Numbers that describe a site (lea) [default: 32]
    #[arg(long, value_name = "N", value_parser = count, hide_short_help = true)]
    pub embedding: Option<usize>,
    /// Hidden units of each site (mlp) [default: 16]
    #[arg(id = "network.hidden", long = "hidden-units", value_name = "N", value_parser = count)]
    #[arg(hide_short_help = true)]
    pub hidden: Option<usize>,
}

impl Default for NetworkSpec {
    fn default() -> Self {
        super::defaults()
    }
}

impl NetworkKind {
    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            NetworkKind::Hollow => "hollow",
            NetworkKind::HollowGraph => "hollow-graph",
            NetworkKind::Lec => "lec",
            NetworkKind::Lea => "lea",
            NetworkKind::Mlp => "mlp",
        }
    }

    /// The keys that mean something for this kind.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            NetworkKind::Hollow => &["channels", "depth", "rows", "head", "global_features"],
            NetworkKind::HollowGraph => &["channels", "orders", "head"],
            NetworkKind::Lec => &["channels", "kernels", "time_units"],
            NetworkKind::Lea => &["heads", "width", "embedding"],
            NetworkKind::Mlp => &["hidden"],
        }
    }
}

/// Dimensions of a lattice up to which the hollow network goes.
const HOLLOW_DIMENSIONS: usize = 3;

impl NetworkSpec {
    /// The same network with every default written out, after refusing keys of other kinds. Sizes that the
    /// library chooses by the lattice stay open.
    ///
    /// A hollow convolution has the same weights at every site: where sites differ (`uniform` is false) it cannot know how.
    pub fn filled(&self, lattice: Option<&Lattice>, uniform: bool) -> Result<Self> {
        let flat = lattice.is_some_and(|lattice| lattice.shape().len() <= HOLLOW_DIMENSIONS);
        let usual = if flat && uniform { NetworkKind::Hollow } else { NetworkKind::Mlp };
        let kind = self.kind.unwrap_or(usual);
        let mut given = self.given();
        let foreign = given.iter().find(|(key, _)| !kind.keys().contains(&key.as_str()));
        if let Some((key, value)) = foreign {
            let owners: Vec<&str> = NetworkKind::value_variants()
                .iter()
                .filter(|kind| kind.keys().contains(&key.as_str()))
                .map(|kind| kind.name())
                .collect();
            return Err(Error::invalid(
                format!("network.{key}"),
                value,
                format!("left out for {}", kind.name()),
                format!("it belongs to {}", owners.join(", ")),
            ));
        }
        given.insert("kind".to_owned(), kind.name().into());
        if kind == NetworkKind::Hollow {
            // The library takes networks without this key for those of old files, which had none.
            given.entry("global_features").or_insert(true.into());
        }
        let spec: NetSpec =
            serde_json::from_value(Value::Object(given.clone())).map_err(|error| {
                Error::invalid("network.kind", kind.name(), "in this build", error.to_string())
            })?;
        spec.check_sizes()?;
        let Ok(Value::Object(mut all)) = serde_json::to_value(&spec) else {
            return Ok(self.clone());
        };
        all.retain(|key, value| {
            key == "kind" || (!value.is_null() && kind.keys().contains(&key.as_str()))
        });
        all.insert(
            "parametrisation".to_owned(),
            serde_json::to_value(self.parametrisation).unwrap_or_default(),
        );
        let mut filled: NetworkSpec = serde_json::from_value(Value::Object(all))
            .unwrap_or_else(|error| unreachable!("the library's settings are ours: {error}"));
        if self.kernels.is_none()
            && let (Some(kernels), Some(lattice)) = (&mut filled.kernels, lattice)
        {
            let side = lattice.shape().iter().copied().min().unwrap_or(3);
            let widest = if lattice.boundary() == Boundary::Periodic { side } else { 2 * side - 1 };
            kernels.retain(|&width| width <= widest);
            // A network has two layers at least.
            kernels.resize(kernels.len().max(2), 3);
        }
        Ok(filled)
    }

    /// The sizes that were given.
    fn given(&self) -> serde_json::Map<String, Value> {
        let Ok(Value::Object(mut given)) = serde_json::to_value(self) else {
            return serde_json::Map::new();
        };
        given.retain(|key, value| !value.is_null() && key != "kind" && key != "parametrisation");
        given
    }

    /// Kind, sizes and parametrisation in words.
    pub fn describe(&self) -> String {
        let kind = self.kind.map_or("network", NetworkKind::name);
        let sizes = self.given().into_iter().map(|(key, value)| format!(", {key} {value}"));
        let rates = format!("{:?}", self.parametrisation).to_lowercase();
        format!("{kind}{}, {rates}", sizes.collect::<String>())
    }

    /// The network of a [`filled`](Self::filled) description.
    pub fn build(&self) -> Result<NetSpec> {
        let mut given = self.given();
        let kind = self.kind.unwrap_or(NetworkKind::Hollow).name();
        given.insert("kind".to_owned(), kind.into());
        serde_json::from_value(Value::Object(given)).map_err(|error| {
            Error::invalid("network.kind", kind, "in this build", error.to_string())
        })
    }
}

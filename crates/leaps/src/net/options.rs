//! Networks as users ask for them: a kind and a few sizes, the rest left to defaults that depend on both.

use serde::{Deserialize, Serialize};

use super::{GlassSpec, HollowGraphSpec, HollowSpec, LeaSpec, LecSpec, MlpSpec, NetSpec};
#[cfg(feature = "clap")]
use crate::parse::count;
use crate::rates::Parametrisation;
use crate::target::{Boundary, Lattice};
use crate::{Error, Result};

/// The families of networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NetworkKind {
    /// Convolutions over the half-spaces around a site of a lattice.
    Hollow,
    /// Messages along orders of the sites, on any graph.
    HollowGraph,
    /// State-dependent convolutions on a lattice.
    Lec,
    /// Attention over all other sites.
    Lea,
    /// A hidden layer over all other sites.
    Mlp,
    /// Convolutions over the bonds of a spin glass, one for all instances.
    Glass,
}

/// Which network, and how large. Sizes have defaults that depend on the kind.
///
/// Where a plain name is a key of the target as well, the argument is called by section and key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Network"))]
pub struct NetworkOptions {
    /// Network: hollow, hollow-graph, lec, lea, mlp or glass [default: hollow on a uniform lattice, glass over instances, else mlp]
    #[cfg_attr(
        feature = "clap",
        arg(id = "network.kind", long = "network", value_enum, value_name = "KIND")
    )]
    #[cfg_attr(feature = "clap", arg(hide_possible_values = true))]
    pub kind: Option<NetworkKind>,
    /// From fluxes to rates: relu (the paper), barker, sqrt or metropolis
    #[cfg_attr(
        feature = "clap",
        arg(long, value_enum, default_value = "barker", value_name = "HOW")
    )]
    #[cfg_attr(feature = "clap", arg(hide_possible_values = true))]
    pub parametrisation: Parametrisation,
    /// Channels of convolutions or messages (hollow, lec, hollow-graph, glass) [default: 24, 20, 16 or 32]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count))]
    pub channels: Option<usize>,
    /// Layers (hollow, glass) [default: the most that the lattice allows, at most 6]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count))]
    pub depth: Option<usize>,
    /// Planes that a layer looks at, 1 to 3 (hollow, glass) [default: 3, or what the lattice allows]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, hide_short_help = true))]
    pub rows: Option<usize>,
    /// Orders of the sites, each followed forwards and backwards (hollow-graph) [default: 2]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, hide_short_help = true))]
    pub orders: Option<usize>,
    /// Channels of the layers that mix directions or orders (hollow, hollow-graph, glass) [default: twice the channels]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, hide_short_help = true))]
    pub head: Option<usize>,
    /// Condition every site on global features: sums of all other values and bonds (hollow) [default: true]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", hide_short_help = true))]
    pub global_features: Option<bool>,
    /// Where a target has bonds beyond nearest neighbours or tables, count those of every strength or table on their own, and stripes (hollow) [default: true]
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", hide_short_help = true))]
    pub bond_features: Option<bool>,
    /// Widths of the kernels, odd, the first convolution's first (lec) [default: 3,5,7,9,15 as far as they fit]
    #[cfg_attr(feature = "clap", arg(long, value_name = "K,...", value_delimiter = ',', value_parser = count))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub kernels: Option<Vec<usize>>,
    /// Units in the hidden layers of the functions of time (lec) [default: 64]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, hide_short_help = true))]
    pub time_units: Option<usize>,
    /// Attention heads (lea) [default: 4]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, hide_short_help = true))]
    pub heads: Option<usize>,
    /// Numbers in a key, query and value of a head (lea) [default: 8]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, hide_short_help = true))]
    pub width: Option<usize>,
    /// Numbers that describe a site (lea) [default: 32]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = count, hide_short_help = true))]
    pub embedding: Option<usize>,
    /// Hidden units of each site (mlp) [default: 16]
    #[cfg_attr(feature = "clap", arg(id = "network.hidden", long = "hidden-units", value_name = "N", value_parser = count))]
    #[cfg_attr(feature = "clap", arg(hide_short_help = true))]
    pub hidden: Option<usize>,
}

impl NetworkKind {
    /// Every family.
    pub const ALL: [NetworkKind; 6] = [
        NetworkKind::Hollow,
        NetworkKind::HollowGraph,
        NetworkKind::Lec,
        NetworkKind::Lea,
        NetworkKind::Mlp,
        NetworkKind::Glass,
    ];

    /// The name users write.
    pub fn name(self) -> &'static str {
        match self {
            NetworkKind::Hollow => "hollow",
            NetworkKind::HollowGraph => "hollow-graph",
            NetworkKind::Lec => "lec",
            NetworkKind::Lea => "lea",
            NetworkKind::Mlp => "mlp",
            NetworkKind::Glass => "glass",
        }
    }

    /// The keys that mean something for this kind.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            NetworkKind::Hollow => {
                &["channels", "depth", "rows", "head", "global_features", "bond_features"]
            }
            NetworkKind::HollowGraph => &["channels", "orders", "head"],
            NetworkKind::Lec => &["channels", "kernels", "time_units"],
            NetworkKind::Lea => &["heads", "width", "embedding"],
            NetworkKind::Mlp => &["hidden"],
            NetworkKind::Glass => &["channels", "depth", "rows", "head"],
        }
    }
}

/// Dimensions of a lattice up to which the hollow network goes.
const HOLLOW_DIMENSIONS: usize = 3;

impl NetworkOptions {
    /// The network with every default written out, after refusing keys of other kinds. Sizes that depend on the target itself stay open.
    ///
    /// A hollow convolution has the same weights at every site: where sites differ (`uniform` is false) it cannot know how.
    pub fn resolve(&self, lattice: Option<&Lattice>, uniform: bool) -> Result<NetSpec> {
        let flat = lattice.is_some_and(|lattice| lattice.shape().len() <= HOLLOW_DIMENSIONS);
        let usual = if flat && uniform { NetworkKind::Hollow } else { NetworkKind::Mlp };
        let kind = self.kind.unwrap_or(usual);
        self.refuse_strangers(kind)?;
        let spec = match kind {
            NetworkKind::Hollow => {
                let usual = HollowSpec::default();
                NetSpec::Hollow(HollowSpec {
                    channels: self.channels.unwrap_or(usual.channels),
                    depth: self.depth,
                    rows: self.rows,
                    head: self.head,
                    global_features: self.global_features.unwrap_or(usual.global_features),
                    bond_features: self.bond_features.unwrap_or(usual.bond_features),
                })
            }
            NetworkKind::HollowGraph => {
                let usual = HollowGraphSpec::default();
                NetSpec::HollowGraph(HollowGraphSpec {
                    channels: self.channels.unwrap_or(usual.channels),
                    orders: self.orders.unwrap_or(usual.orders),
                    head: self.head,
                })
            }
            NetworkKind::Lec => {
                let usual = LecSpec::default();
                let fitting = || fitting_kernels(usual.kernels.clone(), lattice);
                NetSpec::Lec(LecSpec {
                    kernels: self.kernels.clone().unwrap_or_else(fitting),
                    channels: self.channels.unwrap_or(usual.channels),
                    time_units: self.time_units.unwrap_or(usual.time_units),
                    imported: false,
                })
            }
            NetworkKind::Lea => {
                let usual = LeaSpec::default();
                NetSpec::Lea(LeaSpec {
                    heads: self.heads.unwrap_or(usual.heads),
                    width: self.width.unwrap_or(usual.width),
                    embedding: self.embedding.unwrap_or(usual.embedding),
                })
            }
            NetworkKind::Glass => NetSpec::Glass(GlassSpec {
                channels: self.channels.unwrap_or(GlassSpec::default().channels),
                depth: self.depth,
                rows: self.rows,
                head: self.head,
            }),
            NetworkKind::Mlp => {
                NetSpec::Mlp(MlpSpec { hidden: self.hidden.unwrap_or(MlpSpec::default().hidden) })
            }
        };
        spec.check_sizes()?;
        Ok(spec)
    }

    /// The options that stand for a network.
    pub fn of(spec: &NetSpec, parametrisation: Parametrisation) -> Self {
        let open = NetworkOptions { parametrisation, ..NetworkOptions::default() };
        match spec {
            NetSpec::Hollow(spec) => NetworkOptions {
                kind: Some(NetworkKind::Hollow),
                channels: Some(spec.channels),
                depth: spec.depth,
                rows: spec.rows,
                head: spec.head,
                global_features: Some(spec.global_features),
                // What is usual is left out: it says something about few targets.
                bond_features: (!spec.bond_features).then_some(false),
                ..open
            },
            NetSpec::HollowGraph(spec) => NetworkOptions {
                kind: Some(NetworkKind::HollowGraph),
                channels: Some(spec.channels),
                orders: Some(spec.orders),
                head: spec.head,
                ..open
            },
            NetSpec::Lec(spec) => NetworkOptions {
                kind: Some(NetworkKind::Lec),
                kernels: Some(spec.kernels.clone()),
                channels: Some(spec.channels),
                time_units: Some(spec.time_units),
                ..open
            },
            NetSpec::Lea(spec) => NetworkOptions {
                kind: Some(NetworkKind::Lea),
                heads: Some(spec.heads),
                width: Some(spec.width),
                embedding: Some(spec.embedding),
                ..open
            },
            NetSpec::Glass(spec) => NetworkOptions {
                kind: Some(NetworkKind::Glass),
                channels: Some(spec.channels),
                depth: spec.depth,
                rows: spec.rows,
                head: spec.head,
                ..open
            },
            NetSpec::Mlp(spec) => {
                NetworkOptions { kind: Some(NetworkKind::Mlp), hidden: Some(spec.hidden), ..open }
            }
        }
    }

    /// The sizes that are given, by their keys, as text.
    fn given(&self) -> Vec<(&'static str, String)> {
        let list = |all: &Vec<usize>| {
            let words: Vec<String> = all.iter().map(usize::to_string).collect();
            format!("[{}]", words.join(","))
        };
        let number = |size: &Option<usize>| size.map(|size| size.to_string());
        let all = [
            ("channels", number(&self.channels)),
            ("depth", number(&self.depth)),
            ("rows", number(&self.rows)),
            ("orders", number(&self.orders)),
            ("head", number(&self.head)),
            ("global_features", self.global_features.map(|on| on.to_string())),
            ("bond_features", self.bond_features.map(|on| on.to_string())),
            ("kernels", self.kernels.as_ref().map(list)),
            ("time_units", number(&self.time_units)),
            ("heads", number(&self.heads)),
            ("width", number(&self.width)),
            ("embedding", number(&self.embedding)),
            ("hidden", number(&self.hidden)),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }

    fn refuse_strangers(&self, kind: NetworkKind) -> Result<()> {
        let given = self.given();
        let Some((key, value)) = given.iter().find(|(key, _)| !kind.keys().contains(key)) else {
            return Ok(());
        };
        let owners: Vec<&str> = NetworkKind::ALL
            .iter()
            .filter(|kind| kind.keys().contains(key))
            .map(|kind| kind.name())
            .collect();
        Err(Error::invalid(
            format!("network.{key}"),
            value,
            format!("left out for {}", kind.name()),
            format!("it belongs to {}", owners.join(", ")),
        ))
    }

    /// Kind, sizes and parametrisation in words.
    pub fn describe(&self) -> String {
        let kind = self.kind.map_or("network", NetworkKind::name);
        let sizes = self.given().into_iter().map(|(key, value)| format!(", {key} {value}"));
        let rates = format!("{:?}", self.parametrisation).to_lowercase();
        format!("{kind}{}, {rates}", sizes.collect::<String>())
    }
}

/// Those kernels that a lattice has room for, two at least.
fn fitting_kernels(mut kernels: Vec<usize>, lattice: Option<&Lattice>) -> Vec<usize> {
    if let Some(lattice) = lattice {
        let side = lattice.shape().iter().copied().min().unwrap_or(3);
        let widest = if lattice.boundary() == Boundary::Periodic { side } else { 2 * side - 1 };
        kernels.retain(|&width| width <= widest);
        kernels.resize(kernels.len().max(2), 3);
    }
    kernels
}

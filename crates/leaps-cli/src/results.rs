//! Define what `--json` prints; field names are promises to scripts.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::app::Context;
use crate::config::Config;

/// The version of the layout; grows when a field changes its meaning.
pub const SCHEMA: u32 = 1;

/// What every result says about its origin.
#[derive(Clone, Debug, Serialize)]
pub struct Origin {
    pub schema: u32,
    pub version: &'static str,
    pub command: Vec<String>,
    pub target: Map<String, Value>,
    pub engine: &'static str,
}

impl Origin {
    /// The origin of a result of this command.
    pub fn new(context: &Context, config: &Config, sites: usize) -> Self {
        let mut target = match serde_json::to_value(&config.target) {
            Ok(Value::Object(target)) => target,
            _ => Map::new(),
        };
        target.retain(|_, value| !value.is_null());
        target.insert("sites".to_owned(), sites.into());
        Origin {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            command: context.command.clone(),
            target,
            engine: "cpu",
        }
    }
}

/// What `exact` prints; the moments of the magnetisation where they are known.
#[derive(Clone, Debug, Serialize)]
pub struct ExactResult {
    #[serde(flatten)]
    pub origin: Origin,
    pub method: String,
    pub log_z: f64,
    pub energy_per_site: f64,
    pub heat_capacity_per_site: f64,
    pub free_energy_per_site: f64,
    pub entropy_per_site: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub magnetization: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abs_magnetization: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub magnetization_squared: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binder: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub susceptibility_per_site: Option<f64>,
    pub seconds: f64,
}

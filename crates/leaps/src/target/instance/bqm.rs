//! Binary quadratic models of dimod as JSON, schema 3.0.0, with lists of numbers.
//!
//! $E = c + \sum h_i v_i + \sum J_{ij} v_i v_j$ over spins or bits, in the order of `variable_labels`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lines::Source;
use super::{Instance, Variables, too_many};
use crate::{Error, Result};

const TYPE: &str = "BinaryQuadraticModel";
const SCHEMA: &str = "3.0.0";

/// What tells whether the rest can be read.
#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    version: Version,
    #[serde(default)]
    use_bytes: bool,
}

#[derive(Default, Serialize, Deserialize)]
struct Version {
    #[serde(default)]
    bqm_schema: String,
}

/// The file.
#[derive(Serialize, Deserialize)]
struct Bqm {
    #[serde(rename = "type")]
    kind: String,
    version: Version,
    use_bytes: bool,
    #[serde(default)]
    index_type: String,
    #[serde(default)]
    bias_type: String,
    num_variables: u64,
    num_interactions: u64,
    variable_labels: Vec<Value>,
    variable_type: String,
    offset: f64,
    #[serde(default)]
    info: Value,
    linear_biases: Vec<f64>,
    quadratic_biases: Vec<f64>,
    quadratic_head: Vec<u64>,
    quadratic_tail: Vec<u64>,
}

/// Parse a text.
pub(super) fn parse(text: &str, source: &Source<'_>) -> Result<Instance> {
    let at = |error: serde_json::Error| -> Error {
        let reason = error.to_string();
        let reason = reason.split(" at line ").next().unwrap_or_default().to_owned();
        source.fail(error.line(), error.column(), reason)
    };
    let Kind { kind, version, use_bytes } = serde_json::from_str(text).map_err(at)?;
    if kind != TYPE {
        return Err(source.corrupt("type", format!("it is '{kind}' and must be '{TYPE}'")));
    }
    if version.bqm_schema != SCHEMA {
        let reason = format!("the schema is '{}' and must be '{SCHEMA}'", version.bqm_schema);
        return Err(source.corrupt("version", reason));
    }
    if use_bytes {
        let reason =
            "arrays of bytes are not read: write the model with to_serializable(use_bytes=False)";
        return Err(source.corrupt("use_bytes", reason));
    }
    let bqm: Bqm = serde_json::from_str(text).map_err(at)?;
    let variables = match bqm.variable_type.as_str() {
        "SPIN" => Variables::Spins,
        "BINARY" => Variables::Bits,
        other => {
            let reason = format!("'{other}' is neither SPIN nor BINARY");
            return Err(source.corrupt("variable_type", reason));
        }
    };
    let (n, m) = (bqm.num_variables, bqm.num_interactions);
    for (key, found, promised, what) in [
        ("variable_labels", bqm.variable_labels.len(), n, "num_variables"),
        ("linear_biases", bqm.linear_biases.len(), n, "num_variables"),
        ("quadratic_biases", bqm.quadratic_biases.len(), m, "num_interactions"),
        ("quadratic_head", bqm.quadratic_head.len(), m, "num_interactions"),
        ("quadratic_tail", bqm.quadratic_tail.len(), m, "num_interactions"),
    ] {
        if found as u64 != promised {
            return Err(
                source.corrupt(key, format!("it has {found} items, and {what} is {promised}"))
            );
        }
    }
    if let Some(reason) = too_many(n, source.bytes) {
        return Err(source.corrupt("num_variables", reason));
    }
    let ends = bqm.quadratic_head.into_iter().zip(bqm.quadratic_tail);
    let mut pairs = Vec::with_capacity(bqm.quadratic_biases.len());
    for ((i, j), bias) in ends.zip(bqm.quadratic_biases) {
        if i == j || i.max(j) >= n {
            let reason = format!("({i}, {j}) are not two different variables below {n}");
            return Err(source.corrupt("quadratic_head", reason));
        }
        pairs.push((i as u32, j as u32, bias));
    }
    let (sites, fields, constant) = (n as usize, bqm.linear_biases, bqm.offset);
    Ok(Instance { variables, sites, pairs, clusters: Vec::new(), fields, constant, lattice: None })
}

/// The text of a file.
pub(super) fn to_text(instance: &Instance) -> Result<String> {
    let own = match instance.variables {
        Variables::Potts(_) => instance.spins()?,
        _ => instance.clone(),
    };
    let pairs = own.merged();
    let bqm = Bqm {
        kind: TYPE.to_owned(),
        version: Version { bqm_schema: SCHEMA.to_owned() },
        use_bytes: false,
        index_type: "int32".to_owned(),
        bias_type: "float64".to_owned(),
        num_variables: own.sites as u64,
        num_interactions: pairs.len() as u64,
        variable_labels: (0..own.sites).map(Value::from).collect(),
        variable_type: if own.variables == Variables::Spins { "SPIN" } else { "BINARY" }.to_owned(),
        offset: own.constant,
        info: Value::Object(serde_json::Map::new()),
        linear_biases: own.all_fields(),
        quadratic_head: pairs.iter().map(|pair| u64::from(pair.0)).collect(),
        quadratic_tail: pairs.iter().map(|pair| u64::from(pair.1)).collect(),
        quadratic_biases: pairs.into_iter().map(|pair| pair.2).collect(),
    };
    let text = serde_json::to_string(&bqm);
    Ok(text.unwrap_or_else(|error| unreachable!("numbers are JSON: {error}")) + "\n")
}

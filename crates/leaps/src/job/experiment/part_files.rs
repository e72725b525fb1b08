//! Files of a part of an experiment: the result, which repeats byte for byte, and beside it how long it took.
//!
//! | file | what |
//! |---|---|
//! | `PART.json` | settings, result, histograms |
//! | `PART.json.b3` | its checksum, as `b3sum --check` reads it |
//! | `PART.times.json` | seconds, and what is counted per second |

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::file::{checksum_of, read_text};
use crate::results::{PartResult, timings, upgrade_part};
use crate::store::write_file;
use crate::{Error, Result};

/// A part as JSON without its times, and these.
pub fn split(part: &PartResult) -> Result<(Value, Value)> {
    let mut value = to_json(part)?;
    let times = timings::take(&mut value["result"]);
    Ok((value, times))
}

fn to_json(part: &PartResult) -> Result<Value> {
    let fail = |error: serde_json::Error| {
        Error::invalid("part", &part.name, "a result that can be written", error.to_string())
    };
    serde_json::to_value(part).map_err(fail)
}

/// Write a part whose `times` were taken out of its result. The checksum comes last: without it nothing counts.
pub fn write(file: &Path, part: &Value, times: &Value) -> Result<()> {
    write_file(times_file(file), format!("{times:#}\n").as_bytes())?;
    write_file(file, format!("{part:#}\n").as_bytes())?;
    write_file(sum_file(file), sum(file)?.as_bytes())
}

/// The contents of a part's files, times included, if they are what was written.
pub fn read(file: &Path) -> std::result::Result<PartResult, String> {
    let json = |file: &Path| -> std::result::Result<Value, String> {
        let text = read_text(file).map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    };
    let own = sum(file).map_err(|error| error.to_string())?;
    match read_text(&sum_file(file)) {
        Ok(written) if written == own => {}
        Ok(_) => return Err("the checksum does not fit".to_owned()),
        Err(_) => return Err("there is no checksum beside it".to_owned()),
    }
    let mut part = json(file)?;
    upgrade_part(&mut part);
    let times = json(&times_file(file)).map_err(|error| format!("its times: {error}"))?;
    timings::put(&mut part["result"], &times);
    serde_json::from_value(part).map_err(|error| error.to_string())
}

fn times_file(file: &Path) -> PathBuf {
    file.with_extension("times.json")
}

fn sum_file(file: &Path) -> PathBuf {
    file.with_extension("json.b3")
}

fn sum(file: &Path) -> Result<String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    Ok(format!("{}  {name}\n", checksum_of(file)?))
}

//! HTML: escaped words, tables, numbers that say where they come from.

use serde_json::Value;

pub use crate::draw::escape;
use crate::text::{Short, beside, fixed, with_error};

/// How a number is written.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// With its standard error, which the results have beside it, in the last digits.
    WithError,
    /// As fine as an estimate with this standard error.
    Beside(f64),
    /// With so many decimals.
    Fixed(usize),
    /// With three figures.
    Short,
    /// With all its digits.
    Full,
}

/// A value of `results.json` by its path, such as `log_z.mean`.
pub fn lookup<'a>(results: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(results, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => value.get(key),
    })
}

/// A number of `results.json`, if it is there and finite.
pub fn number(results: &Value, path: &str) -> Option<f64> {
    lookup(results, path)?.as_f64()
}

/// A number of `results.json` as it is shown, with the exact value it was made from beside it: the page can be
/// held against the file. Words and value are of one number, so that they cannot differ.
pub fn shown(results: &Value, path: &str, form: Form) -> String {
    let (Some(value), Some(exact)) = (number(results, path), lookup(results, path)) else {
        return "-".to_owned();
    };
    let words = match form {
        Form::WithError => {
            let error = number(results, &error_of(path)).unwrap_or(f64::INFINITY);
            with_error(value, error)
        }
        Form::Beside(error) => beside(value, error),
        Form::Fixed(decimals) => fixed(value, decimals),
        Form::Short => Short(value).to_string(),
        Form::Full => value.to_string(),
    };
    let key = escape(path);
    format!("<span data-key=\"{key}\" data-value=\"{exact}\">{}</span>", escape(&words))
}

/// Where the standard error of a number is.
fn error_of(path: &str) -> String {
    match path.strip_suffix(".mean") {
        Some(estimate) => format!("{estimate}.error"),
        None => format!("{path}_error"),
    }
}

/// A table with a name for those who do not see it; cells are HTML, the first row is the head. It scrolls where it is wider than the screen.
pub fn table(name: &str, class: &str, rows: &[Vec<String>]) -> String {
    let mut out = format!(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table class=\"{class}\">\n",
        escape(name)
    );
    for (number, row) in rows.iter().enumerate() {
        let tag = if number == 0 { "th" } else { "td" };
        out += "<tr>";
        for cell in row {
            out += &format!("<{tag}>{cell}</{tag}>");
        }
        out += "</tr>\n";
    }
    out + "</table></div>\n"
}

/// A word of a command line as a shell wants it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command_are_quoted() {
        assert_eq!(quoted("runs/a"), "runs/a");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }

    #[test]
    fn numbers_carry_their_origin() {
        let results = serde_json::json!({
            "log_z": {"mean": 15.5222462867, "error": 0.0213},
            "path": [{"ess": 0.5, "ess_error": 0.031}],
            "merit": 1234567.0, "lone": {"mean": 2.5}
        });
        for (path, form, words) in [
            ("log_z.mean", Form::WithError, "15.52(2)"),
            ("log_z.mean", Form::Beside(0.2), "15.52"),
            ("log_z.mean", Form::Fixed(1), "15.5"),
            ("log_z.mean", Form::Full, "15.5222462867"),
            ("path.0.ess", Form::WithError, "0.50(3)"),
            ("merit", Form::Short, "1.23e6"),
            ("lone.mean", Form::WithError, "2.5(?)"),
        ] {
            let value = lookup(&results, path).unwrap();
            let wanted = format!("<span data-key=\"{path}\" data-value=\"{value}\">{words}</span>");
            assert_eq!(shown(&results, path, form), wanted);
        }
        assert_eq!(number(&results, "path.0.ess"), Some(0.5));
        assert_eq!(shown(&results, "log_z.exact", Form::Full), "-");
    }
}

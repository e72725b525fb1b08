//! HTML: escaped words, tables, numbers that say where they come from.

use serde_json::Value;

pub use crate::draw::escape;

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
/// held against the file.
pub fn shown(results: &Value, path: &str, words: &str) -> String {
    match lookup(results, path).filter(|value| value.is_number()) {
        Some(value) => {
            format!(
                "<span data-key=\"{}\" data-value=\"{value}\">{}</span>",
                escape(path),
                escape(words)
            )
        }
        None => escape(words),
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
        let results = serde_json::json!({"log_z": {"mean": 15.5222462867}, "path": [{"ess": 0.5}]});
        let cell = shown(&results, "log_z.mean", "15.52");
        assert!(
            cell.contains("data-value=\"15.5222462867\"") && cell.contains(">15.52<"),
            "{cell}"
        );
        assert_eq!(number(&results, "path.0.ess"), Some(0.5));
        assert_eq!(shown(&results, "log_z.exact", "-"), "-");
    }
}

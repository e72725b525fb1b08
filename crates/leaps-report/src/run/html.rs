//! HTML: escaped words, tables, numbers that say where they come from.

use leaps::observe::Estimate;
use serde_json::Number;

pub use crate::draw::escape;
use crate::text::{Short, beside, fixed, with_error};

/// How a number is written.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// With its standard error in the last digits.
    WithError(f64),
    /// As fine as an estimate with this standard error.
    Beside(f64),
    /// With so many decimals.
    Fixed(usize),
    /// With three figures.
    Short,
    /// With all its digits.
    Full,
}

/// A number as it is shown, with the exact value it was made from and its place in `results.json`: the page can be held against the
/// file. Words and value are of one number, so that they cannot differ; numbers that are not finite are `null` in the file.
pub fn shown(key: &str, value: f64, form: Form) -> String {
    let Some(exact) = Number::from_f64(value) else { return "-".to_owned() };
    let words = match form {
        Form::WithError(error) => with_error(value, error),
        Form::Beside(error) => beside(value, error),
        Form::Fixed(decimals) => fixed(value, decimals),
        Form::Short => Short(value).to_string(),
        Form::Full => value.to_string(),
    };
    let key = escape(key);
    format!("<span data-key=\"{key}\" data-value=\"{exact}\">{}</span>", escape(&words))
}

/// A number of things, of which all digits are shown.
pub fn counted(key: &str, count: usize) -> String {
    format!("<span data-key=\"{}\" data-value=\"{count}\">{count}</span>", escape(key))
}

/// An estimate with its error.
pub fn estimated(key: &str, estimate: Estimate) -> String {
    shown(&format!("{key}.mean"), estimate.mean, Form::WithError(estimate.error))
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
        for (value, form, words) in [
            (15.5222462867, Form::WithError(0.0213), "15.52(2)"),
            (15.5222462867, Form::Beside(0.2), "15.52"),
            (15.5222462867, Form::Fixed(1), "15.5"),
            (15.5222462867, Form::Full, "15.5222462867"),
            (0.5, Form::WithError(0.031), "0.50(3)"),
            (1234567.5, Form::Short, "1.23e6"),
            (2.5, Form::WithError(f64::INFINITY), "2.5(?)"),
        ] {
            let wanted = format!("<span data-key=\"log_z\" data-value=\"{value}\">{words}</span>");
            assert_eq!(shown("log_z", value, form), wanted);
        }
        assert_eq!(shown("log_z.exact", f64::NAN, Form::Full), "-");
        let estimate = Estimate::new(0.5, 0.031);
        assert_eq!(estimated("ess", estimate), shown("ess.mean", 0.5, Form::WithError(0.031)));
    }
}

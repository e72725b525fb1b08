//! Tables as CSV (RFC 4180): numbers with all their digits, what is missing left empty.

use leaps::results::{Row, ThermoPoint};

/// Columns of rows of results.
const COLUMNS: [&str; 11] = [
    "source", "target", "beta", "field", "seed", "sampler", "quantity", "value", "error", "exact",
    "sigmas",
];

/// Rows of results, one line each.
pub fn rows(rows: &[Row]) -> String {
    let line = |row: &Row| {
        let number = |value: Option<f64>| value.map_or_else(String::new, number);
        let seed = row.seed.map_or_else(String::new, |seed| seed.to_string());
        line([
            text(row.source.as_deref().unwrap_or_default()),
            text(&row.target),
            number(Some(row.beta)),
            number(row.field),
            seed,
            text(&row.sampler),
            text(&row.quantity),
            number(Some(row.value)),
            number(row.error),
            number(row.exact),
            number(row.sigmas),
        ])
    };
    COLUMNS.join(",") + "\n" + &rows.iter().map(line).collect::<String>()
}

/// Points of a grid, one line each: value, error and, where it is known, exact value of every quantity.
pub fn points(points: &[ThermoPoint]) -> String {
    let Some(first) = points.first() else { return String::new() };
    let fields = points.iter().any(|point| point.field.is_some());
    let mut head = vec!["beta".to_owned()];
    head.extend(fields.then(|| "field".to_owned()));
    head.push("ess".to_owned());
    for (name, _) in first.named() {
        head.extend([name.to_owned(), format!("{name}_error"), format!("{name}_exact")]);
    }
    head.push("log_z_merit".to_owned());
    let mut all = line(head);
    for point in points {
        let mut cells = vec![number(point.beta)];
        cells.extend(point.field.filter(|_| fields).map(number));
        cells.push(number(point.ess));
        for (_, e) in point.named() {
            cells.extend([number(e.mean), number(e.error)]);
            cells.push(e.exact.map_or_else(String::new, number));
        }
        cells.push(number(point.log_z_merit));
        all += &line(cells);
    }
    all
}

/// Whether a text is one of these tables.
pub fn is_table(start: &str) -> bool {
    start.starts_with(&COLUMNS[..3].join(",")) || start.starts_with("beta,")
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    cells.into_iter().collect::<Vec<_>>().join(",") + "\n"
}

/// A number, or nothing.
fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

/// Words, in quotes where a comma, a quote or the end of a line would end them.
fn text(words: &str) -> String {
    match words.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", words.replace('"', "\"\"")),
        false => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_they_must_be() {
        assert_eq!(text("Ising 4x4 periodic"), "Ising 4x4 periodic");
        assert_eq!(text("a, b"), "\"a, b\"");
        assert_eq!(text("the \"cold\" one"), "\"the \"\"cold\"\" one\"");
        assert_eq!(text("two\nlines"), "\"two\nlines\"");
    }

    #[test]
    fn numbers_have_all_their_digits_or_are_missing() {
        for value in [0.1 + 0.2, -2.0, 1e-7, 209.82607013629] {
            assert_eq!(number(value).parse::<f64>().unwrap(), value);
        }
        assert_eq!(number(f64::NAN) + &number(f64::INFINITY), "");
    }

    #[test]
    fn tables_are_known_by_their_heads() {
        assert!(is_table(&rows(&[])));
        assert!(!is_table("0,1,1\n"));
    }
}

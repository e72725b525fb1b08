//! Tables as CSV (RFC 4180): numbers with all their digits, what is missing left empty.

use leaps::path::Strength;
use leaps::results::{FreeEnergyResult, Row};

/// Columns of rows of results.
const COLUMNS: [&str; 11] = [
    "source", "target", "beta", "field", "seed", "sampler", "quantity", "value", "error", "exact",
    "sigmas",
];

/// Rows of results, one line each. What stands in place of the field in some of them has a column of its own behind it.
pub fn rows(rows: &[Row]) -> String {
    let others: Vec<Strength> = Strength::ALL
        .into_iter()
        .filter(|of| !of.is_field() && rows.iter().any(|row| row.of == *of))
        .collect();
    let line = |row: &Row| {
        let number = |value: Option<f64>| value.map_or_else(String::new, number);
        let seed = row.seed.map_or_else(String::new, |seed| seed.to_string());
        let of = |strength: Strength| number(row.field.filter(|_| row.of == strength));
        let mut cells = vec![
            text(row.source.as_deref().unwrap_or_default()),
            text(&row.target),
            number(Some(row.beta)),
            of(Strength::Field),
        ];
        cells.extend(others.iter().map(|other| of(*other)));
        cells.extend([
            seed,
            text(&row.sampler),
            text(&row.quantity),
            number(Some(row.value)),
            number(row.error),
            number(row.exact),
            number(row.sigmas),
        ]);
        self::line(cells)
    };
    let mut head = COLUMNS.to_vec();
    let field = COLUMNS.iter().position(|name| *name == "field").unwrap_or(0);
    head.splice(field + 1..field + 1, others.iter().map(|other| other.name()));
    head.join(",") + "\n" + &rows.iter().map(line).collect::<String>()
}

/// Points of a grid, one line each: value, error and, where it is known, exact value of every quantity.
pub fn points(grid: &FreeEnergyResult) -> String {
    let points = &grid.points;
    let Some(first) = points.first() else { return String::new() };
    let fields = points.iter().any(|point| point.field.is_some());
    let mut head = vec!["beta".to_owned()];
    head.extend(fields.then(|| grid.of.name().to_owned()));
    head.push("ess".to_owned());
    for (name, _) in first.named() {
        head.extend([name.to_owned(), format!("{name}_error"), format!("{name}_exact")]);
    }
    head.push("log_z_merit".to_owned());
    let lowest = points.iter().any(|point| point.lowest.is_some());
    let names = ["lowest_energy_per_site", "lowest_state"].map(str::to_owned);
    head.extend(names.into_iter().filter(|_| lowest));
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
        if lowest {
            let own = point.lowest.as_ref();
            cells.push(own.map_or_else(String::new, |own| number(own.energy_per_site)));
            cells.push(own.map_or_else(String::new, |own| text(&own.state)));
        }
        all += &line(cells);
    }
    all
}

/// A cell of a table of anything.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number, or nothing if it is missing or not finite.
    Number(Option<f64>),
}

impl From<&str> for Cell {
    fn from(words: &str) -> Self {
        Cell::Text(words.to_owned())
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Cell::Number(Some(value))
    }
}

impl From<Option<f64>> for Cell {
    fn from(value: Option<f64>) -> Self {
        Cell::Number(value)
    }
}

/// The heads of tables that are no results: by these a file is known as one that may be written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Head {
    /// Models and what their cards say.
    Models,
    /// Training runs and where they stand.
    Runs,
    /// What a configuration means, key by key.
    Configuration,
    /// Experiments that there are.
    Experiments,
}

impl Head {
    const ALL: [Head; 4] = [Head::Models, Head::Runs, Head::Configuration, Head::Experiments];

    /// The names of the columns.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Head::Models => &[
                "model",
                "place",
                "target",
                "network",
                "parameters",
                "walkers",
                "ess",
                "ess_error",
                "log_z",
                "log_z_error",
                "log_z_exact",
                "seconds",
            ],
            Head::Runs => &[
                "run",
                "step",
                "steps",
                "loss",
                "ess",
                "log_z",
                "log_z_error",
                "log_z_exact",
                "steps_per_second",
                "seconds_left",
                "state",
                "family",
            ],
            Head::Configuration => &["key", "value"],
            Head::Experiments => &["experiment", "title", "paper"],
        }
    }
}

/// A table with this head, one line for each list of cells.
pub fn cells(head: Head, lines: impl IntoIterator<Item = Vec<Cell>>) -> String {
    let cell = |cell: Cell| match cell {
        Cell::Text(words) => text(&words),
        Cell::Number(value) => value.map_or_else(String::new, number),
    };
    let body = lines.into_iter().map(|cells| line(cells.into_iter().map(cell)));
    head.columns().join(",") + "\n" + &body.collect::<String>()
}

/// Whether a text is the beginning of one of these tables.
pub fn is_table(start: &str) -> bool {
    // Two names are enough to know one by.
    let known = |head: &Head| start.starts_with(&head.columns()[..2].join(","));
    start.starts_with(&COLUMNS[..3].join(","))
        || start.starts_with("beta,")
        || Head::ALL.iter().any(known)
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
    fn cells_are_words_numbers_or_nothing() {
        let line = vec!["a, b".into(), 0.5.into(), None.into(), f64::NAN.into()];
        let table = cells(Head::Configuration, [line, vec!["x".into(), Cell::from(Some(-2.0))]]);
        assert_eq!(table, "key,value\n\"a, b\",0.5,,\nx,-2\n");
    }

    #[test]
    fn tables_are_known_by_their_heads() {
        assert!(is_table(&rows(&[])));
        for head in Head::ALL {
            assert!(is_table(&cells(head, [])[..32.min(cells(head, []).len())]), "{head:?}");
        }
        assert!(!is_table("0,1,1\n"));
    }
}

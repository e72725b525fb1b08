//! A figure with a name, and the files it can be written as.

use std::path::Path;

use leaps::{Error, Result};

use crate::draw::{Chart, file, pdf, png};

/// A figure of a run, a result, an experiment or free energies.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it is asked for by: small letters and hyphens.
    pub name: String,
    /// What stands above it.
    pub title: String,
    /// The part of the page that it belongs to.
    pub section: &'static str,
    /// The figure as an `<svg>` element of a page.
    pub element: String,
}

impl Figure {
    /// The figure of a chart.
    pub(crate) fn of(name: &str, section: &'static str, chart: &Chart) -> Self {
        let (name, title) = (name.to_owned(), chart.title.clone());
        Figure { name, title, section, element: chart.svg() }
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// None that a figure could cause.
    pub fn encode(&self, format: Format) -> Result<Vec<u8>> {
        let svg = file(&self.element);
        match format {
            Format::Svg => Ok(svg.into_bytes()),
            Format::Png => png(&svg),
            Format::Pdf => pdf(&svg, &self.title),
        }
    }
}

/// The kinds of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Vectors with words in them.
    #[default]
    Svg,
    /// Two pixels a unit.
    Png,
    /// Vectors, letters as outlines.
    Pdf,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 3] = [Format::Svg, Format::Png, Format::Pdf];

    /// How names of such files end.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Svg => "svg",
            Format::Png => "png",
            Format::Pdf => "pdf",
        }
    }

    /// What the name of a file asks for.
    pub fn of(path: &Path) -> Option<Self> {
        let end = path.extension()?.to_str()?.to_ascii_lowercase();
        Format::ALL.into_iter().find(|format| format.extension() == end)
    }
}

/// The figure of a name among others.
///
/// # Errors
/// A name that none of them has; the error has the nearest and all names.
pub fn named<'f>(figures: &'f [Figure], name: &str) -> Result<&'f Figure> {
    figures.iter().find(|figure| figure.name == name).ok_or_else(|| {
        let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        let advice = match names.is_empty() {
            true => "there is nothing to draw".to_owned(),
            false => "--list says what they show".to_owned(),
        };
        let condition = match leaps::parse::nearest(name, names.iter().copied()) {
            Some(near) => format!("a figure such as {near}; there are {}", names.join(", ")),
            None => format!("one of {}", names.join(", ")),
        };
        Error::invalid("FIGURE", name, condition, advice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_say_what_they_are() {
        for (name, format) in [
            ("a.svg", Some(Format::Svg)),
            ("b/a.PNG", Some(Format::Png)),
            ("a.b.pdf", Some(Format::Pdf)),
            ("a.html", None),
            ("svg", None),
        ] {
            assert_eq!(Format::of(Path::new(name)), format, "{name}");
        }
    }

    #[test]
    fn figures_are_found_by_name() {
        let chart = Chart::new("Loss", "step", "loss");
        let figures = ["loss", "modes"].map(|name| Figure::of(name, "", &chart));
        assert_eq!(named(&figures, "modes").unwrap().name, "modes");
        let error = named(&figures, "los").unwrap_err().to_string();
        assert!(error.contains("such as loss; there are loss, modes"), "{error}");
        for format in Format::ALL {
            assert!(figures[0].encode(format).unwrap().len() > 500);
        }
    }
}

//! Figures: one chart, as SVG text, as pixels or as a PDF file.

mod chart;
mod chart_file;
mod font;
mod heat_map;
mod pdf;
mod png;
mod scale;
mod series;
mod strip;
mod style;
mod svg;

pub use chart::Chart;
pub use heat_map::HeatMap;
pub use pdf::pdf;
pub use png::png;
pub use series::GREY;
pub use series::{Mark, Series};
pub use strip::strip;
pub use style::Ink;
pub use svg::{Svg, escape, file};

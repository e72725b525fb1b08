//! Figures: one chart, as SVG text or as pixels.

mod chart;
mod font;
mod heat_map;
mod png;
mod scale;
mod series;
mod style;
mod svg;

pub use chart::Chart;
pub use heat_map::HeatMap;
pub use png::png;
pub use series::GREY;
pub use series::{Mark, Series};
pub use style::Ink;
pub use svg::{Svg, escape, file};

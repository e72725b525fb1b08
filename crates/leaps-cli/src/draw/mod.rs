//! Draw every figure of the program: one chart, as SVG text or as pixels.

mod chart;
mod font;
mod raster;
mod scale;
mod series;
mod surface;
mod svg;

pub use chart::Chart;
pub use series::{GREY, Mark};
pub use surface::{Ink, Surface};
pub use svg::{Svg, escape};

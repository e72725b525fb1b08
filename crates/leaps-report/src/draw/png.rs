//! Figures as pixels, drawn from their SVG text.

use leaps::{Error, Result};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use super::font::FONTS;

/// Pixels of a unit.
const PIXELS: f32 = 2.0;

/// The PNG file of an SVG file, two pixels a unit.
///
/// # Errors
/// Text that is not SVG, or of no size.
pub fn png(svg: &str) -> Result<Vec<u8>> {
    let fail = |reason: String| Error::invalid("svg", "(a figure)", "an SVG image", reason);
    let options = Options { fontdb: FONTS.clone(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| fail(error.to_string()))?;
    let size = tree.size().to_int_size().scale_by(PIXELS);
    let pixels = size.and_then(|size| Pixmap::new(size.width(), size.height()));
    let mut pixels = pixels.ok_or_else(|| fail("it has no size".to_owned()))?;
    resvg::render(&tree, Transform::from_scale(PIXELS, PIXELS), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| fail(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_pixels() {
        let text = |words: &str| {
            let style = "font-family=\"'Noto Sans', sans-serif\" font-size=\"11\"";
            format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 40 20\">\
                 <text x=\"2\" y=\"15\" {style}>{words}</text></svg>"
            )
        };
        let [none, some] = ["", "log Z"].map(|words| png(&text(words)).unwrap());
        assert!(none.starts_with(b"\x89PNG") && some.len() > none.len());
        assert_eq!(some, png(&text("log Z")).unwrap(), "the same bytes again");
        assert!(png("<p>").is_err());
    }
}

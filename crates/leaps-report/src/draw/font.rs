//! The letters of figures, Noto Sans: how wide words are, and the files for whoever draws them.

use std::sync::{Arc, LazyLock};

use resvg::usvg::fontdb::Database;
use ttf_parser::Face;

/// The families that a reader of SVG looks for: ours first, then what every system has.
pub const FAMILY: &str = "'Noto Sans', sans-serif";

type Letters = LazyLock<Option<Face<'static>>>;

static REGULAR: Letters = LazyLock::new(|| Face::parse(notosans::REGULAR_TTF, 0).ok());
static BOLD: Letters = LazyLock::new(|| Face::parse(notosans::BOLD_TTF, 0).ok());

/// The letters, regular and bold, and no others: figures are the same on every system.
pub static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(notosans::REGULAR_TTF.to_vec());
    fonts.load_font_data(notosans::BOLD_TTF.to_vec());
    fonts.set_sans_serif_family("Noto Sans");
    Arc::new(fonts)
});

/// How wide words of a size are.
pub fn width(words: &str, size: f64) -> f64 {
    measured(&REGULAR, words, size)
}

/// The same of bold words.
pub fn bold_width(words: &str, size: f64) -> f64 {
    measured(&BOLD, words, size)
}

fn measured(face: &Letters, words: &str, size: f64) -> f64 {
    let Some(face) = &**face else { return 0.5 * size * words.chars().count() as f64 };
    let advance = |letter: char| {
        let glyph = face.glyph_index(letter).or_else(|| face.glyph_index('?'));
        glyph.and_then(|glyph| face.glyph_hor_advance(glyph)).unwrap_or(0)
    };
    let units: u32 = words.chars().map(|letter| u32::from(advance(letter))).sum();
    f64::from(units) * size / f64::from(face.units_per_em())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_of_figures_is_there() {
        let face = REGULAR.as_ref().unwrap();
        for letter in (32u8..127).map(char::from).chain("±−×·–βσΔ²".chars()) {
            assert!(face.glyph_index(letter).is_some(), "no {letter}");
        }
        assert_eq!(FONTS.len(), 2);
    }

    #[test]
    fn words_are_as_wide_as_their_letters() {
        assert!((width("AA", 10.0) - 2.0 * width("A", 10.0)).abs() < 1e-12);
        assert!(width("W", 10.0) > width("i", 10.0));
        assert!(bold_width("A", 10.0) > width("A", 10.0));
        assert_eq!(width("\u{4e00}", 10.0), width("?", 10.0));
    }
}

//! Widths of words and shapes of letters.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::surface::Point;

/// One letter, a thousand units an em, y upwards.
#[derive(Debug, Default)]
struct Glyph {
    advance: f64,
    contours: Vec<Vec<Point>>,
}

static GLYPHS: LazyLock<BTreeMap<char, Glyph>> = LazyLock::new(|| {
    let lines = include_str!("font.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(glyph).collect()
});

/// Straight pieces that a curve is made of.
const PIECES: usize = 6;

/// One line of the file: code point, advance, outline.
fn glyph(line: &str) -> Option<(char, Glyph)> {
    let mut words = line.splitn(3, ' ');
    let letter = char::from_u32(u32::from_str_radix(words.next()?, 16).ok()?)?;
    let advance = words.next()?.parse().ok()?;
    Some((letter, Glyph { advance, contours: outline(words.next().unwrap_or_default()) }))
}

/// Contours of a path of M, L, H, V, Q and Z.
fn outline(path: &str) -> Vec<Vec<Point>> {
    let mut contours: Vec<Vec<Point>> = Vec::new();
    let mut at = (0.0, 0.0);
    for (start, letter) in path.char_indices().filter(|(_, c)| c.is_ascii_alphabetic()) {
        let rest = &path[start + 1..];
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let numbers: Vec<f64> =
            rest[..end].split_whitespace().filter_map(|word| word.parse().ok()).collect();
        if letter == 'M' {
            contours.push(Vec::new());
        }
        let Some(contour) = contours.last_mut() else { continue };
        match letter {
            'M' | 'L' => {
                for pair in numbers.chunks_exact(2) {
                    at = (pair[0], pair[1]);
                    contour.push(at);
                }
            }
            'H' | 'V' => {
                for &value in &numbers {
                    at = if letter == 'H' { (value, at.1) } else { (at.0, value) };
                    contour.push(at);
                }
            }
            'Q' => {
                for curve in numbers.chunks_exact(4) {
                    let (from, by, to) = (at, (curve[0], curve[1]), (curve[2], curve[3]));
                    for piece in 1..=PIECES {
                        let t = piece as f64 / PIECES as f64;
                        let mix = |a: f64, b: f64, c: f64| {
                            (1.0 - t) * (1.0 - t) * a + 2.0 * t * (1.0 - t) * b + t * t * c
                        };
                        contour.push((mix(from.0, by.0, to.0), mix(from.1, by.1, to.1)));
                    }
                    at = to;
                }
            }
            _ => {}
        }
    }
    contours
}

fn of(letter: char) -> Option<&'static Glyph> {
    GLYPHS.get(&letter).or_else(|| GLYPHS.get(&'?'))
}

/// How wide words of a size are.
pub fn width(words: &str, size: f64) -> f64 {
    words.chars().filter_map(of).map(|glyph| glyph.advance).sum::<f64>() * size / 1000.0
}

/// The contours of words of a size that begin at the origin, y downwards.
pub fn contours(words: &str, size: f64) -> Vec<Vec<Point>> {
    let (mut all, mut pen, scale) = (Vec::new(), 0.0, size / 1000.0);
    for glyph in words.chars().filter_map(of) {
        let place = |&(x, y): &Point| ((pen + x) * scale, -y * scale);
        all.extend(glyph.contours.iter().map(|contour| contour.iter().map(place).collect()));
        pen += glyph.advance;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printable_letter_is_there() {
        for letter in (33u8..127).map(char::from).chain("±−×·–βσΔ²".chars()) {
            let glyph = GLYPHS.get(&letter).unwrap_or_else(|| panic!("no {letter}"));
            assert!(glyph.advance > 100.0 && !glyph.contours.is_empty(), "{letter}");
            let tall = glyph.contours.iter().flatten().all(|p| (-300.0..1000.0).contains(&p.1));
            assert!(tall, "{letter}");
        }
        assert!(GLYPHS[&' '].contours.is_empty());
    }

    #[test]
    fn words_are_as_wide_as_their_letters() {
        assert!((width("AA", 10.0) - 2.0 * width("A", 10.0)).abs() < 1e-12);
        assert!(width("W", 10.0) > width("i", 10.0));
        assert_eq!(width("\u{4e00}", 10.0), width("?", 10.0));
        let last = contours("AB", 10.0).pop().unwrap();
        assert!(last.iter().all(|p| p.0 > width("A", 10.0)), "the second letter follows the first");
    }
}

//! A state of a lattice in half-blocks, two sites in a character; as digits where there are no colours to tell values apart.

use leaps::store::Snapshot;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::widgets::Widget;

/// The colour of the filled value of two.
const FILLED: Color = Color::Cyan;

/// Colours of more values.
const COLOURS: [Color; 10] = [
    Color::Blue,
    Color::Yellow,
    Color::Green,
    Color::Red,
    Color::Magenta,
    Color::Cyan,
    Color::White,
    Color::DarkGray,
    Color::LightYellow,
    Color::LightGreen,
];

/// A plane of a lattice.
pub struct Plane<'a> {
    rows: usize,
    columns: usize,
    q: usize,
    x: &'a [u8],
}

impl<'a> Plane<'a> {
    /// The first plane of a state; a chain is one row. None if it has no sites.
    pub fn of(snapshot: &'a Snapshot) -> Option<Self> {
        let (rows, columns) = match snapshot.shape[..] {
            [columns] => (1, columns),
            [.., rows, columns] => (rows, columns),
            [] => return None,
        };
        let x = snapshot.x.as_bytes().get(..rows * columns)?;
        (!x.is_empty()).then_some(Plane { rows, columns, q: snapshot.q, x })
    }

    /// Its width in characters when every site has one.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// How large sites are in half characters, if the whole plane fits in.
    fn scale(&self, area: Rect, digits: bool) -> Option<usize> {
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let fits = if digits {
            (width / self.columns).min(height / self.rows).min(1)
        } else {
            (width / self.columns).min(2 * height / self.rows)
        };
        (fits > 0).then_some(fits)
    }

    /// Whether values are told apart by digits.
    fn digits(&self, plain: bool) -> bool {
        plain && self.q > 2
    }

    /// How much of it is shown, if that is not all.
    pub fn cropped(&self, area: Rect, plain: bool) -> Option<String> {
        let digits = self.digits(plain);
        let rows = usize::from(area.height) * if digits { 1 } else { 2 };
        let shown = (self.rows.min(rows), self.columns.min(usize::from(area.width)));
        self.scale(area, digits).is_none().then(|| format!("{}x{} shown", shown.0, shown.1))
    }

    /// The value at a half character, if there is a site.
    fn value(&self, row: usize, column: usize, scale: usize) -> Option<u8> {
        let (row, column) = (row / scale, column / scale);
        let inside = row < self.rows && column < self.columns;
        inside.then(|| self.x[row * self.columns + column].saturating_sub(b'0'))
    }

    /// Draw as much as fits in.
    pub fn render(&self, area: Rect, buffer: &mut Buffer, plain: bool) {
        let digits = self.digits(plain);
        let scale = self.scale(area, digits).unwrap_or(1);
        for y in 0..area.height {
            for x in 0..area.width {
                let at = |row: usize| self.value(row, usize::from(x), scale);
                let row = usize::from(y);
                let cell = if digits {
                    at(row).map(|value| (char::from(b'0' + value), Style::new()))
                } else {
                    self.halves(at(2 * row), at(2 * row + 1))
                };
                if let Some((symbol, style)) = cell {
                    buffer[(area.x + x, area.y + y)].set_char(symbol).set_style(style);
                }
            }
        }
    }

    /// Two sites, one above the other.
    fn halves(&self, top: Option<u8>, bottom: Option<u8>) -> Option<(char, Style)> {
        let top = top?;
        if self.q > 2 {
            let colour = |value: u8| COLOURS[usize::from(value) % COLOURS.len()];
            let style = Style::new().fg(colour(top));
            let style = bottom.map_or(style, |bottom| style.bg(colour(bottom)));
            return Some(('▀', style));
        }
        let symbol = match (top, bottom.unwrap_or(0)) {
            (0, 0) => ' ',
            (_, 0) => '▀',
            (0, _) => '▄',
            _ => '█',
        };
        Some((symbol, Style::new().fg(FILLED)))
    }
}

/// A plane as a widget.
pub struct Picture<'a>(pub &'a Plane<'a>, pub bool);

impl Widget for Picture<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        self.0.render(area, buffer, self.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(
        shape: &[usize],
        q: usize,
        x: &str,
        (width, height): (u16, u16),
        plain: bool,
    ) -> String {
        let snapshot = Snapshot { step: 1, shape: shape.to_vec(), q, x: x.to_owned() };
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        Plane::of(&snapshot).unwrap().render(area, &mut buffer, plain);
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(line).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn two_rows_share_a_line() {
        assert_eq!(drawn(&[3, 4], 2, "011011001010", (4, 2), true), "▄█▀ |▀ ▀ ");
        assert_eq!(drawn(&[4], 2, "0110", (4, 1), false), " ▀▀ ");
    }

    #[test]
    fn small_lattices_are_drawn_larger_and_large_ones_in_part() {
        assert_eq!(drawn(&[2, 2], 2, "0110", (4, 2), true), "  ██|██  ");
        assert_eq!(drawn(&[2, 2], 2, "0110", (1, 1), true), "▄");
        let large = Snapshot { step: 1, shape: vec![4, 4], q: 2, x: "0".repeat(16) };
        let plane = Plane::of(&large).unwrap();
        assert_eq!(plane.cropped(Rect::new(0, 0, 3, 9), true).unwrap(), "4x3 shown");
        assert_eq!(plane.cropped(Rect::new(0, 0, 4, 2), true), None);
    }

    #[test]
    fn more_values_have_colours_or_digits() {
        assert_eq!(drawn(&[2, 3], 3, "012210", (3, 2), true), "012|210");
        let snapshot = Snapshot { step: 1, shape: vec![2, 1], q: 3, x: "02".to_owned() };
        let area = Rect::new(0, 0, 1, 1);
        let mut buffer = Buffer::empty(area);
        Plane::of(&snapshot).unwrap().render(area, &mut buffer, false);
        let cell = &buffer[(0, 0)];
        assert_eq!((cell.symbol(), cell.fg, cell.bg), ("▀", COLOURS[0], COLOURS[2]));
    }

    #[test]
    fn of_a_cube_the_first_plane_is_shown() {
        assert_eq!(drawn(&[2, 2, 2], 2, "10011111", (2, 1), true), "▀▄");
    }
}

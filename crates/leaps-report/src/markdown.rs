//! Markdown whose prose lines are of one width.

/// Columns of a line at most.
const WIDTH: usize = 120;

/// The page with every paragraph and list entry that has a longer line filled anew; code, tables, headings and figures stay.
pub fn wrapped(page: &str) -> String {
    let (mut out, mut paragraph) = (String::new(), Vec::new());
    let mut code = false;
    for line in page.lines() {
        let text = line.trim_start();
        let fence = text.starts_with("```");
        let prose = !code && !fence && !text.is_empty() && !text.starts_with(['|', '#', '<', '!']);
        if !prose || is_entry(text) {
            put(&mut out, &std::mem::take(&mut paragraph));
        }
        match prose {
            true => paragraph.push(line),
            false => out += &format!("{line}\n"),
        }
        code ^= fence;
    }
    put(&mut out, &paragraph);
    out
}

/// Whether a line begins an entry of a list.
fn is_entry(text: &str) -> bool {
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    ["- ", "* ", "+ "].iter().any(|mark| text.starts_with(mark))
        || number.len() < text.len() && number.starts_with(". ")
}

/// Add a paragraph, filled anew if it must be.
fn put(out: &mut String, lines: &[&str]) {
    let width = |line: &str| line.chars().count();
    if lines.iter().all(|line| width(line) <= WIDTH) {
        lines.iter().for_each(|line| *out += &format!("{line}\n"));
        return;
    }
    let text = lines[0].trim_start();
    let indent = width(lines[0]) - width(text);
    let mark = if is_entry(text) { text.find(' ').map_or(0, |at| at + 1) } else { 0 };
    let (mut line, hanging) = (" ".repeat(indent), " ".repeat(indent + mark));
    let mut units: Vec<String> = Vec::new();
    for word in lines.iter().flat_map(|line| line.split_whitespace()) {
        // A word that would begin an entry, a heading or a table stays with the one before it.
        let marks = is_entry(&format!("{word} ")) || word.starts_with(['#', '|', '>']);
        match units.last_mut() {
            Some(unit) if marks => *unit += &format!(" {word}"),
            _ => units.push(word.to_owned()),
        }
    }
    let mut begun = false;
    for unit in units {
        if begun && width(&line) + 1 + width(&unit) > WIDTH {
            *out += &format!("{line}\n");
            (line, begun) = (hanging.clone(), false);
        }
        line += if begun { " " } else { "" };
        line += &unit;
        begun = true;
    }
    *out += &format!("{line}\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_filled_and_the_rest_stays() {
        let long = "word ".repeat(60);
        let code =
            format!("```sh\n{long}\n```\n| {long} |\n## {long}\nA short line\nand another.\n");
        assert_eq!(wrapped(&code), code);
        let page = wrapped(&format!("{long}\nend\n\n- one\n- {long}\n  end\n1. {long}\n"));
        assert!(page.lines().all(|line| line.chars().count() <= WIDTH), "{page}");
        let row = "word ".repeat(24);
        assert!(page.starts_with(&format!("{}\n", row.trim_end())), "{page}");
        assert!(page.contains(
            "\nword word word word word word word word word word word word end\n\n- one\n- word"
        ));
        assert!(
            page.contains("\n  word") && page.contains("\n1. word") && page.contains("\n   word")
        );
        // The words are the same.
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let dashes = format!("{}- 1. # end\n", "word ".repeat(24));
        assert_eq!(words(&wrapped(&dashes)), words(&dashes));
        assert!(wrapped(&dashes).ends_with("\nword - 1. # end\n"), "{dashes}");
    }
}

//! Pages of Markdown, cut into text and blocks of code.

use std::fs;
use std::path::{Path, PathBuf};

/// A page.
pub struct Page {
    /// Where it is, from the root of the repository.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Blocks of code.
    pub blocks: Vec<Block>,
    /// Lines outside of blocks, with their numbers.
    pub lines: Vec<(usize, String)>,
}

/// A block of code.
pub struct Block {
    /// The number of its first line.
    pub line: usize,
    /// What stands behind the opening fence.
    pub language: String,
    /// Its lines, without the indent of the fence.
    pub code: Vec<String>,
    /// The last line of text before it that is not blank.
    pub before: String,
}

impl Page {
    /// Read a page below `root`.
    pub fn read(root: &Path, path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let name = path.strip_prefix(root).unwrap().display().to_string().replace('\\', "/");
        let mut page = Page { name, text, blocks: Vec::new(), lines: Vec::new() };
        let mut open: Option<(usize, Block)> = None;
        let mut before = String::new();
        for (number, line) in page.text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            match (&mut open, fence) {
                (None, Some(language)) => {
                    let block = Block {
                        line: number + 2,
                        language: language.trim().to_owned(),
                        code: Vec::new(),
                        before: std::mem::take(&mut before),
                    };
                    open = Some((line.len() - line.trim_start().len(), block));
                }
                (Some(_), Some("")) => page.blocks.extend(open.take().map(|(_, block)| block)),
                (Some((indent, block)), _) => {
                    block.code.push(line.get(*indent..).unwrap_or_default().to_owned());
                }
                (None, None) => {
                    if !line.trim().is_empty() {
                        line.trim().clone_into(&mut before);
                    }
                    page.lines.push((number + 1, line.to_owned()));
                }
            }
        }
        assert!(open.is_none(), "{}: a block without an end", page.name);
        page
    }

    /// The spans of inline code of the text, which may go over the end of a line.
    pub fn spans(&self) -> Vec<String> {
        let text: Vec<&str> = self.lines.iter().map(|(_, line)| line.as_str()).collect();
        let mut spans = Vec::new();
        // A paragraph at a time: a lone backtick does no harm beyond its own.
        for paragraph in text.join("\n").split("\n\n").flat_map(rows) {
            let span = paragraph.split('`').skip(1).step_by(2);
            spans.extend(span.map(|s| s.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
        spans
    }
}

/// The rows of a table one by one, other paragraphs whole.
fn rows(paragraph: &str) -> Vec<&str> {
    match paragraph.trim_start().starts_with('|') {
        true => paragraph.lines().collect(),
        false => vec![paragraph],
    }
}

/// Every page below `folder`, and in the folders in it, in order.
pub fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            below(&path, found);
        } else if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
}

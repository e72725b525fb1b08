//! Links of all pages of the repository, as a Git host resolves them: files, folders, images and headings.
//!
//! The links of the built site are checked by `scripts/book/links.py`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::markdown::{Page, below};
use crate::root;

/// README, CHANGELOG, CONTRIBUTING, docs/ and crates/.
fn pages() -> Vec<Page> {
    let root = root();
    let mut paths: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|name| root.join(name)).to_vec();
    below(&root.join("docs"), &mut paths);
    below(&root.join("crates"), &mut paths);
    paths.iter().map(|path| Page::read(&root, path)).collect()
}

/// Addresses in `[words](address)`, code spans left out.
fn addresses(line: &str) -> Vec<String> {
    let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
    let ends = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    ends.map(|(address, _)| address.to_owned()).collect()
}

/// The anchors of a page: its headings in lower case, blanks as hyphens, without signs; repeated ones numbered.
fn anchors(page: &Page) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = page.lines.iter().filter(|(_, line)| line.starts_with('#'));
    let slugs = headings.map(|(_, line)| {
        let words = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        let kept = |c: &char| c.is_alphanumeric() || ['-', '_'].contains(c);
        words.chars().filter(kept).collect::<String>()
    });
    let number = |slug: String| {
        let times = seen.entry(slug.clone()).or_insert(0);
        *times += 1;
        if *times == 1 { slug } else { format!("{slug}-{}", *times - 1) }
    };
    slugs.map(number).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let (root, pages) = (root(), pages());
    let anchors: BTreeMap<PathBuf, BTreeSet<String>> =
        pages.iter().map(|page| (root.join(&page.name), anchors(page))).collect();
    let (mut dead, mut checked) = (Vec::new(), 0);
    for page in &pages {
        let here = root.join(&page.name);
        for (number, line) in &page.lines {
            for address in addresses(line) {
                if address.contains("://") || address.starts_with("mailto:") {
                    continue;
                }
                checked += 1;
                let (path, anchor) = address.split_once('#').unwrap_or((&address, ""));
                let file = match path {
                    "" => Ok(here.clone()),
                    path => here.parent().unwrap().join(path).canonicalize(),
                };
                let Ok(file) = file else {
                    dead.push(format!("{}:{number}: {address}: no such file", page.name));
                    continue;
                };
                let known = anchors.get(&file).is_none_or(|all| all.contains(anchor));
                if !anchor.is_empty() && !known {
                    dead.push(format!("{}:{number}: {address}: no such heading", page.name));
                }
            }
        }
    }
    assert!(checked > 150, "only {checked} links were found");
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn every_page_is_in_the_book() {
    let root = root();
    let summary = Page::read(&root, &root.join("docs/SUMMARY.md"));
    let named: BTreeSet<String> =
        summary.lines.iter().flat_map(|(_, line)| addresses(line)).collect();
    let pages: Vec<Page> = pages();
    let docs = pages.iter().filter_map(|page| page.name.strip_prefix("docs/"));
    let missing: Vec<&str> =
        docs.filter(|name| *name != "SUMMARY.md" && !named.contains(*name)).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md has no line for {missing:?}");
}

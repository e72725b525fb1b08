"""mdBook preprocessor: what a Git host renders by itself and mdBook does not.

- ```math blocks and $...$ become elements of class `math`, which KaTeX renders (theme/head.hbs);
- a page with `<!-- on the site: ../FILE.md -->` shows that file of the repository, which may be a notebook (.ipynb);
- links to pages outside docs/ that the site shows go there; those to other files go to copies under files/,
  which `build` makes; those to folders become plain text.
"""

import html
import json
import os
import pathlib
import re
import sys

import notebook

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
ROOT = DOCS.parent
SHOWN = re.compile(r"^<!-- on the site: (\S+) -->$", re.M)
FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})(.*)$")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
MATH = re.compile(r"(?<![\\$\w])\$(?![\s$])([^$]+?)(?<!\s)\$(?![\w$])")


def shown_elsewhere():
    """Files of the repository that pages of the site show, and those pages, both from the root."""
    found = {}
    for page in DOCS.rglob("*.md"):
        for name in SHOWN.findall(page.read_text(encoding="utf-8")):
            found[os.path.relpath(page.parent / name, ROOT)] = os.path.relpath(page, ROOT)
    return found


def target_of(link, source, page, shown, copied):
    """Where `link`, written in `source`, leads from `page` of the site; None for what the site has not."""
    path, mark, anchor = link.partition("#")
    if re.match(r"[a-z]+:", link) or not path:
        return link
    file = os.path.relpath(ROOT / os.path.dirname(source) / path, ROOT)
    file = shown.get(file, file)
    inside = os.path.relpath(ROOT / file, DOCS)
    if (ROOT / file).is_dir():
        if not (ROOT / file / "README.md").exists() or inside.startswith(".."):
            return None
        inside += "/README.md"
    if inside.startswith(".."):
        inside = f"files/{file.removesuffix('.md')}.txt"
        copied.add(f"{file}\t{inside}")
    elif os.path.basename(inside) == "README.md":
        inside = inside[: -len("README.md")] + "index.html"
    return os.path.relpath(DOCS / inside, (ROOT / page).parent) + mark + anchor


def line_of(text, source, page, shown, copied):
    """A line outside of code blocks, with links and formulas for the site; code spans stay as they are."""

    def link(match):
        image, words, address = match.groups()
        where = target_of(address, source, page, shown, copied)
        if where is None:
            name = os.path.normpath(os.path.join(os.path.dirname(source), address)) + "/"
            return words if words.strip("`/") == name.strip("/") else f"{words} (`{name}`)"
        return f"{image}[{words}]({where})"

    def formula(match):
        return f'<span class="math">{markdown_safe(match[1])}</span>'

    text = LINK.sub(link, text)
    parts = re.split(r"(`+[^`]*`+)", text)
    return "".join(p if p.startswith("`") else MATH.sub(formula, p) for p in parts)


def markdown_safe(formula):
    """A formula as text that neither HTML nor Markdown reads as anything else."""
    return re.sub(r"[\\_*~`\[\]{}|]", lambda c: f"&#{ord(c[0])};", html.escape(formula))


def outputs(lines):
    """Whether each line belongs to an output of a notebook, which is HTML and stays as it is."""
    inside = False
    for line in lines:
        inside = inside or line.startswith('<div class="output">')
        yield inside or line.startswith('<img alt="output"')
        inside = inside and not line.endswith("</div>")


def site(text, source, page, shown, copied):
    """The Markdown of `source`, a file of the repository, as the site shows it at `page`."""
    out, fence, formula = [], None, None
    # A formula may go over the end of a line.
    text = re.sub(r"(?<![\\$\w`])\$([^$`\n]{1,120})\n([^$`\n]{1,120})\$(?![\w$])", r"$\1 \2$", text)
    lines = text.split("\n")
    for line, output in zip(lines, outputs(lines)):
        mark = FENCE.match(line)
        if output and not fence:
            out.append(line)
        elif formula is not None:
            if mark:
                out += ['<div class="math">' + markdown_safe(" ".join(formula)) + "</div>", ""]
                formula = None
            else:
                formula.append(line.strip())
        elif fence:
            fence = None if mark and mark[2].startswith(fence) and not mark[3].strip() else fence
            out.append(line)
        elif mark and mark[3].strip() == "math":
            formula = []
        elif mark:
            fence = mark[2]
            out.append(line)
        else:
            out.append(line_of(line, source, page, shown, copied))
    return "\n".join(out)


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    shown, copied = shown_elsewhere(), set()

    def chapters(items):
        for item in items:
            chapter = item.get("Chapter") if isinstance(item, dict) else None
            if not chapter or not chapter.get("source_path"):
                continue
            page = source = os.path.relpath(DOCS / chapter["source_path"], ROOT)
            text = chapter["content"]
            if named := SHOWN.search(text):
                source = os.path.relpath((ROOT / page).parent / named[1], ROOT)
                text = (ROOT / source).read_text(encoding="utf-8")
                text = notebook.markdown(text) if source.endswith(".ipynb") else text
            chapter["content"] = site(text, source, page, shown, copied)
            chapters(chapter["sub_items"])

    chapters(book.get("items", book.get("sections", [])))
    if listing := os.environ.get("LEAPS_BOOK_FILES"):
        pathlib.Path(listing).write_text("".join(f"{name}\n" for name in sorted(copied)))
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()

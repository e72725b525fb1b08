"""Check the links of a built site: every page, image, file and anchor that a page names must be there.

Asks nobody outside: addresses with a scheme are left alone.
"""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """The anchors of a page and what it links to."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if value and (name == "id" or (tag == "a" and name == "name")):
                self.anchors.add(value)
            elif value and name in ("href", "src"):
                self.links.append(value)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: Page(path) for path in sorted(root.rglob("*.html"))}
    dead, checked = [], 0
    for path, page in pages.items():
        if path.name == "toc.html":  # for readers without scripts: relative to the site's root by its <base>
            continue
        # mdBook's own page for addresses that are not there has links from the root of the server.
        for link in page.links if path.name != "404.html" else []:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            checked += 1
            file = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if file.is_dir():
                file = file / "index.html"
            if not file.exists():
                dead.append(f"{path.relative_to(root)}: {link}: no such file")
            elif parts.fragment and file in pages:
                if urllib.parse.unquote(parts.fragment) not in pages[file].anchors:
                    dead.append(f"{path.relative_to(root)}: {link}: no such anchor")
    print(f"{len(pages)} pages, {checked} links, {len(dead)} dead")
    if dead or len(pages) < 30 or checked < 500:
        sys.exit("\n".join(dead) or "too few pages or links: is this the site?")


if __name__ == "__main__":
    main()

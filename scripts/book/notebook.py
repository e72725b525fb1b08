"""A Jupyter notebook as Markdown: text, code, and the outputs that it was saved with."""

import html
import json
import re

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def joined(value):
    """Text of a notebook, which may be a list of lines."""
    return value if isinstance(value, str) else "".join(value)


def fenced(text, language):
    """A block of code whose fence is longer than any in it."""
    fence = "`" * max([3] + [len(run) + 1 for run in re.findall(r"`{3,}", text)])
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def shown(output):
    """An output as Markdown; of several forms the richest."""
    if output["output_type"] == "stream":
        return fenced(COLOURS.sub("", joined(output["text"])), "text")
    if output["output_type"] == "error":
        return fenced(COLOURS.sub("", "\n".join(output["traceback"])), "text")
    data = output.get("data", {})
    for kind in ("image/svg+xml", "image/png", "image/jpeg"):
        if kind in data:
            content = joined(data[kind])
            if kind == "image/svg+xml":
                # Inline, without blank lines, which would end the HTML.
                return '<div class="output">' + re.sub(r"\n\s*\n+", "\n", content.strip()) + "</div>"
            return f'<img alt="output" src="data:{kind};base64,{"".join(content.split())}">'
    if "text/html" in data:
        content = re.sub(r"\n\s*\n+", "\n", joined(data["text/html"]).strip())
        return f'<div class="output">{content}</div>'
    if "text/markdown" in data:
        return joined(data["text/markdown"])
    if "text/plain" in data:
        return fenced(joined(data["text/plain"]), "text")
    return f"<p>An output of kind {html.escape(', '.join(data) or 'unknown')}.</p>"


def markdown(text):
    """The Markdown of a notebook, given as its JSON text."""
    notebook = json.loads(text)
    parts = []
    for cell in notebook["cells"]:
        source = joined(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code" and source.strip():
            parts.append(fenced(source, "python"))
            parts += [shown(output) for output in cell.get("outputs", [])]
    return "\n\n".join(parts) + "\n"

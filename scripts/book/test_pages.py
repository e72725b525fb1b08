"""Tests of the preprocessor of pages and notebooks."""

import json
import unittest

import notebook
import pages


def site(text, page="docs/theory.md"):
    return pages.site(text, page, page, {"CHANGELOG.md": "docs/changelog.md"}, set())


class Pages(unittest.TestCase):
    def test_formulas_are_kept_from_markdown(self):
        self.assertEqual(site("a $x_i$ b"), 'a <span class="math">x&#95;i</span> b')
        self.assertIn('<div class="math">a &lt; b c</div>', site("```math\na < b\nc\n```"))
        self.assertIn('<span class="math">a b</span>', site("$a\nb$"))

    def test_money_and_code_are_no_formulas(self):
        for text in ["`$a$`", "5 $ and 6 $", "```sh\necho $a $b\n```", "a$b$c"]:
            self.assertEqual(site(text), text)

    def test_links_stay_on_the_site_or_go_to_copies(self):
        self.assertEqual(site("[a](gpu.md#memory)"), "[a](gpu.md#memory)")
        self.assertEqual(site("[a](results/README.md)"), "[a](results/index.html)")
        self.assertEqual(site("[a](../CHANGELOG.md)"), "[a](changelog.md)")
        self.assertEqual(site("[a](../Cargo.toml)"), "[a](files/Cargo.toml.txt)")
        self.assertEqual(site("[a](../crates/leaps/src/)"), "a (`crates/leaps/src/`)")
        self.assertEqual(site("[a](https://b.c/d)"), "[a](https://b.c/d)")


class Notebooks(unittest.TestCase):
    def test_cells_and_outputs_are_shown(self):
        table = {"output_type": "execute_result", "data": {"text/html": ["<p>$1", "\n\n", "a_b $2</p>"], "text/plain": "no"}}
        talk = {"output_type": "stream", "text": ["\x1b[31m", "seven\n"]}
        cells = [
            {"cell_type": "markdown", "source": ["# Title\n", "$x$"]},
            {"cell_type": "code", "source": "print(7)", "outputs": [talk, table]},
        ]
        text = site(notebook.markdown(json.dumps({"cells": cells})))
        for part in ["# Title", 'class="math">x<', "```python\nprint(7)\n```", "```text\nseven\n```", "<p>$1\na_b $2</p>"]:
            self.assertIn(part, text)
        self.assertNotIn("no", text)


if __name__ == "__main__":
    unittest.main()

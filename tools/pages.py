"""Builds the documentation: markdown pages in, HTML out, with every Python block run and its output shown.

    python tools/pages.py [folder]    (`make docs`)

Blocks of one page share their names, like cells of a notebook. A block that raises stops the build.
"""

from __future__ import annotations

import base64
import contextlib
import html
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
STYLE = """
body{font:16px/1.6 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#222}
nav{border-bottom:1px solid #ddd;padding-bottom:.5rem;margin-bottom:1.5rem}nav a{margin-right:1rem}
pre{background:#f6f6f4;padding:.7rem 1rem;overflow-x:auto;border-radius:4px;line-height:1.4}
pre.output{background:#fff;border-left:3px solid #bbb;border-radius:0;margin-top:-.7rem}
table{border-collapse:collapse}td,th{padding:.25rem .8rem;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}
img{max-width:100%}code{font-size:.92em}
"""


def blocks(text: str) -> list[str]:
    """The Python blocks of a markdown page."""
    return BLOCK.findall(text)


def run(code: str, names: dict[str, Any], where: str = "page") -> str:
    """Run a block and return what it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, where, "exec"), names)
    return printed.getvalue()


def run_page(text: str, where: str = "page") -> tuple[dict[str, Any], list[str]]:
    """Run all blocks of a page in a folder of its own; the names they made, and what each printed."""
    names: dict[str, Any] = {"__name__": "page"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return names, [run(code, names, where) + _figures() for code in blocks(text)]
        finally:
            os.chdir(before)


def _figures() -> str:
    """The figures a block left open, as images, closed."""
    if "matplotlib.pyplot" not in sys.modules:
        return ""
    import matplotlib.pyplot as plt

    images = ""
    for number in plt.get_fignums():
        buffer = io.BytesIO()
        plt.figure(number).savefig(buffer, dpi=100, format="png")
        images += f'<img src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'
    plt.close("all")
    return images


def render(path: Path) -> str:
    """A page as HTML, with the output of its blocks."""
    from markdown_it import MarkdownIt

    text = path.read_text(encoding="utf-8")
    outputs = iter(run_page(text, str(path))[1])

    def with_output(match: re.Match[str]) -> str:
        said = next(outputs)
        printed, _, images = said.partition("<img")
        shown = f'\n<pre class="output">{html.escape(printed.rstrip())}</pre>\n' if printed.strip() else ""
        return match[0] + shown + (f"\n<p><img{images}</p>\n" if images else "")

    text = re.sub(r"\((?:docs/)?(\w+)\.md\)", r"(\1.html)", BLOCK.sub(with_output, text))
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    links = "".join(f'<a href="{page.stem}.html">{page.stem.replace("_", " ").lower()}</a>' for page in PAGES)
    title = html.escape(text.partition("\n")[0].lstrip("# "))
    return f'<!doctype html><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style><nav>{links}</nav>{body}'


def main(folder: str = "docs/_build") -> None:
    """Build every page."""
    out = Path(folder).resolve()
    out.mkdir(parents=True, exist_ok=True)
    for path in PAGES:
        (out / f"{path.stem}.html").write_text(render(path), encoding="utf-8")
    print(f"The documentation is in {out / 'index.html'}")


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    main(*sys.argv[1:2])

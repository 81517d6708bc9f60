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

from reference import reference

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
GROUPS = {
    "Start": ("index", "getting_started", "idea", "commands", "from_sklearn", "gallery"),
    "Trust": ("certificates", "trust", "diagnoses", "remarks", "threads", "larger_than_memory"),
    "Inside": ("reference", "notation", "how_to_add", "CONTRIBUTING", "CHANGELOG"),
}
NAMES = {"index": "hinge", "from_sklearn": "coming from scikit-learn", "commands": "the command", "idea": "the idea"}
STYLE = """
:root{--ink:#1d2433;--soft:#5c667a;--line:#e3e7ee;--page:#fff;--side:#f6f7fa;--code:#f3f5f9;--link:#2459c9}
@media (prefers-color-scheme:dark){:root{--ink:#e7ebf3;--soft:#9aa6bd;--line:#2b3446;--page:#10151f;--side:#151c28;
--code:#1a2230;--link:#8ab0ff}img{background:#fff;border-radius:6px}}
*{box-sizing:border-box}html{scroll-behavior:smooth}
body{margin:0;font:16px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:var(--ink);background:var(--page);
display:grid;grid-template-columns:15rem minmax(0,1fr)}
aside{background:var(--side);border-right:1px solid var(--line);padding:1.2rem 1.1rem;min-height:100vh}
aside div{position:sticky;top:1rem}aside b{display:block;font-size:.78rem;letter-spacing:.06em;text-transform:uppercase;
color:var(--soft);margin:1.1rem 0 .25rem}aside a{display:block;color:var(--ink);text-decoration:none;padding:.12rem 0;font-size:.95rem}
aside a:hover,aside a.here{color:var(--link)}aside a.here{font-weight:600}
main{max-width:54rem;padding:1.6rem 2rem 5rem;min-width:0}
h1{font-size:2rem;line-height:1.2;margin:.2rem 0 1rem;letter-spacing:-.01em}h2{margin:2.2rem 0 .6rem;font-size:1.35rem}
a{color:var(--link)}pre{background:var(--code);padding:.75rem 1rem;overflow-x:auto;border-radius:8px;line-height:1.45;font-size:.88rem}
pre.output{white-space:pre-wrap;overflow-wrap:anywhere;background:transparent;border-left:3px solid var(--line);border-radius:0;margin-top:-.6rem;color:var(--soft)}
code{font-family:ui-monospace,"SF Mono",Menlo,Consolas,monospace;font-size:.9em}
table{border-collapse:collapse;display:block;overflow-x:auto}td,th{padding:.3rem .9rem .3rem 0;border-bottom:1px solid var(--line);
text-align:left;vertical-align:top}img{max-width:100%}
.entry{border-top:1px solid var(--line);padding:.8rem 0}.signature{display:block;background:var(--code);padding:.5rem .7rem;
border-radius:8px;overflow-wrap:anywhere}.entry h4{margin:.8rem 0 .2rem}dl{margin:.2rem 0}dt{font-weight:600;font-size:.93rem}
dd{margin:0 0 .3rem 1.2rem}
@media (max-width:50rem){body{display:block}aside{min-height:0;border-right:0;border-bottom:1px solid var(--line);padding:.7rem 1rem}
aside div{position:static}aside b{margin:.4rem 0 0}aside a{display:inline-block;margin-right:.8rem}main{padding:1rem}}
@media print{aside{display:none}body{display:block}}
"""


def blocks(text: str) -> list[str]:
    """The Python blocks of a markdown page."""
    return BLOCK.findall(text)


def run(code: str, names: dict[str, Any], where: str = "page") -> str:
    """Run a block and return what it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, where, "exec", dont_inherit=True), names)
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
    return frame(path.stem, html.escape(text.partition("\n")[0].lstrip("# ")), body)


def frame(stem: str, title: str, body: str) -> str:
    """A page with the list of all pages at its side."""
    listed = {name for names in GROUPS.values() for name in names}
    there = {page.stem for page in PAGES} | {"reference"}
    groups = {"Start": GROUPS["Start"], "Families": tuple(sorted(there - listed)), **GROUPS}
    side = ""
    for heading, names in groups.items():
        shown = [name for name in names if name in there]
        links = "".join(
            f'<a href="{name}.html"{" class=here" if name == stem else ""}>'
            f"{NAMES.get(name, name.replace('_', ' ').lower())}</a>"
            for name in shown
        )
        side += f"<b>{heading}</b>{links}" if links else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{STYLE}</style></head><body><aside><div>{side}</div></aside><main>{body}</main></body></html>"
    )


def main(folder: str = "docs/_build") -> None:
    """Build every page."""
    out = Path(folder).resolve()
    out.mkdir(parents=True, exist_ok=True)
    for path in PAGES:
        (out / f"{path.stem}.html").write_text(render(path), encoding="utf-8")
    (out / "reference.html").write_text(frame("reference", "Reference", reference()), encoding="utf-8")
    print(f"The documentation is in {out / 'index.html'}")


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    main(*sys.argv[1:2])

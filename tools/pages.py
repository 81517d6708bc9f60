"""Runs the Python blocks of the pages; docs/conf.py puts what they print and draw into the site (`make docs`).

Blocks of one page share their names, like cells of a notebook. A block that raises stops the build.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / f"{name}.md" for name in ("CONTRIBUTING", "CHANGELOG", "SECURITY")),
]
BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


@dataclass
class Output:
    """What a block printed, and the figures it left open (PNG)."""

    text: str = ""
    figures: list[bytes] = field(default_factory=list)


def blocks(text: str) -> list[str]:
    """The Python blocks of a markdown page."""
    return BLOCK.findall(text)


def run(code: str, names: dict[str, Any], where: str = "page") -> Output:
    """Run a block."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, where, "exec", dont_inherit=True), names)
    return Output(printed.getvalue(), _figures())


def run_page(text: str, where: str = "page") -> tuple[dict[str, Any], list[Output]]:
    """Run all blocks of a page in a folder of its own; the names they made, and the output of each."""
    names: dict[str, Any] = {"__name__": "page"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return names, [run(code, names, where) for code in blocks(text)]
        finally:
            os.chdir(before)


def _figures() -> list[bytes]:
    """The open figures, as images; they are closed."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    import matplotlib.pyplot as plt

    images = []
    for number in plt.get_fignums():
        buffer = io.BytesIO()
        plt.figure(number).savefig(buffer, dpi=100, format="png")
        images.append(buffer.getvalue())
    plt.close("all")
    return images


def with_outputs(text: str, outputs: list[Output], figures: Path, prefix: str) -> str:
    """A markdown page with the output of each block after it; images are written to the folder ``figures``."""
    remaining = iter(outputs)
    count = 0

    def after(match: re.Match[str]) -> str:
        nonlocal count
        output = next(remaining)
        shown = match[0]
        if output.text.strip():
            shown += f"\n`````{{code-block}} none\n:class: output\n{output.text.rstrip()}\n`````\n"
        headings = HEADING.findall(BLOCK.sub("", text[: match.start()]))
        for image in output.figures:
            count += 1
            path = figures / f"{prefix}_{count}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(image)
            shown += f"\n![{headings[-1] if headings else prefix}: figure {count}]({figures.name}/{path.name})\n"
        return shown

    return BLOCK.sub(after, text)

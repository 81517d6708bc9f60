"""``hinge export``: a model as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hinge.cli.exits import check_place
from hinge.errors import USAGE, UserError
from hinge.files import write_atomically
from hinge.learning.leaderboard import bytes_text
from hinge.learning.model_inputs import load_any


def run(path: Path, out: Path) -> tuple[dict[str, Any], list[str]]:
    """Convert and write."""
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise UserError("exporting needs the package onnx: pip install 'hinge-learn[onnx]'.", USAGE) from None
    from hinge.onnx.models import convert

    if out.suffix != ".onnx":
        raise UserError(f"{out}: the name should end in .onnx.", USAGE)
    check_place(out)
    model, card = load_any(path)
    about = {"target": str(card["target"]), "task": str(card["task"])} if card else {}
    content = convert(model, about).SerializeToString()
    write_atomically(out, content)
    data = {"file": str(out), "size": len(content)}
    return data, [
        f"{out} written ({bytes_text(len(content))}); numbers are double inputs, categories text, one per column."
    ]

"""Only hinge.problem.certificates makes certificates: no solver and no estimator certifies itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import hinge

ROOT = Path(hinge.__file__).parent
JUDGE = ROOT / "problem" / "certificates"
# Fields that no other dataclass of the library has.
CLAIMS = {"relative_gap", "weight_error"}


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def makes_certificates(tree: ast.AST) -> Iterator[str]:
    """The calls that construct a Certificate: by its class, by of_gap, or by replacing fields of one."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = _name(call.func)
        changed = ast.unparse(call.args[0]) if call.args else ""
        keywords = {keyword.arg for keyword in call.keywords}
        about_one = "certificate" in changed or "certified" in changed or "judged" in changed or keywords & CLAIMS
        if name in ("Certificate", "of_gap") or (name in ("replace", "_replace") and about_one):
            yield f"line {call.lineno}: {ast.unparse(call)[:80]}"


def test_only_the_judge_makes_certificates():
    found = {
        str(path.relative_to(ROOT)): calls
        for path in sorted(ROOT.rglob("*.py"))
        if JUDGE not in path.parents and (calls := list(makes_certificates(ast.parse(path.read_text("utf-8")))))
    }
    assert not found


@pytest.mark.parametrize(
    "code",
    [
        "Certificate(1.0, 0.0, 1.0, 1.0, 0.0, 'gap', 1e-6)", "hg.Certificate(primal=1.0)", "Certificate.of_gap(1.0, 0.0)",
        "replace(certificate, gap=0.0)", "dataclasses.replace(self.certificate_, gap=0.0)", "replace(found, weight_error=0)",
    ],
)  # fmt: skip
def test_the_search_knows_every_way_to_make_one(code):
    assert list(makes_certificates(ast.parse(code)))


def test_the_judge_imports_no_solver_and_no_model():
    for path in JUDGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith(("hinge.solvers", "hinge.models")), path.name

"""The reference: every public name with its signature, docstring, ranges of parameters and methods, as pages for Sphinx."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import hinge
from hinge._parameters import Estimator, table

# Page, title, and the modules whose public names it shows; the longest prefix of a module wins.
PAGES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("problem", "Problems and certificates", (
        "hinge.problem", "hinge.models.learner", "hinge.solvers")),
    ("losses", "Losses", ("hinge.problem.losses", "hinge.problem.links")),
    ("penalties", "Penalties", ("hinge.problem.penalties",)),
    ("linear", "Linear models", (
        "hinge.models.linear", "hinge.select.lasso", "hinge.select.logistic", "hinge.select.multitask",
        "hinge.select.ridge", "hinge.select.ridge_classifier", "hinge.select.path", "hinge.select.constrained")),
    ("glm", "Generalised linear models", ("hinge.models.glm",)),
    ("kernel", "Kernel machines", ("hinge.models.kernel",)),
    ("bayes", "Bayesian models", ("hinge.models.bayes",)),
    ("generative", "Generative models", ("hinge.models.generative",)),
    ("trees", "Trees, forests, boosting", ("hinge.models.trees",)),
    ("neural", "Networks", ("hinge.models.neural",)),
    ("classes", "Classes and sequences", ("hinge.models.multiclass", "hinge.models.structured")),
    ("intervals", "Calibration and intervals", ("hinge.models.calibration", "hinge.models.conformal")),
    ("features", "Features", ("hinge.features",)),
    ("select", "Tuning and selection", ("hinge.select",)),
    ("explain", "Explanations and diagnosis", ("hinge.explain",)),
    ("tables", "Tables, files, settings", ("hinge",)),
)  # fmt: skip
HEADS = {
    "kernels": "Kernels of kernel machines and Gaussian processes, and their algebra.",
    "solvers": "Algorithms, by the names that ``solver=`` takes.",
    "plots": "Pictures; they need matplotlib.",
    "generators": "Data with a known law.",
    "results": "What functions return.",
    "active": "Which examples to label next, and which experiments to make next.",
    "conjugate": "Conjugate families: a prior, and the posterior after any data.",
    "decisions": "The action of least expected cost.",
    "metrics": "How well predicted probabilities agree with what happens.",
    "structured": "Features of tokens for sequence models, and labels of graphs.",
}
TERMS = {"Parameters", "Other Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "Methods", "See Also"}


def groups() -> dict[str, list[str]]:
    """Public names by page."""
    found: dict[str, list[str]] = {page: [] for page, _, _ in PAGES}
    for module, names in hinge._PUBLIC.items():
        fits = [
            (len(prefix), page)
            for page, _, prefixes in PAGES
            for prefix in prefixes
            if f"{module}.".startswith(f"{prefix}.")
        ]
        found[max(fits)[1]].extend(names)
    for name in hinge.NAMESPACES:
        found[name] = [f"{name}.{public}" for public in getattr(hinge, name).__all__]
    return {page: sorted(names, key=str.lower) for page, names in found.items()}


def signature(thing: Any) -> str:
    """The parameters of a method, without types and self."""
    try:
        parameters = list(inspect.signature(thing).parameters.values())
    except (TypeError, ValueError):
        return "()"
    kept = [p.replace(annotation=inspect.Parameter.empty) for p in parameters if p.name != "self"]
    return str(inspect.Signature(kept))


def methods(cls: type) -> Iterator[tuple[str, str]]:
    """The public methods a class defines or inherits from hinge: the call, and the first line of its docstring."""
    for name, member in inspect.getmembers(cls, callable):
        home = getattr(member, "__module__", "") or ""
        if not name.startswith("_") and home.startswith("hinge") and getattr(member, "__doc__", None):
            yield f"{name}{signature(member)}", inspect.cleandoc(member.__doc__).splitlines()[0]


def _escape(text: str) -> str:
    """Characters that mean something in reStructuredText, outside of literals and roles."""
    parts = re.split(r"(``.*?``|:\w+:`[^`]*`|`[^`]*`)", text)
    for k in range(0, len(parts), 2):
        parts[k] = re.sub(r"(?<=\w)_(?!\w)|[|*]", lambda m: "\\" + m[0], parts[k])
    return "".join(parts)


def _joined(lines: list[str]) -> list[str]:
    """Lists of names that go on in the next line, in one line."""
    out: list[str] = []
    for line in lines:
        if out and re.fullmatch(r"[\w, ]+,", out[-1]) and re.fullmatch(r"[\w, ]+", line) and not line.startswith(" "):
            out[-1] += f" {line}"
        else:
            out.append(line)
    return out


def to_restructured_text(lines: list[str]) -> list[str]:
    """A docstring as reStructuredText: names with a trailing underscore and bars escaped, indented formulas literal."""
    out: list[str] = []
    section, literal = "", False
    lines = _joined(lines)
    for k, line in enumerate(lines):
        under = lines[k + 1].strip() if k + 1 < len(lines) else ""
        if line.strip() and under and set(under) == {"-"}:
            section, literal = line.strip(), False
        indented = line.startswith("    ")
        if line.strip() and not indented:
            literal = line.startswith((">>>", "..."))
        starts = indented and not literal and section not in TERMS and (not out or not out[-1].strip())
        if starts and not (len(out) > 1 and out[-2].rstrip().endswith("::")):
            out += ["::", ""]
        literal = literal or starts
        keep = (
            literal
            or not line.strip()
            or set(line.strip()) == {"-"}
            or (under and set(under) == {"-"})
            or ">>>" in line
        )
        out.append(line if keep else _escape(line))
        if not line.strip() and not (k + 1 < len(lines) and lines[k + 1].startswith("    ")):
            literal = False
    return out


def entry(name: str) -> str:
    """The directive of one name, the ranges of its parameters, and its methods."""
    thing = attrgetter(name)(hinge)
    if not inspect.isclass(thing):
        return f".. autofunction:: hinge.{name}\n" if inspect.isroutine(thing) else f".. autodata:: hinge.{name}\n"
    lines = [f".. autoclass:: hinge.{name}", ""]
    if issubclass(thing, Estimator) and (rows := list(table(thing))):
        lines += ["   .. rubric:: Ranges", "", "   .. list-table::", "      :header-rows: 1", ""]
        for row in (
            ("parameter", "default", "range"),
            *((f"``{n}``", f"``{d}``" if d else "", _escape(r)) for n, d, r in rows),
        ):
            lines += [f"      {'* -' if k == 0 else '  -'} {cell}" for k, cell in enumerate(row)]
        lines += [""]
    if shown := list(methods(thing)):
        lines += ["   .. rubric:: Methods", ""]
        for call, first in shown:
            lines += [f"   ``{call}``", f"      {_escape(first)}"]
        lines += [""]
    return "\n".join(lines)


def page(title: str, names: list[str], head: str = "") -> str:
    """One page of the reference."""
    links = ", ".join(f":any:`hg.{name} <hinge.{name}>`" for name in names)
    parts = [title, "=" * len(title), "", head, "", links, ""]
    return "\n".join(parts) + "\n" + "\n".join(f"{name}\n{'-' * len(name)}\n\n{entry(name)}" for name in names)


def write(folder: Path) -> None:
    """Write all pages; files that are as they should be keep their time, so that Sphinx reads them once."""
    titles = {page: title for page, title, _ in PAGES} | {name: f"hg.{name}" for name in hinge.NAMESPACES}
    texts = {}
    found = groups()
    for stem, names in found.items():
        texts[stem] = page(titles[stem], names, HEADS.get(stem, ""))
    listed = "\n".join(f"   {stem}" for stem in found)
    texts["index"] = (
        "Reference\n=========\n\nEvery public name, from its docstring; parameters of estimators with the ranges that ``fit`` "
        f"checks. ``import hinge as hg``.\n\n.. toctree::\n   :maxdepth: 1\n\n{listed}\n"
    )
    folder.mkdir(parents=True, exist_ok=True)
    for stem, text in texts.items():
        path = folder / f"{stem}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

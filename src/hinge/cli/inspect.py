"""``hinge inspect``: the contents of a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hinge.learning.fits import inner
from hinge.learning.leaderboard import bytes_text
from hinge.learning.model_inputs import load_any
from hinge.tables.number_formats import format_number, format_range


def core_of(model: Any) -> Any:
    """The last step of a pipeline, without the scaling of its target."""
    steps = getattr(model, "steps", None)
    return inner(steps[-1][1] if steps else model)


def run(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Class, parameters, inputs, scores, certificate."""
    model, card = load_any(path)
    core = core_of(model)
    parameters = dict(core.get_params(deep=False).items())
    steps = [step for _, step in getattr(model, "steps", [("", model)])]
    names = [type(step).__name__ for step in steps]
    certificate = getattr(core, "certificate_", None)
    lines = [f"{path}: {' → '.join(names)} ({bytes_text(path.stat().st_size)})"]
    if not any(step is core for step in steps):
        lines.append(f"model        {type(core).__name__}")
    shown = ", ".join(f"{k}={v!r}" for k, v in _changed(core, parameters).items())
    lines.append(f"parameters   {shown or 'all at their defaults'}")
    data: dict[str, Any] = {
        "file": str(path), "steps": names, "model": type(core).__name__, "size": path.stat().st_size,
        "parameters": {k: repr(v) for k, v in parameters.items()}, "card": card,
    }  # fmt: skip
    if certificate is not None:
        lines.append(f"certificate  {certificate}")
        data["certificate"] = {"primal": certificate.primal, "error": certificate.error, "kind": certificate.kind,
                               "converged": certificate.converged}  # fmt: skip
    if card.get("columns"):
        lines += [
            f"problem      {card['formula']}",
            f"             {card['objective']}",
            f"target       {card['target']} ({card['task']}{': ' + ' / '.join(card['classes'][:8]) if card['classes'] else ''})",
            f"trained on   {card['data']}, {card['rows']} rows, seed {card['seed']}",
            f"{'folds' if card.get('scored') == 'cross-validated' else 'held out':<12} {card['metric']} {format_number(card['score'], 4)} ± {format_number(card['score_error'], 2)} "
            f"(best constant {format_number(card['trivial'], 4)})",
            f"made by      {card['command']}   (hinge {card['versions']['hinge']})",
            "inputs",
        ]
        for c in card["columns"]:
            values = ", ".join(c["examples"]) if c["low"] is None else format_range(c["low"], c["high"])
            lines.append(f"  {c['name']:<24} {c['kind']:<9} {values[:60]}")
    elif hasattr(model, "feature_names_in_"):
        lines.append(f"inputs       {', '.join(map(str, model.feature_names_in_))}")
    elif hasattr(model, "n_features_in_"):
        lines.append(f"inputs       {model.n_features_in_} columns")
    return data, lines


def _changed(core: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters that differ from their defaults."""
    import inspect

    defaults = inspect.signature(type(core)).parameters
    return {k: v for k, v in parameters.items() if repr(defaults[k].default) != repr(v)}

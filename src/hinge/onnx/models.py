"""The model itself: prepared matrix in, predictions out."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.errors import MODEL, UserError
from hinge.models.linear.base import dense
from hinge.onnx.graph import Graph
from hinge.onnx.inputs import prepared
from hinge.onnx.trees import tree_sums

EXPRESSIBLE = "linear models, trees, forests, boosting and networks"


def convert(model: Any, about: dict[str, str] | None = None) -> Any:
    """An ONNX model with the same predictions.

    A pipeline of TablePrep and a model has one input per column; any other model one input "X" of doubles. Classifiers
    give "label" and "probabilities", regressors "prediction".
    """
    graph = Graph()
    steps = [step for _, step in getattr(model, "steps", [("", model)])]
    outer, prep = steps[-1], steps[0] if len(steps) == 2 else None
    core = getattr(outer, "regressor_", outer)
    if len(steps) > 2 or (prep is not None and type(prep).__name__ != "TablePrep"):
        raise UserError("only pipelines of TablePrep and a model can be exported to ONNX.", MODEL)
    if prep is not None:
        X = prepared(graph, prep, _recode(core, prep))
    else:
        if getattr(getattr(core, "_coder", None), "columns", []):
            raise UserError(
                "trees with categorical columns can be exported inside a pipeline with TablePrep only.", MODEL
            )
        X = graph.input("X", np.float64, int(core.n_features_in_))
    s = _scores(graph, X, core)
    _finish(graph, s, outer, core)
    return graph.model({"model": type(core).__name__, **(about or {})})


def _recode(core: Any, prep: Any) -> dict[int, np.ndarray]:
    """Codes of the preparation → codes the trees know, by output."""
    coder: Any = getattr(core, "_coder", None)
    found = {}
    for k, j in enumerate(coder.columns if coder is not None else []):
        categories, codes = coder.categories[k].astype(float), coder.codes[k]
        table = np.full(int(max(categories.max(initial=-1) + 1, 0)), -1, dtype=np.int64)
        table[categories.astype(int)] = codes
        found[j] = table
    return found


def _scores(graph: Graph, X: str, core: Any) -> str:
    """Scores (boosting, linear, networks) or class shares and means (trees and forests): rows × outputs."""
    name = type(core).__name__
    if hasattr(core, "trees_") and hasattr(core, "baseline_"):
        sums = tree_sums(graph, X, core.trees_, core._loss.outputs)
        return graph.node("Add", sums, graph.constant(np.asarray(core.baseline_, dtype=np.float64)[None, :]))
    trees = getattr(core, "trees_", None)
    if trees is not None and hasattr(trees, "missing_left"):
        if getattr(core, "n_outputs_", 1) > 1:
            raise UserError(
                f"{name} of {core.n_outputs_} targets cannot be exported to ONNX; fit one per target.", MODEL
            )
        k = len(core.classes_) if hasattr(core, "classes_") else 1
        columns = [1] if k == 2 else list(range(k))
        sums = tree_sums(graph, X, trees, len(columns), columns)
        return graph.node("Div", sums, graph.constant(np.array([[float(len(trees))]]))) if len(trees) > 1 else sums
    if hasattr(core, "coefs_") and name.startswith("MLP"):
        return _network(graph, X, core)
    if hasattr(core, "coef_") and hasattr(core, "intercept_"):
        w = np.atleast_2d(np.asarray(dense(core.coef_), dtype=np.float64))
        b = np.atleast_1d(np.asarray(core.intercept_, dtype=np.float64))
        return graph.node("Add", graph.node("MatMul", X, graph.constant(w.T)), graph.constant(b[None, :]))
    raise UserError(f"{name} cannot be exported: ONNX here covers {EXPRESSIBLE}.", MODEL)


def _network(graph: Graph, X: str, core: Any) -> str:
    act = {"relu": "Relu", "tanh": "Tanh", "logistic": "Sigmoid", "identity": "Identity"}.get(core.activation)
    if act is None:
        raise UserError(f"a network with activation {core.activation!r} cannot be exported to ONNX.", MODEL)
    dtype = core.coefs_[0].dtype
    h = graph.cast(X, dtype)
    for k, (W, b) in enumerate(zip(core.coefs_, core.intercepts_)):
        h = graph.node(
            "Add", graph.node("MatMul", h, graph.constant(np.ascontiguousarray(W))), graph.constant(b[None, :])
        )
        if k + 1 < len(core.coefs_):
            h = graph.node(act, h)
    return graph.cast(h, np.float64)


def _finish(graph: Graph, s: str, outer: Any, core: Any) -> None:
    """Links, classes, and the scale of the target."""
    shares = hasattr(core, "trees_") and not hasattr(core, "baseline_")
    loss = _loss_name(core)
    if hasattr(core, "classes_"):
        k = len(core.classes_)
        if k == 2 and loss != "Softmax":
            p = s if shares else graph.node("Sigmoid", s)
            p = graph.node("Concat", graph.node("Sub", graph.constant(np.array([[1.0]])), p), p, axis=1)
        elif shares:
            p = s
        elif loss == "Softmax":
            p = graph.node("Softmax", s, axis=1)
        else:
            raise UserError(
                f"{type(core).__name__} with the loss {loss} has no probabilities; it cannot be exported.", MODEL
            )
        best = graph.node("ArgMax", p, axis=1, keepdims=0)
        graph.output(
            graph.node("Gather", graph.constant(np.asarray(core.classes_).astype(str)), best),
            "label",
            np.str_,
            ["rows"],
        )
        graph.output(p, "probabilities", np.float64, ["rows", k])
        return
    if loss in ("Poisson", "Gamma", "Tweedie", "NegativeBinomial") and not shares:
        s = graph.node("Exp", s)
    if hasattr(outer, "standardised"):
        s = graph.node("Mul", s, graph.constant(np.array([[outer.scale_]])))
        s = graph.node("Add", s, graph.constant(np.array([[outer.mean_]])))
    graph.output(graph.node("Squeeze", s, graph.constant(np.array([1]))), "prediction", np.float64, ["rows"])


def _loss_name(core: Any) -> str:
    if hasattr(core, "_loss"):
        loss = core._loss() if callable(core._loss) else core._loss.definition
        return type(loss).__name__
    if hasattr(core, "_resolve_loss"):
        return type(core._resolve_loss()).__name__
    return "Softmax" if len(getattr(core, "classes_", ())) > 2 else "Logistic"

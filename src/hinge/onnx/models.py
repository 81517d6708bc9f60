"""The model itself: prepared matrix in, predictions out."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.errors import MODEL, UserError
from hinge.features.table import TablePrep
from hinge.models.linear.base import dense
from hinge.onnx.graph import Graph
from hinge.onnx.inputs import prepared
from hinge.onnx.trees import tree_sums
from hinge.problem.links import LogLink
from hinge.problem.losses import Gamma, Logistic, Loss, NegativeBinomial, Poisson, Softmax, Tweedie
from hinge.problem.losses.linked import Linked

EXPRESSIBLE = "linear models, trees, forests, boosting and networks"


def convert(model: Any, about: dict[str, str] | None = None) -> Any:
    """An ONNX model with the same predictions.

    A pipeline of TablePrep and a model has one input per column; any other model one input "X" of doubles. Classifiers
    give "label" and "probabilities" ("scores" where they have no probabilities), regressors "prediction".
    """
    graph = Graph()
    steps = [step for _, step in getattr(model, "steps", [("", model)])]
    outer, prep = steps[-1], steps[0] if len(steps) == 2 else None
    core = getattr(outer, "regressor_", outer)
    if len(steps) > 2 or (prep is not None and not isinstance(prep, TablePrep)):
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
    if hasattr(core, "coefs_"):
        return _network(graph, X, core)
    if hasattr(core, "coef_") and hasattr(core, "intercept_"):
        w = np.atleast_2d(np.asarray(dense(core.coef_), dtype=np.float64))
        if len(w) > 1 and not hasattr(core, "classes_"):
            raise UserError(f"{name} of {len(w)} outputs cannot be exported to ONNX; fit one per target.", MODEL)
        if getattr(getattr(core, "_coding", None), "columns", ()):
            raise UserError(f"{name} with categorical columns of its own cannot be exported; use TablePrep.", MODEL)
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
    if hasattr(core, "classes_"):
        name, values = (
            ("probabilities", s if shares else _probabilities(graph, s, core)) if _sure(core) else ("scores", s)
        )
        k = len(core.classes_)
        if k == 2 and shares:
            values = _both(graph, values)
        columns = graph.node("Concat", graph.node("Neg", s), s, axis=1) if k == 2 and name == "scores" else values
        best = graph.node("ArgMax", columns, axis=1, keepdims=0)
        labels = graph.node("Gather", graph.constant(np.asarray(core.classes_).astype(str)), best)
        graph.output(labels, "label", np.str_, ["rows"])
        graph.output(values, name, np.float64, ["rows", 1 if k == 2 and name == "scores" else k])
        return
    if not shares and _is_log_linear(core):
        s = graph.node("Exp", s)
    if hasattr(outer, "standardised"):
        s = graph.node("Mul", s, graph.constant(np.array([[outer.scale_]])))
        s = graph.node("Add", s, graph.constant(np.array([[outer.mean_]])))
    graph.output(graph.node("Squeeze", s, graph.constant(np.array([1]))), "prediction", np.float64, ["rows"])


def _sure(core: Any) -> bool:
    return hasattr(core, "predict_proba")


def _both(graph: Graph, p: str) -> str:
    """The probabilities of both classes from those of the second."""
    return graph.node("Concat", graph.node("Sub", graph.constant(np.array([[1.0]])), p), p, axis=1)


def _loss(core: Any) -> Loss | None:
    return core.score_loss() if hasattr(core, "score_loss") else None


def _probabilities(graph: Graph, s: str, core: Any) -> str:
    loss = _loss(core)
    if isinstance(loss, Softmax):
        return graph.node("Softmax", s, axis=1)
    if isinstance(loss, Logistic) and len(core.classes_) == 2:
        return _both(graph, graph.node("Sigmoid", s))
    raise UserError(
        f"the probabilities of {type(core).__name__} are no logistic or softmax function of its scores; it cannot be "
        "exported to ONNX.",
        MODEL,
    )


def _is_log_linear(core: Any) -> bool:
    """Whether the mean is exp of the score; refuses other links than this one and the identity."""
    loss = _loss(core)
    if isinstance(loss, Linked):
        if isinstance(loss.link, LogLink):
            return True
        raise UserError(f"the link {loss.link.name!r} cannot be exported to ONNX.", MODEL)
    return isinstance(loss, Poisson | Gamma | Tweedie | NegativeBinomial)

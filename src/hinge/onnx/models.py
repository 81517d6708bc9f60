"""ONNX graphs of models, from the prepared matrix to predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.errors import MODEL, UserError
from hinge.features.table import TablePrep
from hinge.models.blend import Blend
from hinge.models.kernel.classifiers import KernelLogisticRegression
from hinge.models.kernel.ridge import KernelRidge
from hinge.models.linear.base import dense
from hinge.onnx.graph import Graph
from hinge.onnx.inputs import prepared, unprepared
from hinge.onnx.trees import tree_sums
from hinge.problem.kernels.distances import RBF
from hinge.problem.links import LogLink
from hinge.problem.losses import Gamma, Logistic, Loss, NegativeBinomial, Poisson, Softmax, Tweedie
from hinge.problem.losses.linked import Linked

EXPRESSIBLE = "linear models, trees, forests, boosting, networks, machines with an RBF kernel, and their ensembles"


def convert(model: Any, about: dict[str, str] | None = None) -> Any:
    """An ONNX model with the same predictions.

    A pipeline of TablePrep and a model has one input per column; any other model one input "X" of doubles. Classifiers
    give "label" and "probabilities" ("scores" where they have no probabilities), regressors "prediction".
    """
    if reason := obstacle(model):
        raise UserError(reason, MODEL)
    graph = Graph()
    name, values = _output(graph, model)
    _publish(graph, name, values, getattr(model, "classes_", None))
    return graph.model({"model": type(_core(model)).__name__, **(about or {})})


def obstacle(model: Any) -> str:
    """The reason why a fitted model cannot be exported, judging by its parts alone; "" if all are supported."""
    steps = [step for _, step in getattr(model, "steps", [("", model)])]
    if len(steps) > 2 or (len(steps) == 2 and not isinstance(steps[0], TablePrep)):
        return "only pipelines of TablePrep and a model can be exported to ONNX."
    if len(steps) == 2 and (reason := unprepared(steps[0])):
        return reason
    core = _core(model)
    if isinstance(core, Blend):
        return next((reason for member in core.members_ if (reason := obstacle(member))), "")
    return ""


def _core(model: Any) -> Any:
    """The model itself, without the preparation of its columns and the scaling of its target."""
    last = getattr(model, "steps", [("", model)])[-1][1]
    return getattr(last, "regressor_", last)


def _output(graph: Graph, model: Any, X: str | None = None) -> tuple[str, str]:
    """The kind of output of a model ("probabilities", "scores" or "prediction") and its values, rows × columns; X is prepared."""
    steps = [step for _, step in getattr(model, "steps", [("", model)])]
    outer, core = steps[-1], _core(model)
    if len(steps) == 2:
        X = None if isinstance(core, Blend) else prepared(graph, steps[0], _recode(core, steps[0]))
    if isinstance(core, Blend):
        return _blend(graph, core, steps[0] if len(steps) == 2 else None, X)
    if X is None:
        if getattr(getattr(core, "_coder", None), "columns", []):
            raise UserError(
                "trees with categorical columns can be exported inside a pipeline with TablePrep only.", MODEL
            )
        X = graph.input("X", np.float64, int(core.n_features_in_))
    return _values(graph, _scores(graph, X, core), outer, core)


def _blend(graph: Graph, blend: Blend, prep: Any, X: str | None) -> tuple[str, str]:
    """Σ_m α_m f_m(x); the members share one preparation, or each has its own."""
    name, total = "", ""
    for member, weight in zip(blend.members_, blend.weights, strict=True):
        if len(getattr(member, "classes_", ())) != len(getattr(blend, "classes_", ())):
            raise UserError(
                "a member of the ensemble knows fewer classes than others; it cannot be exported to ONNX.", MODEL
            )
        own = prepared(graph, prep, _recode(_core(member), prep)) if prep is not None else X
        name, values = _output(graph, member, own)
        part = graph.node("Mul", values, graph.constant(np.array([[float(weight)]])))
        total = part if not total else graph.node("Add", total, part)
    return name, total


def _recode(core: Any, prep: Any) -> dict[int, np.ndarray]:
    """By output: codes of the preparation ↦ codes of the trees."""
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
    if isinstance(core, KernelLogisticRegression):
        return _expansion(graph, X, core.functions_)
    if isinstance(core, KernelRidge) and np.ndim(core.dual_coef_) == 1:
        return _expansion(graph, X, [core.function_])
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


def _expansion(graph: Graph, X: str, functions: list[Any]) -> str:
    """f(x) = Σᵢ cᵢ e^(−γ‖x − xᵢ‖²) + b for every function."""
    found = []
    for f in functions:
        if type(f.kernel) is not RBF or not isinstance(f.points, np.ndarray):
            raise UserError(
                f"a kernel machine with {type(f.kernel).__name__} cannot be exported to ONNX; RBF can.", MODEL
            )
        points = np.asarray(f.points, dtype=np.float64)
        square = graph.node("ReduceSumSquare", X, graph.constant(np.array([1])), keepdims=1)
        both = graph.node("MatMul", X, graph.constant(np.ascontiguousarray(-2 * points.T)))
        distance = graph.node(
            "Add", graph.node("Add", both, square), graph.constant(np.sum(points**2, axis=1)[None, :])
        )
        K = graph.node("Exp", graph.node("Mul", distance, graph.constant(np.array([[-float(f.kernel.rate)]]))))
        scores = graph.node("MatMul", K, graph.constant(np.asarray(f.coefficients, dtype=np.float64).reshape(-1, 1)))
        found.append(graph.node("Add", scores, graph.constant(np.array([[float(f.bias)]]))))
    return found[0] if len(found) == 1 else graph.node("Concat", *found, axis=1)


def _values(graph: Graph, s: str, outer: Any, core: Any) -> tuple[str, str]:
    """The output of a model from its scores: the inverse link, and the scale of the target."""
    shares = hasattr(core, "trees_") and not hasattr(core, "baseline_")
    if hasattr(core, "classes_"):
        if not _sure(core):
            return "scores", s
        if not shares:
            return "probabilities", _probabilities(graph, s, core)
        return "probabilities", _both(graph, s) if len(core.classes_) == 2 else s
    if not shares and _is_log_linear(core):
        s = graph.node("Exp", s)
    if hasattr(outer, "standardised"):
        s = graph.node("Mul", s, graph.constant(np.array([[outer.scale_]])))
        s = graph.node("Add", s, graph.constant(np.array([[outer.mean_]])))
    return "prediction", s


def _publish(graph: Graph, name: str, values: str, classes: Any) -> None:
    """The outputs of the graph."""
    if name == "prediction":
        graph.output(graph.node("Squeeze", values, graph.constant(np.array([1]))), name, np.float64, ["rows"])
        return
    k = len(classes)
    two = k == 2 and name == "scores"
    columns = graph.node("Concat", graph.node("Neg", values), values, axis=1) if two else values
    best = graph.node("ArgMax", columns, axis=1, keepdims=0)
    labels = graph.node("Gather", graph.constant(np.asarray(classes).astype(str)), best)
    graph.output(labels, "label", np.str_, ["rows"])
    graph.output(values, name, np.float64, ["rows", 1 if two else k])


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
    if isinstance(core, KernelLogisticRegression):
        p = graph.node("Sigmoid", s)
        if len(core.classes_) == 2:
            return _both(graph, p)
        return graph.node("Div", p, graph.node("ReduceSum", p, graph.constant(np.array([1])), keepdims=1))
    raise UserError(
        f"the probabilities of {type(core).__name__} are no logistic or softmax function of its scores; it cannot be "
        "exported to ONNX.",
        MODEL,
    )


def _is_log_linear(core: Any) -> bool:
    """Whether the link is the logarithm; raises for links other than logarithm and identity."""
    loss = _loss(core)
    if isinstance(loss, Linked):
        if isinstance(loss.link, LogLink):
            return True
        raise UserError(f"the link {loss.link.name!r} cannot be exported to ONNX.", MODEL)
    return isinstance(loss, Poisson | Gamma | Tweedie | NegativeBinomial)

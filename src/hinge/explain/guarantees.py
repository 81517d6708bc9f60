"""Theoretical guarantees of a fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge.models.kernel.expansion import Expansion
from hinge.models.leave_one_out import left_out_error
from hinge.models.meta import final_step
from hinge.problem.kernels import RBF, LinearKernel, Precomputed

Array = np.ndarray

MOST_POINTS = 5000  # maximum number of support points whose Gram matrix is formed


@dataclass(frozen=True)
class Guarantee:
    """A bound or an honest estimate for a model.

    Attributes
    ----------
    name : str
        "duality gap", "mistake bound", "support vectors", "out-of-bag", "leave-one-out", "sensitivity".
    value : float
        The bound or estimate, as a number.
    sentence : str
        What it says.
    """

    name: str
    value: float
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def guarantees(model: Any, X: Any = None, y: Any = None) -> tuple[Guarantee, ...]:
    """All guarantees that apply to a fitted model.

    Parameters
    ----------
    model : fitted estimator, or a pipeline that ends in one
        What the promises are about.
    X, y : the training data, optional
        They allow the exact leave-one-out error of least squares and ridge.

    Examples
    --------
    >>> import hinge as hg
    >>> X = np.array([[2.0, 1.0], [1.0, 2.0], [-1.0, -2.0], [-2.0, -1.0]])
    >>> for promise in hg.guarantees(hg.Perceptron(fit_intercept=False).fit(X, [1, 1, -1, -1])):
    ...     print(promise)
    The perceptron made 1 mistake; on separable data like these it cannot make more than (R/γ)² = 1.562 in any order.
    Moving an input by h changes the score by at most ‖w‖‖h‖ = 2.236·‖h‖ (Euclidean length).
    """
    last = final_step(model)
    found = [_gap(last), _mistakes(last), _support(last), _out_of_bag(last), _left_out(model, X, y), _sensitivity(last)]
    return tuple(g for g in found if g is not None)


def _gap(last: Any) -> Guarantee | None:
    proof = getattr(last, "certificate_", None)
    if proof is None or proof.kind != "gap":
        return None
    gap = float(proof.relative_gap)
    lower = f"more than {100 * gap:.2g} % lower" if gap > 1e-12 else "that is lower by more than rounding"
    return Guarantee("duality gap", gap, f"No other weights have an objective {lower} (duality gap).")


def _sensitivity(last: Any) -> Guarantee | None:
    """|f(x + h) − f(x)| ≤ ‖w‖‖h‖, by Cauchy–Schwarz, in the space in which f is linear."""
    expansion = getattr(last, "function_", None)
    if isinstance(expansion, Expansion):
        return _kernel_sensitivity(expansion)
    coef = getattr(last, "coef_", None)
    if coef is None or hasattr(last, "kernel_"):
        return None
    rows = np.atleast_2d(coef.toarray() if hasattr(coef, "toarray") else np.asarray(coef, dtype=np.float64))
    if rows.ndim != 2 or rows.size == 0:
        return None
    norm = float(np.max(np.linalg.norm(rows, axis=1)))
    what = "the score" if len(rows) == 1 else "every score"
    return Guarantee(
        "sensitivity",
        norm,
        f"Moving an input by h changes {what} by at most ‖w‖‖h‖ = {norm:.4g}·‖h‖ (Euclidean length).",
    )


def _kernel_sensitivity(f: Expansion) -> Guarantee | None:
    if isinstance(f.kernel, Precomputed) or not 0 < len(f.coefficients) <= MOST_POINTS:
        return None
    columns = np.asarray(f.columns, dtype=np.float64)
    gram = f.kernel.block(f.points, f.points)
    norm = float(np.sqrt(max(np.max(np.einsum("ij,ik,kj->j", columns, gram, columns)), 0.0)))
    rate = _feature_rate(f.kernel)
    if rate is None:
        return Guarantee(
            "sensitivity", norm,
            f"Two inputs differ in score by at most ‖w‖ = {norm:.4g} times their distance √(k(x,x) + k(z,z) − 2k(x,z)).",
        )  # fmt: skip
    return Guarantee(
        "sensitivity", norm * rate,
        f"Moving an input by h changes the score by at most {norm * rate:.4g}·‖h‖ (‖w‖ = {norm:.4g} in the kernel's space, "
        f"where φ moves by at most {rate:.4g}·‖h‖).",
    )  # fmt: skip


def _feature_rate(kernel: Any) -> float | None:
    """The smallest c with ‖φ(x + h) − φ(x)‖ ≤ c‖h‖: √(2γ) for exp(−γ‖h‖²), since 2 − 2exp(−t) ≤ 2t; 1 for ⟨x, z⟩."""
    if isinstance(kernel, LinearKernel):
        return 1.0
    if isinstance(kernel, RBF):
        lengths = kernel.length_scale
        several = kernel.gamma is None and isinstance(lengths, tuple)
        return 1.0 / float(np.min(lengths)) if several else float(np.sqrt(2.0 * kernel.rate))
    return None


def _mistakes(last: Any) -> Guarantee | None:
    bound = getattr(last, "bound_", None)
    if bound is None or not hasattr(bound, "mistakes"):
        return None
    made = f"{bound.mistakes} mistake" + ("" if bound.mistakes == 1 else "s")
    return Guarantee(
        "mistake bound", float(bound.bound),
        f"The perceptron made {made}; on separable data like these it cannot make more than "
        f"(R/γ)² = {bound.bound:.4g} in any order.",
    )  # fmt: skip


def _support(last: Any) -> Guarantee | None:
    if len(getattr(last, "classes_", ())) != 2 or not hasattr(last, "n_support_"):
        return None
    if getattr(last, "penalty", "l2") != "l2":
        return None
    total = getattr(last, "n_train_", None) or len(getattr(last, "margins_", ()))
    if not total:
        return None
    vectors = int(np.sum(last.n_support_))
    return Guarantee(
        "support vectors", vectors / total,
        f"Leaving an example out changes nothing unless it is one of the {vectors} support vectors, so the "
        f"leave-one-out error rate is at most {vectors}/{total} = {vectors / total:.3g}.",
    )  # fmt: skip


def _out_of_bag(last: Any) -> Guarantee | None:
    score = getattr(last, "oob_score_", None)
    if score is None or not np.isfinite(score):
        return None
    if hasattr(last, "classes_"):
        return Guarantee(
            "out-of-bag", float(1.0 - score),
            f"Judged on the rows they did not see, the members are wrong on {100 * (1 - score):.3g} % (out-of-bag).",
        )  # fmt: skip
    return Guarantee(
        "out-of-bag",
        float(1.0 - score),
        f"Judged on the rows they did not see, the members leave {100 * (1 - score):.3g} % of the variance (out-of-bag).",
    )


def _left_out(model: Any, X: Any, y: Any) -> Guarantee | None:
    last = final_step(model)
    error = getattr(last, "loo_error_", None)
    if error is None and X is not None and y is not None:
        error = left_out_error(model, X, y)
    if error is None:
        return None
    return Guarantee(
        "leave-one-out", float(error),
        f"Its exact leave-one-out squared error is {error:.4g}, from one fit.",
    )  # fmt: skip

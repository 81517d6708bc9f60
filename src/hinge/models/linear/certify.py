"""Certificates on demand: fitted weights certified on their training data, at any cost."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from hinge.problem.certificates.certificate import Certificate, with_run
from hinge.problem.certificates.dual_points import has_dual
from hinge.problem.certificates.linear import certificate
from hinge.problem.objective import Array, Objective
from hinge.solvers.base import Solution, Status
from hinge.solvers.run import Result, minimise


class GivenWeights:
    """Known weights in place of a solver: one row per output, returned in order."""

    fit_rows: Any = None  # where the rows are for inference, if not in memory

    def __init__(self, coef: Any, intercept: Any) -> None:
        self._W = np.atleast_2d(np.asarray(coef, dtype=np.float64))
        self._b = np.broadcast_to(np.asarray(intercept, dtype=np.float64).ravel(), len(self._W))
        self._next = 0

    def certified(self, objective: Objective, tol: float) -> Result:
        """The weights of this objective and their certificate."""
        if objective.outputs > 1:
            w, b = self._W.T.copy(), self._b.copy()
        else:
            w, b = self._W[self._next].copy(), self._b[[self._next]]
            self._next += 1
        certified = tightest(objective, w, b, tol)
        status = Status.CONVERGED if certified.converged else Status.MAX_ITER
        certified = with_run(certified, solver="given weights", iterations=0, seconds=0.0, status=status.value)
        return Result(Solution(w, b, status, 0), certified)


def tightest(objective: Objective, w: Array, b: Array, tol: float) -> Certificate:
    """The certificate of the weights; if its gap is too wide, with dual variables of the optimum computed anew."""
    certified = certificate(objective, w, b, tol=tol, exact=True)
    if certified.converged or not has_dual(objective):
        return certified
    best = minimise(objective, tol=tol)[1]
    u = best.dual
    if u is None:
        u = objective.gradient_of_scores(objective.scores(best.w, best.b))
    again = certificate(objective, w, b, dual=u, tol=tol, exact=True)
    return again if again.dual > certified.dual else certified


class Certifiable:
    """Mixin of estimators that call ``_solve`` once per problem, with the weights of ``coef_`` and ``intercept_``."""

    _given: GivenWeights | None = None

    def certify(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        """The tightest certificate of the fitted weights, on the data they were fitted to.

        ``certificate_`` costs at most a tenth of the fit (or about ten milliseconds). If that was not enough
        (``certificate_.exact`` is False), this computes the bound at any cost. The estimator is not changed.

        Parameters
        ----------
        X, y, sample_weight
            The training data, as they were passed to ``fit``.

        Returns
        -------
        Certificate
        """
        return self._certified(X, y, {} if sample_weight is None else {"sample_weight": sample_weight})

    def _certified(self, X: Any, y: Any, others: dict[str, Any]) -> Certificate:
        """``certify`` with the other arguments of ``fit``."""
        check_is_fitted(self)
        refitted: Any = copy.copy(self)
        if hasattr(refitted, "densify"):
            refitted.densify()
        refitted._given = GivenWeights(refitted.coef_, refitted.intercept_)
        refitted._prepare_to_certify()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the original fit has issued it already
            refitted.fit(X, y, **others)
        return refitted.certificate_

    def _prepare_to_certify(self) -> None:
        """Changes the copy on which ``fit`` is called, for estimators that fit more than weights."""


class CertifiedAs:
    """Mixin of estimators that choose a parameter of a simpler estimator, whose problem their weights then solve."""

    def certify(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        """The tightest certificate of the fitted weights, for the chosen parameters: see :meth:`Ridge.certify`."""
        check_is_fitted(self)
        fitted: Any = self
        plain = self._chosen()
        plain.coef_, plain.intercept_ = fitted.coef_, fitted.intercept_
        return plain.certify(X, y, sample_weight)

    def _chosen(self) -> Any:
        """The simpler estimator with the chosen parameters."""
        raise NotImplementedError

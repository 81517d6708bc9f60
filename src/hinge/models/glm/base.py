"""Base of the generalised linear models: fits a distribution and a link, and computes inference and predictions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from hinge._native import Design
from hinge._parameters import Columns, Constraints, above, at_least, count, one_of, shared
from hinge.models.base import check_weights, keep_float32, require_no_overflow
from hinge.models.glm.inference import FitRows, GLMInference, covariance_of, overdispersion
from hinge.models.glm.inputs import Coding, fit_table, predict_table
from hinge.models.linear.base import LinearModel, elastic_penalty
from hinge.models.linear.certify import Certifiable
from hinge.problem.certificates.linear import Certificate
from hinge.problem.distributions import Distribution
from hinge.problem.links import Link
from hinge.problem.losses import Loss
from hinge.problem.losses.base import Target
from hinge.problem.losses.linked import Linked, likelihood_loss
from hinge.problem.numerics import weighted_sum
from hinge.problem.objective import Objective, make_objective
from hinge.problem.penalties import NoPenalty
from hinge.solvers.run import Result


class GeneralisedLinearModel(Certifiable, RegressorMixin, LinearModel):
    """Base class. Subclasses name a distribution and a link, and have ``alpha``, ``l1_ratio``, ``fit_intercept``,
    ``inference``, ``dispersion`` and ``categorical_features`` among their parameters."""

    _parameter_constraints: ClassVar[Constraints] = {
        **shared("l1_ratio"),
        "alpha": [at_least(0)],
        "max_iter": [count()],
        "categorical_features": [Columns(), one_of("from_dtype"), None],
        "inference": ["boolean"],
        "dispersion": [one_of("pearson"), above(0), None],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            tags.target_tags.positive_only = self._pair()[0].target is not Target.REAL
        except ValueError:  # fit checks the parameters
            tags.target_tags.positive_only = False
        return tags

    def _pair(self) -> tuple[Distribution, Link]:
        """The distribution and the link."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None, exposure: Any = None) -> Any:
        """Fit by maximum (penalised) likelihood.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        y : array of n targets
        sample_weight : array of n weights, optional
            A weight of 2 means the same as having the example twice.
        offset : array of n scores, optional
            A known part of the score, added to ⟨w, x⟩ + b.
        exposure : array of n positive numbers, optional
            How long or how much was observed: the mean is in proportion to it. The same as ``offset=log(exposure)``;
            for the log link only.
        """
        objective = self._objective(X, y, sample_weight, offset, exposure)
        result = self._solve(objective, self._start(objective))
        self._adopt(result, objective.design.source.dtype)
        self._conclude(objective, result)
        return self

    def certify(
        self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None, exposure: Any = None
    ) -> Certificate:
        """The tightest certificate of the fitted weights on their training data, at any cost.

        Parameters
        ----------
        X, y, sample_weight, offset, exposure
            The training data, as they were passed to ``fit``.

        Returns
        -------
        Certificate
        """
        return self._certified(X, y, {"sample_weight": sample_weight, "offset": offset, "exposure": exposure})

    def predict(self, X: Any, *, offset: Any = None, exposure: Any = None, interval: float | None = None) -> Any:
        """The expected target of every row, optionally with a confidence interval.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        offset, exposure : arrays of n numbers, optional
            As in ``fit``; without them the offset is zero and the exposure one.
        interval : float, optional
            A level such as 0.95. Then the answer is (mean, low, high), where the interval is for the mean: Wald's on
            the scale of the score, taken through the link.
        """
        design, z = self._score_rows(X, offset, exposure)
        link = self._pair()[1]
        mean = keep_float32(link.inverse(z), self.coef_)
        if interval is None:
            return mean
        known = self._inference()
        half = known.quantile(interval) * np.sqrt(self._score_variance(design, known))
        ends = link.inverse(z - half), link.inverse(z + half)
        return mean, np.minimum(*ends), np.maximum(*ends)

    def linear_predictor(self, X: Any, *, offset: Any = None, exposure: Any = None) -> np.ndarray:
        """The score ⟨w, x⟩ + b + offset of every row."""
        return keep_float32(self._score_rows(X, offset, exposure)[1], self.coef_)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, offset: Any = None, exposure: Any = None) -> float:
        """D² = 1 − deviance / deviance of the best constant: the fraction of deviance explained (R² if Gaussian)."""
        mean = np.asarray(self.predict(X, offset=offset, exposure=exposure), dtype=np.float64)
        y = column_or_1d(y, dtype=np.float64)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        half = self._pair()[0].half_deviance
        constant = np.full(len(y), float(weight @ y / weight.sum()))
        with np.errstate(divide="ignore", invalid="ignore"):
            null = float(weight @ half(y, constant))
            return 1.0 - float(weight @ half(y, mean)) / null if null > 0 else 0.0

    def summary(self) -> str:
        """The fit as a table: measures of fit, estimates, standard errors, tests, intervals and warnings."""
        return str(self._inference())

    # ---------------------------------------------------------------------------------------------- from data to problem

    def _objective(self, X: Any, y: Any, sample_weight: Any, offset: Any, exposure: Any) -> Objective:
        distribution, link = self._pair()
        penalty = elastic_penalty(float(self.alpha), self.l1_ratio)
        reference = isinstance(penalty, NoPenalty) and self.fit_intercept
        X, y, self._coding = fit_table(self, X, y, self.categorical_features, reference)
        if not distribution.target.admits(y):
            raise ValueError(
                f"Some values of y are out of the valid range of the {distribution.name} distribution: "
                f"y must hold {distribution.target.value}."
            )
        return make_objective(
            X, y, self.score_loss(), penalty, sample_weight=check_weights(sample_weight, y),
            fit_intercept=self.fit_intercept, offset=_offset(link, offset, exposure, len(y)),
        )  # fmt: skip

    def score_loss(self) -> Loss:
        """The loss that is minimised: the negative log-likelihood as a function of the score."""
        return likelihood_loss(*self._pair())

    def _start(self, objective: Objective) -> tuple[np.ndarray, np.ndarray] | None:
        """Zero weights and the best constant; if that is outside the domain of the loss, a least-squares fit of g(y)."""
        warm = self._warm_start(objective)
        if warm is not None and np.isfinite(objective.risk(*warm)):
            return warm
        w, b = objective.zero()
        mean = float(weighted_sum(objective.c, objective.y))
        link = self._pair()[1]
        if self.fit_intercept:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                if objective.offset is None:
                    guess = float(link.link(mean))
                elif link.name == "log":
                    guess = float(np.log(mean / (weighted_sum(objective.c, np.exp(objective.offset)))))
                else:
                    guess = float(link.link(mean) - weighted_sum(objective.c, objective.offset))
            b[0] = guess if np.isfinite(guess) else 0.0
        if not isinstance(objective.loss, Linked) or np.isfinite(objective.risk(w, b)):
            return w, b
        return self._least_squares_start(objective, mean)

    def _least_squares_start(self, objective: Objective, mean: float) -> tuple[np.ndarray, np.ndarray]:
        d, c = objective.d, objective.c
        target = self._pair()[1].link(0.5 * (objective.y + mean)) - (
            0.0 if objective.offset is None else objective.offset
        )
        gram, edge = objective.design.gram(c), objective.design.rmatmul(c)
        rhs = objective.design.rmatmul(c * target)
        if self.fit_intercept:
            gram = np.block([[gram, edge[:, None]], [edge[None, :], np.array([[c.sum()]])]])
            rhs = np.append(rhs, weighted_sum(c, target))
        found = np.linalg.lstsq(gram, rhs, rcond=None)[0]
        w, b = found[:d], found[d:] if self.fit_intercept else np.zeros(1)
        if not np.isfinite(objective.risk(w, b)):
            raise ValueError(
                f"No weights were found for which every mean is allowed by the {self._pair()[0].name} distribution under "
                f"the {self._pair()[1].name} link. Use link='log' (or 'logit'), or fit an intercept."
            )
        return w, b

    # ------------------------------------------------------------------------------------------------------- inference

    def _conclude(self, objective: Objective, result: Result) -> None:
        self.coef_names_ = self._coding.names(
            list(getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)]))
        )
        self.__dict__.pop("inference_", None)
        if self.inference:
            self.inference_ = self._infer(objective, result)

    def _infer(self, objective: Objective, result: Result) -> GLMInference:
        w, b, total = result.w, result.b, objective.weight_sum
        distribution, link = self._fitted_pair()
        given = getattr(self, "_given", None)
        make_rows = FitRows if given is None or given.fit_rows is None else given.fit_rows
        rows = make_rows(objective, distribution, link, w, b)
        sums = rows.sums()
        free = isinstance(objective.penalty, NoPenalty)
        require_no_overflow(sums.information)
        covariance, rank = (
            covariance_of(sums.information) if free else (None, int(np.linalg.matrix_rank(sums.information)))
        )
        dof = total - rank
        dispersion, estimated = self._dispersion(distribution, sums.pearson, dof)
        names, estimate = tuple(self.coef_names_), np.array(w)
        if self.fit_intercept:
            names, estimate = ("intercept", *names), np.append(b[0], w)
        note = overdispersion(distribution.name, sums, dof) if not estimated else None
        notes = () if note is None else (note,)
        if result.separation is not None:  # at the supremum the information along that direction is zero
            covariance = None if covariance is None else np.full_like(covariance, np.nan)
            notes = (*notes, result.separation.warning())
        return GLMInference(
            names, estimate, None if covariance is None else dispersion * covariance, distribution.name, link.name,
            total, rank, dispersion, estimated, 2.0 * sums.half_deviance, 2.0 * total * rows.null_risk(), sums.pearson,
            rows.log_likelihood(sums), rank + int(not distribution.unit_dispersion) + self._extra_parameters(), notes,
        )  # fmt: skip

    def _dispersion(self, distribution: Distribution, pearson: float, dof: float) -> tuple[float, bool]:
        """φ and whether it was estimated."""
        if self.dispersion is None:
            estimated = not distribution.unit_dispersion
        elif isinstance(self.dispersion, str):
            estimated = True
        else:
            return float(self.dispersion), False
        return (pearson / dof if dof > 0 else np.nan, True) if estimated else (1.0, False)

    def _fitted_pair(self) -> tuple[Distribution, Link]:
        """The distribution with its fitted parameters, and the link."""
        return self._pair()

    def _extra_parameters(self) -> int:
        """The number of fitted parameters of the distribution."""
        return 0

    def _inference(self) -> GLMInference:
        check_is_fitted(self)
        if not hasattr(self, "inference_"):
            raise AttributeError("there is nothing to say about the accuracy of this fit: fit with inference=True.")
        return self.inference_

    # ------------------------------------------------------------------------------------------------------- prediction

    def _score_rows(self, X: Any, offset: Any, exposure: Any) -> tuple[Design, np.ndarray]:
        check_is_fitted(self)
        design = Design(predict_table(self, X, self._coding))
        z = design.matmul(self.coef_.astype(np.float64)) + np.float64(self.intercept_)
        known = _offset(self._pair()[1], offset, exposure, len(z))
        return design, z if known is None else z + known

    def _score_variance(self, design: Design, known: GLMInference) -> np.ndarray:
        """x'Cx for every row."""
        covariance, first = known._covariance(), int(self.fit_intercept)
        n, block = design.shape[0], 256
        total = np.full(n, covariance[0, 0] if first else 0.0)
        if first:
            total += 2.0 * design.matmul(covariance[0, 1:])
        # Σ_j x_j (Cx)_j, a few columns of C at a time.
        for begin in range(0, design.shape[1], block):
            some = np.arange(begin, min(begin + block, design.shape[1]))
            total += np.sum(design.columns(some) * design.matmul(covariance[first:, first + some]), axis=1)
        return np.maximum(total, 0.0)

    def _check_loaded(self) -> None:
        """Checks a model read from a file: its codes index the weights."""
        coding = getattr(self, "_coding", None)
        if coding is None:
            return
        columns = self.n_features_in_ - len(coding.columns) + sum(coding.widths()) if isinstance(coding, Coding) else -1
        if np.shape(self.coef_)[-1:] != (columns,):
            raise ValueError("it holds weights that do not fit its categories.")


def _offset(link: Link, offset: Any, exposure: Any, n: int) -> np.ndarray | None:
    """offset + log(exposure), checked; None if there is neither."""
    total = None
    if offset is not None:
        total = _vector("offset", offset, n)
    if exposure is not None:
        if link.name != "log":
            raise ValueError(f"exposure needs link='log'; with the {link.name} link, give an offset instead.")
        time = _vector("exposure", exposure, n)
        if np.any(time <= 0):
            raise ValueError("exposure must be greater than zero for every example; drop those that were not observed.")
        total = np.log(time) if total is None else total + np.log(time)
    return total


def _vector(name: str, values: Any, n: int) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (n,) or not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be {n} finite numbers, one per example; got an array of shape {array.shape}.")
    return array

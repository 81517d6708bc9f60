"""Naive Bayes with a separate distribution for every column."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import _check_partial_fit_first_call
from sklearn.utils.validation import check_is_fitted

from hinge._parameters import Constraints, Estimator, at_least, numbers, one_of
from hinge.models.base import check_weights, codes_among, unique_codes
from hinge.models.generative.base import OUTPUT, JointPosterior, as_output, finish, log_prior
from hinge.models.generative.naive_bayes.categorical import count_categories, score_categories, smoothed_logs
from hinge.models.generative.naive_bayes.discrete import BernoulliNB, check_alpha
from hinge.models.generative.naive_bayes.gaussian import GaussianNB
from hinge.models.trees.inputs import check_targets, fit_table, grow_table, predict_table
from hinge.tables.frames import as_frame, holds_text

KINDS = ("gaussian", "bernoulli", "categorical")


class MixedNB(JointPosterior, ClassifierMixin, Estimator):
    """Naive Bayes for tables with a separate distribution for each column.

    log p(c, x) = log π_c + Σ_j log p_j(x_j | c),  p_j normal, Bernoulli or categorical, each estimated by counting as
    in :class:`GaussianNB`, :class:`BernoulliNB` and :class:`CategoricalNB`. In a categorical column, missing values
    and categories that training did not have leave the column out of the sum.

    Parameters
    ----------
    distributions : "auto", list or dict
        One of "gaussian", "bernoulli", "categorical" per column; or a dict from column names (or numbers) to them,
        the other columns being detected. Detected from the type: categories and text are categorical, truth values
        (and integers that are 0 or 1) Bernoulli, other numbers normal.
    alpha : float
        Smoothing of counts.
    var_smoothing : float
        As for :class:`GaussianNB`.
    fit_prior, class_prior
        As for :class:`MultinomialNB`.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_ : arrays of shape (k,)
    distributions_ : list of d str
        What every column was taken for.
    gaussian_, bernoulli_ : estimators
        The models of the columns of these kinds, if there are any.
    category_count_, category_log_prob_ : lists of arrays of shape (k, categories)
        The counts, and the logarithms of the probabilities, in the categorical columns.

    Examples
    --------
    >>> import pandas as pd, hinge as hg
    >>> table = pd.DataFrame({"age": [20.0, 25.0, 60.0, 70.0], "city": ["Ulm", "Ulm", "Bonn", "Bonn"]})
    >>> model = hg.MixedNB().fit(table, [0, 0, 1, 1])
    >>> model.distributions_
    ['gaussian', 'categorical']
    >>> model.predict(pd.DataFrame({"age": [44.0], "city": ["Bonn"]}))
    array([1])
    """

    category_count_: list[np.ndarray]
    gaussian_: GaussianNB | None
    bernoulli_: BernoulliNB | None

    _parameter_constraints: ClassVar[Constraints] = {
        "distributions": [one_of("auto"), dict, "array-like"],
        "alpha": [at_least(0)],
        "var_smoothing": [at_least(0)],
        "fit_prior": ["boolean"],
        "class_prior": [numbers(), None],
    }

    _constant_tags: ClassVar[dict[str, bool]] = {"input_tags.categorical": True, "input_tags.string": True}

    def __init__(
        self,
        distributions: Any = "auto",
        *,
        alpha: float = 1.0,
        var_smoothing: float = 1e-9,
        fit_prior: bool = True,
        class_prior: Any = None,
    ) -> None:
        self.distributions = distributions
        self.alpha = alpha
        self.var_smoothing = var_smoothing
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MixedNB:
        """Fit; a weight of 2 is equivalent to repeating the example."""
        table = self._begin(X)
        y = check_targets(self, table, y)
        self.classes_, codes = unique_codes(y)
        return self._learn(table, codes, check_weights(sample_weight, table))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> MixedNB:
        """Add examples to the counts. The first call must list all ``classes``.

        The first call determines the distribution of each column; new categories may occur in any call.
        """
        first = _check_partial_fit_first_call(self, classes)
        table = self._begin(X) if first else grow_table(self, X, self.coder_)
        y = check_targets(self, table, y)
        return self._learn(table, codes_among(self.classes_, y), check_weights(sample_weight, table))

    def _begin(self, X: Any) -> np.ndarray:
        """Determines the columns' distributions from the first table; the counts are still empty."""
        _refuse_sparse(X)
        boolean, chosen = _boolean_columns(X), self._chosen(X)
        table, self.coder_ = fit_table(self, X, _categorical(X, chosen))
        kinds = [
            "categorical" if j in self.coder_.columns else "bernoulli" if j in boolean else "gaussian"
            for j in range(table.shape[1])
        ]
        self.distributions_ = [chosen.get(j, kind) for j, kind in enumerate(kinds)]
        self.gaussian_ = self.bernoulli_ = None
        self.class_count_, self.category_count_ = np.zeros(0), []
        return table

    def _learn(self, table: np.ndarray, codes: np.ndarray, weights: np.ndarray | None) -> MixedNB:
        """Add to the counts and estimate from them."""
        codes, k = np.ascontiguousarray(codes, dtype=np.int32), len(self.classes_)
        new = np.bincount(codes, weights, minlength=k).astype(np.float64)
        self.class_count_ = new + self.class_count_ if len(self.class_count_) else new
        self.class_log_prior_ = log_prior(self.class_prior, self.class_count_, fit=self.fit_prior)
        alpha, flat = check_alpha(self.alpha, True), np.full(k, 1.0 / k)
        piece = {"y": codes, "classes": np.arange(k), "sample_weight": weights}
        if numbers := self._columns("gaussian"):
            self.gaussian_ = self.gaussian_ or GaussianNB(priors=flat, var_smoothing=self.var_smoothing)
            self.gaussian_.partial_fit(self._part(table, numbers), **piece)
        if truths := self._columns("bernoulli"):
            self.bernoulli_ = self.bernoulli_ or BernoulliNB(alpha=self.alpha, class_prior=flat)
            self.bernoulli_.partial_fit(self._part(table, truths), **piece)
        if labels := self._columns("categorical"):
            at = {column: i for i, column in enumerate(self.coder_.columns)}
            sizes = np.array([int(self.coder_.codes[at[j]].max(initial=-1)) + 1 for j in labels])
            counts = count_categories(np.ascontiguousarray(table[:, labels]), codes, weights, k, sizes)
            for count, old in zip(counts, self.category_count_):
                count[:, : old.shape[1]] += old
            self.category_count_ = counts
        self.category_log_prob_ = smoothed_logs(self.category_count_, alpha)
        return self

    def _columns(self, kind: str) -> list[int]:
        return [j for j, name in enumerate(self.distributions_) if name == kind]

    @staticmethod
    def _part(table: np.ndarray, columns: list[int]) -> np.ndarray:
        return table if len(columns) == table.shape[1] else np.ascontiguousarray(table[:, columns])

    def _chosen(self, X: Any) -> dict[int, str]:
        """The requested distributions, by column number."""
        if isinstance(self.distributions, str):
            return {}
        frame = as_frame(X)
        names = [] if frame is None else [str(name) for name in frame.columns]
        if isinstance(self.distributions, dict):
            unknown = [c for c in self.distributions if not isinstance(c, int) and c not in names]
            if unknown:
                raise ValueError(f"distributions names columns that X does not have: {unknown}.")
            chosen = {c if isinstance(c, int) else names.index(c): v for c, v in self.distributions.items()}
        else:
            chosen = dict(enumerate(self.distributions))
            if len(getattr(X, "shape", ())) == 2 and len(chosen) != X.shape[1]:
                raise ValueError(f"distributions has {len(chosen)} entries; X has {X.shape[1]} columns.")
        wrong = sorted({str(v) for v in chosen.values() if v not in KINDS})
        if wrong:
            raise ValueError(f"distributions must be among {', '.join(KINDS)}; got {', '.join(wrong)}.")
        return chosen

    def _wanted(self, X: Any, output: Any) -> np.ndarray:
        check_is_fitted(self)
        _refuse_sparse(X)
        table = predict_table(self, X, self.coder_)
        joint = np.tile(self.class_log_prior_, (len(table), 1))
        level = np.log(len(self.classes_))  # the parts have uniform priors
        for kind, part in (("gaussian", self.gaussian_), ("bernoulli", self.bernoulli_)):
            if part is not None:
                joint += part.predict_joint_log_proba(self._part(table, self._columns(kind))) + level
        if labels := self._columns("categorical"):
            zero = np.zeros(len(self.classes_))
            part_table = np.ascontiguousarray(table[:, labels])
            joint += score_categories(part_table, self.category_log_prob_, zero, OUTPUT.joint)[0]
        return as_output(finish(joint, output)[0], output, self.class_log_prior_)


def _refuse_sparse(X: Any) -> None:
    if scipy.sparse.issparse(X):
        raise TypeError("Sparse data was passed for X, but MixedNB needs a dense table; use X.toarray().")


def _boolean_columns(X: Any) -> set[int]:
    """Boolean columns, and columns of integers that are all 0 or 1."""
    frame = as_frame(X)
    if frame is None:
        dtype = getattr(X, "dtype", None)
        if dtype is None or dtype.kind not in "biu" or getattr(X, "ndim", 0) != 2:
            return set()
        return {j for j in range(X.shape[1]) if dtype.kind == "b" or np.isin(X[:, j], (0, 1)).all()}
    columns = [frame[:, j].to_numpy() for j in range(frame.shape[1])]
    return {
        j for j, c in enumerate(columns) if c.dtype.kind == "b" or (c.dtype.kind in "iu" and np.isin(c, (0, 1)).all())
    }


def _categorical(X: Any, chosen: dict[int, str]) -> Any:
    """The columns to code: those requested, and text columns without a request."""
    requested = {j for j, kind in chosen.items() if kind == "categorical"}
    frame = as_frame(X)
    if frame is not None:
        text = [j for j in range(frame.shape[1]) if holds_text(frame, j)]
        requested |= {j for j in text if chosen.get(j, "categorical") == "categorical"}
    return sorted(requested) or None

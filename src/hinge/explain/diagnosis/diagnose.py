"""The diagnosis: the sources of a model's error, and what would decrease it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from hinge._native import check_indices
from hinge.explain.bias_variance import BiasVariance, bootstrap_parts
from hinge.explain.calibration import reliability
from hinge.explain.diagnosis.advice import advise
from hinge.explain.diagnosis.alternatives import Rival, constant_held, depends_on_scale, measure_probes, measure_rivals
from hinge.explain.diagnosis.data_checks import check_data
from hinge.explain.diagnosis.optimisation import Optimisation, harder, read_optimisation
from hinge.explain.diagnosis.power_law import fit_power_law
from hinge.explain.diagnosis.prediction_bands import measure_reach
from hinge.explain.diagnosis.report import Learning, RiskReport, Terms
from hinge.explain.drift import Drift, measure_drift
from hinge.explain.guarantees import guarantees
from hinge.models.meta import final_step, row_count, take_rows
from hinge.select.estimate import Estimate, mean_of
from hinge.select.measure import Measure, make_measure
from hinge.select.resample import HeldOut, Resampler, fit_quietly, resampler
from hinge.tables.kinds import typed_columns

Array = np.ndarray
PARTS = ("learning", "rivals", "probes", "bias_variance", "drift")
FRACTIONS = (0.1, 0.17, 0.3, 0.5, 0.75, 1.0)


def diagnose(
    model: Any,
    X: Any,
    y: Any,
    *,
    X_test: Any = None,
    y_test: Any = None,
    cv: Any = 5,
    groups: Any = None,
    measure: Any = None,
    repeats: int = 20,
    max_rows: int = 10_000,
    skip: Collection[str] = (),
    random_state: int = 0,
    row_names: Any = None,
) -> RiskReport:
    """Measure the parts of a model's error and advise what would decrease it.

    The held-out risk is split as R(f̃) = [R(f̃) − R(f̂)] + [R(f̂) − R(f_F)] + [R(f_F) − R(f*)] + R(f*): the optimisation
    error (from the certificate and a fit with many more iterations), the estimation error (from the learning curve
    extrapolated to infinity), the approximation error (from richer classes on the same folds), and the remainder.

    Parameters
    ----------
    model : classifier or regressor
        Any estimator of this library or scikit-learn's conventions, or a pipeline; fitted to (X, y), or not fitted yet.
    X, y : the training data
        A table and its targets. A fitted model should have been fitted to these rows.
    X_test, y_test : other data, optional
        Compared with the training data (drift), and the model is judged on them.
    cv : int, splitter or iterable of splits
        Folds; an integer gives shuffled ones, stratified for classifiers.
    groups : array, optional
        For splitters that keep groups together.
    measure : str or Loss, optional
        "squared error", "absolute error" or a loss for regressors; "Brier score", "log loss" or "error rate" for
        classifiers.
    repeats : int
        Bootstrap fits for bias and variance.
    max_rows : int
        Experiments use at most so many rows, drawn at random.
    skip : collection of {"learning", "rivals", "probes", "bias_variance", "drift"}
        Parts to leave out, to save time. Together they take about (2 + len(probes) + 1.8) · cv + repeats fits.
    random_state : int
        The same seed gives the same report.
    row_names : array, optional
        What findings call the rows; their positions in X by default.

    Returns
    -------
    RiskReport
        ``print`` it, ``.plot()`` it, ``.to_dict()`` it; ``.findings`` says what to do.

    Examples
    --------
    >>> import hinge as hg
    >>> heart = hg.load_dataset("heart")
    >>> report = hg.diagnose(hg.LogisticRegression(), heart.X, heart.y, skip=["rivals", "bias_variance"])
    >>> report.optimisation.converged
    True
    """
    _check(model, X, y, X_test, y_test, skip)
    measure = make_measure(model, y, measure)
    model = _fitted(model, X, y)
    names = np.arange(row_count(X)) if row_names is None else np.asarray(row_names)
    X_used, y_used, groups, names = _at_most(X, y, groups, names, max_rows, random_state)
    data = resampler(model, X_used, y_used, measure, cv, groups, random_state)
    held = data.held_out(model)
    optimisation, best, best_held = _try_harder(model, data, held)

    convex = getattr(final_step(model), "certificate_", None) is not None
    learning = None if "learning" in skip else _learning(data, best, best_held, fixed_class=convex)
    rivals = _constant(data, best_held) if "rivals" in skip else measure_rivals(data, best, best_held)
    probes = () if "probes" in skip else measure_probes(data, best, best_held)
    parts = _bias_variance(data, best, repeats) if "bias_variance" not in skip else None
    drift, test_risk = _on_test(model, measure, X, y, X_test, y_test, "drift" in skip)
    problems = check_data(X_used, data.targets, measure, data.folds, best_held, X_test, X)
    problems = replace(problems, doubtful=tuple(names[list(problems.doubtful)].tolist()))
    chances = best_held.output if measure.classes is not None and measure.probabilities else None
    # Comparisons with the held-out risk need fits of the same kind to about the same number of rows.
    refitted = optimisation.converged is False or row_count(X_used) < row_count(X)
    report = RiskReport(
        model=" ".join(repr(model).split()),
        measure=measure.name,
        rows=row_count(X),
        columns=int(X.shape[1]) if hasattr(X, "shape") else len(typed_columns(X)),
        used_rows=row_count(X_used),
        train_risk=best_held.train_risk if refitted else mean_of(measure.losses(model, data.X, data.targets)),
        held_out_risk=held.risk,
        test_risk=test_risk,
        constant_risk=next(r.risk for r in rivals if r.name == "a constant"),
        terms=_terms(held, best_held, learning, rivals),
        optimisation=optimisation,
        learning=learning,
        rivals=rivals,
        probes=probes,
        bias_variance=parts,
        reliability=reliability(data.targets[best_held.rows], chances) if chances is not None else None,
        reach=measure_reach(data.targets, measure, best_held),
        guarantees=guarantees(model, X, y),
        data=problems,
        drift=drift,
        findings=(),
        scale_sensitive=depends_on_scale(model),
        predictions=(data.targets[best_held.rows], best_held.output),
    )
    return replace(report, findings=advise(report))


def _check(model: Any, X: Any, y: Any, X_test: Any, y_test: Any, skip: Collection[str]) -> None:
    unknown = sorted(set(skip) - set(PARTS))
    if unknown:
        raise ValueError(f"skip holds {unknown[0]!r}; it may hold {', '.join(PARTS)}.")
    if not (is_classifier(model) or is_regressor(model)):
        raise TypeError(f"model must be a classifier or a regressor, got {type(model).__name__}.")
    if y_test is not None and X_test is None:
        raise ValueError("y_test was given without X_test.")
    if len(np.shape(y)) != 1:
        raise ValueError(f"y must be one target per row, got an array of shape {np.shape(y)}.")
    check_indices(X)
    check_indices(X_test)


def _fitted(model: Any, X: Any, y: Any) -> Any:
    try:
        check_is_fitted(model)
    except NotFittedError:
        return fit_quietly(model, X, y)
    return model


def _at_most(X: Any, y: Any, groups: Any, names: Array, most: int, random_state: int) -> tuple[Any, Any, Any, Array]:
    """A random subset of at most ``most`` rows, in their order."""
    n = row_count(X)
    if n <= most:
        return X, y, groups, names
    rows = np.sort(np.random.default_rng(random_state).permutation(n)[:most])
    return take_rows(X, rows), take_rows(y, rows), None if groups is None else take_rows(groups, rows), names[rows]


def _try_harder(model: Any, data: Resampler, held: HeldOut) -> tuple[Optimisation, Any, HeldOut]:
    """If the fit did not converge: the gain of many more iterations, and the better model for the other experiments."""
    found = read_optimisation(model)
    if found.converged is not False or (better := harder(model)) is None:
        return found, model, held
    better_held = data.held_out(better)
    return replace(found, gain=held.minus(better_held)), better, better_held


def _learning(data: Resampler, model: Any, held: HeldOut, *, fixed_class: bool) -> Learning | None:
    smallest = min(len(learn) for learn, _ in data.folds)
    classes = 1 if data.measure.classes is None else len(data.measure.classes)
    fractions = [f for f in FRACTIONS if f * smallest >= max(10, 5 * classes)]
    if len(fractions) < 3:
        return None
    sizes, train, test = data.learning_curve(model, fractions, held)
    # If a class can fit its rows exactly, the curve rises before it falls, and the law applies after that.
    exact = train.mean(axis=1) <= 1e-9 * test.mean(axis=1)
    lawful = ~exact if np.sum(~exact) >= 3 else np.ones(len(sizes), dtype=bool)
    # The limit is above the training risk. For a fixed class fitted to its optimum it is about half-way to the held-out
    # risk (Akaike: E train = R(f_F) − δ, E held out = R(f_F) + δ), and a lower limit is not accepted.
    bound = floor = float(train[-1].mean())
    if fixed_class:
        floor = 0.5 * (bound + float(test[-1].mean()))
    error = held.risk.standard_error
    law = fit_power_law(
        sizes[lawful], test[lawful], floor=floor, bound=bound, level_error=error if np.isfinite(error) else 0.0,
        random_state=data.random_state,
    )  # fmt: skip
    return Learning(sizes, train, test, law, law.at(2.0 * sizes[-1]), law.asymptote)


def _constant(data: Resampler, held: HeldOut) -> tuple[Rival, ...]:
    constant = constant_held(data)
    return (Rival("a constant", constant.risk, held.minus(constant)),)


def _bias_variance(data: Resampler, model: Any, repeats: int) -> BiasVariance | None:
    return bootstrap_parts(data, model, repeats) if data.measure.squared else None


def _on_test(
    model: Any, measure: Measure, X: Any, y: Any, X_test: Any, y_test: Any, skip_drift: bool
) -> tuple[Drift | None, Estimate | None]:
    if X_test is None:
        return None, None
    drift = None if skip_drift or not typed_columns(X) else measure_drift(X, X_test, y, y_test)
    risk = None if y_test is None else mean_of(measure.losses(model, X_test, measure.code(y_test)))
    return drift, risk


def _terms(held: HeldOut, best: HeldOut, learning: Learning | None, rivals: tuple[Rival, ...]) -> Terms:
    """The parts of the held-out risk, which sum to it."""
    total, solved = held.risk.value, best.risk.value
    limit = min(learning.limit.value, solved) if learning is not None else solved
    floor = min([limit, *(r.risk.value for r in rivals)])
    return Terms(total - solved, solved - limit, limit - floor, floor)

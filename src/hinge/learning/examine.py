"""The evidence of a report: scores on held-out rows, effects of columns, curves, findings."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hinge.errors import argument
from hinge.explain.diagnosis.diagnose import diagnose
from hinge.explain.diagnosis.optimisation import NO_SOLVER
from hinge.explain.diagnosis.report_text import fact_lines, parts_sentence
from hinge.learning import effects
from hinge.learning.fits import certificate_of, fit_model, inner
from hinge.learning.leaderboard import board_rows
from hinge.learning.refit import Refit
from hinge.learning.request import Request, checksum, versions
from hinge.learning.roles import Roles
from hinge.learning.rows import column_pictures, explained_rows, worst_rows
from hinge.learning.scores import best_constant, constant_losses, details, explained, positive_class
from hinge.learning.search import Search
from hinge.learning.suspects import suspicious
from hinge.learning.timeout import Deadline, OutOfTime, limit
from hinge.learning.words import word_effects
from hinge.report import formulas
from hinge.report.columns import pictured_class
from hinge.report.evidence import Effect, Evidence
from hinge.select.estimate import mean_of
from hinge.tables.notes import Note
from hinge.tables.number_formats import format_number
from hinge.tables.profile import TableProfile

# Findings that the notes on the columns already contain.
IN_NOTES = ("H001", "H501", "H504", "H505", "H506")
# Findings that hold for the diagnosed rows only: they are left out if those rows are a sample.
OF_ALL_ROWS = ("H201", "H202", "H203", "H204", "H301", "H601")
CURVE_ROWS, HELD_ROWS, COEFFICIENT_ROWS = 100_000, 5000, 50_000
DIAGNOSED_ROWS = (1000, 30_000)
DIAGNOSIS_FITS = 12  # approximate number of fits of a diagnosis
DIAGNOSED_BY = {
    "brier": "Brier score",
    "accuracy": "error rate",
    "mae": "absolute error",
}  # where it is not the default
# The parts of the remaining time that each step may take, in the order of the steps; what a step leaves goes to those after it.
SHARES = {
    "importances": 0.25,
    "findings": 0.45,
    "leaks": 0.35,
    "words": 0.3,
    "curve": 0.6,
    "partials": 0.5,
    "rows": 0.6,
}


@dataclass(frozen=True)
class Split:
    """Which rows train the scored model, which score it, and which the search used."""

    train: np.ndarray
    test: np.ndarray
    sample: np.ndarray


def examine(
    request: Request, data: TableProfile, refit: Refit, rows: Split, trained: Any, final: Any, seconds: float,
    roles: Roles | None = None,
) -> Evidence:  # fmt: skip
    """The evidence: held-out scores, effects of columns, curves, findings."""
    search, chosen = refit.search, refit.chosen
    best = search.best()
    assert best is not None
    assert best.score is not None
    assert chosen.score is not None
    grouped = request.group is not None
    positive = positive_class(request.positive, data.classes)
    truth, prediction, base, how = _held_out(refit, rows, trained, request.time_column is not None, grouped)
    loss = search.measure.pointwise(truth, prediction)
    if refit.weight is not None and len(rows.test):
        loss, base = loss * refit.weight[rows.test], base * refit.weight[rows.test]
    elif refit.weight is not None:
        loss = loss * refit.weight
    score = search.measure.estimate(loss)
    space, objective = formulas.formula(
        chosen.family.name, chosen.setting.name, inner(final.named_steps["model"]), search.task
    )
    done = sum(trial.state == "done" for trial in search.results)
    evidence = Evidence(
        title=f"{data.target} from {request.path.name}", source=str(request.path), target=data.target, task=search.task,
        metric=search.measure.name, classes=[] if data.classes is None else [str(c) for c in data.classes],
        rows=len(data.y), columns=[asdict(c) for c in data.columns], left_out=data.left_out,
        notes=[*data.notes, *_notes(refit, base - loss)], board=board_rows(search.results, chosen),
        chosen=chosen.family.name, formula=space, objective=objective,
        reason=formulas.reason(chosen.family.name, chosen.score, best.family.name, best.score, done), held_out=how,
        scored="held out" if len(rows.test) else "cross-validated", y=truth, prediction=prediction, score=score.value,
        error=score.standard_error, trivial=search.measure.estimate(base).value, explained=explained(loss, base),
        details=details(truth, prediction, search.task, positive), positive=positive, train_rows=len(rows.train), sample_rows=len(rows.sample),
        target_values=data.y, command=request.command, seed=request.seed, versions=versions(),
        checksum=checksum(request.path),
    )  # fmt: skip
    _measure(evidence, data, refit, rows, trained or final, final, loss, roles or Roles(), request, Deadline(seconds))
    return evidence


def _held_out(
    refit: Refit, rows: Split, trained: Any, ordered: bool, grouped: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:  # fmt: skip
    """Held-out targets and predictions, the losses of the best constant, and a description of the held-out rows."""
    search = refit.search
    if len(rows.test):
        truth = refit.targets[rows.test]
        prediction = search.measure.output(trained, refit.frame[rows.test])
        constant = best_constant(refit.y[rows.train], search.classes, search.metric)
        drawn = (
            f"the last {format_number(len(rows.test))} rows by time, "
            if ordered
            else f"{format_number(len(rows.test))} rows "
        )
        groups = "of whole groups " if grouped and not ordered else ""
        how = f"{drawn}{groups}{'' if ordered else 'drawn at random and '}kept apart until the model was chosen"
        return truth, prediction, constant_losses(search.measure, truth, constant), how
    trivial, chosen = search.results[0], refit.chosen
    assert chosen.predictions is not None
    assert trivial.loss is not None
    tried = sum(trial.state == "done" for trial in search.results)
    how = f"all {len(search.y)} rows, each predicted by a model fitted without it ({len(search.folds)} folds)"
    if tried > 2:
        how += f"; the choice among {tried} settings was made on the same folds, so the score is slightly optimistic"
    return search.targets, chosen.predictions, trivial.loss, how


def _notes(refit: Refit, gain: np.ndarray) -> list[Note]:
    """Notes that need a fitted model; ``gain`` is the loss of the constant minus that of the model, row by row."""
    notes = []
    better = mean_of(gain)
    if better.value <= better.standard_error:
        tried = {trial.family.name for trial in refit.search.results[1:] if trial.state == "done"}
        untried = {trial.family.name for trial in refit.search.results[1:]} - tried
        text = "no model is better than the best constant, beyond noise"
        if untried:
            text = (
                f"none of the models tried in full ({', '.join(sorted(tried)) or 'none'}) is better than the best constant, "
                f"beyond noise; there was no time for {', '.join(sorted(untried))}"
            )
        notes.append(Note("D15", "", text))
    if refit.cut is not None:
        done, wanted = refit.cut
        text = f"time was short: boosting stopped after {done} rounds instead of the {wanted} chosen by the folds; give more time ({argument('seconds')})"
        notes.append(Note("D17", "", text))
    return notes


def _measure(
    evidence: Evidence, data: TableProfile, refit: Refit, rows: Split, trained: Any, final: Any, loss: np.ndarray,
    roles: Roles, request: Request, clock: Deadline,
) -> None:  # fmt: skip
    """Every step of the examination, each within its part of the time; a step that runs out leaves what it has."""
    search, chosen, measure = refit.search, refit.chosen, refit.search.measure
    if search.classes is not None and search.task == "multiclass":
        evidence.outputs = [str(c) for c in search.classes]
    scored = rows.test if len(rows.test) else rows.train
    informed = chosen.family.name != "baseline"
    if informed:
        with clock.during(SHARES["importances"]) as seconds:
            evidence.importances = effects.importances(
                trained, data.frame[scored], refit.targets[scored], measure, search.seed, seconds=0.8 * seconds
            )
    evidence.sentences, evidence.facts = _findings(refit, rows, trained, data.rows, clock.share(SHARES["findings"]))
    strongest = [effect.name for effect in evidence.importances if effect.low > 0]
    with clock.during(SHARES["leaks"]) as seconds:
        evidence.notes += suspicious(request, data, roles, strongest, 0.6 * seconds)
    if informed and search.texts:
        with clock.during(SHARES["words"]) as seconds:
            evidence.words = word_effects(
                trained, data.frame[scored], refit.targets[scored], search.texts, measure, 0.8 * seconds
            )
    if informed:
        inside, held = search.folds[0].train, search.folds[0].test
        if len(rows.test):
            inside, held = _at_most(rows.train, CURVE_ROWS, search.seed), rows.test[:HELD_ROWS]
        evidence.curve = effects.learning_curve(
            refit.single().fit,
            data.frame,
            refit.targets,
            inside,
            held,
            measure,
            search.seed,
            clock.share(SHARES["curve"]),
        )
        with clock.during(SHARES["partials"]):
            for found in effects.partials(
                final, data.frame, evidence.importances, search.kinds, search.task, search.seed
            ):
                evidence.partials.append(found)
    _rows(evidence, data, refit, scored, loss, trained, clock)
    certificate = certificate_of(final.named_steps["model"])
    if certificate is not None:
        evidence.certificate = certificate.explain()
    if chosen.family.name in ("linear", "sparse"):
        evidence.coefficients = _coefficients(final, refit)
    evidence.convergence = _convergence(search, clock)


def _rows(
    evidence: Evidence, data: TableProfile, refit: Refit, rows: np.ndarray, loss: np.ndarray, trained: Any, clock: Deadline
) -> None:  # fmt: skip
    """Distributions of columns, the rows with the largest losses, and Shapley values of a few predictions."""
    search = refit.search
    order = [effect.name for effect in evidence.importances]
    pictured = pictured_class(evidence) if evidence.classes else None
    evidence.pictures = column_pictures(data.frame, data.y, search.kinds, order, pictured)
    evidence.worst = worst_rows(evidence, data.frame, rows, data.rows, loss)
    if refit.chosen.family.name == "baseline":
        return
    with clock.during(SHARES["rows"]):
        evidence.explained_rows = explained_rows(
            evidence, trained, search.measure.output, data.frame, rows, data.rows, search.seed
        )


def _at_most(rows: np.ndarray, most: int, seed: int) -> np.ndarray:
    return rows if len(rows) <= most else np.random.default_rng(seed).permutation(rows)[:most]


def _findings(
    refit: Refit, split: Split, trained: Any, numbers: np.ndarray, seconds: float
) -> tuple[list[tuple[str, str, str]], list[str]]:
    """The findings of :func:`hinge.diagnose`, on as many rows as the time allows.

    Returns findings as (code, observation, remedy), and one sentence for every measured part of the risk. ``numbers`` are the row
    numbers in the file.
    """
    search, rng = refit.search, np.random.default_rng(refit.search.seed)
    affordable = 0.5 * len(search.y) * seconds / (DIAGNOSIS_FITS * max(refit.chosen.fit_seconds, 1e-3))
    most = int(np.clip(affordable, *DIAGNOSED_ROWS))
    rows = np.sort(rng.permutation(split.train)[:most])
    other = {}
    if len(split.test):
        held = np.sort(rng.permutation(split.test)[:most])
        other = {"X_test": refit.frame[held], "y_test": search.labels(refit.y[held])}
    try:
        with warnings.catch_warnings(), limit(seconds):
            warnings.simplefilter("ignore")  # warnings of the experiments' fits; the report holds the findings
            report = diagnose(
                refit.lean(trained), refit.frame[rows], search.labels(refit.y[rows]), **other, cv=3,
                measure=DIAGNOSED_BY.get(search.metric or "", "log loss" if search.classes is not None else "squared error"),
                skip=["rivals", "probes", "bias_variance"], max_rows=most, random_state=search.seed,
                row_names=numbers[rows],
            )  # fmt: skip
    except OutOfTime:
        return [("", "The diagnosis was left out for lack of time.", f"Give more time ({argument('seconds')}).")], []
    except (ValueError, ArithmeticError) as error:
        return [("", f"The diagnosis failed: {' '.join(str(error).split())}", "")], []
    skipped = set(IN_NOTES if len(rows) == len(split.train) else (*IN_NOTES, *OF_ALL_ROWS))
    found = [(f.code, f"{f.title}. {f.evidence}", f.action) for f in report.findings if f.code not in skipped]
    part = f"{format_number(len(rows))} rows"
    if len(rows) < len(split.train):
        part = f"{format_number(len(rows))} of the {format_number(len(split.train))} training rows"
    how = f"What follows is from three folds of {part}, each model fitted to two thirds of them; ± is 95 % confidence."
    return found, [how, parts_sentence(report), *(fact for fact in fact_lines(report) if fact != NO_SOLVER)]


def _coefficients(final: Any, refit: Refit) -> list[Effect]:
    prep, model = final.named_steps["prep"], final.named_steps["model"]
    rows = np.arange(min(len(refit.y), COEFFICIENT_ROWS))
    y = refit.y[rows]
    if refit.search.task == "binary":
        y = 2 * y - 1
    if refit.search.task == "real":
        y = model.standardised(y)
    return effects.coefficients(inner(model), prep.get_feature_names_out(), prep.transform(refit.frame[rows]), y)


def _convergence(search: Search, clock: Deadline) -> dict[str, list[tuple[float, float]]]:
    """The gap between the objective and its proved bound against time, for the convex families."""
    found = {}
    for name in ("linear", "sparse"):
        result = search.best(name)
        if result is None:
            continue
        fold = search.folds[0]
        prep, X, *_ = search.prepare(fold, result.encode)
        changes: dict[str, Any] = {"regressor__history" if search.task == "real" else "history": True}
        core = None
        with clock.during(0.5):
            core = inner(fit_model(result.setting, search, prep, X, search.labels(search.y[fold.train]), **changes))
        if core is not None and np.isfinite(bound := core.certificate_.dual):
            found[f"{name} {result.setting.name}"] = [
                (max(record.seconds, 1e-6), max(record.objective - bound, 1e-16)) for record in core.history_
            ]
    return found

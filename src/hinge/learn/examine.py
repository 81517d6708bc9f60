"""Everything the report shows: scores on held-out rows, importances, curves, advice."""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict
from typing import Any

import numpy as np

from hinge.explain.diagnosis.optimisation import NO_SOLVER
from hinge.explain.diagnosis.report_text import fact_lines, parts_sentence
from hinge.learn import formulas, measure
from hinge.learn.evidence import Evidence
from hinge.learn.leaderboard import board_rows
from hinge.learn.refit import Fitting, Request, checksum, versions
from hinge.learn.scores import METRIC, details, explained, losses, predict_for, score
from hinge.learn.search import Result, Search, certificate_of, fit_model, inner
from hinge.learn.timeout import OutOfTime, limit
from hinge.tables.notes import Note
from hinge.tables.number_formats import format_number
from hinge.tables.profile import TableProfile

# Findings that the remarks on the columns make already, before anything is fitted.
SAID_BEFORE = ("H001", "H501", "H504", "H505", "H506")
# Findings that hold for the rows they were made on: not said of a sample.
OF_ALL_ROWS = ("H201", "H202", "H203", "H204", "H301", "H601")
DIAGNOSED_ROWS = (3000, 30_000)
DIAGNOSIS_FITS = 12  # about
LEAST_DIAGNOSIS = 2.5  # seconds: a report without its findings is worth less than a report that is late


def examine(
    request: Request, seen: TableProfile, search: Search, chosen: Result, whole: Fitting, trained: Any, final: Any,
    train: np.ndarray, test: np.ndarray, sample: np.ndarray, seconds: float,
) -> Evidence:  # fmt: skip
    """Everything the report shows."""
    task, classes, y = search.task, search.classes, whole.y
    trivial = search.results[0]
    if len(test):
        prediction = predict_for(trained, seen.frame[test], task, classes)
        truth = y[test]
        how = f"{format_number(len(test))} rows drawn at random and kept apart until the model was chosen"
        constant = _constant(y[train], task, classes)
        base = losses(truth, np.broadcast_to(constant, (len(test), *np.shape(constant))), task, search.mean)
    else:
        assert chosen.predictions is not None
        assert trivial.loss is not None
        prediction, truth, base = chosen.predictions, search.y, trivial.loss
        tried = sum(r.state == "done" for r in search.results)
        how = f"all {len(truth)} rows, each predicted by a model that had not seen it ({len(search.folds)} folds)"
        if tried > 2:
            how += f"; the choice among {tried} settings was made on the same folds, so the score is a little too good"
    loss = losses(truth, prediction, task, search.mean)
    result = score(loss, task)
    space, objective = formulas.formula(chosen, final.named_steps["model"], task)
    notes = list(seen.notes)
    if np.mean(base - loss) <= np.std(base - loss) / np.sqrt(len(loss)):
        notes.append(Note("D15", "", "no model is better than the best constant, beyond noise"))
    if whole.cut is not None:
        done, wanted = whole.cut
        text = f"time was short: boosting did {done} rounds where the folds asked for {wanted}; a longer --time does better"
        notes.append(Note("D17", "", text))
    evidence = Evidence(
        title=f"{seen.target} from {request.file.name}", source=str(request.file), target=seen.target, task=task,
        metric=METRIC[task], classes=[] if classes is None else [str(c) for c in classes], rows=len(y),
        columns=[asdict(c) for c in seen.columns], left_out=seen.left_out, notes=notes,
        board=board_rows(search.results, chosen), chosen=chosen.family.name, formula=space, objective=objective,
        reason=formulas.reason(search, chosen), held_out=how, scored="held out" if len(test) else "cross-validated", y=truth, prediction=prediction, score=result.value,
        error=result.error, trivial=score(base, task).value, explained=explained(loss, base),
        details=details(truth, prediction, task), train_rows=len(train), sample_rows=len(sample), target_values=y,
        command=request.command, seed=request.seed, versions=versions(), checksum=checksum(request.file),
    )  # fmt: skip
    _measure(evidence, seen, search, chosen, whole, trained or final, final, train, test, seconds)
    return evidence


def _constant(y: np.ndarray, task: str, classes: Any) -> Any:
    if classes is None:
        return float(np.mean(y))
    return np.bincount(y.astype(np.int64), minlength=len(classes)) / len(y)


def _measure(
    evidence: Evidence, seen: TableProfile, search: Search, chosen: Result, whole: Fitting, trained: Any, final: Any,
    train: np.ndarray, test: np.ndarray, seconds: float,
) -> None:  # fmt: skip
    task, classes, seed = search.task, search.classes, search.seed
    rows = test if len(test) else train
    deadline = time.perf_counter() + seconds
    kinds = search.kinds
    evidence.outputs = [str(c) for c in classes] if classes is not None and task == "multiclass" else []
    if chosen.family.name != "baseline":
        evidence.importances = measure.importances(
            trained, seen.frame[rows], whole.y[rows], task, classes, seed, seconds=0.25 * seconds
        )
        for effect in evidence.importances[:6]:
            if effect.high > 0:
                found = measure.partial(final, seen.frame, effect.name, kinds[effect.name], task, classes, seed)
                if found is not None:
                    evidence.partials.append(found)
        few = train if len(train) <= 100_000 else np.random.default_rng(seed).permutation(train)[:100_000]
        if len(test):
            held = test[:5000]
            inside = few
        else:
            fold = search.folds[0]
            inside, held = fold.train, fold.test
        evidence.curve = measure.learning_curve(
            whole.fit, seen.frame, whole.y, inside, held, task, classes, seed, 0.3 * seconds
        )
    model = final.named_steps["model"]
    certificate = certificate_of(model)
    if certificate is not None:
        evidence.certificate = certificate.explain()
    if chosen.family.name in ("linear", "sparse"):
        evidence.coefficients = _coefficients(final, seen, search, whole)
    evidence.convergence = _convergence(search, 0.1 * seconds)
    evidence.sentences, evidence.facts = _advice(
        search, chosen, whole, trained, seen.rows, train, test, max(deadline - time.perf_counter(), 0.25 * seconds)
    )  # fmt: skip


def _advice(
    search: Search, chosen: Result, whole: Fitting, trained: Any, numbers: np.ndarray, train: np.ndarray, test: np.ndarray,
    seconds: float,
) -> tuple[list[tuple[str, str, str]], list[str]]:  # fmt: skip
    """What :func:`hinge.diagnose` finds, on as many rows as the time allows.

    Findings as (code, what was seen, what to do), and one sentence for every part of the risk that was measured.
    ``numbers`` are those of the rows in the file.
    """
    import hinge as hg

    rng = np.random.default_rng(search.seed)
    affordable = 0.5 * len(search.y) * seconds / (DIAGNOSIS_FITS * max(chosen.fit_seconds, 1e-3))
    most = int(np.clip(affordable, *DIAGNOSED_ROWS))
    rows = np.sort(rng.permutation(train)[:most])
    measure = "log loss" if search.classes is not None else "squared error"
    skip = ["rivals", "probes", "bias_variance"]
    other = {}
    if len(test):
        held = np.sort(rng.permutation(test)[:most])
        other = {"X_test": whole.frame[held], "y_test": search.labels(whole.y[held])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits of the experiments; their findings are in the report
        try:
            with limit(max(seconds, LEAST_DIAGNOSIS)):
                report = hg.diagnose(
                    trained, whole.frame[rows], search.labels(whole.y[rows]), **other, cv=3, measure=measure, skip=skip,
                    max_rows=most, random_state=search.seed,
                )  # fmt: skip
        except OutOfTime:
            return [("", "The diagnosis was left out: the time was up.", "Give more time (--time).")], []
        except (ValueError, ArithmeticError) as error:
            return [("", f"The diagnosis could not be made: {' '.join(str(error).split())}", "")], []
    skipped = set(SAID_BEFORE if len(rows) == len(train) else (*SAID_BEFORE, *OF_ALL_ROWS))
    found = [
        (f.code, f"{f.title}. {_as_in_file(f, report, numbers[rows])}", f.action)
        for f in report.findings if f.code not in skipped
    ]  # fmt: skip
    part = (
        f"{format_number(len(rows))} rows"
        if len(rows) == len(train)
        else f"{format_number(len(rows))} of the {format_number(len(train))} training rows"
    )
    how = f"What follows is from three folds of {part}, each model fitted to two thirds of them; ± is 95 % confidence."
    return found, [how, parts_sentence(report), *(fact for fact in fact_lines(report) if fact != NO_SOLVER)]


def _as_in_file(finding: Any, report: Any, numbers: np.ndarray) -> str:
    """What was seen; rows that it counts from 0 among those it was given, by their numbers in the file."""
    if finding.code != "H508":
        return finding.seen
    counted = list(report.data.doubtful[:5])
    return finding.seen.replace(", ".join(map(str, counted)), ", ".join(map(str, numbers[counted])))


def _coefficients(final: Any, seen: TableProfile, search: Search, whole: Fitting) -> list[Any]:
    prep, model = final.named_steps["prep"], final.named_steps["model"]
    rows = np.arange(min(len(whole.y), 50_000))
    y = whole.y[rows]
    if search.task == "binary":
        y = 2 * y - 1
    if search.task == "real":
        y = model.standardised(y)
    return measure.coefficients(inner(model), prep.get_feature_names_out(), prep.transform(seen.frame[rows]), y)


def _convergence(search: Search, seconds: float) -> dict[str, list[tuple[float, float]]]:
    """Objective above its proved bound against time, for the convex families."""
    found = {}
    for name in ("linear", "sparse"):
        result = search.best(name)
        if result is None:
            continue
        fold = search.folds[0]
        prep, X, *_ = search.prepare(fold, result.family.encode)
        changes: dict[str, Any] = {"regressor__history" if search.task == "real" else "history": True}
        try:
            with limit(max(seconds, 1.0)):
                labels = search.labels(search.y[fold.train])
                core = inner(fit_model(result.setting, search, prep, X, labels, **changes))
        except OutOfTime:
            continue
        bound = core.certificate_.dual
        if np.isfinite(bound):
            found[f"{name} {result.setting.name}"] = [
                (max(record.seconds, 1e-6), max(record.objective - bound, 1e-16)) for record in core.history_
            ]
    return found

"""``hinge fit``: from a table to a model, its report, and predictions for rows it had not seen."""

from __future__ import annotations

import hashlib
import platform
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hinge.cli import words
from hinge.cli.board import board_rows, draw
from hinge.cli.candidates import Family, families
from hinge.cli.errors import UserError
from hinge.cli.profile import Profile, profile
from hinge.cli.reading import read_table
from hinge.cli.search import (
    MAX_SEARCH_ROWS,
    MIN_SEARCH_ROWS,
    Result,
    Search,
    certificate_of,
    fit_model,
    inner,
    preparation,
    split,
)
from hinge.explain.page import measure
from hinge.explain.page.evidence import Evidence
from hinge.explain.page.notes import Note
from hinge.explain.page.scores import METRIC, details, explained, losses, predict_for, score

SEARCH_SHARE = 0.6  # of the time; the rest is for the last fits and the report
HELD_OUT, MAX_HELD_OUT = 0.2, 50_000
SMALL = 1000  # below this many rows every row is needed for learning: cross-validation scores the model
MAX_HASHED = 2 << 30


@dataclass
class Request:
    """What was asked for."""

    file: Path
    target: str | None
    task: str = "auto"
    seconds: float = 60.0
    models: str | None = None
    seed: int = 0
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    rows: int | None = None
    command: str = ""


@dataclass
class Outcome:
    """What came of it."""

    request: Request
    profile: Profile
    search: Search
    chosen: Result
    pipeline: Any  # fitted to all rows
    evidence: Evidence
    card: dict[str, Any]
    test: np.ndarray  # positions of the held-out rows
    extra: dict[str, Any] = field(default_factory=dict)


def run(request: Request, console: Any = None) -> Outcome:
    """Read, look, try, choose, fit, measure."""
    began = time.perf_counter()
    table = read_table(request.file)
    if request.rows is not None and request.rows < table.frame.height:
        table.frame = table.frame.sample(request.rows, seed=request.seed)
        table.notes.append(f"{request.rows} rows drawn at random, as asked for")
    seen = profile(table, request.target, request.task, drop=request.drop, keep=request.keep)
    del table
    classes, y = None, seen.y
    if seen.task in ("binary", "multiclass"):
        classes, y = np.unique(seen.y, return_inverse=True)
        y = y.astype(np.float64)
    if len(y) < 20:
        raise UserError(f"{request.file}: {len(y)} rows with a target are too few to learn from; 20 are the least.")
    _introduce(console, request, seen, classes)
    train, test = hold_out(y, seen.task, request.seed)
    kinds = {c.name: c.kind for c in seen.columns}
    sample = _sample(y, train, seen.task, request)
    search = Search.over(seen.frame[sample], y[sample], classes, seen.task, kinds, request.seed)
    tried = families(request.models, seen.task, len(train))
    _search(search, tried, request.seconds * SEARCH_SHARE, console)
    chosen = search.choose()
    whole = Fitting(seen.frame, y, search, chosen, sampled=len(sample) < len(train))
    trained = whole.fit(train) if len(test) else None
    final = whole.fit(np.arange(len(y)))
    left = max(request.seconds - (time.perf_counter() - began), 0.25 * request.seconds)
    evidence = examine(request, seen, search, chosen, whole, trained, final, train, test, sample, left)
    evidence.seconds = time.perf_counter() - began
    card = make_card(request, seen, evidence, classes)
    return Outcome(request, seen, search, chosen, final, evidence, card, test)


def hold_out(y: np.ndarray, task: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training rows, and rows nobody sees until the end (none if there are few rows)."""
    n = len(y)
    if n < SMALL:
        return np.arange(n), np.arange(0)
    fold = split(y, task, int(np.ceil(n / min(HELD_OUT * n, MAX_HELD_OUT))), seed + 1)[0]
    return fold.train, fold.test


def _sample(y: np.ndarray, train: np.ndarray, task: str, request: Request) -> np.ndarray:
    """The rows of the search: all training rows, or as many as the time allows."""
    limit = int(np.clip(1000 * request.seconds, MIN_SEARCH_ROWS, MAX_SEARCH_ROWS))
    if len(train) <= limit:
        return train
    drawn = np.random.default_rng(request.seed + 2).permutation(train)[:limit]
    if task in ("binary", "multiclass") and len(np.unique(y[drawn])) < len(np.unique(y[train])):
        # A class that the draw missed is kept with what there is of it, up to ten rows.
        missing = np.setdiff1d(np.unique(y[train]), np.unique(y[drawn]))
        drawn = np.concatenate([drawn, *(train[y[train] == c][:10] for c in missing)])
    return np.sort(drawn)


@dataclass
class Fitting:
    """The chosen setting, ready to be fitted to any rows."""

    frame: Any
    y: np.ndarray
    search: Search
    chosen: Result
    sampled: bool

    def fit(self, rows: np.ndarray) -> Any:
        """A pipeline fitted to these rows of the table."""
        from sklearn.pipeline import Pipeline

        whole = len(rows) == self.frame.height
        prep = preparation(self.chosen.family.encode, self.search.kinds)
        X = prep.fit_transform(self.frame if whole else self.frame[rows])
        labels = self.search.labels(self.y if whole else self.y[rows])
        model = fit_model(self.chosen.setting, self.search, prep, X, labels, **self._rounds(len(rows)))
        return Pipeline([("prep", prep), ("model", model)])

    def _rounds(self, rows: int) -> dict[str, Any]:
        """The rounds that early stopping asked for during the search, so that no row need be set aside again.

        More rows than the search had bear more rounds; then rows are set aside again.
        """
        rounds = self.chosen.rounds
        if rounds is None or (self.sampled and rows > 2 * len(self.search.y)):
            return {}
        return {"early_stopping": False, "max_iter": max(round(1.1 * rounds), 1)}


def _introduce(console: Any, request: Request, seen: Profile, classes: Any) -> None:
    if console is None:
        return
    kinds = [c.kind for c in seen.columns]
    parts = [f"{kinds.count(k)} {k}" for k in ("number", "category", "date", "text") if k in kinds]
    what = {
        "binary": f"binary ({' / '.join(map(str, classes)) if classes is not None else ''})",
        "multiclass": f"multiclass ({0 if classes is None else len(classes)} classes)",
        "real": "real number",
        "count": "count",
    }[seen.task]
    console.print(f"[bold]{request.file}[/bold]: {seen.frame.height} rows, {len(kinds)} columns ({', '.join(parts)})")
    said = "" if request.task != "auto" else "   [dim](--task overrules)[/dim]"
    console.print(f"target [bold]{seen.target}[/bold]: {what}{said}")
    for note in seen.notes:
        console.print(f"  [yellow]{note.code}[/yellow] {_plain(note.text)}")
    console.print()


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _search(search: Search, tried: list[Family], seconds: float, console: Any) -> None:
    if console is None:
        search.run(tried, seconds)
        return
    from rich.live import Live

    began = time.perf_counter()
    with Live(console=console, refresh_per_second=4, transient=True) as live:

        def show(results: list[Result]) -> None:
            live.update(draw(results, search.task, left=seconds - (time.perf_counter() - began)))

        search.run(tried, seconds, show)
    console.print(draw(search.results, search.task, search.choose()))
    console.print()


def examine(
    request: Request, seen: Profile, search: Search, chosen: Result, whole: Fitting, trained: Any, final: Any,
    train: np.ndarray, test: np.ndarray, sample: np.ndarray, seconds: float,
) -> Evidence:  # fmt: skip
    """Everything the report shows."""
    task, classes, y = search.task, search.classes, whole.y
    trivial = search.results[0]
    if len(test):
        prediction = predict_for(trained, seen.frame[test], task, classes)
        truth = y[test]
        how = f"{len(test)} rows drawn at random and kept apart until the model was chosen"
        constant = _constant(y[train], task, classes)
        base = losses(truth, np.broadcast_to(constant, (len(test), *np.shape(constant))), task, search.mean)
    else:
        assert chosen.predictions is not None
        assert trivial.loss is not None
        prediction, truth, base = chosen.predictions, search.y, trivial.loss
        how = f"all {len(truth)} rows, each predicted by a model that had not seen it ({len(search.folds)} folds)"
    loss = losses(truth, prediction, task, search.mean)
    result = score(loss, task)
    space, objective = words.formula(chosen, final.named_steps["model"], task)
    notes = list(seen.notes)
    if np.mean(base - loss) <= np.std(base - loss) / np.sqrt(len(loss)):
        notes.append(Note("D15", "", "no model is better than the best constant, beyond noise"))
    evidence = Evidence(
        title=f"{seen.target} from {request.file.name}", source=str(request.file), target=seen.target, task=task,
        metric=METRIC[task], classes=[] if classes is None else [str(c) for c in classes], rows=len(y),
        columns=[asdict(c) for c in seen.columns], left_out=seen.left_out, notes=notes,
        board=board_rows(search.results, chosen), chosen=chosen.family.name, formula=space, objective=objective,
        reason=words.reason(search, chosen), held_out=how, y=truth, prediction=prediction, score=result.value,
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
    evidence: Evidence, seen: Profile, search: Search, chosen: Result, whole: Fitting, trained: Any, final: Any,
    train: np.ndarray, test: np.ndarray, seconds: float,
) -> None:  # fmt: skip
    task, classes, seed = search.task, search.classes, search.seed
    rows = test if len(test) else train
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
            whole.fit, seen.frame, whole.y, inside, held, task, classes, seed, 0.35 * seconds
        )
    model = final.named_steps["model"]
    certificate = certificate_of(model)
    if certificate is not None:
        evidence.certificate = certificate.explain()
    if chosen.family.name in ("linear", "sparse"):
        evidence.coefficients = _coefficients(final, seen, search, whole)
    evidence.convergence = _convergence(search)
    evidence.sentences = _advice(search, chosen, whole, trained, train, test, 0.3 * seconds)


# Findings that the remarks on the columns make already, before anything is fitted.
SAID_BEFORE = ("H001", "H501", "H504", "H505", "H506")
# Findings that hold for the rows they were made on: not said of a sample.
OF_ALL_ROWS = ("H201", "H202", "H203", "H204", "H301", "H508", "H601")
DIAGNOSED_ROWS = (3000, 30_000)
DIAGNOSIS_FITS = 12  # about


def _advice(
    search: Search, chosen: Result, whole: Fitting, trained: Any, train: np.ndarray, test: np.ndarray, seconds: float
) -> list[tuple[str, str, str]]:  # fmt: skip
    """What :func:`hinge.diagnose` finds, as (code, what was seen, what to do), on as many rows as the time allows."""
    import warnings

    import hinge as hg

    rng = np.random.default_rng(search.seed)
    affordable = len(search.y) * seconds / (DIAGNOSIS_FITS * max(chosen.fit_seconds, 1e-3))
    limit = int(np.clip(affordable, *DIAGNOSED_ROWS))
    rows = np.sort(rng.permutation(train)[:limit])
    measure = "log loss" if search.classes is not None else "squared error"
    skip = ["rivals", "probes", "bias_variance"]
    other = {}
    if len(test):
        held = np.sort(rng.permutation(test)[:limit])
        other = {"X_test": whole.frame[held], "y_test": search.labels(whole.y[held])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits of the experiments; their findings are in the report
        try:
            report = hg.diagnose(
                trained, whole.frame[rows], search.labels(whole.y[rows]), **other, cv=3, measure=measure, skip=skip,
                max_rows=limit, random_state=search.seed,
            )  # fmt: skip
        except (ValueError, ArithmeticError) as error:
            return [("", f"The diagnosis could not be made: {' '.join(str(error).split())}", "")]
    skipped = SAID_BEFORE if len(rows) == len(train) else (*SAID_BEFORE, *OF_ALL_ROWS)
    return [(f.code, f"{f.title}. {f.seen}", f.action) for f in report.findings if f.code not in skipped]


def _coefficients(final: Any, seen: Profile, search: Search, whole: Fitting) -> list[Any]:
    prep, model = final.named_steps["prep"], final.named_steps["model"]
    rows = np.arange(min(len(whole.y), 50_000))
    y = whole.y[rows]
    if search.task == "binary":
        y = 2 * y - 1
    if hasattr(model, "transformer_"):
        y = model.transformer_.transform(y[:, None])[:, 0]
    return measure.coefficients(inner(model), prep.get_feature_names_out(), prep.transform(seen.frame[rows]), y)


def _convergence(search: Search) -> dict[str, list[tuple[float, float]]]:
    """Objective above its proved bound against time, for the convex families."""
    found = {}
    for name in ("linear", "sparse"):
        result = search.best(name)
        if result is None:
            continue
        fold = search.folds[0]
        prep, X, *_ = search.prepare(fold, result.family.encode)
        key = "regressor__history" if search.task == "real" else "history"
        core = inner(fit_model(result.setting, search, prep, X, search.labels(search.y[fold.train]), **{key: True}))
        bound = core.certificate_.dual
        if np.isfinite(bound):
            found[f"{name} {result.setting.name}"] = [
                (max(record.seconds, 1e-6), max(record.objective - bound, 1e-16)) for record in core.history_
            ]
    return found


def versions() -> dict[str, str]:
    import scipy
    import sklearn

    import hinge

    return {
        "hinge": hinge.__version__, "Python": platform.python_version(), "NumPy": np.__version__,
        "SciPy": scipy.__version__, "scikit-learn": sklearn.__version__, "system": f"{platform.system()} {platform.machine()}",
    }  # fmt: skip


def checksum(path: Path) -> str:
    """SHA-256 of the data file; "" for very large files and embedded sets."""
    if not path.is_file() or path.stat().st_size > MAX_HASHED:
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_card(request: Request, seen: Profile, evidence: Evidence, classes: Any) -> dict[str, Any]:
    """What travels with the model: its inputs, its target, its scores."""

    def clean(value: Any) -> Any:
        return None if isinstance(value, float) and not np.isfinite(value) else value

    return {
        "target": seen.target,
        "task": seen.task,
        "classes": evidence.classes,
        "columns": evidence.columns,
        "left_out": seen.left_out,
        "notes": [[n.code, n.column, n.text] for n in evidence.notes],
        "metric": evidence.metric,
        "rows": evidence.rows,
        "data": request.file.name,
        "data_sha256": evidence.checksum,
        "chosen": evidence.chosen,
        "formula": evidence.formula,
        "objective": evidence.objective,
        "reason": evidence.reason,
        "board": [{k: clean(v) for k, v in asdict(row).items()} for row in evidence.board],
        "score": evidence.score,
        "score_error": evidence.error,
        "trivial": evidence.trivial,
        "explained": evidence.explained,
        "details": {k: clean(v) for k, v in evidence.details.items()},
        "held_out": evidence.held_out,
        "advice": [list(said) for said in evidence.sentences],
        "importances": [asdict(e) for e in evidence.importances],
        "seed": request.seed,
        "command": request.command,
        "versions": evidence.versions,
    }

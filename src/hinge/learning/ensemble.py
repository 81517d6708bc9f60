"""The ensemble: a weighted mean of the models tried, with weights chosen on out-of-fold predictions."""

from __future__ import annotations

from collections import Counter

import numpy as np

from hinge.learning.candidates import Family, Setting
from hinge.learning.search import LINEAR, Search
from hinge.learning.trials import Trial

FAMILY = Family("ensemble", "weighted mean of several models", 9, "", ())
STEPS, MOST_MEMBERS, MOST_CANDIDATES, MOST_VARIED = 25, 8, 24, 5
LEAST_WEIGHT = 0.05
FEW_ROWS, DRAWS = 2000, 5
MAX_ROWS = 10_000


def greedy_weights(predictions: list[np.ndarray], losses: list[np.ndarray], loss_of: object) -> np.ndarray:
    """Weights by forward selection with replacement (Caruana et al. 2004): add the model whose mean with those chosen is best.

    ``loss_of`` gives the losses of predictions; ``losses`` are those of every model alone.
    """
    count = np.zeros(len(predictions))
    best = int(np.argmin([np.mean(loss) for loss in losses]))
    count[best], total, least = 1, predictions[best].copy(), float(np.mean(losses[best]))
    for step in range(2, STEPS + 1):
        values = [float(np.mean(loss_of((total + p) / step))) for p in predictions]  # type: ignore[operator]
        k = int(np.argmin(values))
        if values[k] > least * (1 + 1e-3) and count.sum() > 8:
            break
        least = min(least, values[k])
        count[k] += 1
        total += predictions[k]
    return fewest(count / count.sum())


def fewest(weights: np.ndarray) -> np.ndarray:
    """Drop the smallest weights."""
    weights = np.where(weights < LEAST_WEIGHT, 0.0, weights)
    if np.count_nonzero(weights) > MOST_MEMBERS:
        weights[np.argsort(-weights, kind="stable")[MOST_MEMBERS:]] = 0.0
    return weights / weights.sum()


def _candidates(trials: list[Trial], means: list[float]) -> list[int]:
    """The best setting of every family and encoding; of the varied families that are not linear several, since those differ most."""
    chosen: list[int] = []
    taken: Counter[tuple[str, str]] = Counter()
    for k in np.argsort(means, kind="stable"):
        kind = (trials[k].family.name, trials[k].encode)
        family = trials[k].family
        if taken[kind] < (MOST_VARIED if family.vary is not None and family.rank > LINEAR else 1):
            taken[kind] += 1
            chosen.append(int(k))
    return chosen[:MOST_CANDIDATES]


def add_ensemble(search: Search, train: int, rows: int, seconds: float) -> None:
    """Append the ensemble of the trials to the results, if it has several members that can be fitted in time.

    Its losses are cross-fitted: the rows of a fold are predicted with weights chosen on the other folds, so that fitting the
    weights does not bias the score of the ensemble. The weights of the final model are chosen on all rows.
    """
    done = [t for t in search.results[1:] if t.state == "done" and t.predictions is not None]
    affordable = [t for t in done if t.cost(train) + t.cost(rows) <= 0.6 * seconds]
    if len(affordable) < 2:
        return
    predictions = [np.asarray(t.predictions) for t in affordable]
    losses = [np.asarray(t.loss) for t in affordable]

    def weights_on(part: np.ndarray) -> np.ndarray:
        """Weights chosen on these rows only; the candidates, too, are selected on these rows only."""
        if len(part) > MAX_ROWS:
            part = np.random.default_rng(search.seed).permutation(part)[:MAX_ROWS]
        own = _candidates(affordable, [float(np.mean(loss[part])) for loss in losses])
        weights, rng = np.zeros(len(affordable)), np.random.default_rng(search.seed)
        # A choice on few rows is noisy: the mean over bootstrap samples has a lower variance and more members.
        draws = [part] if len(part) > FEW_ROWS else [rng.choice(part, len(part)) for _ in range(DRAWS)]
        for rows in draws:
            weights[own] += greedy_weights(
                [predictions[k][rows] for k in own],
                [losses[k][rows] for k in own],
                lambda s, rows=rows: search.losses(rows, s),
            )
        return fewest(weights / len(draws))

    weights = weights_on(np.arange(len(search.y)))
    members = np.flatnonzero(weights)
    while len(members) > 1 and sum(affordable[k].cost(train) + affordable[k].cost(rows) for k in members) > seconds:
        members = members[np.argsort(-weights[members], kind="stable")[:-1]]
    if len(members) < 2:
        return
    shares = weights[members] / weights[members].sum()
    loss, crossed = np.empty(len(search.y)), np.empty_like(predictions[0])
    for fold in search.folds:
        own = weights_on(fold.train)
        crossed[fold.test] = sum(w * p[fold.test] for w, p in zip(own, predictions) if w)
        loss[fold.test] = search.losses(fold.test, crossed[fold.test])
    chosen = [affordable[k] for k in members]
    name = " + ".join(f"{share:.2f} {trial.family.name}" for share, trial in zip(shares, chosen))
    result = Trial(FAMILY, Setting(name, lambda shape: None), "done", loss, crossed, train_rows=chosen[0].train_rows)
    result.members = [(trial, float(share)) for trial, share in zip(chosen, shares)]
    result.fit_seconds = sum(t.fit_seconds for t in chosen)
    result.prepare_seconds = sum(t.prepare_seconds for t in chosen)
    result.predict_micros = sum(t.predict_micros for t in chosen)
    result.size = sum(t.size for t in chosen)
    search.finish(result)
    search.results.append(result)

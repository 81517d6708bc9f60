"""EM for Gaussian mixtures: initialisation by k-means++, and the EM loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hinge._native import Design, core
from hinge.models.generative.mixture.components import Components, Moments, Prior, m_step

LLOYD_STEPS = 30


@dataclass(frozen=True)
class Run:
    """One run of EM. ``bounds`` are the penalised log-likelihoods per unit of weight before each M-step."""

    components: Components
    bounds: list[float]
    converged: bool
    moments: Moments
    examples: int

    @property
    def bound(self) -> float:
        return self.bounds[-1]


def expectation_maximisation(
    design: Design,
    weights: np.ndarray | None,
    start: Components,
    prior: Prior,
    *,
    tol: float,
    max_iter: int,
    report: Callable[[Any], bool] | None = None,
) -> Run:
    """Alternates E- and M-steps until the penalised log-likelihood per unit of weight increases by less than ``tol``."""
    total = float(design.shape[0]) if weights is None else float(weights.sum())
    return maximise(
        lambda components: components.moments(design, weights), total, design.shape[0], start, prior, tol=tol,
        max_iter=max_iter, report=report,
    )  # fmt: skip


def maximise(
    moments_of: Callable[[Components], Moments],
    total: float,
    examples: int,
    start: Components,
    prior: Prior,
    *,
    tol: float,
    max_iter: int,
    report: Callable[[Any], bool] | None = None,
) -> Run:
    """EM on the moments of the components over all examples, whose total weight is ``total``."""
    components, bounds = start, []
    converged = stopped = False
    while True:
        moments = moments_of(components)
        bounds.append((moments.likelihood + components.log_prior(prior)) / total)
        if len(bounds) > 1 and abs(bounds[-1] - bounds[-2]) < tol:
            converged = True
        if converged or stopped or len(bounds) > max_iter:
            return Run(components, bounds, converged, moments, examples)
        components = m_step(components, moments, prior)
        stopped = report is not None and report(bounds[-1])


def k_means(
    design: Design, weights: np.ndarray | None, k: int, random: np.random.RandomState, *, steps: int = LLOYD_STEPS
) -> np.ndarray:
    """Centres by k-means++ (Arthur & Vassilvitskii 2007) followed by Lloyd's algorithm."""
    n, d = design.shape
    s = np.ones(n) if weights is None else weights
    order = draw_order(design)
    centres = np.empty((k, d))
    nearest = np.full(n, np.inf)
    for c in range(k):
        chance = s if c == 0 else s * nearest
        if not np.sum(chance) > 0:  # fewer distinct points than centres
            chance = s
        # The greedy variant of that paper: of a few candidates, take the one with the smallest remaining distance.
        rows = draw(chance, order, random, 1 if c == 0 else 2 + int(np.log(k)))
        tried = np.array(design.source[rows], dtype=np.float64)
        distances = np.minimum(nearest[:, None], _square_distances(design, tried))
        best = int(np.argmin(s @ distances))
        centres[c], nearest = tried[best], np.ascontiguousarray(distances[:, best])
    unit, zero, inertia = np.ones((k, d)), np.zeros(k), np.inf
    for _ in range(steps):
        likelihood, weight, shift, _ = core.mixture_moments(design.native, weights, zero, centres, unit, True)
        centres = centres + shift / np.where(weight > 0, weight, 1.0)[:, None]
        if not -likelihood < inertia * (1 - 1e-6):
            break
        inertia = -likelihood
    return centres


def draw_order(design: Design) -> np.ndarray:
    """The rows sorted by their values, so that draws do not depend on the order of the data."""
    direction = np.random.default_rng(0).normal(size=design.shape[1])
    return np.argsort(design.matmul(direction), kind="stable")


def draw(chance: np.ndarray, order: np.ndarray, random: np.random.RandomState, count: int) -> np.ndarray:
    """Draws rows with probability proportional to ``chance``, with replacement.

    Uses the inverse distribution function over sorted rows, so that a weight of 2 is drawn like two copies of the example,
    wherever they are in the data.
    """
    total = np.cumsum(chance[order])
    at = np.searchsorted(total, random.random_sample(count) * total[-1], side="right")
    return order[np.minimum(at, len(order) - 1)]


def _square_distances(design: Design, centres: np.ndarray) -> np.ndarray:
    """‖x − centre‖² for every row and centre."""
    k = len(centres)
    z = core.gaussian_scores(design.native, np.zeros(k), centres, np.ones(centres.shape), core.Output.joint)[0]
    return -2.0 * z


def start_from(kind: str, design: Design, weights: np.ndarray | None, means: np.ndarray, prior: Prior) -> Components:
    """Initial components from the examples nearest to each of the given means."""
    k, d = means.shape
    identity: np.ndarray
    match kind:
        case "full":
            identity = np.zeros((k, d, d))
            identity[:, np.arange(d), np.arange(d)] = 1.0
        case "tied":
            identity = np.eye(d)
        case "diag":
            identity = np.ones((k, d))
        case _:
            identity = np.ones(k)
    rough = Components(kind, np.full(k, 1.0 / k), means, identity)
    vars(rough)["factors"] = identity  # the identity is its own factor: factoring it would cost as much as an EM step
    found = m_step(rough, rough.moments(design, weights, hard=True), prior)
    # A mean without examples would never get any, so every component starts with some weight.
    floor = np.maximum(found.weights, 1e-3 / k)
    return Components(kind, floor / floor.sum(), found.means, found.covariances)

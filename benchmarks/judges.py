"""The objective of each kind of problem, in float64, computed from anybody's answer.

``OBJECTIVES[kind](problem, answer)`` is minimised. The formulas are those of the settings printed with each task, not
any one library's: adapters translate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.optimize
from scipy.special import logsumexp


def scores_of(problem: Any, answer: Any) -> np.ndarray:
    """x·w + b for every row, in float64."""
    return np.asarray(problem.X @ np.asarray(answer.coef, dtype=np.float64).T, dtype=np.float64) + answer.intercept


def half_square(w: np.ndarray) -> float:
    return 0.5 * float(np.sum(np.square(w)))


def ridge(problem: Any, answer: Any) -> float:
    """‖y − Xw − b‖² + α‖w‖²."""
    residual = problem.y - scores_of(problem, answer)
    return float(residual @ residual) + problem.params["alpha"] * float(np.sum(np.square(answer.coef)))


def elastic_net(problem: Any, answer: Any) -> float:
    """‖y − Xw − b‖²/2n + α(ρ‖w‖₁ + (1−ρ)‖w‖²/2), ρ = 1 for the lasso."""
    residual = problem.y - scores_of(problem, answer)
    rho = problem.params.get("l1_ratio", 1.0)
    penalty = rho * float(np.abs(answer.coef).sum()) + (1.0 - rho) * half_square(answer.coef)
    return 0.5 * float(residual @ residual) / residual.size + problem.params["alpha"] * penalty


def elastic_net_path(problem: Any, coefs: np.ndarray) -> float:
    """The elastic-net objective summed over the path; one column of ``coefs`` per α, in the problem's order."""
    rho = problem.params.get("l1_ratio", 1.0)
    residuals = problem.y[:, None] - problem.X @ coefs
    losses = 0.5 * np.square(residuals).sum(axis=0) / problem.y.size
    penalties = rho * np.abs(coefs).sum(axis=0) + (1.0 - rho) * 0.5 * np.square(coefs).sum(axis=0)
    return float(np.sum(losses + problem.params["alphas"] * penalties))


def logistic_l2(problem: Any, answer: Any) -> float:
    """C·Σ log(1 + exp(−y(x·w + b))) + ‖w‖²/2, y = ±1."""
    margins = problem.y * scores_of(problem, answer)
    return problem.params["C"] * float(np.logaddexp(0.0, -margins).sum()) + half_square(answer.coef)


def logistic_l1(problem: Any, answer: Any) -> float:
    """mean log(1 + exp(−y(x·w + b))) + α‖w‖₁, y = ±1."""
    margins = problem.y * scores_of(problem, answer)
    return float(np.logaddexp(0.0, -margins).mean()) + problem.params["alpha"] * float(np.abs(answer.coef).sum())


def multinomial_l2(problem: Any, answer: Any) -> float:
    """C·Σ (log Σ_k exp(s_k) − s_y) + ‖W‖²/2, y = 0 … K−1."""
    scores = scores_of(problem, answer)
    losses = logsumexp(scores, axis=1) - scores[np.arange(len(scores)), problem.y]
    return problem.params["C"] * float(losses.sum()) + half_square(answer.coef)


def linear_svm(problem: Any, answer: Any) -> float:
    """C·Σ max(0, 1 − y(x·w + b))^p + ‖w‖²/2, p = 1 for the hinge, 2 for the squared hinge."""
    slack = np.maximum(0.0, 1.0 - problem.y * scores_of(problem, answer))
    loss = slack if problem.params["loss"] == "hinge" else np.square(slack)
    return problem.params["C"] * float(loss.sum()) + half_square(answer.coef)


def huber_concomitant(problem: Any, answer: Any) -> float:
    """min over σ > 0 of Σ σ(1 + H_ε(r/σ)) + α‖w‖²; H_ε(z) = z² inside |z| ≤ ε, 2ε|z| − ε² beyond.

    The scale is solved for exactly here, whatever the library reported, so that only w and b are judged: the function
    is convex in σ, so its derivative is monotone and has one root.
    """
    residual = np.abs(problem.y - scores_of(problem, answer))
    epsilon = problem.params["epsilon"]

    def slope(sigma: float) -> float:
        # d/dσ of σ + σH(r/σ): 1 − (r/σ)² inside, 1 − ε² beyond.
        return float((1.0 - np.minimum(residual / sigma, epsilon) ** 2).sum())

    top = max(float(residual.max()), 1e-300) * 2.0
    sigma = scipy.optimize.brentq(slope, top * 1e-12, top * np.sqrt(residual.size), xtol=top * 1e-15, rtol=1e-14)
    z = residual / sigma
    losses = np.where(z <= epsilon, z * z, 2.0 * epsilon * z - epsilon**2)
    return float(sigma * (1.0 + losses).sum()) + problem.params["alpha"] * float(np.sum(np.square(answer.coef)))


def quantile(problem: Any, answer: Any) -> float:
    """mean pinball_q(y − x·w − b) + α‖w‖₁."""
    residual = problem.y - scores_of(problem, answer)
    q = problem.params["quantile"]
    pinball = np.maximum(q * residual, (q - 1.0) * residual)
    return float(pinball.mean()) + problem.params["alpha"] * float(np.abs(answer.coef).sum())


def mean_glm(problem: Any, answer: Any, cost: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> float:
    """mean cost(y, x·w + b) + α‖w‖²/2."""
    return float(cost(problem.y, scores_of(problem, answer)).mean()) + problem.params["alpha"] * half_square(
        answer.coef
    )


def poisson_cost(y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """−log likelihood of a Poisson count with mean exp(z), up to a constant."""
    return np.exp(z) - y * z


def gamma_cost(y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """−log likelihood of a Gamma variable with mean exp(z), up to scale and a constant."""
    return z + y * np.exp(-z)


def poisson_means(problem: Any, mean: np.ndarray) -> float:
    """Mean Poisson cost of fitted means, for models whose coding of categories is their own business."""
    return float(poisson_cost(problem.y, np.log(np.asarray(mean, dtype=np.float64))).mean())


def multiclass_svm(problem: Any, answer: Any) -> float:
    """C·Σ max_k (1[k ≠ y] + s_k − s_y) + ‖W‖²/2."""
    scores, rows = scores_of(problem, answer), np.arange(problem.y.size)
    margins = scores - scores[rows, problem.y][:, None] + 1.0
    margins[rows, problem.y] = 0.0
    return problem.params["C"] * float(margins.max(axis=1).sum()) + half_square(answer.coef)


def one_vs_rest_svm(problem: Any, answer: Any) -> float:
    """The binary SVM objectives of all classes, summed."""
    signs = np.where(np.arange(len(answer.coef)) == problem.y[:, None], 1.0, -1.0)
    slack = np.maximum(0.0, 1.0 - signs * scores_of(problem, answer))
    loss = slack if problem.params["loss"] == "hinge" else np.square(slack)
    return problem.params["C"] * float(loss.sum()) + half_square(answer.coef)


@dataclass(frozen=True)
class Expansion:
    """The answer of a support vector machine: f = Σ coef_i K(x_i, ·) over the rows ``support``."""

    support: np.ndarray
    coef: np.ndarray


def rbf_energy(X: np.ndarray, coef: np.ndarray, gamma: float, block: int = 2_000) -> float:
    """½ βᵀKβ in blocks of rows, so that no Gram matrix is ever stored."""
    squares = np.square(X).sum(axis=1)
    total = 0.0
    for start in range(0, len(X), block):
        part = slice(start, start + block)
        distances = squares[part, None] + squares[None] - 2.0 * (X[part] @ X.T)
        total += float(coef[part] @ (np.exp(-gamma * np.maximum(distances, 0.0)) @ coef))
    return 0.5 * total


def dual_feasible(coef: np.ndarray, C: float) -> bool:
    """0 ≤ α ≤ C and Σ yα = 0 to rounding: outside, the dual objective bounds nothing."""
    slack = 1e-6 * C
    return bool(np.abs(coef).max(initial=0.0) <= C + slack and abs(coef.sum()) <= slack * max(1.0, np.sqrt(coef.size)))


def svc_dual(problem: Any, answer: Expansion) -> float:
    """½ βᵀKβ − Σ|β|, β = yα; infinite where the dual's constraints are broken."""
    signs = np.sign(answer.coef) * problem.y[answer.support]
    one_sided = np.all(signs >= 0) or np.all(signs <= 0)  # β or −β, as the library orders its classes
    if not one_sided or not dual_feasible(answer.coef, problem.params["C"]):
        return np.inf
    energy = rbf_energy(problem.X[answer.support], answer.coef, problem.params["gamma"])
    return energy - float(np.abs(answer.coef).sum())


def svr_dual(problem: Any, answer: Expansion) -> float:
    """½ βᵀKβ + ε‖β‖₁ − yᵀβ; infinite where the dual's constraints are broken."""
    if not dual_feasible(answer.coef, problem.params["C"]):
        return np.inf
    energy = rbf_energy(problem.X[answer.support], answer.coef, problem.params["gamma"])
    linear = problem.params["epsilon"] * np.abs(answer.coef) - problem.y[answer.support] * answer.coef
    return energy + float(linear.sum())


@dataclass(frozen=True)
class ChainWeights:
    """The answer of a linear-chain model: a row of ``state`` a named attribute, a column a label."""

    attributes: dict[str, int]
    labels: list[str]
    state: np.ndarray
    transitions: np.ndarray


def chain_crf(problem: Any, answer: ChainWeights) -> float:
    """−Σ log p(y | x) + λ(‖U‖² + ‖T‖²)/2, p(y | x) ∝ exp(Σ_t Σ_a U[a, y_t] + Σ_t T[y_{t−1}, y_t])."""
    columns = {label: j for j, label in enumerate(answer.labels)}
    total = 0.0
    for tokens, labels in zip(problem.X, problem.y):
        known = [[answer.attributes[a] for a in token if a in answer.attributes] for token in tokens]
        scores = np.stack([answer.state[rows].sum(axis=0) for rows in known])
        truth = [columns[label] for label in labels]
        alpha = scores[0]
        for step in scores[1:]:
            alpha = logsumexp(alpha[:, None] + answer.transitions, axis=0) + step
        path = scores[np.arange(len(truth)), truth].sum() + answer.transitions[truth[:-1], truth[1:]].sum()
        total += float(logsumexp(alpha) - path)
    return total + problem.params["l2"] * (half_square(answer.state) + half_square(answer.transitions))


Objective = Callable[[Any, Any], float]

OBJECTIVES: dict[str, Objective] = {
    "ridge": ridge,
    "lasso": elastic_net,
    "elastic_net_path": elastic_net_path,
    "logistic_l2": logistic_l2,
    "logistic_l1": logistic_l1,
    "multinomial_l2": multinomial_l2,
    "linear_svm": linear_svm,
    "huber": huber_concomitant,
    "quantile": quantile,
    "poisson_glm": partial(mean_glm, cost=poisson_cost),
    "gamma_glm": partial(mean_glm, cost=gamma_cost),
    "categorical_poisson_glm": poisson_means,
    "multiclass_svm": multiclass_svm,
    "one_vs_rest_svm": one_vs_rest_svm,
    "svc": svc_dual,
    "svr": svr_dual,
    "chain_crf": chain_crf,
}

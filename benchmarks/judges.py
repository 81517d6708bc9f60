"""The objective of each kind of problem, in float64, computed from anybody's answer.

``OBJECTIVES[kind](problem, answer)`` is minimised. The formulas are those of the settings printed with each task, not
any one library's: adapters translate.
"""

from __future__ import annotations

from collections.abc import Callable
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

    The scale is solved for exactly here, whatever the library reported, so that only w and b are judged. The function
    is convex in σ with a derivative that is monotone: nσ² = Σ min(r², ε²σ²) + … has its root by bisection.
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
}

"""The formula and the objective of the fitted model, and the reason for its choice."""

from __future__ import annotations

from typing import Any

from hinge.select.estimate import Estimate

LOSSES = {
    "Logistic": "log(1 + e^(−yᵢ f(xᵢ)))",
    "Softmax": "log Σ_c e^(f_c(xᵢ)) − f_{yᵢ}(xᵢ)",
    "Squared": "½ (yᵢ − f(xᵢ))²",
    "Poisson": "e^(f(xᵢ)) − yᵢ f(xᵢ)",
    "Absolute": "|yᵢ − f(xᵢ)|",
}
LOSS_WORDS = {
    "binary": "Logistic", "multiclass": "Softmax", "real": "Squared", "count": "Poisson",
}  # fmt: skip
SPACES = {
    "baseline": "f(x) = b, a constant",
    "linear": "f(x) = ⟨w, φ(x)⟩ + b, with φ the prepared columns",
    "sparse": "f(x) = ⟨w, φ(x)⟩ + b, with φ the prepared columns and few w ≠ 0",
    "ensemble": "f(x) = Σ_m α_m f_m(x), with α_m ≥ 0 and Σ_m α_m = 1, each f_m fitted by itself",
    "ratio": "f_c(x) = ⟨w_c, r_c ∘ φ(x)⟩ + b_c, with r_c the log ratio of the frequency of every term in class c and outside",
    "tree": "f(x) = the mean of the leaf that x falls into",
    "additive": "f(x) = f₀ + Σ_j g_j(x_j), each g_j a sum of small trees of one column",
    "boosting": "f(x) = f₀ + η Σ_t tree_t(x), each tree a Newton step on the loss",
    "forest": "f(x) = the mean of trees grown on resampled rows",
    "extra": "f(x) = the mean of trees with random thresholds, grown on all rows",
    "kernel": "f(x) = Σ αᵢ k(xᵢ, x) + b, k(x, x') = e^(−γ‖x−x'‖²)",
    "network": "f(x) = W₃ relu(W₂ relu(W₁ φ(x) + b₁) + b₂) + b₃",
}


def formula(family: str, setting: str, model: Any, task: str) -> tuple[str, str]:
    """The hypothesis space, and the objective minimised over it."""
    medians = "absolute_error" in (getattr(model, "loss", ""), getattr(model, "criterion", ""))
    loss = LOSSES["Absolute" if medians else LOSS_WORDS[task]]
    if family == "ensemble":
        return SPACES[family], f"choose  α  to minimise  Σᵢ ℓ(yᵢ, f(xᵢ))  out of fold   ({setting})"
    if family in ("linear", "sparse"):
        strength = model.penalty.lam
        penalty = f"({strength:g}/2) ‖w‖²" if family == "linear" else f"{strength:g} ‖w‖₁"
        return SPACES[family], f"minimise  (1/n) Σᵢ {loss}  +  {penalty}"
    if family == "ratio":
        return SPACES[family], f"minimise  Σᵢ {LOSSES['Logistic']}  +  (1/2C) ‖w_c‖²   for every class c ({setting})"
    if family == "kernel":
        return SPACES[family], f"minimise  Σᵢ {loss}  +  λ α'Kα   ({setting})"
    if family == "network":
        return SPACES[family], f"minimise  (1/n) Σᵢ {loss}  +  (α/2n) Σ ‖W‖²   (Adam, stopped early)"
    if family in ("boosting", "additive"):
        return SPACES[family], f"minimise  Σᵢ {loss}   round by round ({model.n_iter_} rounds, {setting})"
    return SPACES[family], f"minimise  Σᵢ {loss}   ({setting})"


def reason(chosen: str, score: Estimate, best: str, best_score: Estimate, tried: int) -> str:
    """Why the chosen family was chosen; ``best`` had the least loss of the settings tried."""
    if best == chosen:
        return f"The {chosen} model had the least cross-validated loss of the {tried} settings tried."
    if chosen == "ensemble":
        return (
            f"The {best} model ({best_score.brief()}) had the least cross-validated loss of the {tried} settings tried, but the "
            f"least of many losses is optimistic. The ensemble ({score.brief()}) is not selected in this way: its weights were "
            "chosen on other rows than those that score it. It was chosen."
        )
    return (
        f"The {best} model ({best_score.brief()}) had the least cross-validated loss of the {tried} settings tried, but "
        f"the {chosen} model ({score.brief()}) is within one standard error of the difference and simpler, so it was chosen."
    )

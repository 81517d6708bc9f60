"""Conjugate families: a prior, and the posterior after any data, in closed form."""

from __future__ import annotations

from hinge._lazy import lazy_names

_PUBLIC: dict[str, tuple[str, ...]] = {
    "hinge.models.bayes.conjugate": (
        "BetaBernoulli", "DirichletCategorical", "GammaPoisson", "NormalInverseGamma", "NormalNormal",
    ),
}  # fmt: skip

__getattr__, __dir__, __all__ = lazy_names(__name__, _PUBLIC)

"""Scores of an expansion, as the judge of support vector machines computes them, against the kernel matrix itself."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from hinge._native import core
from hinge.problem.certificates import kernel_machine
from hinge.problem.certificates.kernel_machine import expansion_scores
from hinge.problem.kernels import RBF, Laplacian, LinearKernel, Polynomial, evaluate

KERNELS = [RBF(0.3), Polynomial(2, 1.0, 0.5), RBF(0.5) + 0.1 * LinearKernel(), Laplacian(0.2)]


@pytest.mark.mission("K4", "O8")
@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("n", [1, 127, 128, 129, 700])
def test_values_used_on_both_sides_of_the_diagonal_give_the_scores(n, kernel, storage, rng):
    X, coefficients = rng.normal(size=(n, 4)), rng.normal(size=n)
    program = kernel.program()
    points = evaluate.both(program, storage(X), storage(X))[0]
    K = np.asarray(kernel(X))
    np.testing.assert_allclose(core.kernel_self_scores(program, points, coefficients), K @ coefficients, atol=1e-10)


@pytest.mark.mission("K4", "O8")
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_judge_scores_all_points(kernel, single, monkeypatch, rng):
    """Also those that are not in the expansion; in single precision to six digits."""
    monkeypatch.setattr(kernel_machine, "MANY_POINTS", 10)
    X = rng.normal(size=(400, 3))
    coefficients = np.where(rng.uniform(size=400) < 0.6, rng.normal(size=400), 0.0)
    known = np.asarray(kernel(X)) @ coefficients
    found = expansion_scores(kernel, X, coefficients, single=single)
    np.testing.assert_allclose(found, known, atol=(1e-4 if single else 1e-10) * np.abs(known).max())
    every = rng.normal(size=400)
    np.testing.assert_allclose(expansion_scores(kernel, X, every), np.asarray(kernel(X)) @ every, atol=1e-8)

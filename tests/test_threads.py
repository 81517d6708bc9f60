"""The number of threads follows what the process may use, and matrices are factored the same by any number."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import hinge as hg
from hinge import _core as core
from kit.threads import assert_same_bits

PRINT = "import hinge as hg; print(hg.num_threads())"


def threads_of_child(prefix: str = "", **environment: str) -> int:
    unlimited = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    code = prefix + PRINT
    done = subprocess.run(
        [sys.executable, "-c", code], env=unlimited | environment, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_affinity_limits_the_threads():
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system has no processor affinity")
    first = min(os.sched_getaffinity(0))
    assert threads_of_child(f"import os; os.sched_setaffinity(0, {{{first}}})\n") == 1


@pytest.mark.parametrize(
    ("value", "most"), [("1", 1), ("1,4", 1), ("2", 2), ("0", None), ("many", None), ("-3", None), ("999999", None)]
)
def test_omp_num_threads_limits_the_threads(value, most):
    free = threads_of_child()
    assert threads_of_child(OMP_NUM_THREADS=value) == (free if most is None else min(free, most))


@pytest.mark.parametrize(
    ("files", "processors"),
    [
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "100000 100000"}, 1),
        ({"cpu.max": "1000 100000"}, 1),
        ({"cpu.max": "max 100000"}, 1024),
        ({"cpu.max": "max 100000", "cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 1024),
        ({"cpu/cpu.cfs_quota_us": "350000", "cpu/cpu.cfs_period_us": "100000"}, 4),
        ({"cpu/cpu.cfs_quota_us": "350000"}, 1024),
        ({"cpu.max": "nonsense"}, 1024),
        ({}, 1024),
    ],
)
def test_quotas_of_containers_are_read(tmp_path, files, processors):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert core.quota_of(str(tmp_path)) == processors


def test_workers_of_joblib_share_the_processors():
    joblib = pytest.importorskip("joblib")
    before = os.environ.pop("OMP_NUM_THREADS", None)
    try:
        with joblib.parallel_config(backend="loky", n_jobs=2):
            threads = joblib.Parallel()(joblib.delayed(hg.num_threads)() for _ in range(2))
    finally:
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before
        joblib.externals.loky.get_reusable_executor().shutdown(wait=True)
    assert max(threads) <= max(1, joblib.cpu_count() // 2)


@pytest.mark.parametrize("n", [1, 5, 127, 128, 300, 700])
@pytest.mark.parametrize("targets", [1, 3])
def test_cholesky_factors_and_solves(n, targets, rng):
    B = rng.normal(size=(n, n + 3))
    A, y = B @ B.T + np.eye(n), rng.normal(size=(n, targets))
    factor, x = A.copy(), y.T.copy()
    assert core.cholesky(factor)
    core.cholesky_solve(factor, x)
    U = np.triu(factor)
    np.testing.assert_allclose(U.T @ U, A, rtol=1e-11, atol=1e-11 * np.abs(A).max())
    np.testing.assert_array_equal(np.tril(factor, -1), np.tril(A, -1))
    np.testing.assert_allclose(A @ x.T, y, atol=1e-9 * np.abs(y).max())


def test_cholesky_refuses_an_indefinite_matrix(rng):
    B = rng.normal(size=(400, 400))
    assert not core.cholesky(B + B.T)
    with pytest.raises(ValueError, match="square"):
        core.cholesky(np.ones((3, 4)))


def test_cholesky_is_the_same_for_any_number_of_threads(rng):
    B = rng.normal(size=(900, 900))
    A, y = B @ B.T + np.eye(900), rng.normal(size=(1, 900))

    def solved():
        factor, x = A.copy(), y.copy()
        assert core.cholesky(factor)
        core.cholesky_solve(factor, x)
        return factor, x

    assert_same_bits(solved)


def test_symmetrise_is_half_the_sum(rng):
    for n in (1, 63, 64, 65, 200):
        K = rng.normal(size=(n, n))
        out = K.copy()
        core.symmetrise(out)
        np.testing.assert_array_equal(out, 0.5 * (K + K.T))

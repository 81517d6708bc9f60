"""Support vector machines on sparse matrices show what scikit-learn's show: sparse matrices of the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn import svm

import hinge as hg

MACHINES = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.lil_array])
def test_sparse_in_sparse_out(rng, name, kernel, kind):
    X = np.where(rng.random((60, 5)) < 0.5, 0.0, rng.normal(size=(60, 5)))
    y = np.digitize(X[:, 0], [-0.3, 0.3]) if name in ("SVC", "NuSVC") else X[:, 0]
    options = {"kernel": kernel, "gamma": 0.5} | ({"nu": 0.1} if name == "NuSVC" else {})
    dense, ours = (getattr(hg, name)(tol=1e-8, **options).fit(Z, y) for Z in (X, kind(X)))
    # At 1e-8 LIBSVM does not end on linear kernels of fewer columns than rows; only its types are compared.
    theirs = getattr(svm, name)(**options).fit(kind(X), y)
    names = ["dual_coef_", "support_vectors_", *(["coef_"] if kernel == "linear" else [])]
    for attribute in names:
        shown, plain = getattr(ours, attribute), getattr(dense, attribute)
        assert scipy.sparse.issparse(shown)
        assert scipy.sparse.issparse(getattr(theirs, attribute))
        assert not scipy.sparse.issparse(plain)
        np.testing.assert_allclose(shown.toarray(), plain, atol=1e-6)
    np.testing.assert_allclose(ours.predict(X), dense.predict(kind(X)), atol=1e-12)

"""Kernel estimators on sparse inputs: empty rows, no stored entries, one column, other layouts."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone, is_classifier, is_outlier_detector

import hinge as hg

ESTIMATORS = {
    "SVC": hg.SVC(),
    "SVC linear": hg.SVC(kernel="linear"),
    "SVC three classes": hg.SVC(kernel="poly", coef0=1.0),
    "SVR": hg.SVR(),
    "NuSVC": hg.NuSVC(nu=0.2),
    "NuSVR": hg.NuSVR(),
    "OneClassSVM": hg.OneClassSVM(),
    "KernelRidge": hg.KernelRidge(kernel="rbf"),
    "KernelRidge laplacian": hg.KernelRidge(kernel="laplacian"),
    "KernelLogisticRegression": hg.KernelLogisticRegression(),
    "KernelPerceptron": hg.KernelPerceptron(max_iter=20),
    "GaussianProcessRegressor": hg.GaussianProcessRegressor(hg.kernels.RBF(1.0) + hg.kernels.White(0.5)),
    "GaussianProcessRegressor lengths": hg.GaussianProcessRegressor(hg.kernels.Matern(1.0, 0.5), alpha=0.5),
    "GaussianProcessClassifier": hg.GaussianProcessClassifier(1.0 * hg.kernels.RBF(1.0)),
    "Learner": hg.Learner(hg.RKHS(hg.kernels.RBF(1.0)), hg.Logistic(), hg.L2(1e-2)),
    "Learner hinge": hg.Learner(hg.RKHS(hg.kernels.RBF(1.0)), hg.Hinge(), hg.L2(1e-2)),
    "Learner centres": hg.Learner(hg.RKHS(hg.kernels.RBF(1.0), centres=20), hg.Squared(), hg.L2(1e-2)),
    "Nystroem": hg.Nystroem(n_components=20),
    "RandomFourierFeatures": hg.RandomFourierFeatures(n_components=20),
}
SHAPES = ("empty rows", "empty first and last", "no entries", "one column", "csc", "coo", "array")


def sparse(shape: str, rng) -> scipy.sparse.spmatrix:
    X = scipy.sparse.random(60, 8, density=0.3, random_state=int(rng.integers(2**31)), format="csr")
    if shape == "empty rows":
        X = scipy.sparse.diags_array((rng.random(60) < 0.2).astype(float)) @ X
    elif shape == "empty first and last":
        keep = np.ones(60)
        keep[:20] = keep[-20:] = 0.0
        X = scipy.sparse.diags_array(keep) @ X
        X.eliminate_zeros()
    elif shape == "no entries":
        X = scipy.sparse.csr_matrix((60, 8))
    elif shape == "one column":
        X = X[:, :1]
    elif shape == "csc":
        return X.tocsc()
    elif shape == "coo":
        return X.tocoo()
    elif shape == "array":
        return scipy.sparse.csr_array(X)
    return scipy.sparse.csr_matrix(X)


def outputs(model, X):
    if hasattr(model, "transform"):
        return model.transform(X)
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict_proba(X) if is_classifier(model) and hasattr(model, "predict_proba") else model.predict(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # NuSVC: no margin where X is constant
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_sparse_inputs_give_what_dense_ones_give(name, shape, rng):
    X = sparse(shape, rng)
    real = rng.normal(size=60)
    y = np.arange(60) % (3 if "three" in name else 2)
    dense, model = clone(ESTIMATORS[name]), clone(ESTIMATORS[name])
    if not (is_classifier(model) or "Logistic" in str(model) or "Hinge" in str(model)):
        y = real
    if is_outlier_detector(model) or hasattr(model, "transform"):
        model.fit(X), dense.fit(X.toarray())
    else:
        model.fit(X, y), dense.fit(X.toarray(), y)
    # Biases need not be unique, differences of scores are.
    new = scipy.sparse.vstack([scipy.sparse.csr_matrix((2, X.shape[1])), X.tocsr()[:10]]).tocsr()
    found, wanted = outputs(model, new), outputs(dense, new.toarray())
    np.testing.assert_allclose(found - found[0], wanted - wanted[0], rtol=1e-3, atol=2e-3)
    for layout in ("csc", "csr"):
        np.testing.assert_allclose(outputs(model, new.asformat(layout)), found, rtol=1e-9, atol=1e-9)
    empty = outputs(model, scipy.sparse.csr_matrix((3, X.shape[1])))
    np.testing.assert_allclose(empty, np.repeat(found[:1], 3, axis=0), rtol=1e-9, atol=1e-9)

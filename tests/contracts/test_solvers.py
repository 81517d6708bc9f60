"""Laws that every solver obeys on every problem it admits."""

from __future__ import annotations

import ast
import dataclasses
import itertools
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import hinge as hg
import zoo
from hinge.problem.distributions import Binomial
from hinge.problem.links import CauchitLink
from hinge.problem.losses.custom import as_loss
from hinge.problem.losses.linked import LinkedProbability
from hinge.problem.losses.multiclass import MulticlassHinge
from hinge.solvers.base import Need, Solution, Solver, Status
from hinge.solvers.constant import best_constant
from hinge.solvers.run import SOLVERS, admissible, choose, get_solver, solve

N, D = 60, 6
# What a method is good for in a test: these approach the optimum slowly, or with noise.
LOOSE = {"subgradient": 5e-2, "pegasos": 5e-2, "sgd": 0.5, "admm": 1e-4, "gradient-descent": 1e-5}
# Methods that improve (w, b) step by step from wherever they start, down to a tolerance.
ITERATIVE = (
    "admm", "coordinate-descent", "gradient-descent", "lbfgs", "newton", "projected-gradient", "proximal-gradient",
    "subgradient",
)  # fmt: skip
PAIRS = [(loss, penalty) for loss in zoo.LOSSES for penalty in zoo.penalties(D)]
SEVERAL = (hg.Softmax(), hg.L2(0.3))  # several scores per example
CAUCHIT = (LinkedProbability(Binomial(), CauchitLink()), hg.L2(0.3))  # a likelihood that is not convex


def problem(loss, penalty, n=N, seed=0, targets=1, **options):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, D)), zoo.targets(loss, n, rng)
    y = y if targets == 1 else np.stack([y, *(zoo.targets(loss, n, rng) for _ in range(targets - 1))], axis=1)
    return hg.make_objective(X, y, loss, penalty, **options)


def targets_for(name):
    """How many targets per example the solver is made for."""
    return 2 if name in ("one-by-one", "block-coordinate-descent") else 1


def suited(name, strength=0.05):
    """A small problem that the solver admits and cannot solve in one step."""
    candidates = [
        (hg.Logistic(), hg.L2(strength)),
        (hg.Squared(), hg.L1(strength)),
        (hg.Hinge(), hg.L2(strength)),
        (hg.Squared(), hg.L2(strength)),
        (hg.Softmax(), hg.L2(strength)),
        CAUCHIT,
        (hg.Hinge(), hg.Lq(strength)),
        (hg.Squared(), hg.GroupNorm(strength)),
    ]
    return next(o for o in (problem(*pair, targets=targets_for(name)) for pair in candidates) if name in admissible(o))


def quiet(objective, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solve(objective, **options)


@pytest.mark.mission("O9")
@pytest.mark.parametrize("loss", zoo.LOSSES, ids=zoo.name)
def test_auto_solves_every_pair(loss):
    for penalty in zoo.penalties(D):
        objective = problem(loss, penalty)
        tol = 1e-5 if choose(objective) == "admm" else 1e-7
        result = quiet(objective, tol=tol)
        assert result.certificate.converged, f"{penalty}: {result.certificate}, {result.certificate.kind}"


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_each_solver_reaches_its_certificate(name):
    """On a sample of the pairs it admits: every loss once and every penalty once."""
    taken = set()
    for k, (loss, penalty) in enumerate(PAIRS if name in LOOSE else [*PAIRS, SEVERAL, CAUCHIT]):
        keys = {("loss", repr(loss)), ("penalty", repr(penalty))}
        objective = problem(loss, penalty, seed=k, targets=targets_for(name))
        if keys <= taken or name not in admissible(objective):
            continue
        taken |= keys
        if name == "sgd" and not (loss.smooth and np.isfinite(loss.curvature) and penalty.convex):
            continue  # noisy steps on exponentials and kinks promise nothing after a fixed number of epochs
        if name in ("subgradient", "pegasos") and not np.isfinite(loss.curvature) and loss.smooth:
            continue  # subgradients of exponentials are not bounded
        result = quiet(objective, solver=name, tol=LOOSE.get(name, 1e-6))
        assert result.certificate.converged, f"{name} on {loss} + {penalty}: {result.certificate}"
        assert result.certificate.solver == name
    assert taken


@pytest.mark.parametrize("name", ITERATIVE)
def test_warm_start_from_the_answer_stops_at_once(name):
    objective = suited(name)
    answer = solve(objective, tol=1e-10)
    again = solve(objective, solver=name, tol=1e-6, start=(answer.w, answer.b))
    assert again.solution.iterations <= 1
    assert np.allclose(again.w, answer.w, atol=1e-6)


@pytest.mark.parametrize("name", ITERATIVE)
def test_a_budget_of_one_iteration_is_reported(name):
    objective = suited(name, strength=0.01)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        result = solve(objective, solver=name, tol=1e-14, max_iter=1)
    assert result.certificate.status == Status.MAX_ITER.value
    assert not result.certificate.converged


def test_a_solver_that_ends_too_early_by_its_own_rule_is_not_quoted():
    """The warning gives a cause, not the solver's opinion that the tolerance was met."""

    class Hasty(Solver):
        name = "hasty"

        def run(self, objective, w, b, stop):
            return Solution(w, b, Status.CONVERGED, 1)

    with pytest.warns(ConvergenceWarning) as caught:
        result = solve(suited("newton"), solver=Hasty())
    assert result.certificate.status == Status.SHORT.value
    assert not result.certificate.converged
    assert Status.CONVERGED.value not in str(caught[0].message)


@pytest.mark.parametrize("name", sorted(set(SOLVERS) - {"closed-form"}))
def test_histories_and_callbacks(name):
    objective = suited(name)
    seen = []
    result = quiet(objective, solver=name, history=True, tol=1e-9, max_iter=30, callback=lambda r: seen.append(r))
    history = result.solution.history
    assert len(history) == len(seen) >= 1
    assert [r.iteration for r in history] == sorted(r.iteration for r in history)
    assert all(later.seconds >= earlier.seconds for earlier, later in itertools.pairwise(history))
    if name in ITERATIVE:
        stopped = quiet(objective, solver=name, tol=1e-14, callback=lambda r: r.iteration >= 2)
        assert stopped.solution.iterations == 2


def test_deterministic_by_seed():
    objective = problem(hg.Logistic(), hg.L2(0.1))
    for solver in ("sgd", "pegasos", hg.solvers.SGD(batch_size=7, momentum=0.5)):
        a, b, other = (quiet(objective, solver=solver, max_iter=3, random_state=s) for s in (1, 1, 2))
        assert np.array_equal(a.w, b.w)
        assert not np.array_equal(a.w, other.w)


def test_several_outputs():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 4)), rng.integers(0, 3, size=90).astype(float)
    reference = None
    for name in ("lbfgs", "gradient-descent", "proximal-gradient", "projected-gradient"):
        objective = hg.make_objective(X, y, hg.Softmax(), hg.L2(0.1), classes=3)
        result = solve(objective, solver=name, tol=1e-9)
        assert result.certificate.kind == "gap"
        reference = result.w if reference is None else reference
        assert np.allclose(result.w, reference, atol=1e-3)
    noisy = quiet(hg.make_objective(X, y, hg.Softmax(), hg.L2(0.1), classes=3), solver=hg.solvers.SGD(batch_size=10))
    assert np.allclose(noisy.w, reference, atol=0.05)


def test_one_clear_error():
    objective = problem(hg.Hinge(), hg.L1(0.1))
    with pytest.raises(ValueError, match=r"differentiable loss.*These would work: .*'admm'"):
        solve(objective, solver="gradient-descent")
    with pytest.raises(ValueError, match=r"unknown.*GradientDescent"):
        solve(objective, solver="simplex")
    with pytest.raises(ValueError, match="step"):
        solve(problem(hg.Squared(), hg.L2(0.1)), solver=hg.solvers.GradientDescent(step="golden"))


def test_configured_solvers_are_accepted_and_cloned():
    from sklearn.base import clone

    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40.0)
    model = hg.Learner(loss=hg.Squared(), penalty=hg.L2(0.1), solver=hg.solvers.GradientDescent(step="exact"), tol=1e-8)
    twin = clone(model).fit(X, y)
    assert twin.certificate_.solver == "gradient-descent"
    assert np.allclose(
        twin.coef_, hg.Learner(loss=hg.Squared(), penalty=hg.L2(0.1), tol=1e-8).fit(X, y).coef_, atol=1e-3
    )


def test_needs_are_declared():
    for name in SOLVERS:
        solver = get_solver(name)
        assert isinstance(solver, Solver)
        assert solver.name == name
        assert all(isinstance(need, Need) for need in solver.needs)


class SmoothQuantile:
    """A smoothed 0.8-quantile loss, written by a user in six lines."""

    convex, curvature = True, 2.5

    def value(self, y, s):
        return 0.8 * (y - s) + 0.1 * np.logaddexp(0.0, (s - y) / 0.1)

    def gradient(self, y, s):
        return -0.8 + 0.5 * (1.0 + np.tanh((s - y) / 0.2))


@pytest.mark.mission("O9")
@pytest.mark.parametrize("penalty", zoo.penalties(D), ids=zoo.name)
def test_a_custom_loss_with_any_penalty(penalty):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, D))
    y = X[:, 0] - X[:, 1] + rng.normal(size=200)
    result = solve(hg.make_objective(X, y, SmoothQuantile(), penalty), tol=1e-7)
    assert result.certificate.kind == "stationarity"
    assert result.certificate.residual <= 1e-7


@pytest.mark.mission("O9")
def test_a_custom_loss_with_l1_on_many_examples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 50))
    w = np.where(np.arange(50) < 5, 1.0, 0.0)
    y = X @ w + rng.normal(size=100_000)
    model = hg.Learner(loss=SmoothQuantile(), penalty=hg.L1(0.02)).fit(X, y)
    assert model.certificate_.residual <= model.tol
    assert np.array_equal(model.coef_ != 0, w != 0)
    assert np.mean(y <= model.predict(X)) == pytest.approx(0.8, abs=0.03)


# Losses that a quadratic program writes as straight pieces; the others of its list are squares, or Huber's.
PIECES = [
    loss
    for loss in zoo.LOSSES
    if loss.piecewise_quadratic and not isinstance(loss, hg.Squared | hg.SquaredMargin | hg.Huber)
]


@pytest.mark.mission("O6")
@pytest.mark.parametrize("loss", PIECES, ids=zoo.name)
def test_the_pieces_of_a_quadratic_program_are_the_loss(loss, rng):
    """ℓ = max(αs + β), or (h/2) max(αs + β)², over the straight pieces, at every score."""
    y = zoo.targets(loss, 50, rng)
    z = 3 * rng.normal(size=50)
    found = loss.pieces(y)
    most = np.max(found.slope * z + found.start, axis=0)
    value = 0.5 * found.square * most**2 if found.square else most
    np.testing.assert_allclose(value, loss.value(y, z), rtol=1e-12, atol=1e-12)


@pytest.mark.mission("O9")
@pytest.mark.parametrize("loss", [*zoo.LOSSES, hg.Softmax(), MulticlassHinge()], ids=zoo.name)
def test_any_loss_with_any_penalty_and_several_outputs(loss):
    """docs/idea.md names the two pairs that are excluded: scores of classes with kinks under Lq and L0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    classes = loss.outputs == "classes"
    y = zoo.targets(loss, 30, rng) if classes else np.stack([zoo.targets(loss, 30, rng) for _ in range(2)], axis=1)
    for penalty in zoo.penalties(3):
        objective = hg.make_objective(X, y, loss, penalty, classes=3 if classes else None)
        if classes and not loss.smooth and not penalty.convex:
            with pytest.raises(ValueError, match="No solver handles"):
                choose(objective)
            continue
        result = quiet(objective, tol=1e-3 if choose(objective) == "admm" else 1e-5)
        assert result.w.shape == (3, objective.outputs)
        assert result.certificate.converged, f"{penalty}: {result.certificate}, {result.certificate.kind}"


@pytest.mark.mission("O9", "R5")
@pytest.mark.parametrize("loss", [hg.Hinge(), hg.Absolute(), hg.Quantile(0.8)], ids=zoo.name)
@pytest.mark.parametrize("penalty", [hg.Lq(0.05, 0.5), hg.L0(0.02)], ids=zoo.name)
def test_kinked_losses_under_sparse_penalties(loss, penalty, rng):
    """A stationary point with a witness: subgradients of the loss that balance the penalty's slope in every used weight."""
    X = rng.normal(size=(120, 4))
    s = X @ [2.0, -2.0, 0.0, 0.0]
    y = np.where(s > 0, 1.0, -1.0) if isinstance(loss, hg.Hinge) else s + 0.1 * rng.normal(size=120)
    o = hg.make_objective(X, y, loss, penalty)
    result = solve(o, tol=1e-6)
    assert result.certificate.kind == "stationarity"
    assert result.certificate.converged
    assert np.array_equal(np.flatnonzero(result.w), [0, 1])
    u, z = result.solution.dual, o.scores(result.w, result.b)
    assert np.mean(loss.value(y, z) + loss.conjugate(y, loss.project_dual(y, u)) - u * z) <= 1e-5
    g = X.T @ (o.c * u)
    used = result.w != 0
    assert penalty.subdifferential_distance(result.w, g)[used] == pytest.approx(0.0, abs=1e-4)
    assert o.value(result.w, result.b) <= o.value(*o.zero())


@pytest.mark.parametrize("penalty", zoo.penalties(D), ids=zoo.name)
def test_an_infimum_that_a_constant_attains_is_attained_exactly(penalty):
    """The perceptron loss is zero at w = 0, b = 0: no weights of 1e-61, and Lq is stationary there."""
    result = quiet(problem(hg.PerceptronLoss(), penalty), tol=1e-8)
    assert result.certificate.primal == 0.0
    assert result.certificate.error <= 1e-14


@pytest.mark.parametrize("loss", [loss for loss in zoo.LOSSES if not loss.smooth], ids=zoo.name)
def test_subgradients_at_the_best_constant_balance(loss, rng):
    """Σ cᵢ uᵢ = 0 with uᵢ ∈ ∂ℓ(yᵢ, b): examples at the kink make up for the others, wherever the kink lies."""
    objective = hg.make_objective(rng.normal(size=(N, D)), zoo.targets(loss, N, rng), loss, hg.L1(1e3))
    constant = best_constant(objective, 1e-9)
    assert constant is not None
    assert not np.any(constant.w)
    z = np.full(N, constant.b[0])
    assert abs(objective.c @ constant.dual) <= 1e-12
    touch = loss.value(objective.y, z) + loss.conjugate(objective.y, constant.dual) - constant.dual * z
    assert np.max(np.abs(touch)) <= 1e-9


@pytest.mark.parametrize("loss", [loss for loss in zoo.LOSSES if loss.piecewise_linear], ids=zoo.name)
def test_kinks_are_those_of_the_loss(loss, rng):
    """ℓ(s) = min ℓ + Σ over kinks of max(low·(s − a), high·(s − a)), up to what is constant in s."""
    y, z = zoo.targets(loss, 50, rng), 3 * rng.normal(size=(2, 50))
    values = [sum(np.maximum(k.low * (s - k.at), k.high * (s - k.at)) for k in loss.kinks(y)) for s in z]
    np.testing.assert_allclose(values[1] - values[0], loss.value(y, z[1]) - loss.value(y, z[0]), atol=1e-12)


@pytest.mark.parametrize("loss", [loss for loss in zoo.LOSSES if loss.piecewise_linear], ids=zoo.name)
def test_a_piecewise_linear_loss_of_ones_own_has_the_solvers_for_it(loss):
    """Capabilities are declared by members: another name changes nothing, and a declaration that is wrong does."""
    parts = {f.name: getattr(loss, f.name) for f in dataclasses.fields(loss)}
    twin = type("Another", (type(loss),), {"convex": True})(**parts)
    here, there = (quiet(problem(own, hg.L2(0.1)), solver="interior-point", tol=1e-8) for own in (loss, twin))
    np.testing.assert_allclose(there.w, here.w, atol=1e-6)
    assert there.certificate.converged
    squared = {"value": lambda self, y, s: type(loss).value(self, y, s) ** 2, "smooth": True, "convex": False,
               "gradient": lambda self, y, s: 2 * type(loss).value(self, y, s) * type(loss).gradient(self, y, s)}  # fmt: skip
    assert not as_loss(type("Square", (type(loss),), squared)(**parts)).piecewise_linear


@pytest.mark.parametrize("penalty", zoo.penalties(D), ids=zoo.name)
def test_a_subclass_of_a_penalty_has_its_solvers(penalty):
    twin = type("Another", (type(penalty),), {})(
        **{f.name: getattr(penalty, f.name) for f in dataclasses.fields(penalty)}
    )
    assert admissible(problem(hg.Squared(), twin)) == admissible(problem(hg.Squared(), penalty))
    assert choose(problem(hg.Squared(), twin)) == choose(problem(hg.Squared(), penalty))


def test_no_capability_goes_by_the_name_of_a_class():
    """No comparison with type(x).__name__ in problem/ and solvers/, but for kernels of other libraries."""
    root = Path(hg.__file__).parent
    found = []
    for path in [*(root / "problem").rglob("*.py"), *(root / "solvers").rglob("*.py")]:
        if path.name == "translate.py":  # scikit-learn's kernels, without importing it
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            named = isinstance(node, ast.Compare) and "type(" in ast.unparse(node) and "__name__" in ast.unparse(node)
            kept = (
                isinstance(node, ast.Assign)
                and ast.unparse(node.value).startswith("type(")
                and ("__name__" in ast.unparse(node.value) and path.parent.name == "solvers")
            )
            if named or kept:
                found.append(f"{path.relative_to(root)}:{node.lineno}")
    assert not found


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_solvers_print_nothing(name, capfd):
    quiet(suited(name), solver=name, max_iter=5)
    assert capfd.readouterr() == ("", "")

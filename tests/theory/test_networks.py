"""N1, N2 and the one-unit case of W6: backpropagation is the gradient, and each remedy does what it is for."""

from __future__ import annotations

import gzip
import itertools

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression

import hinge as hg
from hinge.models.neural.engine import Engine, Rule, criterion, examples, initial_weights, network, pack, unpack
from hinge.problem.losses import Loss, Target
from zoo import LOSSES, name, targets

ACTIVATIONS = ["identity", "logistic", "tanh", "relu", "gelu"]


def make_net(sizes: list[int], activation: str, seed: int = 0) -> tuple[list, list]:
    """Random weights that are not small, so that every unit matters."""
    rng = np.random.RandomState(seed)
    weights = [rng.normal(size=(a, b)) / np.sqrt(a) for a, b in itertools.pairwise(sizes)]
    return weights, [0.1 * rng.normal(size=b) for b in sizes[1:]]


def value_of(
    activation: str, weights: list, biases: list, x: object, bound: object, dropout: float, seed: int
) -> float:
    return network(activation, weights, biases).gradient(x, bound, dropout, seed)[0]


def finite_differences(
    activation: str,
    weights: list,
    biases: list,
    x: object,
    bound: object,
    dropout: float,
    seed: int,
    step: float = 1e-5,
) -> np.ndarray:
    flat = pack(weights, biases)
    slopes = np.empty_like(flat)
    for i in range(len(flat)):
        ends = []
        for shift in (step, -step):
            moved = flat.copy()
            moved[i] += shift
            ends.append(value_of(activation, *unpack(moved, weights), x, bound, dropout, seed))
        slopes[i] = (ends[0] - ends[1]) / (2 * step)
    return slopes


def check_gradient(loss: Loss, activation: str, depth: int, dropout: float, *, sparse: bool = False) -> None:
    rng = np.random.default_rng(depth)
    n, d = 7, 3
    X = rng.normal(size=(n, d))
    outputs = 3 if loss.outputs == "classes" else 2
    y = rng.integers(0, 3, n).astype(float) if loss.outputs == "classes" else targets(loss, n * 2, rng).reshape(n, 2)
    weight = rng.uniform(0.5, 2.0, n)
    weights, biases = make_net([d, *[4] * (depth - 1), outputs], activation)
    x = examples(scipy.sparse.csr_array(X) if sparse else X, np.float64)
    bound = criterion(loss, y, weight, outputs, np.float64)
    _, gradient = network(activation, weights, biases).gradient(x, bound, dropout, 5)
    expected = finite_differences(activation, weights, biases, x, bound, dropout, 5)
    # Kinks (ReLU, non-smooth losses) are met with probability zero, but within 1e-5 of one now and then.
    np.testing.assert_allclose(gradient, expected, rtol=2e-5, atol=2e-7)


@pytest.mark.mission("N1")
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("loss", [*LOSSES, hg.Softmax()], ids=name)
def test_backpropagation_is_the_gradient(loss: Loss, activation: str, depth: int) -> None:
    check_gradient(loss, activation, depth, dropout=0.0)


@pytest.mark.mission("N1", "N2")
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("sparse", [False, True])
def test_backpropagation_is_the_gradient_when_dropout_is_held_fixed(activation: str, sparse: bool) -> None:
    check_gradient(hg.Softmax(), activation, 3, dropout=0.4, sparse=sparse)


def slope_of(activation: str, a: np.ndarray) -> np.ndarray:
    """h′, from first principles."""
    step = 1e-6
    return (unit(activation, a + step) - unit(activation, a - step)) / (2 * step)


def unit(activation: str, a: np.ndarray) -> np.ndarray:
    from scipy.special import expit, ndtr

    return {
        "identity": lambda: a,
        "logistic": lambda: expit(a),
        "tanh": lambda: np.tanh(a),
        "relu": lambda: np.maximum(a, 0.0),
        "gelu": lambda: a * ndtr(a),
    }[activation]()


@pytest.mark.mission("N1")
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_blame_recursion_holds_unit_by_unit(activation: str) -> None:
    """δ_t = Σ_s δ_s w_ts h′(a_t) and ∂L/∂w_jt = δ_t z_j, written with loops as in the cheat sheet."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 3)), rng.normal(size=6)
    net = hg.MLPRegressor(
        hidden_layer_sizes=(4, 5), activation=activation, max_iter=2, random_state=0, n_iter_no_change=1, tol=1e9
    )
    trace = net.partial_fit(X, y).backprop_trace(X, y)
    W = [np.asarray(w, dtype=float) for w in net.coefs_]
    below = [trace.inputs, *trace.activations[:-1]]
    np.testing.assert_allclose(trace.deltas[-1][:, 0], (trace.activations[-1][:, 0] - y) / 6, atol=1e-12)
    for l in range(3):
        for t in range(W[l].shape[1]):
            for i in range(6):
                a = sum(W[l][j, t] * below[l][i, j] for j in range(W[l].shape[0])) + net.intercepts_[l][t]
                assert trace.preactivations[l][i, t] == pytest.approx(a, abs=1e-6)
                if l < 2:
                    passed = sum(trace.deltas[l + 1][i, s] * W[l + 1][t, s] for s in range(W[l + 1].shape[1]))
                    slope = slope_of(activation, trace.preactivations[l][i, t])
                    assert trace.deltas[l][i, t] == pytest.approx(passed * slope, abs=1e-8)
            for j in range(W[l].shape[0]):
                expected = sum(trace.deltas[l][i, t] * below[l][i, j] for i in range(6))
                assert trace.weight_gradients[l][j, t] == pytest.approx(expected, abs=1e-12)
            assert trace.bias_gradients[l][t] == pytest.approx(trace.deltas[l][:, t].sum(), abs=1e-12)
    for l in range(2):
        np.testing.assert_allclose(trace.activations[l], unit(activation, trace.preactivations[l]), atol=1e-7)


@pytest.mark.mission("W6", "N1")
def test_one_unit_with_the_perceptron_loss_is_the_perceptron() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    y = np.where(X @ [1.0, -2.0, 0.5, 0.3] + 0.2 > 0, 1, -1)
    w, b, epochs = np.zeros(4), 0.0, 5
    for _ in range(epochs):
        for x, label in zip(X, y):
            if label * (w @ x + b) <= 0:
                w, b = w + label * x, b + label
    net = hg.MLPClassifier(
        (), loss=hg.PerceptronLoss(), solver="sgd", learning_rate_init=1.0, momentum=0.0, alpha=0.0, batch_size=1,
        shuffle=False, max_iter=epochs, tol=0.0, n_iter_no_change=epochs, precision="float64",
    )  # fmt: skip
    with pytest.warns(match="maximum iterations"):
        net.fit(X, y)
    np.testing.assert_allclose(net.coefs_[0][:, 0], w, atol=1e-12)
    assert net.intercepts_[0][0] == pytest.approx(b, abs=1e-12)


@pytest.mark.mission("N1")
def test_one_softmax_layer_is_multinomial_logistic_regression() -> None:
    """The objective is convex, so the optimum is one point; scikit-learn's multinomial regression finds the same."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 4))
    y = (X @ rng.normal(size=(4, 3)) + rng.gumbel(size=(200, 3))).argmax(axis=1)
    lam = 0.01
    net = hg.MLPClassifier((), solver="lbfgs", alpha=lam * 200, tol=1e-9, max_iter=1000).fit(X, y)
    reference = LogisticRegression(C=1 / (lam * 200), tol=1e-10, solver="newton-cg", max_iter=1000).fit(X, y)
    np.testing.assert_allclose(net.coefs_[0].T, reference.coef_, atol=1e-6)
    raw = X @ reference.coef_.T + reference.intercept_
    best = hg.Softmax().value(y, raw).mean() + 0.5 * lam * np.square(reference.coef_).sum()
    assert net.loss_ <= best * (1 + 1e-9)


def engine_on(rule: Rule, sizes: list[int], activation: str = "tanh", seed: int = 0) -> Engine:
    weights, biases = make_net(sizes, activation, seed)
    return Engine(activation, weights, biases, rule, seed)


def quadratic(n: int = 30) -> tuple:
    """Badly scaled least squares for one linear unit."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 2)) * [1.0, 0.05]
    y = X @ [1.0, 20.0]
    return examples(X, np.float64), criterion(hg.Squared(), y, np.ones(n), 1, np.float64), X, y


@pytest.mark.mission("N2")
def test_momentum_follows_its_recursion_and_speeds_up_a_narrow_valley() -> None:
    x, bound, X, y = quadratic()
    losses = {}
    for momentum, nesterov in [(0.0, False), (0.9, False), (0.9, True)]:
        rule = Rule(solver="sgd", momentum=momentum, nesterov=nesterov)
        engine = Engine("identity", [np.zeros((2, 1))], [np.zeros(1)], rule, 0)
        w, velocity = np.zeros(3), np.zeros(3)
        A = np.column_stack([X, np.ones(len(X))])
        for _ in range(300):
            losses[momentum, nesterov] = engine.epoch(x, bound, 30, np.array([0.1]), shuffle=False)
            g = A.T @ (A @ w - y) / 30
            velocity = momentum * velocity - 0.1 * g
            w = w + (momentum * velocity - 0.1 * g if nesterov else velocity)
        np.testing.assert_allclose([*engine.weights[0][:, 0], *engine.biases[0]], w, atol=1e-10)
    assert losses[0.9, False] < 0.6 * losses[0.0, False]
    assert losses[0.9, True] < 0.6 * losses[0.0, False]


@pytest.mark.mission("N2")
def test_adam_follows_its_recursion() -> None:
    x, bound, X, y = quadratic()
    engine = Engine("identity", [np.zeros((2, 1))], [np.zeros(1)], Rule(l2=0.3), 0)
    A = np.column_stack([X, np.ones(len(X))])
    w, m, v = np.zeros(3), np.zeros(3), np.zeros(3)
    for t in range(1, 40):
        engine.epoch(x, bound, 30, np.array([0.05]), shuffle=False)
        g = A.T @ (A @ w - y) / 30 + 0.3 * w * [1, 1, 0]
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        w = w - 0.05 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)
    np.testing.assert_allclose([*engine.weights[0][:, 0], *engine.biases[0]], w, atol=1e-10)


@pytest.mark.mission("N2")
def test_weight_decay_is_l2_for_sgd_and_is_not_for_adam() -> None:
    x, bound, *_ = quadratic()

    def final(**settings: object) -> np.ndarray:
        engine = engine_on(Rule(momentum=0.0, **settings), [2, 5, 1])
        for _ in range(20):
            engine.epoch(x, bound, 10, np.full(3, 0.05), shuffle=True)
        return pack(engine.weights, engine.biases)

    plain = final(solver="sgd")
    by_penalty, by_decay = final(solver="sgd", l2=0.2), final(solver="sgd", weight_decay=0.2)
    np.testing.assert_allclose(by_penalty, by_decay, atol=1e-12)
    assert np.linalg.norm(by_decay - plain) > 0.05
    apart = final(solver="adam", l2=0.2) - final(solver="adam", weight_decay=0.2)
    assert np.linalg.norm(apart) > 0.05


@pytest.mark.mission("N2")
def test_clipping_bounds_the_step() -> None:
    x, bound, *_ = quadratic()
    for clip, expected in [(0.01, 0.01), (None, None)]:
        engine = engine_on(Rule(solver="sgd", momentum=0.0, clip_norm=clip, l2=0.1), [2, 5, 1])
        before = pack(engine.weights, engine.biases)
        engine.epoch(x, bound, 30, np.array([1.0]), shuffle=False)
        moved = np.linalg.norm(pack(engine.weights, engine.biases) - before)
        assert moved == pytest.approx(expected, rel=1e-9) if expected else moved > 0.05


@pytest.mark.mission("N2")
def test_dropout_keeps_the_mean_and_is_off_at_prediction() -> None:
    """With a linear output the expectation over masks is the full network: E[z·mask/(1−p)] = z."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(1, 3)), np.zeros(1)
    weights, biases = make_net([3, 40, 1], "tanh")
    net = network("tanh", weights, biases)
    x, bound = examples(X, np.float64), criterion(_Score(), y, np.ones(1), 1, np.float64)
    full = float(net.scores(x)[0, 0])
    draws = np.array([net.gradient(x, bound, 0.3, seed)[0] for seed in range(20_000)])
    error = draws.std() / np.sqrt(len(draws))
    assert draws.std() > 0.1
    assert abs(draws.mean() - full) < 4 * error
    hidden = np.tanh(X @ weights[0] + biases[0])
    variance = 0.3 / 0.7 * np.sum((hidden * weights[1][:, 0]) ** 2)  # of Σ w z mask/(1−p)
    assert draws.var() == pytest.approx(variance, rel=0.05)
    assert net.gradient(x, bound, 0.0, 1)[0] == pytest.approx(full, abs=1e-12)


class _Score(hg.Loss):
    """A "loss" that is the score itself, to look at outputs under dropout."""

    def value(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        return s

    def gradient(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        return np.ones_like(s)


@pytest.mark.mission("N2")
def test_dropout_prevents_overfitting_of_few_noisy_examples() -> None:
    rng = np.random.default_rng(5)
    X, noise = rng.normal(size=(460, 20)), rng.normal(size=460)
    y = (X[:, 0] + 0.8 * noise > 0).astype(int)
    loss = {0.0: 0.0, 0.5: 0.0}
    for dropout in loss:
        for seed in range(3):
            net = hg.MLPClassifier(
                100, dropout=dropout, batch_size=20, max_iter=300, alpha=0.0, learning_rate="step", random_state=seed
            ).fit(X[:60], y[:60])
            p = net.predict_proba(X[60:])[np.arange(400), y[60:]]
            loss[dropout] -= np.log(np.maximum(p, 1e-12)).mean() / 3
    assert loss[0.5] < 0.95 * loss[0.0]


@pytest.mark.mission("N2")
def test_early_stopping_keeps_the_best_weights() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(150, 20))
    y = (X[:, 0] + rng.normal(size=150) > 0).astype(int)
    settings = {"hidden_layer_sizes": 50, "learning_rate_init": 0.01, "alpha": 0.0, "random_state": 3, "tol": 0.0}
    net = hg.MLPClassifier(early_stopping=True, validation_fraction=0.3, max_iter=500, **settings).fit(X, y)
    scores = net.validation_scores_
    best = int(np.argmax(scores))
    assert net.n_iter_ < 500
    assert scores[-1] < scores[best]  # it went on for a while and got worse
    assert len(scores) == len(net.loss_curve_) == net.n_iter_
    # The same run cut off after the best epoch has the same weights.
    with pytest.warns(match="maximum iterations"):
        short = hg.MLPClassifier(
            early_stopping=True, validation_fraction=0.3, max_iter=best + 1, n_iter_no_change=500, **settings
        ).fit(X, y)
    for kept, cut in zip(net.coefs_, short.coefs_):
        np.testing.assert_array_equal(kept, cut)


@pytest.mark.mission("N2")
def test_saturating_units_lose_the_gradient_where_relu_keeps_it() -> None:
    """Ten hidden layers: the deltas of the first, relative to those of the last, at the initial weights."""
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(64, 32)), rng.normal(size=64)
    ratio = {}
    for activation in ("logistic", "relu"):
        weights, _ = initial_weights([32, *[32] * 10, 1], "relu", np.random.RandomState(1), np.float64)
        biases = [np.zeros(W.shape[1]) for W in weights]
        net = network(activation, weights, biases)
        _, _, deltas, _ = net.trace(examples(X, np.float64), criterion(hg.Squared(), y, np.ones(64), 1, np.float64))
        ratio[activation] = np.linalg.norm(deltas[0]) / np.linalg.norm(deltas[-2])
    assert ratio["logistic"] < 1e-4
    assert ratio["relu"] > 1e-2


@pytest.mark.mission("N2")
def test_schedules_have_the_shape_of_their_formula() -> None:
    from hinge.models.neural.learning_rate import LearningRate

    def rates(name: object, epochs: int = 10, steps: int = 10) -> np.ndarray:
        schedule = LearningRate(name, 2.0, power_t=0.5, epochs=epochs, steps=steps)
        return np.concatenate([schedule.epoch(e, e * 100) for e in range(epochs)])

    assert np.all(rates("constant") == 2.0)
    np.testing.assert_allclose(rates("invscaling")[::10], 2.0 / np.sqrt(100 * np.arange(10) + 1))
    np.testing.assert_allclose(np.unique(rates("step")), [0.02, 0.2, 2.0])
    np.testing.assert_allclose(rates("cosine"), 1.0 + np.cos(np.pi * np.arange(100) / 100))
    cycle = rates("one_cycle")
    assert cycle[0] == pytest.approx(2.0 / 25)
    assert cycle.max() == pytest.approx(2.0)
    assert np.argmax(cycle) == 30
    assert np.all(np.diff(cycle[:30]) > 0)
    assert np.all(np.diff(cycle[30:]) < 0)
    np.testing.assert_allclose(rates(lambda p: 1 - p), 2.0 * (1 - np.arange(100) / 100))


@pytest.mark.mission("N2")
@pytest.mark.parametrize("learning_rate", ["adaptive", "plateau"])
def test_the_rate_falls_when_the_loss_does_not(learning_rate: str) -> None:
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    net = hg.MLPRegressor(
        hidden_layer_sizes=5, solver="sgd", learning_rate=learning_rate, learning_rate_init=0.1, max_iter=2000, tol=1e-3,
        random_state=0, n_iter_no_change=6,
    ).fit(X, y)  # fmt: skip
    rates = np.array(net.history_.learning_rate)
    steps = rates[1:] / rates[:-1]
    factor = {"adaptive": 0.2, "plateau": 0.5}[learning_rate]
    assert np.any(steps < 1)
    np.testing.assert_allclose(steps[steps < 1], factor)


@pytest.mark.mission("N1")
def test_minibatch_steps_have_the_mean_of_the_full_step() -> None:
    """Weights are an unbiased reweighting: averaged over the batches of an epoch, SGD's first steps sum to the full one."""
    rng = np.random.default_rng(8)
    X, y, weight = rng.normal(size=(12, 3)), rng.normal(size=12), rng.uniform(0.1, 3.0, 12)
    weight /= weight.mean()
    weights, biases = make_net([3, 4, 1], "tanh")
    _, full = network("tanh", weights, biases).gradient(
        examples(X, np.float64), criterion(hg.Squared(), y, weight, 1, np.float64)
    )
    parts = []
    for rows in np.split(np.arange(12), 3):
        bound = criterion(hg.Squared(), y[rows], weight[rows], 1, np.float64)
        parts.append(network("tanh", weights, biases).gradient(examples(X[rows], np.float64), bound)[1])
    np.testing.assert_allclose(np.mean(parts, axis=0), full, atol=1e-12)


@pytest.mark.mission("N1")
@pytest.mark.parametrize(
    "loss", [hg.Huber(1.0), hg.Quantile(0.8), hg.Logistic(), hg.Hinge(), hg.Softmax(), hg.Poisson()]
)
def test_learner_minimises_any_loss_over_networks(loss: Loss) -> None:
    """The learner's objective is the one stated, and fitting makes it much smaller than a constant's."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(300, 2))
    shape = np.sin(2 * X[:, 0]) * X[:, 1]
    if loss.target is Target.CLASSES:
        y = np.digitize(shape, [-0.3, 0.3])
    elif loss.target is Target.SIGN:
        y = (shape > 0).astype(int)
    else:
        y = rng.poisson(np.exp(shape)) if loss.target is Target.NONNEGATIVE else shape
    learner = hg.Learner(hg.Network((32, 32), "tanh", batch_size=30), loss, hg.L2(1e-4)).fit(X, y)
    raw = learner.function_.scores(X)
    coded = np.where(y == 1, 1.0, -1.0) if loss.target is Target.SIGN else y.astype(float)
    penalty = 0.5e-4 * sum((np.asarray(W, dtype=float) ** 2).sum() for W in learner.coefs_)
    assert learner.certificate_.primal == pytest.approx(loss.value(coded, raw).mean() + penalty, rel=1e-4)
    constant = np.log(np.bincount(y) / len(y))[None].repeat(300, 0) if loss.target is Target.CLASSES else None
    baseline = loss.value(coded, constant if constant is not None else np.full(300, loss.baseline(coded))).mean()
    assert learner.certificate_.primal < 0.85 * baseline


@pytest.mark.mission("N1")
@pytest.mark.slow
def test_fashion_mnist_reaches_the_published_accuracy(real_data) -> None:
    """Xiao et al. 2017, table 3: 0.871 for one hidden layer of 100 rectified units."""

    def read(kind: str, what: str, header: int) -> np.ndarray:
        return np.frombuffer(
            gzip.decompress(real_data(f"fashion-{kind}-{what}-ubyte.gz").read_bytes())[header:], np.uint8
        )

    def load(kind: str) -> tuple[np.ndarray, np.ndarray]:
        pixels = read(kind, "images-idx3", 16).reshape(-1, 784)
        return pixels.astype(np.float32) / np.float32(255), read(kind, "labels-idx1", 8)

    net = hg.MLPClassifier((100,), learning_rate="cosine", learning_rate_init=0.003, max_iter=12, random_state=0).fit(
        *load("train")
    )
    assert net.score(*load("t10k")) >= 0.871

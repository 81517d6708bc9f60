"""The network as a hypothesis space of the Learner: any loss of the library over the weights of a network."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from hinge._parameters import Constraints, above, between, check_values, count, one_of
from hinge.models.learner import Fit, Task, minimise
from hinge.models.neural.engine import ACTIVATIONS, Arrays, Engine, Rule, initial_weights, scores, unpack
from hinge.models.neural.settings import SOLVERS, hidden_sizes
from hinge.models.neural.training import Data, History, Plan, make_data, objective, train, train_lbfgs, warn_if_far
from hinge.problem.certificates.certificate import Certificate
from hinge.problem.certificates.stationarity import certificate_of_gradients
from hinge.problem.losses import Loss
from hinge.problem.penalties import L2, NoPenalty, Penalty
from hinge.problem.spaces import Network

DECLARED: Constraints = {
    "activation": [one_of(*ACTIVATIONS)],
    "dropout": [between(0, 1, "left")],
    "batch_size": [count()],
    "learning_rate": [above(0)],
    "solver": [one_of(*SOLVERS)],
}
EPOCHS = 100
LBFGS_ITERATIONS = 1000


@dataclass(frozen=True)
class NetworkFunction:
    """A fitted network."""

    activation: str
    weights: Arrays
    biases: Arrays

    def scores(self, X: Any) -> np.ndarray:
        raw = scores(self.activation, self.weights, self.biases, X)
        return raw[:, 0] if raw.shape[1] == 1 else raw


def _strength(penalty: Penalty) -> float:
    """λ of ½λ‖W‖²."""
    if isinstance(penalty, NoPenalty):
        return 0.0
    if isinstance(penalty, L2) and penalty.weights is None and not penalty.positive:
        return float(penalty.lam)
    raise TypeError(f"A Network takes hg.L2(lam) or no penalty (and dropout); got {penalty!r}.")


def _check(space: Network, task: Task) -> str:
    """Raises an error for combinations that are not supported; returns the solver."""
    hidden_sizes(space.hidden)
    solver = "adam" if task.solver == "auto" else task.solver
    check_values("Network", DECLARED, {**vars(space), "solver": solver})
    if solver == "lbfgs" and space.dropout:
        raise ValueError("solver='lbfgs' is deterministic: dropout needs adam or sgd.")
    return str(solver)


def _certificate(engine: Engine, data: Data, loss: Loss, task: Task, start: float) -> Certificate:
    """Stationarity: the largest entry of the gradient, relative to the largest at zero weights."""
    precise = Engine(engine.activation, *_as_double(engine), engine.rule, engine.seed)
    x, bound = data.native(loss, engine.biases[-1].size, np.float64)
    value, flat = precise.net().gradient(x, bound)
    matrices, vectors = unpack(flat, precise.weights)
    gradients = [*(G + engine.rule.l2 * W for G, W in zip(matrices, precise.weights)), *vectors]
    primal = objective(precise, value)
    for array in (*precise.weights, *precise.biases):
        array[...] = 0.0
    return certificate_of_gradients(
        primal, gradients, [precise.net().gradient(x, bound)[1]], tol=task.tol,
        solver=engine.rule.solver, iterations=engine.epochs, seconds=time.perf_counter() - start,
        status="The objective is not convex: this is the size of the gradient, not the distance to the optimum.",
    )  # fmt: skip


def _as_double(engine: Engine) -> tuple[Arrays, Arrays]:
    return [W.astype(np.float64) for W in engine.weights], [b.astype(np.float64) for b in engine.biases]


@minimise.register
def _(space: Network, task: Task) -> Fit:
    start, solver = time.perf_counter(), _check(space, task)
    data, _ = make_data(task.X, task.y, task.sample_weight)
    warn_if_far(data.X)
    rng = check_random_state(task.random_state)
    sizes = [task.X.shape[1], *space.hidden, task.classes or 1]
    batch = min(space.batch_size, data.n)
    dtype = np.float32 if solver != "lbfgs" and batch < data.n else np.float64
    weights, biases = initial_weights(sizes, space.activation, rng, np.dtype(dtype))
    rule = Rule(solver=solver, l2=_strength(task.penalty), dropout=space.dropout)
    engine = Engine(space.activation, weights, biases, rule, int(rng.randint(np.iinfo(np.int32).max)))
    history = History()
    # The rate of the stochastic solvers ends at zero after a fixed number of epochs, so they do not stop early.
    limit = task.max_iter or (LBFGS_ITERATIONS if solver == "lbfgs" else EPOCHS)
    tol = task.tol if solver == "lbfgs" else 0.0
    plan = Plan("cosine", space.learning_rate, 0.5, batch, limit, tol, limit, True, report=task.callback)
    if solver == "lbfgs":
        engine.epochs, _, history.loss = train_lbfgs(engine, data, task.loss, plan, max_fun=10 * limit)
    else:
        train(engine, data, task.loss, plan, history)
    function = NetworkFunction(space.activation, engine.weights, engine.biases)
    attributes: dict[str, Any] = {
        "coefs_": engine.weights,
        "intercepts_": engine.biases,
        "n_iter_": max(engine.epochs, 1),
        "loss_curve_": history.loss,
    }
    return Fit(function, _certificate(engine, data, task.loss, task, start), attributes)

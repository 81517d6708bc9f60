"""Progress bars and early stopping: scikit-learn's callbacks (1.9 and later) over the iterations of a solver.

An estimator that iterates inherits :class:`CallbackSupportMixin` (left of BaseEstimator), decorates ``fit`` with
:func:`with_callbacks`, and hands what :func:`iterations` yields to its solver::

    @with_callbacks
    def fit(self, X, y):
        ...
        with iterations(self, X, y, self.max_iter) as report:
            result = solve(objective, callback=report)

With scikit-learn 1.8, which has no callbacks, the same code runs and there is no ``set_callbacks``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:

    class CallbackSupportMixin:
        def set_callbacks(self, *callbacks: Any) -> Any: ...

    def with_callbacks(method: F) -> F: ...

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:

        class CallbackSupportMixin:
            """Nothing to support before scikit-learn 1.9."""

        def with_callbacks(method):
            """The method itself: there are no callbacks before scikit-learn 1.9."""
            return method


Report = Callable[[Any], bool]


@contextmanager
def iterations(estimator: Any, X: Any, y: Any = None, max_iter: int | None = None) -> Iterator[Report | None]:
    """A function to call after each iteration, which answers True if a callback wants to stop.

    None if the estimator has no callbacks, so that compiled solvers need not come back to Python every iteration.

    Parameters
    ----------
    estimator : estimator
        What is being fitted.
    X, y : arrays
        What it is fitted on; callbacks may ask for them.
    max_iter : int, optional
        The limit on iterations, if there is one: it gives the progress bar its length.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        yield None
        return
    fit = estimator._init_callback_context(max_subtasks=max_iter)
    fit.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    done = 0

    def report(record: Any) -> bool:
        nonlocal done
        if max_iter is not None and done >= max_iter:
            return False  # a solver may report its last point once more
        done += 1
        task = fit.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
        return bool(task.call_on_fit_task_end(estimator=estimator, X=X, y=y))

    yield report
    fit.call_on_fit_task_end(estimator=estimator, X=X, y=y)

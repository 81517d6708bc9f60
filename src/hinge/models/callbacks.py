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

import functools
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
        from sklearn import callback
        from sklearn.callback import CallbackSupportMixin

        def with_callbacks(method):
            """Decorates ``fit``: ends the task that :func:`iterations` began, and lets callbacks clean up."""

            @callback.with_callbacks
            @functools.wraps(method)
            def fit(estimator, *args, **kwargs):
                fitted = method(estimator, *args, **kwargs)
                if getattr(estimator, "_skl_callbacks", None):
                    if not hasattr(estimator, "_callback_fit_ctx"):
                        with iterations(estimator, None):  # a fit that reports no iterations is one step
                            pass
                    estimator._callback_fit_ctx.call_on_fit_task_end(estimator=estimator)
                return fitted

            return fit

    except ImportError:

        class CallbackSupportMixin:
            """Nothing to support before scikit-learn 1.9."""

        def with_callbacks(method):
            """The method itself: there are no callbacks before scikit-learn 1.9."""
            return method


Report = Callable[[Any], bool]


def as_native(report: Report | None) -> Callable[[int, float, float], bool] | None:
    """The report in the form compiled solvers call: (iteration, objective, gap)."""
    return None if report is None else lambda *record: report(record)


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
    fit = getattr(estimator, "_callback_fit_ctx", None)  # a fit may solve several problems: they share one task
    if fit is None:
        fit = estimator._init_callback_context(max_subtasks=max_iter)
        fit.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
        fit.stopped = False
    done = 0

    def report(record: Any) -> bool:
        nonlocal done
        if not fit.stopped and (fit.max_subtasks is None or done < fit.max_subtasks):
            done += 1
            task = fit.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
            fit.stopped = bool(task.call_on_fit_task_end(estimator=estimator, X=X, y=y))
        return fit.stopped

    yield report
    if not done:
        report(None)  # a closed form is one step

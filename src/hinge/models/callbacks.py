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
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

# sklearn.callback imports a library for progress bars, which a first fit does not need: it is imported when the first
# callback is set.
SUPPORTED = importlib.util.find_spec("sklearn.callback") is not None


class CallbackSupportMixin:
    """What scikit-learn's mixin of the same name adds to an estimator; nothing before scikit-learn 1.9."""

    if SUPPORTED or TYPE_CHECKING:

        def set_callbacks(self, *callbacks: Any) -> Any:
            """Set callbacks, such as ``sklearn.callback.ProgressBar()``; without arguments, remove them.

            Returns
            -------
            self
            """
            from sklearn import callback

            return callback.CallbackSupportMixin.set_callbacks(self, *callbacks)

        def _init_callback_context(self, *args: Any, **options: Any) -> Any:
            from sklearn import callback

            return callback.CallbackSupportMixin._init_callback_context(self, *args, **options)


def with_callbacks(method: F) -> F:
    """Decorates ``fit``: ends the task that :func:`iterations` started, and lets callbacks clean up."""

    @functools.wraps(method)
    def fit(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        if not getattr(estimator, "_skl_callbacks", None):
            return method(estimator, *args, **kwargs)
        from sklearn import callback

        return callback.with_callbacks(_watched(method))(estimator, *args, **kwargs)

    return cast(F, fit)


def _watched(method: Callable[..., Any]) -> Callable[..., Any]:
    def fit(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        fitted = method(estimator, *args, **kwargs)
        if not hasattr(estimator, "_callback_fit_ctx"):
            with iterations(estimator, None):  # a fit that reports no iterations is one step
                pass
        estimator._callback_fit_ctx.call_on_fit_task_end(estimator=estimator)
        return fitted

    return fit


Report = Callable[[Any], bool]


def as_native(report: Report | None) -> Callable[[int, float, float], bool] | None:
    """The report function with the signature of compiled solvers: (iteration, objective, gap)."""
    return None if report is None else lambda *record: report(record)


@contextmanager
def iterations(
    estimator: Any,
    X: Any,
    y: Any = None,
    max_iter: int | None = None,
    attributes: Callable[[Any], dict[str, Any] | None] | None = None,
) -> Iterator[Report | None]:
    """A function to call after each iteration, which returns True if a callback requests a stop.

    None if the estimator has no callbacks, so that compiled solvers need not call Python at every iteration.

    Parameters
    ----------
    estimator : estimator
        What is being fitted.
    X, y : arrays
        What it is fitted on; callbacks may ask for them.
    max_iter : int, optional
        The limit on iterations, if there is one: it gives the progress bar its length.
    attributes : function of what is reported, optional
        The fitted attributes at an iteration, which make the ``fitted_estimator`` of callbacks; None if unknown.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        yield None
        return
    fit = getattr(estimator, "_callback_fit_ctx", None)  # the problems that one fit solves share one task
    if fit is None:
        fit = estimator._init_callback_context(max_subtasks=max_iter)
        fit.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
        fit.stopped = False
    done, fitted = 0, None

    def report(record: Any) -> bool:
        nonlocal done, fitted
        if not fit.stopped and (fit.max_subtasks is None or done < fit.max_subtasks):
            done += 1
            task = fit.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(estimator=estimator, X=X, y=y, reconstruction_attributes=fitted)
            fitted = None if attributes is None or record is None else attributes(record)
            ended = task.call_on_fit_task_end(estimator=estimator, X=X, y=y, reconstruction_attributes=fitted)
            fit.stopped = bool(ended)
        return fit.stopped

    yield report
    if not done:
        report(None)  # a closed-form solution counts as one step

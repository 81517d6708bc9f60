"""Double-buffered reading: the next block is read while the current one is being used."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

_END = object()


def prefetched(items: Iterable[T], depth: int = 1) -> Iterator[T]:
    """The items in order; a thread, which ends with the iterator, computes up to ``depth`` of them in advance."""
    ready: queue.Queue[Any] = queue.Queue(maxsize=depth)
    stopped = threading.Event()

    def put(item: Any) -> bool:
        while not stopped.is_set():
            try:
                ready.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def read() -> None:
        try:
            for item in items:
                if not put((item, None)):
                    return
        except BaseException as error:  # re-raised in the thread of the caller
            put((None, error))
        else:
            put(_END)

    reader = threading.Thread(target=read, name="hinge-reader", daemon=True)
    reader.start()
    try:
        while (got := ready.get()) is not _END:
            item, error = got
            if error is not None:
                raise error
            yield item
            del item, got
    finally:
        stopped.set()
        reader.join(timeout=10.0)

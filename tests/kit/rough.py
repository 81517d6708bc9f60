"""A child process that fits on command, so that tests may interrupt it, fork it and weigh it.

One line of JSON in, one line out; see the functions of ``main``. Run as ``python -m kit.rough`` in tests/.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
PATIENCE = 120.0  # seconds without an answer before the child counts as stuck; no test waits this long unless it fails


class Child:
    """The parent's handle on the process."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kit.rough"],
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)

    def tell(self, command: str, **arguments: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"command": command} | arguments) + "\n")
        self.process.stdin.flush()

    def hear(self) -> Any:
        """The next answer; kills the child and fails if there is none."""
        try:
            return json.loads(self.lines.get(timeout=PATIENCE))
        except queue.Empty:
            self.process.kill()
            raise AssertionError(f"the child process gave no answer for {PATIENCE:g} s") from None

    def ask(self, command: str, **arguments: Any) -> Any:
        self.tell(command, **arguments)
        return self.hear()

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


def say(answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def resident_bytes() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    from kit.estimators import fitted, make_data, public_estimators

    warnings.simplefilter("ignore")
    estimators = public_estimators()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def endless(index: int) -> None:
        """Fits that take a while, one after another, until Ctrl-C."""
        estimator = estimators[index]
        n, seconds = 500, 0.0
        while seconds < 0.3 and n < 60_000:
            n *= 2
            X, y = make_data(estimator, n=n, d=20)
            began = time.perf_counter()
            fitted(estimator, X, y)
            seconds = time.perf_counter() - began
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            say("started")
            while os.getppid() == parent:
                fitted(estimator, X, y)
            sys.exit()  # the tests were killed: do not go on for ever
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            say("KeyboardInterrupt")

    def small(index: int) -> None:
        """One small fit."""
        fitted(estimators[index], *make_data(estimators[index]))
        say("fitted")

    def fork(index: int) -> None:
        """Fit here, then in a forked child; prints how the child ended."""
        estimator = estimators[index]
        X, y = make_data(estimator, n=2000)
        fitted(estimator, X, y)
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)  # a deadlock ends as a signal, which the parent reports
            try:
                fitted(estimator, X, y)
            except BaseException as error:
                print(error, file=sys.stderr)
                os._exit(1)
            os._exit(0)
        say(os.waitpid(pid, 0)[1])

    def weigh(index: int, fits: int, seconds: float) -> None:
        """Bytes by which the process has grown in each half of so many fits, or as many as the time allows."""
        estimator = estimators[index]
        X, y = make_data(estimator, n=100)
        for _ in range(20):
            fitted(estimator, X, y)
        start = resident_bytes()
        deadline, done = time.monotonic() + seconds / 2, 0
        while done < fits // 2 and time.monotonic() < deadline:
            fitted(estimator, X, y)
            done += 1
        half = resident_bytes()
        for _ in range(done):
            fitted(estimator, X, y)
        say([half - start, resident_bytes() - half])

    commands = {f.__name__: f for f in (endless, small, fork, weigh)}
    for line in sys.stdin:
        arguments = json.loads(line)
        commands[arguments.pop("command")](**arguments)


if __name__ == "__main__":
    main()

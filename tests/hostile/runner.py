"""Runs cases in forked children and counts how they end.

A case is a group's name and a string that determines everything: the same string gives the same input. One child runs
case after case and reports each; when it dies or stops answering, the case it was at is to blame and a new child goes on
with the next one.

==============  ==================================================================================================
verdict         meaning
==============  ==================================================================================================
ok              the call returned, and what the group checks about its result holds
refused         ValueError, TypeError, MemoryError, KeyboardInterrupt or the like, with a message
wrong           a result that contradicts the same computation on a sound input (AssertionError in the group)
unclear         any other exception: a caller cannot tell what to change
crash           the process died
hang            no answer within the limit of the group, in CPU seconds or in PATIENCE times as many seconds of the clock
==============  ==================================================================================================
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CLEAR = (ValueError, TypeError, MemoryError, KeyboardInterrupt, OSError, NotImplementedError)
# Messages that no caller with a wrong argument can act on, whatever their type.
MUTTERING = (
    "std::", "incompatible function arguments", "bad allocation", "vector::", "Unable to cast", "Expected unique column names",
)  # fmt: skip
PATIENCE = 8  # other processes may take the processor
# Code with sanitizers takes three to ten times as long.
SLOWDOWN = 10.0 if "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ else 1.0
FAST_PART = 4.0  # slower machines than ours run the fast part as well
ADDRESS_SPACE = 12 << 30  # bytes a child may map: a case that eats memory must not take the machine with it


@dataclass(frozen=True)
class Group:
    """A class of hostile inputs.

    ``cases`` lists those of the fast part; ``random`` makes one from a seed, for the long part; ``run`` does one, in a
    child. ``seconds`` is the limit of a case.
    """

    name: str
    cases: Callable[[], Iterable[str]]
    run: Callable[[str], Any]
    random: Callable[[int], str] | None = None
    seconds: float = 20.0
    alone: bool = False  # every case in a child of its own
    prepare: Callable[[], None] = field(default=lambda: None)  # once, before the first fork


@dataclass(frozen=True)
class Outcome:
    group: str
    case: str
    verdict: str
    detail: str = ""
    seconds: float = 0.0  # of the processor, where the child survived

    @property
    def bad(self) -> bool:
        return self.verdict not in ("ok", "refused")


def run(group: Group, cases: Iterable[str], slack: float = 1.0) -> Iterator[Outcome]:
    """The outcome of every case, in order; the limit of a case is ``slack`` times that of the group."""
    waiting = list(cases)
    while waiting:
        done = 0
        for outcome in _one_child(group, waiting[:1] if group.alone else waiting, slack * SLOWDOWN * group.seconds):
            done += 1
            yield outcome
        waiting = waiting[done:]


def _one_child(group: Group, cases: list[str], limit: float) -> Iterator[Outcome]:
    """Outcomes until the child has done all cases, dies or hangs; the last one is then the case that did it."""
    receive, send = os.pipe()
    with tempfile.TemporaryFile() as errors:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            os.close(receive)
            _child(group, cases, send, errors.fileno())
        os.close(send)
        done = 0
        try:
            for line in _lines(receive, pid, limit):
                if line is None:
                    os.kill(pid, signal.SIGKILL)
                    yield Outcome(group.name, cases[done], "hang", f"no answer within {limit:g} s")
                    return
                verdict, detail, seconds = json.loads(line)
                yield Outcome(group.name, cases[done], verdict, detail, seconds)
                done += 1
        finally:
            os.close(receive)
            status = _reap(pid)
        if done < len(cases):
            errors.seek(0)
            last = errors.read()[-300:].decode(errors="replace").strip()
            how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status >> 8}"
            yield Outcome(group.name, cases[done], "crash", f"{how}: {last}")


def _reap(pid: int) -> int:
    """The child's status; one that does not end by itself is killed."""
    deadline = time.monotonic() + 5
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            return os.waitpid(pid, 0)[1]
        time.sleep(0.002)


def _lines(receive: int, pid: int, seconds: float) -> Iterator[bytes | None]:
    """Lines from the pipe of a child; None if one does not come in time."""
    buffer = b""
    while True:
        began, used = time.monotonic(), _cpu_seconds(pid)
        while not select.select([receive], [], [], seconds)[0]:
            if _cpu_seconds(pid) - used >= seconds or time.monotonic() - began >= PATIENCE * seconds:
                yield None
                return
        more = os.read(receive, 1 << 16)
        if not more:
            return
        *lines, buffer = (buffer + more).split(b"\n")
        yield from lines


def _cpu_seconds(pid: int) -> float:
    """Processor time that a child has used so far; the clock where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _child(group: Group, cases: list[str], send: int, errors: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if "ASAN_OPTIONS" not in os.environ:  # its shadow of the memory is larger
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    os.dup2(errors, 1)
    os.dup2(errors, 2)
    warnings.simplefilter("ignore")
    try:
        for case in cases:
            began = time.process_time()
            verdict = judge(group.run, case)
            answer = json.dumps([*verdict, time.process_time() - began]).encode() + b"\n"
            while answer:
                answer = answer[os.write(send, answer) :]
    finally:
        os._exit(0)


def judge(run: Callable[[str], Any], case: str) -> tuple[str, str]:
    """How a case ends, if the process survives it."""
    try:
        run(case)
    except AssertionError as error:
        return "wrong", str(error)[:500]
    except BaseException as error:
        text = f"{type(error).__name__}: {error}"[:500]
        if isinstance(error, (MemoryError, KeyboardInterrupt)):
            return "refused", text
        clear = isinstance(error, CLEAR) and str(error).strip() and not any(word in text for word in MUTTERING)
        return ("refused" if clear else "unclear"), text
    return "ok", ""


def summary(counts: Counter[str], seconds: float) -> str:
    """One line, as it stands in a log."""
    tried = sum(counts.values())
    words = [("crash", "crashes"), ("hang", "hangs"), ("wrong", "wrong results"), ("unclear", "unclear errors")]
    return f"{tried} inputs in {seconds:.0f} s: " + ", ".join(f"{counts[key]} {word}" for key, word in words)

"""Errors of the command: one line on standard error and an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hinge.errors import BUG, DATA, INTERRUPTED, MODEL, OK, USAGE, UserError, in_shell


def check_place(out: Path, *, folder: bool = False) -> None:
    """Raise a UserError, before any work is done, if the path cannot be written to."""
    above = out if folder else out.parent
    while folder and not above.exists():  # missing folders will be created
        above = above.parent
    if not above.is_dir():
        raise UserError(
            f"--out {out}: {above} is {'no folder' if above.exists() else 'a folder that does not exist'}.", USAGE
        )
    if not os.access(above, os.W_OK):
        raise UserError(f"--out {out}: nothing may be written to {above}.", USAGE)
    if not folder and out.is_dir():
        raise UserError(f"--out {out} is a folder; give the name of a file.", USAGE)


@contextlib.contextmanager
def given_file(file: Path) -> Iterator[Path]:
    """The file itself; for ``-`` a temporary file with the standard input (CSV, JSON lines, Parquet or Arrow)."""
    if file != Path("-"):
        yield file
        return
    content = sys.stdin.buffer.read()
    if not content:
        raise UserError("- : standard input is empty.", USAGE)
    endings = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\x1f\x8b": ".csv.gz"}
    ending = next((end for start, end in endings.items() if content.startswith(start)), ".csv")
    if ending == ".csv" and content.lstrip()[:1] == b"{":
        ending = ".jsonl"
    with tempfile.TemporaryDirectory(prefix="hinge") as folder:
        place = Path(folder) / f"stdin{ending}"
        place.write_bytes(content)
        yield place


@contextlib.contextmanager
def guard(*models: Path) -> Iterator[None]:
    """Turn exceptions into one line on stderr and an exit code. HINGE_DEBUG=1 shows tracebacks.

    Where model files are used, an unexpected exception names them: a changed file may contradict itself anywhere.
    """
    try:
        with in_shell():
            yield
    except UserError as error:
        _leave(str(error), error.code)
    except KeyboardInterrupt:
        _leave("interrupted", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # the reader closed the pipe: discard further output
        raise SystemExit(OK) from None
    except MemoryError:
        _leave("not enough memory for this table; use fewer rows or columns (--rows, --drop)", DATA)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _leave(f"{where}{error.strerror or error}", DATA)
    except BaseException as error:
        polars = sys.modules.get("polars")  # its panics are no Exceptions
        if not isinstance(error, (Exception, polars.exceptions.PanicException) if polars else Exception):
            raise
        if os.environ.get("HINGE_DEBUG"):
            raise
        what = " ".join(str(error).split())[:500]
        if models:
            names = " or ".join(map(str, dict.fromkeys(models)))
            cause = "the file was changed after it was written, or this is an error of hinge"
            _leave(
                f"{names} cannot be used: {type(error).__name__}: {what} ({cause}; HINGE_DEBUG=1 shows where)", MODEL
            )
        _leave(f"{type(error).__name__}: {what} (unexpected; HINGE_DEBUG=1 shows where)", BUG)


def _leave(message: str, code: int) -> None:
    sys.stdout.flush()
    print(f"hinge: {message}", file=sys.stderr)
    raise SystemExit(code) from None

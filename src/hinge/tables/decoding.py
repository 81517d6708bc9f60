"""Text files, plain or gzipped, in blocks: nothing is held whole unless a reader asks for it."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from hinge.errors import UserError

BLOCK = 1 << 22
MAX_LINE = 1 << 24  # longer lines are not lines of a table
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class NotUtf8(Exception):
    """Bytes that are no UTF-8, near a line."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


@dataclass
class Text:
    """A text file. It is UTF-8, or UTF-16 if it begins like that, or else taken for Windows-1252, and that is noted.

    Attributes
    ----------
    path : Path
    packed : bool
        Whether it is gzipped.
    content : bytes, optional
        What is in it, if it is no file.
    notes : list of str
        What was odd.
    """

    path: Path
    packed: bool = False
    content: bytes | None = None
    encoding: str = "utf-8"
    notes: list[str] = field(default_factory=list)
    returns: bool = False  # whether lines end in carriage returns alone, as they once did

    def open(self) -> IO[bytes]:
        """The bytes as they are stored, unpacked."""
        if self.content is not None:
            return io.BytesIO(self.content)
        return gzip.open(self.path, "rb") if self.packed else self.path.open("rb")  # type: ignore[return-value]

    def head(self, size: int = 1 << 16) -> str:
        """The first characters."""
        raw = next(self.blocks(), b"")[:size]
        return raw.decode("utf-8", errors="ignore").removeprefix("\ufeff")

    def blocks(self) -> Iterator[bytes]:
        """The content as UTF-8, each block after a look at its lines."""
        line = length = 0
        decoder = codecs.getincrementaldecoder("utf-8")()
        wide = codecs.getincrementaldecoder("utf-16")(errors="replace")
        try:
            with self.open() as file:
                while block := file.read(BLOCK):
                    if not line and not length:
                        self._look_at(block)
                    if self.encoding == "utf-16":
                        block = wide.decode(block).encode()
                    if self.returns:
                        block = block.replace(b"\r", b"\n")
                    if b"\0" in block:
                        place = line + block[: block.index(b"\0")].count(b"\n") + 1
                        raise UserError(f"{self.path}, line {place}: a zero byte; the file is not text, or is damaged.")
                    at = block.find(b"\n")
                    length += len(block) if at < 0 else at
                    if length > MAX_LINE:
                        raise UserError(
                            f"{self.path}, line {line + 1} is longer than {MAX_LINE >> 20} MB: not a table, or its "
                            "line ends are missing."
                        )
                    if at >= 0:
                        length = len(block) - block.rfind(b"\n") - 1
                    if self.encoding == "utf-8":
                        try:
                            decoder.decode(block)
                        except UnicodeDecodeError as error:
                            raise NotUtf8(line + block[: max(error.start, 0)].count(b"\n") + 1) from None
                    line += block.count(b"\n")
                    yield block if self.encoding != "cp1252" else block.decode(self.encoding, errors="replace").encode()
            if self.encoding == "utf-8":
                try:
                    decoder.decode(b"", final=True)
                except UnicodeDecodeError:
                    raise NotUtf8(line + 1) from None
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise UserError(f"{self.path} is not a whole gzip file: {error}.") from None

    def _look_at(self, first: bytes) -> None:
        """Encoding and line ends, told from the first block."""
        if self.encoding == "utf-8" and first.startswith(UTF_16):
            self.encoding = "utf-16"
            self.notes.append("the file was read as UTF-16, as its first bytes say")
        if not self.returns and first.count(b"\r") > 1 and b"\n" not in first:
            self.returns = True
            self.notes.append("lines end in carriage returns alone; they were taken for line ends")

    def pieces(self, size: int) -> Iterator[bytes]:
        """The content in pieces of about this many bytes, each of whole rows: line ends within quotes are no row ends."""
        rest: list[bytes] = []
        for block in self.blocks():
            rest.append(block)
            if sum(map(len, rest)) < size:
                continue
            joined = b"".join(rest)
            cut = _row_end(joined)
            if cut:
                yield joined[:cut]
            rest = [joined[cut:]]
        if any(rest):
            yield b"".join(rest)

    def take_for_windows(self, fault: NotUtf8) -> None:
        """Take the file for Windows-1252 from now on; a UserError if it does not look like text then."""
        with self.open() as file:
            text = file.read(BLOCK).decode("cp1252", errors="replace")
        odd = sum(not (c.isprintable() or c in "\r\n\t") for c in text)
        if odd > 0.02 * len(text) or sum(ord(c) > 127 for c in text) > 0.3 * len(text):
            raise UserError(f"{self.path} is not text; if it is Parquet or Arrow, give it that ending.")
        self.encoding = "cp1252"
        self.notes.append(f"the file is not UTF-8 (near line {fault.line}); it was read as Windows-1252")

    def settle(self) -> None:
        """Look at all of it once, so that what follows meets no surprise."""
        try:
            for _ in self.blocks():
                pass
        except NotUtf8 as fault:
            self.take_for_windows(fault)

    def whole(self) -> Any:
        """For readers that want all of it: the file itself if it is plain UTF-8, its content if not."""
        self.settle()
        plain = self.content is None and not self.packed and self.encoding == "utf-8" and not self.returns
        return self.path if plain else io.BytesIO(b"".join(self.blocks()))


def _row_end(text: bytes) -> int:
    """The place after the last line end that is not within quotes; 0 if there is none."""
    cut = text.rfind(b"\n") + 1
    quotes = text.count(b'"', 0, cut)
    while cut and quotes % 2:
        before = text.rfind(b"\n", 0, cut - 1) + 1
        quotes -= text.count(b'"', before, cut)
        cut = before
    return cut

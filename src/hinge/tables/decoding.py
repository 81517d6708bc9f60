"""Text files, plain or gzipped, decoded block by block, so that memory holds one block of a large file."""

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
MAX_LINE = 1 << 24  # bytes; a file with a longer line is not a table
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class NotUtf8(Exception):
    """Bytes that are not UTF-8, near a line."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


@dataclass
class TextFile:
    """A text file in UTF-8, in UTF-16 if it has a byte-order mark, or else in Windows-1252, with a note.

    Attributes
    ----------
    path : Path
    gzipped : bool
    content : bytes, optional
        The bytes, for a table that is not on disk.
    encoding : {"utf-8", "utf-16", "cp1252"}
    notes : list of str
        Irregularities of the file.
    cr_line_ends : bool
        Lines end in carriage returns alone.
    """

    path: Path
    gzipped: bool = False
    content: bytes | None = None
    encoding: str = "utf-8"
    notes: list[str] = field(default_factory=list)
    cr_line_ends: bool = False

    def open(self) -> IO[bytes]:
        """The undecoded bytes, decompressed."""
        if self.content is not None:
            return io.BytesIO(self.content)
        return gzip.open(self.path, "rb") if self.gzipped else self.path.open("rb")  # type: ignore[return-value]

    def head(self, size: int = 1 << 16) -> str:
        """The first characters, and at least the first line."""
        raw = b""
        for block in self.blocks():
            raw += block
            if b"\n" in raw:
                break
        end = max(size, raw.find(b"\n") + 1)
        return raw[:end].decode("utf-8", errors="ignore").removeprefix("\ufeff")

    def blocks(self) -> Iterator[bytes]:
        """The content as UTF-8; an error for zero bytes, lines that are too long and damaged compression."""
        line = length = 0
        decoder = codecs.getincrementaldecoder("utf-8")()
        wide = codecs.getincrementaldecoder("utf-16")(errors="replace")
        try:
            with self.open() as file:
                while block := file.read(BLOCK):
                    if not line and not length:
                        self._detect(block)
                    if self.encoding == "utf-16":
                        block = wide.decode(block).encode()
                    if self.cr_line_ends:
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
            raise UserError(f"{self.path} is not a complete gzip file: {error}.") from None

    def _detect(self, first: bytes) -> None:
        """Detect the encoding and the line ends from the first block."""
        if self.encoding == "utf-8" and first.startswith(UTF_16):
            self.encoding = "utf-16"
            self.notes.append("the file was read as UTF-16, because of its byte-order mark")
        if not self.cr_line_ends and first.count(b"\r") > 1 and b"\n" not in first:
            self.cr_line_ends = True
            self.notes.append("lines end in carriage returns alone, which were read as line ends")

    def pieces(self, size: int) -> Iterator[bytes]:
        """The content in pieces of about this many bytes, cut at row ends, which are line ends outside quotes."""
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

    def decode_as_windows(self, fault: NotUtf8) -> None:
        """Decode the file as Windows-1252 from now on; a UserError if the result is not text."""
        with self.open() as file:
            text = file.read(BLOCK).decode("cp1252", errors="replace")
        odd = sum(not (c.isprintable() or c in "\r\n\t") for c in text)
        if odd > 0.02 * len(text) or sum(ord(c) > 127 for c in text) > 0.3 * len(text):
            raise UserError(f"{self.path} is not text; rename it if it is Parquet (.parquet) or Arrow (.arrow).")
        self.encoding = "cp1252"
        self.notes.append(f"the file is not UTF-8 (near line {fault.line}); it was read as Windows-1252")

    def detect_encoding(self) -> None:
        """Read the whole file once, so that its encoding is known before any part of it is used."""
        try:
            for _ in self.blocks():
                pass
        except NotUtf8 as fault:
            self.decode_as_windows(fault)

    def source(self) -> Any:
        """The whole file for other readers: its path if it is plain UTF-8, its decoded content if not."""
        self.detect_encoding()
        plain = self.content is None and not self.gzipped and self.encoding == "utf-8" and not self.cr_line_ends
        return self.path if plain else io.BytesIO(b"".join(self.blocks()))


def _row_end(text: bytes) -> int:
    """The position after the last line end outside quotes; 0 if there is none."""
    cut = text.rfind(b"\n") + 1
    quotes = text.count(b'"', 0, cut)
    while cut and quotes % 2:
        before = text.rfind(b"\n", 0, cut - 1) + 1
        quotes -= text.count(b'"', before, cut)
        cut = before
    return cut

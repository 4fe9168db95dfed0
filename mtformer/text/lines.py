"""Reading and writing lines of text: plain or compressed, in files, pipes and ``-``; only line feeds end a line.

Compressed input (gzip, xz, bzip2, Zstandard) is recognized by its first bytes and not by its name.
"""

import bz2
import errno
import gzip
import io
import lzma
import os
import re
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, Protocol

from mtformer.support.errors import MtformerError, OutputClosed, UserError
from mtformer.support.files import open_atomically, shown_path
from mtformer.support.packages import install_command
from mtformer.support.terminal import escaped

_BUFFER = 1 << 17  # bytes
_BZIP2_BLOCKS = (bytes.fromhex("314159265359"), bytes.fromhex("177245385090"))  # "BZh" alone may begin a text
_STANDARD_OUTPUT = ("-", "/dev/stdout", "/dev/fd/1")
_NOT_ASCII = re.compile(rb"[\x80-\xff]+")
_ACCENTED = re.compile(rb"(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])|(?<=[A-Za-z])[\x80-\xff]+(?=[A-Za-z])")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# In place of Python's surrogates, which are no text, private characters that hardly any font has.
_PRIVATE = {0xDC00 + byte: 0x10F700 + byte for byte in range(0x80, 0x100)}
_SURROGATES = {private: surrogate for surrogate, private in _PRIVATE.items()}
_REPLACED = dict.fromkeys(_SURROGATES, "\N{REPLACEMENT CHARACTER}")


class NotUtf8Error(UserError):
    """A line has bytes that are not UTF-8."""


class DamagedError(Exception):
    """Compressed data is damaged or cut off."""


class UnsupportedError(Exception):
    """Data is compressed in a way that cannot be read here; the message has a remedy."""


class _Reader(Protocol):
    def read1(self, size: int = -1, /) -> bytes: ...


def _zstd(file: BinaryIO) -> _Reader:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        raise UnsupportedError(f"it is compressed with Zstandard: {install_command('zstd')}") from None
    return zstd.ZstdFile(file)


def _zip(file: BinaryIO) -> _Reader:
    raise UnsupportedError("it is a zip archive or a spreadsheet: unpack it, or save it as CSV in UTF-8")


def _old_office(file: BinaryIO) -> _Reader:
    raise UnsupportedError("it is a file of Office 97 to 2003: save it as CSV in UTF-8")


def _parquet(file: BinaryIO) -> _Reader:
    raise UnsupportedError("it is Parquet: name its folder, as in hf:./FOLDER,split:train")


_FORMATS: dict[bytes, Callable[[BinaryIO], _Reader]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file, mode="rb"),
    b"\xfd7zXZ\0": lzma.LZMAFile,
    **{b"BZh%d" % level + block: bz2.BZ2File for level in range(1, 10) for block in _BZIP2_BLOCKS},
    b"\x28\xb5\x2f\xfd": _zstd,
    b"P*M\x18": _zstd,  # pzstd begins with a frame to be skipped
    b"PK\x03\x04": _zip,
    b"PK\x05\x06": _zip,  # without any file
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": _old_office,
    b"PAR1\x15": _parquet,
}
COMPRESSED = (".gz", ".xz", ".bz2", ".zst")  # how the names of such files usually end


def decompressed(file: io.RawIOBase) -> BinaryIO:
    """Return the contents of ``file``, decompressed if they are compressed; concatenated archives are one file.

    It waits for more input only while the bytes so far may begin an archive: a person or a program that types a line
    and waits for an answer gets one. Reading raises :class:`DamagedError` where compressed data is damaged or cut off.

    Raises:
        UnsupportedError: it is compressed in a way that cannot be read here.
    """
    head = b""
    while any(magic.startswith(head) and magic != head for magic in _FORMATS) and (more := file.read(16)):
        head += more
    plain = io.BufferedReader(_Stream(lambda size: file.read(size) or b"", head), _BUFFER)
    for magic, reader in _FORMATS.items():
        if head.startswith(magic):
            return io.BufferedReader(_Stream(_checked(reader(plain))), _BUFFER)
    return plain


class _Stream(io.RawIOBase):
    """Reads the results of a function, after a head that has been read before.

    Under a buffer, which splits lines in C, this is faster than the lines of the standard library's classes.
    """

    def __init__(self, read: Callable[[int], bytes], head: bytes = b"") -> None:
        self._read = read
        self._head = head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._head or self._read(len(buffer))
        self._head = data[len(buffer) :]
        data = data[: len(buffer)]
        buffer[: len(data)] = data
        return len(data)


def _checked(file: _Reader) -> Callable[[int], bytes]:
    """Return the reading function of ``file``, with one error for everything that damage makes the libraries raise."""

    def read(size: int) -> bytes:
        try:
            return file.read1(size)
        except Exception as error:  # of a class of its own for each format
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise DamagedError from error

    return read


@dataclass(frozen=True)
class Line:
    """A line of a file.

    Attributes:
        number: its number, from 1.
        text: what it reads, without the line end; bytes that are not text are replaced by U+FFFD.
        problem: why it is not text, with file and line; empty if it is.
    """

    number: int
    text: str
    problem: str = ""


def read_lines(path: Path, *, escape: bool = False) -> Generator[str, None, None]:
    """Yield the lines of the file at ``path``, without line ends; ``-`` is standard input.

    Only a line feed, alone or after a carriage return, ends a line. U+2028, U+0085 and form feeds do not: splitting
    there would misalign the two sides of parallel text. Compressed files are recognized by their contents.

    Args:
        path: the file.
        escape: yield lines that are not text as well, with private characters in place of bytes that are not UTF-8.

    Raises:
        NotUtf8Error: a line is not UTF-8, and ``escape`` is not set; the message names the file and the line.
        UserError: the file is missing, damaged or UTF-16; or a line has a zero byte, and ``escape`` is not set.
    """
    for number, raw in enumerate(_raw_lines(path), 1):
        text = _text(raw)
        if text is None and not escape:
            kind = UserError if b"\0" in raw else NotUtf8Error
            raise kind(_decode(raw, input_name(path), number).problem)
        yield _without_end(raw.decode(errors="surrogateescape").translate(_PRIVATE)) if text is None else text


def bytes_of(text: str) -> bytes:
    """Return the bytes of a text that was read with ``escape``."""
    return text.translate(_SURROGATES).encode(errors="surrogateescape")


def without_escapes(text: str) -> str:
    """Return a text that was read with ``escape`` with U+FFFD in place of bytes that are not UTF-8."""
    return text if text.isascii() else text.translate(_REPLACED)


def read_numbered_lines(path: Path) -> Generator[Line, None, None]:
    """Yield the lines of a file, also those that are not UTF-8, with their problems.

    Raises:
        UserError: the file is missing, damaged or UTF-16.
    """
    for number, raw in enumerate(_raw_lines(path), 1):
        text = _text(raw)
        yield _decode(raw, input_name(path), number) if text is None else Line(number, text)


def input_name(path: Path) -> str:
    """Return the name of an input in messages."""
    return "standard input" if str(path) == "-" else shown_path(path)


@contextmanager
def open_input(path: Path) -> Iterator[BinaryIO]:
    """Open the file at ``path``, or standard input for ``-``, to read its bytes, decompressed if they are compressed.

    Raises:
        UserError: it cannot be opened or read, or is damaged; also if the block raises the reader's errors.
    """
    name = input_name(path)
    try:
        with _open_raw(path) as raw, decompressed(raw) as file:
            yield file
    except DamagedError:
        raise UserError(f"{name}: the compressed file is damaged or cut off") from None
    except UnsupportedError as error:
        raise UserError(f"cannot read {name}: {error}") from None
    except IsADirectoryError:
        raise UserError(f"{name} is a folder, not a file") from None
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror or error}") from None


def is_regular_input(path: Path) -> bool:
    """Tell whether lines come from a file, not from a program or a person who may wait between them for an answer."""
    try:
        return stat.S_ISREG((os.fstat(0) if str(path) == "-" else path.stat()).st_mode)
    except OSError:
        return True  # reading it says what is wrong


def count_lines(path: Path) -> int | None:
    """Count the lines of a file; None if it is no file, or compressed, so that counting would take long."""
    if str(path) != "-" and is_regular_input(path):
        with suppress(OSError), path.open("rb") as file:  # reading it says what is wrong
            if not file.peek(16).startswith(tuple(_FORMATS)):
                return sum(1 for _ in file)
    return None


def is_standard_output(path: Path) -> bool:
    """Tell whether :func:`open_output` writes to standard output, which has several names."""
    return str(path) in _STANDARD_OUTPUT


def is_regular_output(path: Path) -> bool:
    """Tell whether :func:`open_output` writes to a file, not to standard output, a pipe or a device."""
    return not is_standard_output(path) and (path.is_file() or not path.exists())


def is_utf8(text: str) -> bool:
    """Tell whether a text can be UTF-8; of a command-line argument, Python decodes other bytes as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def without_surrogates(text: str) -> str:
    """Join surrogate pairs, and replace surrogates without their other half by U+FFFD."""
    if is_utf8(text):
        return text
    return text.encode("utf-16-le", errors="surrogatepass").decode("utf-16-le", errors="replace")


@contextmanager
def open_output(path: Path | None, *, styled: bool = False) -> Iterator[IO[str]]:
    """Open ``path`` for writing UTF-8 lines, compressed if it ends in ``.gz``; None and ``-`` are standard output.

    A regular file is written under a temporary name and takes its own name once it is complete: when the block raises,
    what was there before is still there. Pipes and devices are written directly. On a terminal, control characters are
    escaped, unless the text is ``styled`` by them.

    Raises:
        UserError: it cannot be opened.
        MtformerError: it cannot be written.
        OutputClosed: the reader of standard output has gone.
    """
    is_stdout = path is None or is_standard_output(path)
    name = "standard output" if is_stdout else str(path)
    is_open = False
    failure: BaseException | None = None  # of the block; an error on closing must not hide it
    try:
        with ExitStack() as stack:
            raw: BinaryIO | gzip.GzipFile
            raw = stack.enter_context(_open_stdout() if path is None or is_stdout else _open_file(path))
            is_open = True
            if name.endswith(".gz"):
                raw = stack.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0))
            kind = _Terminal if is_stdout and raw.isatty() and not styled else io.TextIOWrapper
            # Names of files may be no UTF-8.
            file = stack.enter_context(kind(raw, encoding="utf-8", errors="surrogateescape", newline="\n"))
            try:
                yield file
            except BaseException as error:
                failure = error
                raise
    except OSError as error:
        if failure is not None and not isinstance(failure, OSError):
            raise failure from failure.__cause__
        if is_stdout and isinstance(error, BrokenPipeError):
            raise OutputClosed("standard output is closed") from None
        if isinstance(error, IsADirectoryError):
            raise UserError(f"cannot write {name}: it is a folder, not a file") from None
        reported = MtformerError if is_open else UserError
        raise reported(f"cannot write {name}: {error.strerror}") from error


class _Terminal(io.TextIOWrapper):
    """A terminal, which would obey the control characters in a text."""

    def write(self, text: str) -> int:
        """Write ``text`` with its control characters escaped, except for tabs and line feeds."""
        return super().write(escaped(text, keep="\t\n"))


def _open_stdout() -> BinaryIO:
    if sys.stdout is None:  # Python's sign for a closed descriptor
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    sys.stdout.flush()
    return os.fdopen(os.dup(sys.stdout.fileno()), "wb")


def _open_file(path: Path) -> AbstractContextManager[BinaryIO]:
    return open_atomically(path) if is_regular_output(path) else path.open("wb")


def _open_raw(path: Path) -> io.FileIO:
    if str(path) != "-":
        return io.FileIO(path)
    if sys.stdin is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    # Not sys.stdin: a thread that waits for its lock would abort the interpreter's shutdown.
    return open(0, "rb", buffering=0, closefd=False)  # reads what is typed as UTF-8 on Windows too


def _raw_lines(path: Path) -> Generator[bytes, None, None]:
    """Yield the lines with their ends, but without a byte order mark."""
    number = 0
    with open_input(path) as file:
        try:
            for raw in file:
                number += 1
                if number == 1:
                    if raw.startswith(_UTF16_MARKS):
                        raise UserError(f"{input_name(path)}: this is UTF-16; save it as UTF-8")
                    if b"\r" in raw.strip(b"\r") and not raw.endswith(b"\n"):
                        raise UserError(
                            f"{input_name(path)}: only carriage returns end its lines; convert them to line feeds"
                        )
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                yield raw
        except DamagedError:
            place = f" after line {number}" if number else "; none of its lines can be read"
            raise UserError(f"{input_name(path)}: the compressed file is damaged or cut off{place}") from None


def _text(raw: bytes) -> str | None:
    """Return the text of a line without its end; None if it is not text."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else _without_end(text)


def _without_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def how_to_convert(raw: bytes) -> str:
    """Return how to convert text that is not UTF-8, naming its likely encoding if there is one."""
    is_latin = 2 * len(_ACCENTED.findall(raw)) > len(_NOT_ASCII.findall(raw))
    encoding, codec = ("WINDOWS-1252", "cp1252") if is_latin else ("GB18030", "gb2312")
    try:
        raw.decode(codec)
    except UnicodeDecodeError:
        return "convert the file first"
    return f"convert the file first; it may be {encoding}, which iconv -f {encoding} -t UTF-8 converts"


def _decode(raw: bytes, name: str, number: int) -> Line:
    """Describe a line that is not text."""
    problem = "the line contains a zero byte: this is not text, or UTF-16; save it as UTF-8"
    if b"\0" not in raw:
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            byte = raw[error.start]
            problem = f"byte 0x{byte:02x} at position {error.start + 1} is not UTF-8; {how_to_convert(raw)}"
    text = raw.replace(b"\0", b"\xff").decode(errors="replace")
    return Line(number, _without_end(text), f"{name}:{number}: {problem}")

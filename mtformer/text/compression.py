"""Compressed input, recognized by its first bytes and not by its name: gzip, xz, bzip2 and Zstandard."""

import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Callable
from typing import BinaryIO, Protocol

_BUFFER = 1 << 17  # bytes


class DamagedError(Exception):
    """Compressed data is damaged or cut off."""


class UnsupportedError(Exception):
    """Data is compressed in a way that cannot be read here; the message says what to do."""


class _Reader(Protocol):
    def read1(self, size: int = -1, /) -> bytes: ...


def _gzip(file: BinaryIO) -> _Reader:
    return gzip.GzipFile(fileobj=file, mode="rb")


def _zstd(file: BinaryIO) -> _Reader:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        raise UnsupportedError("it is compressed with Zstandard: pip install 'mtformer[zstd]'") from None
    return zstd.ZstdFile(file)


def _zip(file: BinaryIO) -> _Reader:
    raise UnsupportedError("it is a zip archive of files: unpack it first")


_BZIP2_BLOCKS = (bytes.fromhex("314159265359"), bytes.fromhex("177245385090"))  # "BZh" alone may begin a text
_FORMATS: dict[bytes, Callable[[BinaryIO], _Reader]] = {
    b"\x1f\x8b": _gzip,
    b"\xfd7zXZ\0": lzma.LZMAFile,
    **{b"BZh%d" % level + block: bz2.BZ2File for level in range(1, 10) for block in _BZIP2_BLOCKS},
    b"\x28\xb5\x2f\xfd": _zstd,
    b"P*M\x18": _zstd,  # pzstd begins with a frame to be skipped
    b"PK\x03\x04": _zip,
}


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
    """Reads what a function returns, after a head that has been read before.

    Under a buffer, which splits lines in C, this is faster than the lines of the standard library's classes.
    """

    def __init__(self, read: Callable[[int], bytes], head: bytes = b"") -> None:
        self._read = read
        self._head = head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        found = self._head or self._read(len(buffer))
        self._head = found[len(buffer) :]
        found = found[: len(buffer)]
        buffer[: len(found)] = found
        return len(found)


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

"""Documents that are zip archives: parts with text are translated, all others are copied unchanged."""

import io
import shutil
import struct
import zipfile
import zlib
from collections.abc import Mapping

from mtformer.support.errors import UserError
from mtformer.translate.documents.markup_tokens import MarkupSource, decoded, read_xml

MAX_PART_BYTES = 2**27  # of a part with text; a book of 500 pages has about 2**24
MAX_TEXT_BYTES = 2**28  # of all parts with text together
MAX_RATIO, _SMALL = 200, 2**24  # beyond so many bytes, text may unpack to so many times its size; XML has 40 at most
MAX_BYTES = 2**31  # of all parts together
_MAX_PARTS = 50_000
_UTF8, _ZIP64 = 0x800, 1  # the flag of a name in UTF-8, and the kind of an extra field
_OLE = bytes.fromhex("d0cf11e0a1b11ae1")  # what Office's formats before 2007, and its encrypted files, begin with
_PASSWORD = "EncryptedPackage".encode("utf-16-le")
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError)


class _Part(zipfile.ZipInfo):
    """A part to write, with its original name and metadata."""

    def __init__(self, part: zipfile.ZipInfo) -> None:
        super().__init__(part.filename, part.date_time)
        self.compress_type, self.create_system = part.compress_type, part.create_system
        self.external_attr, self.internal_attr = part.external_attr, part.internal_attr
        self.comment, self.extra = part.comment, _without_sizes(part.extra)
        self._is_utf8 = part.flag_bits & _UTF8
        self._written = part.orig_filename.encode("utf-8" if self._is_utf8 else "cp437")  # as zipfile has decoded it

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:  # noqa: N802 (zipfile's, which writes UTF-8 or ASCII alone)
        return self._written, self.flag_bits | self._is_utf8


def _without_sizes(extra: bytes) -> bytes:
    """Return the extra fields of a part without its sizes in 64 bits, which are added where they are needed."""
    kept, position = b"", 0
    while position + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, position)
        end = position + 4 + size
        kept += extra[position:end] if kind != _ZIP64 else b""
        position = end
    return kept


class Archive:
    """A zip archive in memory; its parts are read one by one.

    Attributes:
        name: its name in messages.
    """

    def __init__(self, content: bytes, name: str) -> None:
        """Open an archive.

        Args:
            content: its bytes.
            name: its name in messages.

        Raises:
            UserError: it is not an archive, is damaged or encrypted, or would take too much memory.
        """
        if content.startswith(_OLE):
            if _PASSWORD in content:
                raise UserError(f"{name} has a password: save it without one")
            raise UserError(f"{name} is a file of Office 97 to 2003: save it in the current format")
        self.name = name
        self._n_packed = self._n_unpacked = 0  # bytes of the parts that have been read
        self._read = set[str]()  # their names
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except _DAMAGED as error:
            raise UserError(f"{name} is damaged: it is not a zip archive ({error})") from None
        parts = self._zip.infolist()
        if any(part.flag_bits & 1 for part in parts):
            raise UserError(f"{name} has a password: save it without one")
        if len(parts) > _MAX_PARTS or sum(part.file_size for part in parts) > MAX_BYTES:
            raise UserError(f"{name} unpacks to more than {MAX_BYTES:,} bytes or {_MAX_PARTS:,} parts, and is refused")

    @property
    def names(self) -> list[str]:
        """The names of the parts, in order and each once."""
        return list(dict.fromkeys(self._zip.namelist()))

    def read(self, part: str) -> bytes:
        """Return a part with text.

        Raises:
            UserError: the part is missing or damaged, or the parts read so far are too large.
        """
        try:
            info = self._zip.getinfo(part)
            self._require_small(info)
            return self._zip.read(info)
        except KeyError:
            raise UserError(f"{self.name} is damaged: it has no {part}") from None
        except _DAMAGED as error:
            raise UserError(f"{self.name} is damaged: {part} cannot be unpacked ({error})") from None

    def read_xml(self, part: str) -> tuple[MarkupSource, str]:
        """Return a part in XML, and its encoding.

        Raises:
            UserError: it cannot be read, or is damaged.
        """
        title = f"{self.name}: {part}"
        text, encoding = decoded(self.read(part), title)
        return read_xml(text, title), encoding

    def _require_small(self, part: zipfile.ZipInfo) -> None:
        """Refuse a part that takes too much memory, alone or with earlier ones; headers cannot understate its size."""
        if part.filename in self._read:
            return
        self._read.add(part.filename)
        self._n_packed += part.compress_size
        self._n_unpacked += part.file_size
        what = f"{self.name}: {part.filename} unpacks to more than"
        if part.file_size > MAX_PART_BYTES:
            raise UserError(f"{what} {MAX_PART_BYTES:,} bytes, and is refused")
        if self._n_unpacked > MAX_TEXT_BYTES:
            raise UserError(f"{what} is left of the {MAX_TEXT_BYTES:,} bytes of text that are allowed, and is refused")
        if self._n_unpacked > max(_SMALL, MAX_RATIO * self._n_packed):
            raise UserError(f"{what} {MAX_RATIO} times its size, which may be an attack, and is refused")

    def with_parts(self, changed: Mapping[str, bytes]) -> bytes:
        """Return an archive with the same parts in the same order, some of them with other contents.

        Raises:
            UserError: a part is damaged.
        """
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as target:
            target.comment = self._zip.comment
            for part in self._zip.infolist():
                try:
                    self._copy(part, target, changed.get(part.filename))
                except _DAMAGED as error:
                    raise UserError(f"{self.name} is damaged: {part.filename} cannot be unpacked ({error})") from None
        return written.getvalue()

    def _copy(self, part: zipfile.ZipInfo, target: zipfile.ZipFile, content: bytes | None) -> None:
        info = _Part(part)
        if content is None:
            info.file_size = part.file_size  # which tells whether the part needs zip64
            with self._zip.open(part) as source, target.open(info, "w") as copy:
                shutil.copyfileobj(source, copy)
        else:
            target.writestr(info, content)

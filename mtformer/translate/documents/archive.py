"""Documents that are zip archives: the parts with text are translated, the others copied as they are."""

import io
import shutil
import zipfile
import zlib
from collections.abc import Mapping

from mtformer.support.errors import UserError

MAX_PART_BYTES = 2**27  # of a part with text; a book of 500 pages has about 2**24
MAX_BYTES = 2**31  # of all parts together
_MAX_PARTS = 50_000
_OLE = bytes.fromhex("d0cf11e0a1b11ae1")  # what Office's formats before 2007, and its encrypted files, begin with
_PASSWORD = "EncryptedPackage".encode("utf-16-le")
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError)


class Archive:
    """A zip archive in memory; its parts are read one by one."""

    def __init__(self, content: bytes, name: str) -> None:
        """Open an archive.

        Args:
            content: its bytes.
            name: what messages call it.

        Raises:
            UserError: it is no archive, damaged, encrypted, or would take too much memory.
        """
        if content.startswith(_OLE):
            if _PASSWORD in content:
                raise UserError(f"{name} has a password: save it without one")
            raise UserError(f"{name} is a file of Office 97 to 2003: save it in the format of today")
        self._content, self._name = content, name
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except _DAMAGED as error:
            raise UserError(f"{name} is damaged: it is no zip archive ({error})") from None
        parts = self._zip.infolist()
        if any(part.flag_bits & 1 for part in parts):
            raise UserError(f"{name} has a password: save it without one")
        if len(parts) > _MAX_PARTS or sum(part.file_size for part in parts) > MAX_BYTES:
            raise UserError(f"{name} unpacks to more than {MAX_BYTES:,} bytes or {_MAX_PARTS:,} parts, and is refused")

    @property
    def names(self) -> list[str]:
        """The names of the parts, in order."""
        return [part.filename for part in self._zip.infolist()]

    def read(self, part: str) -> bytes:
        """Return a part.

        Raises:
            UserError: there is none of this name, it is damaged or too large.
        """
        try:
            with self._zip.open(part) as file:
                content = file.read(MAX_PART_BYTES + 1)
        except KeyError:
            raise UserError(f"{self._name} is damaged: it has no {part}") from None
        except _DAMAGED as error:
            raise UserError(f"{self._name} is damaged: {part} cannot be unpacked ({error})") from None
        if len(content) > MAX_PART_BYTES:
            raise UserError(f"{self._name}: {part} unpacks to more than {MAX_PART_BYTES:,} bytes, and is refused")
        return content

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
                    raise UserError(f"{self._name} is damaged: {part.filename} cannot be unpacked ({error})") from None
        return written.getvalue()

    def _copy(self, part: zipfile.ZipInfo, target: zipfile.ZipFile, content: bytes | None) -> None:
        info = zipfile.ZipInfo(part.filename, part.date_time)
        info.compress_type, info.external_attr, info.create_system = (
            part.compress_type,
            part.external_attr,
            part.create_system,
        )
        info.comment = part.comment
        if content is None:
            info.file_size = part.file_size  # which tells whether the part needs zip64
            with self._zip.open(part) as source, target.open(info, "w") as copy:
                shutil.copyfileobj(source, copy)
        else:
            target.writestr(info, content)

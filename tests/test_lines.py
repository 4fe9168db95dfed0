import bz2
import gzip
import lzma
import os
import re
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from mtformer.support.errors import MtformerError, OutputClosed, UserError
from mtformer.support.packages import install_command
from mtformer.text.lines import is_utf8, open_output, read_lines

ANY_LINES = ["first", "", "zwei\u2028drei", "vier\x85", "\x0cfünf\x1c", " 六。 ", "\ttab\r inside", "last 🙂"]


def write_bytes(path: Path, raw: bytes) -> Path:
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def error_of(path: Path) -> str:
    with pytest.raises(UserError) as error:
        list(read_lines(path))
    return str(error.value)


@pytest.mark.parametrize("name", ["text.txt", "text.gz"])
@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\n", ["a\rb"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        ("a\u2028b\u2029c\x85d\x0ce\x0bf\x1cg\x1dh\x1ei\n".encode(), ["a\u2028b\u2029c\x85d\x0ce\x0bf\x1cg\x1dh\x1ei"]),
        (b" a \t\n", [" a \t"]),
    ],
)
def test_lines_end_at_line_feeds_only(tmp_path: Path, name: str, raw: bytes, lines: list[str]) -> None:
    assert list(read_lines(write_bytes(tmp_path / name, raw))) == lines


@pytest.mark.parametrize("name", ["text.txt", "text.gz"])
def test_what_is_written_is_read_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with open_output(path) as file:
        for line in ANY_LINES:
            file.write(line + "\n")
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    assert raw == "".join(line + "\n" for line in ANY_LINES).encode()
    assert list(read_lines(path)) == ANY_LINES


def test_a_dash_is_standard_input_and_standard_output() -> None:
    # An ASCII locale and "\r\n" would show if the streams were opened as Python opens them.
    copy = """
from pathlib import Path
from mtformer.text.lines import open_output, read_lines
for path in (Path("-"), None):
    with open_output(path) as file:
        for line in read_lines(Path("-")):
            file.write(line + "\\n")
with open_output(None) as file:
    file.write("end\\n")
print("still open")
"""
    raw = "".join(line + "\n" for line in ANY_LINES).encode()
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = subprocess.run([sys.executable, "-c", copy], input=raw, env=environment, capture_output=True)
    assert (done.stdout, done.stderr) == (raw + b"end\nstill open\n", b"")


def test_a_bad_line_from_standard_input_is_named() -> None:
    read = "from pathlib import Path; from mtformer.text.lines import read_lines; list(read_lines(Path('-')))"
    done = subprocess.run([sys.executable, "-c", read], input=b"a\n\xff\n", capture_output=True)
    assert b"NotUtf8Error: standard input:2: byte 0xff at position 1 is not UTF-8" in done.stderr


@pytest.mark.parametrize("name", ["text.txt", "text.gz"])
@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ("äh\n".encode("utf-16"), "this is UTF-16"),
        (
            "äh\n".encode("utf-16-be"),
            ":1: the line contains a zero byte: this is not text, or UTF-16; save it as UTF-8",
        ),
        (b"a\nb\0\n", ":2: the line contains a zero byte: this is not text, or UTF-16"),
        (b"a\rb\r", ": only carriage returns end its lines; convert them to line feeds"),
        (b"a\nb\nna\xefve\n", ":3: byte 0xef at position 3 is not UTF-8"),
        (b"a\ncut \xe2\x82", ":2: byte 0xe2 at position 5 is not UTF-8"),
        ("a\nPrüfung".encode("latin-1"), "convert the file first; it may be WINDOWS-1252, which iconv -f"),
        ("“Grüße”, für 5 €".encode("cp1252"), "it may be WINDOWS-1252"),
        ("Größe".encode("latin-1"), "it may be WINDOWS-1252"),
        ("狗在雪里玩。a".encode("gb18030"), "it may be GB18030"),
        ("Привет, мир".encode("cp1251"), "is not UTF-8; convert the file first"),
        (b"\xef\xbb\xbfa\xff\n", ":1: byte 0xff at position 2 is not UTF-8"),
    ],
)
def test_what_is_not_utf8_text_is_named_with_its_line(tmp_path: Path, name: str, raw: bytes, problem: str) -> None:
    path = write_bytes(tmp_path / name, raw)
    message = error_of(path)
    assert message.startswith(str(path))
    assert problem in message


def test_lines_before_a_bad_one_have_been_read(tmp_path: Path) -> None:
    lines = read_lines(write_bytes(tmp_path / "text", b"a\nb\n\xff\n"))
    assert [next(lines), next(lines)] == ["a", "b"]
    with pytest.raises(UserError):
        next(lines)


def cut_off(raw: bytes) -> bytes:
    return raw[:-12]  # some of the data is gone, with the checksum and the length that end the file


def corrupt_data(raw: bytes) -> bytes:
    return raw[:20] + bytes(byte ^ 0xFF for byte in raw[20:40]) + raw[40:]


def corrupt_checksum(raw: bytes) -> bytes:
    return raw[:-8] + bytes(byte ^ 0xFF for byte in raw[-8:-4]) + raw[-4:]


@pytest.mark.parametrize("damage", [cut_off, corrupt_data, corrupt_checksum])
def test_a_damaged_compressed_file_is_named(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(damage(gzip.compress("".join(f"line {n * n}\n" for n in range(500)).encode())))
    assert error_of(path).startswith(f"{path}: the compressed file is damaged or cut off")


def test_a_compressed_file_of_which_no_line_can_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n")[:12])
    assert error_of(path) == f"{path}: the compressed file is damaged or cut off; none of its lines can be read"


COMPRESSORS = [gzip.compress, lzma.compress, bz2.compress, zstd.compress]


@pytest.mark.parametrize("name", ["text.txt", "text.gz", "text"])
@pytest.mark.parametrize("compress", [*COMPRESSORS, bytes])
def test_compressed_text_is_recognized_by_its_contents(
    tmp_path: Path, name: str, compress: Callable[[bytes], bytes]
) -> None:
    for raw in (b"", b"BZh9 is no archive\n", "".join(line + "\n" for line in ANY_LINES * 9_000).encode()):
        (tmp_path / name).write_bytes(compress(raw))
        assert list(read_lines(tmp_path / name)) == raw.decode().split("\n")[:-1]


@pytest.mark.parametrize("compress", COMPRESSORS)
def test_concatenated_archives_are_one_file_and_a_cut_in_them_is_placed(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "text"
    whole = compress(b"one\ntwo\n") + compress(b"three\n")
    path.write_bytes(whole)
    assert list(read_lines(path)) == ["one", "two", "three"]
    path.write_bytes(whole[:-1])
    assert re.fullmatch(f"{path}: the compressed file is damaged or cut off after line [23]", error_of(path))
    archive = compress(b"".join(b"%d\n" % (n * n) for n in range(20_000)))
    path.write_bytes(archive[: len(archive) * 2 // 3])
    line = error_of(path).rpartition(" line ")[2]
    cut = int(line) if line.isdecimal() else 0  # none of its lines can be read
    assert (8_000 if compress is gzip.compress else 0) <= cut < 16_000  # the others lose the block that is cut


def test_archives_that_cannot_be_read_are_told_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for names in ([], ["text"]):
        with zipfile.ZipFile(tmp_path / "text.zip", "w") as archive:
            for name in names:
                archive.writestr(name, "text")
        assert error_of(tmp_path / "text.zip").endswith(
            "text.zip: it is a zip archive or a spreadsheet: unpack it, or save it as CSV in UTF-8"
        )
    (tmp_path / "text.xls").write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(504))
    assert error_of(tmp_path / "text.xls").endswith(
        "text.xls: it is a file of Office 97 to 2003: save it as CSV in UTF-8"
    )
    (tmp_path / "pairs.parquet").write_bytes(b"PAR1\x15\x04\x15\0PAR1")
    assert error_of(tmp_path / "pairs.parquet").endswith("Parquet: name its folder, as in hf:./FOLDER,split:train")
    (tmp_path / "text.zst").write_bytes(zstd.compress(b"text"))
    monkeypatch.setitem(sys.modules, zstd.__name__, None)
    monkeypatch.delattr(sys.modules[zstd.__name__.rpartition(".")[0]], "zstd")
    assert error_of(tmp_path / "text.zst").endswith(f"Zstandard: {install_command('zstd')}")


def test_a_line_is_read_as_soon_as_it_is_written() -> None:
    reading, writing = os.pipe()
    lines = read_lines(Path(f"/dev/fd/{reading}"))
    for text in ("B", "(", "BZh9", ""):  # what archives begin with as well
        os.write(writing, f"{text}\n".encode())
        assert next(lines) == text
    os.close(writing)
    assert list(lines) == []
    os.close(reading)


@pytest.mark.parametrize("name", ["missing.txt", "missing.gz", "missing/text", "folder", "folder.gz"])
def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.gz").mkdir()
    path = tmp_path / name
    if name.startswith("folder"):
        assert error_of(path) == f"{path} is a folder, not a file"
    else:
        assert error_of(path) == f"cannot read {path}: No such file or directory"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing/text", "No such file or directory"),
        ("folder", "it is a folder, not a file"),
        ("folder.gz", "it is a folder, not a file"),
        ("file/text", "Not a directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.gz").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(UserError) as error, open_output(tmp_path / name):
        pytest.fail("not reached")
    assert str(error.value) == f"cannot write {tmp_path / name}: {reason}"


@pytest.mark.parametrize("name", ["out.txt", "out.gz"])
def test_an_output_appears_when_it_is_complete(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with open_output(path) as file:
        file.write("half")
        file.flush()
        assert not path.exists()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, UserError])
def test_an_interrupted_output_leaves_what_was_there(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "out"
    path.write_text("precious")
    with pytest.raises(error), open_output(path) as file:
        file.write("half")
        raise error
    assert (path.read_text(), list(tmp_path.iterdir())) == ("precious", [path])


def test_an_output_has_the_mode_of_what_it_replaces_and_else_that_of_a_new_file(tmp_path: Path) -> None:
    new, old, plain = tmp_path / "new", tmp_path / "old", tmp_path / "plain"
    plain.touch()
    old.touch()
    old.chmod(0o604)
    for path in (new, old):
        with open_output(path):
            pass
    assert new.stat().st_mode == plain.stat().st_mode
    assert stat.S_IMODE(old.stat().st_mode) == 0o604


def test_an_output_that_is_a_link_is_written_where_it_points(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    real, link = tmp_path / "elsewhere" / "real", tmp_path / "link"
    link.symlink_to(real)
    with open_output(link) as file:
        file.write("text")
    assert (link.is_symlink(), real.read_text()) == (True, "text")


def test_a_full_disk_behind_standard_output_and_a_reader_that_has_gone_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    for descriptor, expected in ((os.open("/dev/full", os.O_WRONLY), MtformerError), (writing, OutputClosed)):
        with open(descriptor, "w", encoding="ascii") as stdout:  # noqa: PTH123 (a descriptor)
            monkeypatch.setattr(sys, "stdout", stdout)
            with pytest.raises(MtformerError) as error, open_output(None) as file:
                file.write("text")
            assert error.type is expected
    assert str(error.value) == "standard output is closed"


def test_an_error_is_not_hidden_by_a_reader_that_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="ascii") as stdout:  # noqa: PTH123 (a descriptor)
        monkeypatch.setattr(sys, "stdout", stdout)
        with pytest.raises(UserError, match="line 7"), open_output(None) as file:
            file.write("text")
            raise UserError("line 7 is not UTF-8")


def test_devices_and_pipes_are_written_directly(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    for path in (fifo, Path("/dev/null")):
        with open_output(path) as file:
            file.write("text")
    assert os.read(reader, 100) == b"text"
    os.close(reader)
    assert Path("/dev/null").is_char_device()
    with pytest.raises(MtformerError, match="cannot write /dev/full: No space left on device"):  # noqa: SIM117
        with open_output(Path("/dev/full")) as file:
            file.write("text")


@pytest.mark.parametrize(
    ("argument", "answer"), [("", True), ("grün 猫 🙂", True), ("gr\udcfcn", False), ("\ud83d", False)]
)
def test_bytes_that_were_not_utf8_are_seen_in_an_argument(argument: str, answer: bool) -> None:
    assert is_utf8(argument) is answer


def test_names_of_files_that_are_no_utf_8_are_printed_as_they_are(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with open_output(None) as file:
        file.write("a\udcff.docx\n")
    assert capfdbinary.readouterr().out == b"a\xff.docx\n"

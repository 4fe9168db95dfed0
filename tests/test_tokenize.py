"""``mtformer tokenize`` and ``mtformer detokenize``."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Project

from mtformer.bundle.format import load_bundle
from mtformer.text.tokenizer.vocabulary import normalize

LINES = ["The red house needs  my old friend.", "", " <s> 😀 <0x41> ﬁne cafe\u0301 ", "dieses grüne Auto"]
TEXT = "".join(f"{line}\n" for line in LINES)
NORMALIZED = "".join(f"{normalize(line)}\n" for line in LINES)


def sentencepiece_model(trained: Project, folder: Path) -> Path:
    """A SentencePiece model, which serves both sides."""
    path = folder / "spm.model"
    path.write_bytes(load_bundle(trained.folder / "runs/config/model.safetensors").tokenizer.src_model)
    return path


@pytest.mark.parametrize("ids", [(), ("--ids",)])
@pytest.mark.parametrize("side", [(), ("--side", "tgt")])
def test_detokenize_undoes_tokenize(trained: Project, ids: tuple[str, ...], side: tuple[str, ...]) -> None:
    tokenized = trained.mtformer("tokenize", *ids, *side, stdin=TEXT)
    assert tokenized.status == 0, tokenized.stderr
    tokenizer = load_bundle(trained.folder / "runs/config/model.safetensors").tokenizer
    rows = [row[:-1] for row in tokenizer.encode_src(LINES)]
    words = [map(str, row) if ids else tokenizer.src_tokens(row) for row in rows]
    assert tokenized.stdout == "".join(f"{' '.join(line)}\n" for line in words)
    text = trained.mtformer("detokenize", *ids, *side, stdin=tokenized.stdout)
    assert (text.status, text.stdout) == (0, NORMALIZED), text.stderr


def test_files_and_sentencepiece_models_are_read(trained: Project, tmp_path: Path) -> None:
    model, given, tokens = sentencepiece_model(trained, tmp_path), tmp_path / "text", tmp_path / "tokens.gz"
    given.write_text(TEXT * 700, encoding="utf-8")  # several batches
    done = trained.mtformer("tokenize", "--model", model, "--input", given, "--output", tokens)
    assert (done.status, done.stdout) == (0, ""), done.stderr
    text = trained.mtformer("detokenize", "--model", model, "--input", tokens)
    assert text.stdout == NORMALIZED * 700
    one = trained.mtformer("tokenize", "--model", model, "the house")
    assert one.stdout == trained.mtformer("tokenize", stdin="the house").stdout


def test_an_exported_model_has_the_same_tokens(trained: Project, tmp_path: Path) -> None:
    folder = tmp_path / "exported"
    done = trained.mtformer("export", "runs", "--to", "ctranslate2", "--output", folder)
    assert done.status == 0, done.stderr
    found = trained.mtformer("tokenize", "--model", folder, stdin=TEXT)
    assert found.stdout == trained.mtformer("tokenize", stdin=TEXT).stdout


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (("detokenize",), "▁ t\nt ▁thex\n", "standard input:2: ▁thex is not a token of the model"),
        (("detokenize", "--ids"), "5 320", "standard input:1: 320 is not an id below 320"),
        (("detokenize", "--ids", "5 x"), "", "the text: x is not an id below 320"),
        (("tokenize", "--model", "test.en"), "", "test.en: this is not an intact safetensors file"),
        (("tokenize", "a", "--input", "test.en"), "", "give a text or --input, not both"),
        (("detokenize", "a", "--input", "test.en"), "", "give a text or --input, not both"),
        (("tokenize", "--model", "gone"), "", "there is no model at gone"),
        (("tokenize", "--input", "test.en", "--output", "test.en"), "", "test.en is both input and output"),
    ],
)
def test_bad_input_of_both_is_explained(trained: Project, arguments: tuple[str, ...], stdin: str, message: str) -> None:
    result = trained.mtformer(*arguments, stdin=stdin)
    assert (result.status, result.stdout) == (2, ""), result.stdout
    assert message in result.stderr


def test_tokenizing_needs_no_torch(trained: Project) -> None:
    code = """
import sys
from mtformer.cli import main
sys.argv, sys.modules["torch"] = ["mtformer", "tokenize", "a"], None
main()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=trained.folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "model: runs/config/model.safetensors\n")

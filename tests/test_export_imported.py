"""Imported models go back to transformers, and through every command, as they came."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from conftest import Project
from pretrained import KINDS, LINES, Case, case_of
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from mtformer.bundle.format import Bundle, load_bundle
from mtformer.export import require_huggingface
from mtformer.export.huggingface import write_huggingface
from mtformer.export.importing import read_model, write_model
from mtformer.export.trim import trim
from mtformer.support.errors import UserError


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A model of each kind."""
    return case_of(request.param, tmp_path_factory)


@pytest.fixture(scope="module")
def exported(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that it was exported to."""
    folder = tmp_path_factory.mktemp("exported")
    write_huggingface(folder, case.whole, name="model.safetensors")
    return folder


@pytest.mark.slow
def test_the_exported_model_computes_the_same_as_the_original(case: Case, exported: Path) -> None:
    again = AutoModelForSeq2SeqLM.from_pretrained(exported)
    assert type(again) is type(case.theirs.model)
    generator, size = torch.Generator().manual_seed(1), case.whole.header.architecture.tgt_vocab_size
    pad = case.whole.tokenizer.special_ids.pad
    src = torch.randint(5, size - 5, (4, 15), generator=generator)
    tgt_in = torch.randint(5, size - 5, (4, 9), generator=generator)
    src[1:, 11:] = pad
    with torch.inference_mode():
        logits = [
            model(input_ids=src, attention_mask=src != pad, decoder_input_ids=tgt_in).logits
            for model in (case.theirs.model, again)
        ]
    torch.testing.assert_close(logits[1], logits[0], atol=1e-5, rtol=1e-6)


def test_importing_the_export_gives_the_same_model(case: Case, exported: Path) -> None:
    again = read_model(str(exported))
    assert again.tokenizers == case.imported.tokenizers
    assert again.header.model_dump(exclude={"provenance"}) == case.imported.header.model_dump(exclude={"provenance"})
    assert again.tensors.keys() == case.imported.tensors.keys()
    assert all(torch.equal(again.tensors[name], tensor) for name, tensor in case.imported.tensors.items())


def test_the_exported_tokenizer_splits_and_joins_texts_as_ours_does(case: Case, exported: Path) -> None:
    assert_same_tokens(exported, case.whole)


def assert_same_tokens(folder: Path, bundle: Bundle) -> None:
    """Compare the tokenizer in a folder with ours; it leaves tokens of languages to the caller."""
    theirs, ours = AutoTokenizer.from_pretrained(folder), bundle.tokenizer
    expected = ours.encode_src(LINES)
    for text, ids in zip(LINES, expected, strict=True):
        assert theirs(text).input_ids == ids, text
    target = folder / "target"
    decoder = AutoTokenizer.from_pretrained(target) if target.exists() else theirs
    languages = ours.tgt.ids(list(bundle.header.languages.values()))[:1]
    for ids in ours.encode_tgt(LINES):
        decoded = decoder.decode([*languages, *ids], skip_special_tokens=True)
        assert decoded.strip() == ours.decode(ids).strip().replace(" ⁇ ", "")


@pytest.mark.parametrize("kind", ["nllb", "mbart"])
def test_a_trimmed_model_goes_back_too(kind: str, tmp_path: Path) -> None:
    theirs = KINDS[kind](tmp_path, 1)
    write_model(trim(read_model(str(tmp_path)), [*filter(None, theirs.languages)], LINES[:90]), tmp_path / "ours")
    bundle = load_bundle(tmp_path / "ours/model.safetensors")
    (tmp_path / "exported").mkdir()
    write_huggingface(tmp_path / "exported", bundle, name="model.safetensors")
    assert_same_tokens(tmp_path / "exported", bundle)
    src, tgt_in = torch.randint(5, 80, (2, 9)), torch.randint(5, 80, (2, 9))
    with torch.inference_mode():
        again = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "exported")
        logits = again(input_ids=src, decoder_input_ids=tgt_in).logits
        ours = bundle.model.project(bundle.model(src, torch.ones_like(src, dtype=torch.bool), tgt_in))
    torch.testing.assert_close(logits, ours, atol=1e-4, rtol=0)


@pytest.mark.slow
def test_every_command_takes_an_imported_model(project: Project) -> None:
    texts, direction = LINES[:4], ("--from", "en", "--to", "de")
    (project.folder / "in.txt").write_text("\n".join(texts) + "\n")
    (project.folder / "terms.tsv").write_text("house\tHaus\n")
    (project.folder / "a").mkdir()
    KINDS["m2m_100"](project.folder / "a", 1)
    shutil.copytree(project.folder / "a", project.folder / "b")
    weights = load_file(project.folder / "a/model.safetensors")
    sibling = {name: tensor * 1.05 for name, tensor in weights.items()}
    save_file(sibling, project.folder / "b/model.safetensors", {"format": "pt"})
    for name in "ab":
        assert project.mtformer("import", name, "--output", f"ours-{name}").status == 0
    bundles = [f"ours-{name}/model.safetensors" for name in "ab"]
    commands: list[tuple[str, ...]] = [
        ("average", *bundles, "--output", "average.safetensors"),
        ("export", bundles[0], "--to", "ctranslate2", "--output", "ct2"),
        ("export", "average.safetensors", "--to", "huggingface", "--output", "hf"),
        ("import", "hf", "--output", "again"),
        ("explain", texts[0], "--model", bundles[0], *direction, "--attention", "--output", "page.html"),
        ("score", "--src", "in.txt", "--tgt", "in.txt", "--model", bundles[0], *direction),
        ("translate", "--input", "in.txt", "--model", bundles[0], *direction, "--terms", "terms.tsv"),
    ]
    for command in commands:
        result = project.mtformer(*command)
        assert result.status == 0, (command, result.stderr)
    printed = []
    for model in ("ct2", bundles[0], "average.safetensors", "again"):
        options = ("--input", "in.txt", "--beam-size", "4", "--max-length", "10", "--raw")
        result = project.mtformer("translate", *options, "--model", model, *direction)
        assert result.status == 0, result.stderr
        printed.append(result.stdout)
    assert (printed[0], printed[2]) == (printed[1], printed[3])
    assert len(printed[0].splitlines()) == len(texts)


def test_positions_that_transformers_have_no_model_for_are_refused_by_name(case: Case) -> None:
    architecture = case.whole.header.architecture
    for changes, name in (
        ({"positions": "learned", "norm": "pre", "embedding_norm": False}, "positions = learned"),
        ({"positions": "fairseq", "norm": "post", "embedding_norm": False}, "positions = fairseq"),
    ):
        changed = case.whole.header.model_copy(update={"architecture": architecture.model_copy(update=changes)})
        with pytest.raises(UserError, match=f"because of {name}: train one with model.positions=sinusoidal"):
            require_huggingface(changed)


def test_files_of_another_model_are_refused(exported: Path, tmp_path: Path) -> None:
    for file in exported.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    header = json.loads((tmp_path / "mtformer.json").read_text(encoding="utf-8"))
    header["architecture"]["embedding_norm"] = not header["architecture"]["embedding_norm"]
    (tmp_path / "mtformer.json").write_text(json.dumps(header), encoding="utf-8")
    with pytest.raises(UserError, match=r"mtformer\.json is of another model than the files beside it"):
        read_model(str(tmp_path))
    (tmp_path / "mtformer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UserError, match=r"mtformer\.json is damaged: src_lang is missing"):
        read_model(str(tmp_path))

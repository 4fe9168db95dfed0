"""Models of other toolkits compute here what they compute there."""

import json
import shutil
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Project
from pretrained import KINDS, LINES, Case, case_of
from safetensors.torch import load_file, save_file

from mtformer import Translator
from mtformer.bundle.format import load_bundle
from mtformer.config import LanguagePair
from mtformer.export.importing import read_model, write_model
from mtformer.model.weights import weights
from mtformer.support.errors import UserError


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A model of each kind."""
    return case_of(request.param, tmp_path_factory)


def their_ids(case: Case, texts: list[str]) -> list[list[int]]:
    if case.theirs.languages[0]:
        case.theirs.tokenizer.src_lang = case.theirs.languages[0]
    return [case.theirs.tokenizer(text).input_ids for text in texts]


def test_texts_have_the_same_ids(case: Case) -> None:
    ours = case.ours.tokenizer.encode_src(LINES)
    for text, ids, expected in zip(LINES, ours, their_ids(case, LINES), strict=True):
        assert ids == expected, text


def test_logits_are_the_same(case: Case) -> None:
    bundle = case.ours
    generator, size = torch.Generator().manual_seed(1), bundle.header.architecture.tgt_vocab_size
    for ids in their_ids(case, LINES[:20]):
        src = torch.tensor([ids])
        forced = [bundle.tokenizer.special_ids.start, *bundle.tokenizer.prefixes.tgt]
        tgt_in = torch.cat([torch.tensor([forced]), torch.randint(5, size, (1, 12), generator=generator)], dim=1)
        with torch.inference_mode():
            theirs = case.theirs.model(input_ids=src, decoder_input_ids=tgt_in).logits
            ours = bundle.model.project(bundle.model(src, torch.ones_like(src, dtype=torch.bool), tgt_in))
        assert torch.allclose(ours, theirs, atol=1e-4, rtol=0)
        assert theirs.std() > 0.5


def test_greedy_translations_are_the_same(case: Case) -> None:
    texts = list(filter(None, LINES[::8]))
    expected = [generate(case, text, 12) for text in texts]
    assert len(set(expected)) > 1
    src_lang, tgt_lang = case.theirs.languages
    for engine in ("torch", "ctranslate2"):
        options: dict[str, Any] = {"engine": engine, "beam_size": 1, "max_length": 12}
        translator = Translator.load([case.path], raw=True, src_lang=src_lang, tgt_lang=tgt_lang, **options)
        assert [hypotheses[0].text for hypotheses in translator.translate(texts)] == expected, engine


def generate(case: Case, text: str, max_length: int) -> str:
    """Translate a text greedily with transformers."""
    tokenizer, [ids] = case.theirs.tokenizer, their_ids(case, [text])
    never = case.ours.tokenizer.special_ids.never
    settings: dict[str, Any] = {"suppress_tokens": never, "num_beams": 1}
    n_forced = len(case.ours.tokenizer.prefixes.tgt)
    if n_forced:
        settings["forced_bos_token_id"] = tokenizer.convert_tokens_to_ids(case.theirs.languages[1])
        if "__" in str(case.ours.header.languages):
            settings["forced_bos_token_id"] = tokenizer.get_lang_id(case.theirs.languages[1])
    output = case.theirs.model.generate(torch.tensor([ids]), max_new_tokens=max_length + n_forced, **settings)
    return case.ours.tokenizer.decode(output[0].tolist())


def set_config(**changes: object) -> Callable[[Path], None]:
    """Change keys of ``config.json``; None removes one."""

    def change(folder: Path) -> None:
        path = folder / "config.json"
        config = json.loads(path.read_text(encoding="utf-8")) | changes
        path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}), encoding="utf-8")

    return change


def change_weights(change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Callable[[Path], None]:
    return lambda folder: save_file(change(load_file(folder / WEIGHTS)), folder / WEIGHTS)


def write(name: str, content: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return change


def only(name: str, content: bytes) -> Callable[[Path], None]:
    """Put a file in the place of the weights."""

    def change(folder: Path) -> None:
        (folder / WEIGHTS).unlink()
        (folder / name).write_bytes(content)

    return change


def pickled(content: object) -> bytes:
    file = BytesIO()
    torch.save(content, file)
    return file.getvalue()


WEIGHTS = "model.safetensors"
NAME = "model.encoder.layers.0.fc1.weight"
BAD = {
    "no config": (lambda folder: (folder / "config.json").unlink(), "cannot read"),
    "a config that is no object": (write("config.json", b"[]"), "contains no JSON object"),
    "another type": (set_config(model_type="bart"), "model_type = bart cannot be imported; known are marian"),
    "no type": (set_config(model_type=None), "a config.json without model_type cannot be imported; known are marian"),
    "a type that is no text": (set_config(model_type=["marian"]), "model_type = ['marian'] cannot be imported"),
    "code of its own": (set_config(auto_map={"AutoModel": "x"}), "code of its own"),
    "embeddings that are not scaled": (set_config(scale_embedding=False), "scale_embedding = false"),
    "a missing key": (set_config(d_model=None), "lacks d_model"),
    "a number that is text": (set_config(d_model="48"), "d_model: Input should be a valid integer"),
    "heads that do not fit": (
        set_config(encoder_attention_heads=5, decoder_attention_heads=5),
        "does not divide d_model",
    ),
    "sides that differ": (set_config(encoder_ffn_dim=81), "ffn_dim = 81 in the encoder and 80 in the decoder"),
    "an unknown activation": (set_config(activation_function="gelu_new"), "activation_function = gelu_new"),
    "an activation that is no text": (set_config(activation_function=[]), "damaged or not those of such a model"),
    "a start that is no id": (set_config(decoder_start_token_id="x"), "is not an id"),
    "a start beyond the vocabulary": (set_config(decoder_start_token_id=10**6), "beyond the vocabulary"),
    "another tokenizer": (
        set_config(pad_token_id=7),
        "of another model: its pad token has the id 1, not 7",
    ),
    "more layers": (set_config(encoder_layers=3), "the weights lack model.encoder.layers.2."),
    "fewer layers": (set_config(encoder_layers=1), "the weights contain model.encoder.layers.1."),
    "another width": (set_config(d_model=64), "has the shape"),
    "no weights": (lambda folder: (folder / WEIGHTS).unlink(), "contains no weights"),
    "weights cut off": (write(WEIGHTS, b"12345678"), "is damaged or no file of weights"),
    "a missing tensor": (
        change_weights(lambda old: {k: v for k, v in old.items() if k != NAME}),
        f"lack {NAME}",
    ),
    "an extra tensor": (change_weights(lambda tensors: tensors | {"model.x": torch.zeros(2)}), "contain model.x"),
    "not a number": (
        change_weights(lambda old: old | {NAME: old[NAME] * float("nan")}),
        "not finite numbers",
    ),
    "whole numbers": (change_weights(lambda tensors: tensors | {NAME: tensors[NAME].int()}), "not finite numbers"),
    "a search without limits": (
        write("generation_config.json", b'{"num_beams": 5, "length_penalty": 1e9}'),
        "num_beams = 5 and length_penalty = 1000000000.0 are not settings of a search",
    ),
    "a search without end": (
        write("generation_config.json", b'{"num_beams": Infinity}'),
        "are not settings of a search",
    ),
    "a vocabulary beyond reason": (set_config(vocab_size=10**12), "vocab_size = 1000000000000 is not a size"),
    "no tokenizer": (lambda folder: (folder / "sentencepiece.bpe.model").unlink(), "contains no tokenizer"),
    "a damaged tokenizer": (write("sentencepiece.bpe.model", b"xxxx"), "this is not a SentencePiece model"),
    "a vocabulary without ids": (write("vocab.json", b'{"a": "b"}'), "is not a vocabulary"),
    "an id beyond reason": (write("vocab.json", b'{"a": 99999999999}'), "is not a vocabulary"),
    "special tokens that are no texts": (
        write("tokenizer_config.json", b'{"additional_special_tokens": [7]}'),
        "damaged or not those of such a model",
    ),
    "a fast tokenizer with numbers for tokens": (
        write(
            "tokenizer.json",
            b'{"added_tokens": [], "normalizer": null, "pre_tokenizer": "\\u2581", '
            b'"model": {"unk_id": 0, "vocab": [[7, 0.5]]}}',
        ),
        "this is not a fast tokenizer",
    ),
    "a fast tokenizer with an id beyond reason": (
        write(
            "tokenizer.json",
            b'{"added_tokens": [], "normalizer": null, "pre_tokenizer": "\\u2581", '
            b'"model": {"merges": [], "vocab": {"a": 99999999999}}}',
        ),
        "this is not a fast tokenizer",
    ),
    "an index without names": (only(f"{WEIGHTS}.index.json", b'{"weight_map": {"a": 7}}'), "7 is missing"),
    "files elsewhere": (only(f"{WEIGHTS}.index.json", b'{"weight_map": {"a": "../x"}}'), "outside the model's folder"),
    "a pickle with code": (
        only("pytorch_model.bin", b"\x80\x04cos\nsystem\n(S'false'\ntR."),
        "other things than weights",
    ),
    "a pickle of something else": (only("pytorch_model.bin", pickled({"a": print})), "other things than weights"),
}


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("intact")
    KINDS["m2m_100"](folder, 1)
    return folder


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_imported_is_explained(
    intact: Path, tmp_path: Path, change: Callable[[Path], None], message: str
) -> None:
    folder = shutil.copytree(intact, tmp_path / "model")
    change(folder)
    project = Project(tmp_path, tmp_path)
    refused = project.mtformer("import", folder, "--output", tmp_path / "ours")
    assert (refused.status, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert message in refused.stderr
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize(
    "change",
    [set_config(d_model=64), change_weights(lambda tensors: tensors | {NAME: torch.zeros(2)})],
    ids=["another width", "a vector in the place of a matrix"],
)
def test_wrong_shapes_are_explained_where_features_have_another_order(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    KINDS["marian"](tmp_path, 1)
    change(tmp_path)
    with pytest.raises(UserError, match=r"has the shape \(.*\), not \(.*\)"):
        read_model(str(tmp_path), LanguagePair("en", "de"))


@pytest.mark.parametrize("code", ["english", "EN", ""])
def test_what_is_no_code_of_a_language_is_refused(tmp_path: Path, code: str) -> None:
    arguments = ("import", tmp_path, "--from", code, "--to", "de", "--output", tmp_path / "ours")
    result = Project(tmp_path, tmp_path).mtformer(*arguments)
    expected = f"Error: --from {code}: give a language code such as en, de or zh\n"
    assert (result.status, result.stdout, result.stderr) == (2, "", expected)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("me/model", "there is no folder me/model; write hf:OWNER/NAME for a model of the hub"),
        ("ours/model.safetensors", "ours/model.safetensors is a file: name the folder of the model"),
        ("ours", "ours has a bundle already, which needs no import"),
        (
            "converted",
            "converted is a model for CTranslate2, which cannot be imported: import the model that it was made from",
        ),
    ],
)
def test_what_is_no_folder_with_a_model_to_import_is_refused(tmp_path: Path, named: str, message: str) -> None:
    (tmp_path / "ours").mkdir()
    shutil.copy(Path(__file__).parent / "fixtures/bundle-3.safetensors", tmp_path / "ours/model.safetensors")
    (tmp_path / "converted").mkdir()
    (tmp_path / "converted" / "model.bin").touch()
    result = Project(tmp_path, tmp_path).mtformer("import", named, "--output", "new")
    assert (result.status, result.stdout, result.stderr) == (2, "", f"Error: {message}\n")


def test_a_card_without_metadata_causes_no_warning(intact: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(intact, tmp_path / "model")
    (folder / "README.md").write_text("A model.\n")
    result = Project(tmp_path, tmp_path).mtformer("import", folder, "--output", tmp_path / "ours")
    assert (result.status, result.stderr) == (0, "")


def test_old_pickles_of_torch_are_read(intact: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(intact, tmp_path / "model")
    tensors = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    torch.save(tensors, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    old, new = read_model(str(folder)), read_model(str(intact))
    assert all(torch.equal(old.tensors[name], tensor) for name, tensor in new.tensors.items())


def test_double_precision_becomes_single(intact: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(intact, tmp_path / "model")
    change_weights(lambda tensors: {name: tensor.double() for name, tensor in tensors.items()})(folder)
    write_model(read_model(str(folder)), tmp_path)
    single, loaded = read_model(str(intact)).tensors, weights(load_bundle(tmp_path / WEIGHTS).model)
    assert all(torch.equal(loaded[name], tensor) for name, tensor in single.items())


def test_special_tokens_may_be_listed_by_what_they_are_for(intact: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(intact, tmp_path / "model")
    write("tokenizer_config.json", b'{"extra_special_tokens": {"first": "__en__", "second": "__de__"}}')(folder)
    assert read_model(str(folder)).header.languages == {"en": "__en__", "de": "__de__"}


def test_null_is_no_setting_of_the_search(intact: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(intact, tmp_path / "model")
    write("generation_config.json", b'{"num_beams": null, "length_penalty": null}')(folder)
    assert read_model(str(folder)).header.search.length_penalty == 1

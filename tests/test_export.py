"""Models for other programs compute what ours do."""

import io
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch
from conftest import PAD_ID, Project, sentence_pairs
from engines import score
from sentencepiece import SentencePieceTrainer
from transformers import AutoModelForSeq2SeqLM

from mtformer import Translator
from mtformer.bundle.format import Bundle, load_bundle, save_bundle
from mtformer.config import LanguagePair, SearchOptions, TokenizerConfig
from mtformer.data.arrays import Ragged
from mtformer.data.clean.words import EncodedPairs, ibm_model_1
from mtformer.engines.ctranslate2.conversion import to_spec
from mtformer.engines.ctranslate2.vocabulary_map import make_vocabulary_map
from mtformer.engines.torch import TorchEngine
from mtformer.export import require_huggingface
from mtformer.export.huggingface import to_fast_tokenizer, to_transformers, write_huggingface
from mtformer.export.importing import read_model
from mtformer.model.architecture import ACTIVATIONS, POSITIONS, Activation
from mtformer.model.transformer import Transformer
from mtformer.model.weights import weights
from mtformer.search.engine import EngineError, SearchRequest, results_of
from mtformer.support.errors import UserError
from mtformer.text.pairs import SentencePair
from mtformer.text.slots import SLOTS
from mtformer.text.tokenizer.adopt import adopt
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer

FIXTURE = Path(__file__).parent / "fixtures/bundle-3.safetensors"
SENTENCE = "the red house sees my old friend."


def untrained(**architecture: Any) -> Bundle:
    """A bundle of two encoder layers and one decoder layer, with random weights everywhere."""
    bundle = load_bundle(FIXTURE)
    changed = bundle.header.architecture.model_copy(
        update={"n_encoder_layers": 2, "n_decoder_layers": 1} | architecture
    )
    torch.manual_seed(1)
    model = Transformer(changed).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return replace(bundle, model=model, header=bundle.header.model_copy(update={"architecture": changed}))


def readme_prints(folder: Path) -> list[str]:
    """Run the code of an exported model's README on ``SENTENCE`` and return what it prints."""
    readme = (folder / "README.md").read_text(encoding="utf-8")
    code = "\n".join(line.removeprefix("    ") for line in readme.splitlines() if line.startswith("    "))
    printed: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(code.replace("…", SENTENCE), {"print": printed.append})
    return printed


@pytest.mark.parametrize(
    "architecture",
    [
        *({"norm": norm, "positions": positions} for norm, positions in product(["pre", "post"], POSITIONS)),
        *({"activation": activation} for activation in ACTIVATIONS),
        {"norm": "post", "tie_embeddings": False},
        {"output_bias": True},
    ],
    ids=lambda architecture: "-".join(map(str, architecture.values())),
)
def test_ctranslate2_gives_the_log_probabilities_of_every_architecture(
    tmp_path: Path, architecture: dict[str, Any]
) -> None:
    bundle = untrained(**architecture)
    spec = to_spec(bundle)
    spec.validate()
    spec.optimize()
    spec.save(str(tmp_path))
    translator = ctranslate2.Translator(str(tmp_path), compute_type="float32", intra_threads=1)
    sources = [[*range(10, 20), 3], [*range(30, 33), 3]]
    targets = [[*range(40, 44)], [*range(50, 59)]]
    found = translator.score_batch(
        list(map(bundle.tokenizer.src_tokens, sources)), list(map(bundle.tokenizer.tgt_tokens, targets))
    )
    for ours, theirs in zip(score(TorchEngine(bundle.model), sources, targets), found, strict=True):
        assert theirs.log_probs == pytest.approx(ours, abs=1e-4)


@pytest.mark.parametrize(
    "architecture",
    [
        *({"norm": norm, "output_bias": norm == "pre"} for norm in ("pre", "post")),
        *({"activation": name} for name, activation in ACTIVATIONS.items() if activation.transformers),
        {"norm": "post", "joint_vocab": False, "output_bias": True},
        {"norm": "pre", "joint_vocab": False, "tie_embeddings": False, "output_bias": True},
        {"norm": "post", "tie_embeddings": False},
        {"norm": "pre", "tie_embeddings": False},
        *({"norm": norm, "joint_vocab": False, "tgt_vocab_size": 290} for norm in ("pre", "post")),
        *({"norm": norm, "joint_vocab": False, "tgt_vocab_size": 310} for norm in ("pre", "post")),
    ],
    ids=lambda architecture: "-".join(map(str, architecture.values())),
)
def test_transformers_give_the_logits_of_the_model(tmp_path: Path, architecture: dict[str, Any]) -> None:
    bundle = untrained(**architecture)
    if not bundle.header.architecture.joint_vocab:
        model = bundle.tokenizer.src_model
        bundle = replace(bundle, tokenizer=Tokenizer(model, model))
    write_huggingface(tmp_path, bundle, name="model.safetensors")
    theirs = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    src, tgt_in = torch.randint(4, 260, (2, 9)), torch.randint(4, 260, (2, 8))
    src[1, 6:] = PAD_ID
    mask = src != PAD_ID
    with torch.inference_mode():
        ours = bundle.model.project(bundle.model(src, mask, tgt_in))
        logits = theirs(input_ids=src, attention_mask=mask, decoder_input_ids=tgt_in).logits
    torch.testing.assert_close(logits[..., : ours.size(-1)], ours, atol=1e-4, rtol=1e-4)
    assert logits[..., ours.size(-1) :].isneginf().all()


def test_transformers_have_a_position_for_each_token_of_the_longest_translation() -> None:
    config = to_transformers(untrained(norm="pre", max_length=2_100)).config
    assert config.max_position_embeddings == 2 * 2_100 + 20


@pytest.mark.parametrize(
    ("architecture", "named"),
    [
        ({"positions": "rotary"}, "positions = rotary: train one with model.positions=sinusoidal"),
        ({"positions": "none", "norm": "post"}, "positions = none: train one with model.positions=sinusoidal"),
    ],
)
def test_what_transformers_cannot_hold_is_named(architecture: dict[str, Any], named: str) -> None:
    header = load_bundle(FIXTURE).header
    with pytest.raises(UserError, match=f"no architecture for this model, because of {named}$"):
        changed = header.architecture.model_copy(update=architecture)
        require_huggingface(header.model_copy(update={"architecture": changed}))


def test_a_kind_of_layer_that_a_program_lacks_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ACTIVATIONS, "mish", Activation("mish", "Mish({})", ctranslate2=None, transformers=None))
    bundle = untrained(activation="mish")
    with pytest.raises(EngineError, match="CTranslate2 cannot compute this model, because of feed_forward = mish"):
        to_spec(bundle)
    with pytest.raises(UserError, match="because of feed_forward = mish: train one with"):
        to_transformers(bundle)


def test_a_model_that_transformers_cannot_hold_is_refused_before_any_work(tmp_path: Path) -> None:
    save_bundle(tmp_path / "model.safetensors", untrained(positions="rotary"))
    code = """
import atexit, sys
from mtformer.cli import main
sys.modules["transformers"] = None  # it is not installed
atexit.register(lambda: print("torch" in sys.modules))
sys.argv = ["mtformer", "export", "model.safetensors", "--to", "huggingface", "--output", "new"]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "False\n")
    assert "because of positions = rotary: train one with model.positions=sinusoidal" in done.stderr


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_transformers_translate_with_two_vocabularies(norm: str, tmp_path: Path) -> None:
    one = load_bundle(FIXTURE)
    architecture = one.header.architecture.model_copy(update={"joint_vocab": False, "norm": norm})
    model, tokenizer = Transformer(architecture).eval(), one.tokenizer
    model.load_state_dict(one.model.state_dict(), strict=False)
    # The post-norm model never predicts EOS: the limit ends its translation, the same for a source of any length.
    search = one.header.search.model_copy(update={"max_length_factor": 1e-9, "max_length_offset": 20})
    two = Bundle(
        model,
        Tokenizer(tokenizer.src_model, tokenizer.src_model),
        one.header.model_copy(update={"architecture": architecture, "search": search}),
    )
    write_huggingface(tmp_path, two, name="model.safetensors")
    [[best]] = Translator.load(two, raw=True).translate([SENTENCE])
    assert readme_prints(tmp_path) == [best.text]


def tokenizer_with(**settings: object) -> Tokenizer:
    config = TokenizerConfig.model_validate({"vocab_size": 320} | settings)
    return train_tokenizer([SentencePair(*pair) for pair in sentence_pairs(200)], config, "en", "de", adjust=True)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_model_with_vocabularies_of_two_sizes_is_imported_again(norm: str, tmp_path: Path) -> None:
    tokenizer = Tokenizer(*(tokenizer_with(vocab_size=size).src_model for size in (300, 320)))
    sizes = {"src_vocab_size": 300, "tgt_vocab_size": 320, "special_ids": tokenizer.special_ids}
    bundle = replace(untrained(norm=norm, joint_vocab=False, **sizes), tokenizer=tokenizer)
    write_huggingface(tmp_path, bundle, name="model.safetensors")
    tensors, weights_before = read_model(str(tmp_path)).tensors, weights(bundle.model)
    assert tensors.keys() == weights_before.keys()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in weights_before.items())
    with pytest.raises(UserError, match="--from and --to are for models that do not say"):
        read_model(str(tmp_path), LanguagePair("en", "fr"))


def given_tokenizer() -> Tokenizer:
    """A tokenizer as SentencePiece trains it by default, with a normalization of its own."""
    model = io.BytesIO()
    texts = (text for pair in sentence_pairs(200) for text in pair)
    SentencePieceTrainer.train(sentence_iterator=texts, model_writer=model, vocab_size=70, minloglevel=2)
    return Tokenizer(adopt(model.getvalue()))


@pytest.mark.parametrize(
    "ours",
    [
        tokenizer_with(),
        tokenizer_with(type="bpe"),
        tokenizer_with(slots=True),
        tokenizer_with(type="bpe", normalization="nfkc"),
        tokenizer_with(type="char", normalization="nfkc"),
        tokenizer_with(type="byte", normalization="identity"),
        tokenizer_with(normalization="identity"),
        given_tokenizer(),
    ],
    ids=lambda ours: f"{ours.src.type}-{ours.src.form}" + "-slots" * ours.has_slots,
)
def test_the_fast_tokenizer_splits_and_joins_text_as_ours_does(ours: Tokenizer) -> None:
    pairs = [SentencePair(*pair) for pair in sentence_pairs(200)]
    theirs = to_fast_tokenizer(ours.src_model, max_length=256)
    random = np.random.default_rng(1)
    alphabet = [*"ab <>/s.0xAé\u0301它。😀▁€\t\u3000", "dog", " the", "</s>", "<0x41>"]
    texts = ["", " ", *(pair.src for pair in pairs)]
    texts += ["".join(random.choice(alphabet, size=random.integers(1, 12))) for _ in range(1_000)]
    expected = ours.encode_src(texts)
    found = theirs(texts)["input_ids"]
    # Unigram segmentations of equal probability, as of a repeated character, may differ.
    same = [tuple(a) == tuple(b) for a, b in zip(expected, found, strict=True)]
    assert sum(same) >= len(texts) - 5
    assert all(same[:202])
    assert [theirs.decode(ids, skip_special_tokens=True) for ids in expected] == [ours.decode(ids) for ids in expected]


def test_symbols_that_a_user_has_defined_are_an_error_for_transformers() -> None:
    model = tokenizer_with(user_symbols=["{name}"]).src_model
    with pytest.raises(UserError, match=r"cannot keep \{name\} \(tokenizer.user_symbols\) whole"):
        to_fast_tokenizer(model, max_length=256)


@pytest.mark.parametrize("program", ["ctranslate2", "huggingface", "argos"])
def test_who_exports_a_model_with_slots_is_told_that_other_programs_do_not_fill_them(
    program: str, project: Project, tmp_path: Path
) -> None:
    tokenizer = tokenizer_with(slots=True)
    sizes = {"src_vocab_size": tokenizer.vocab_size, "tgt_vocab_size": tokenizer.vocab_size}
    save_bundle(tmp_path / "slots.safetensors", replace(untrained(**sizes), tokenizer=tokenizer))
    result = project.mtformer("export", tmp_path / "slots.safetensors", "--to", program, "--output", tmp_path / "out")
    assert "only mtformer fills this model's slots" in result.stderr
    if program == "argos":
        with zipfile.ZipFile(tmp_path / "out") as archive:
            readme = archive.read("translate-en_de-1_0/README.md").decode()
    else:
        readme = (tmp_path / "out/README.md").read_text("utf-8")
    assert "has learned slots for numbers" in readme


def test_transformers_never_write_slots() -> None:
    tokenizer = tokenizer_with(slots=True)
    bundle = untrained(src_vocab_size=tokenizer.vocab_size, tgt_vocab_size=tokenizer.vocab_size)
    suppressed = to_transformers(replace(bundle, tokenizer=tokenizer)).generation_config.suppress_tokens
    assert {*tokenizer.tgt.ids(SLOTS)} < {*suppressed}


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_export_writes_a_folder_that_translates_as_its_readme_says(
    trained: Project, tmp_path: Path, quantization: str
) -> None:
    model, folder = trained.folder / "runs/config/model.safetensors", tmp_path / "exported"
    result = trained.mtformer(
        "export", model, "--to", "ctranslate2", "--output", folder, "--quantization", quantization
    )
    assert (result.status, result.stdout) == (0, f"{folder}\n"), result.stderr
    [[best]] = Translator.load(model).translate([SENTENCE])
    assert readme_prints(folder) == [best.text]
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert ", patience=1.5)" in readme  # else it stops at four poor hypotheses


def test_transformers_translate_as_the_readme_says(trained: Project, tmp_path: Path) -> None:
    model, folder = trained.folder / "runs/config/model.safetensors", tmp_path / "exported"
    result = trained.mtformer("export", model, "--to", "huggingface", "--output", folder)
    assert (result.status, result.stdout, result.stderr) == (0, f"{folder}\n", "")
    [[best]] = Translator.load(model).translate([SENTENCE])
    assert readme_prints(folder) == [best.text]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--output", "."), ". exists: name a new folder with --output"),
        (("--output", "new", "--quantization", "int4"), "--quantization int4: it is one of int8, int8_float32"),
    ],
)
def test_bad_arguments_of_export_are_explained(trained: Project, arguments: tuple[str, ...], message: str) -> None:
    result = trained.mtformer("export", "runs", "--to", "ctranslate2", *arguments)
    assert result.status == 2
    assert message in result.stderr
    assert not (trained.folder / "new").exists()


def test_a_vocabulary_map_allows_translations_frequent_tokens_and_characters() -> None:
    tokenizer = load_bundle(FIXTURE).tokenizer
    pairs = [SentencePair("a b", "x y"), SentencePair("a c", "x z"), SentencePair("", "y")] * 50
    text = make_vocabulary_map(pairs, tokenizer)
    lines = dict(line.split("\t") for line in text.splitlines())
    allowed = {src: set(tgt.split(" ")) for src, tgt in lines.items()}
    assert {"</s>", "<0x41>", "<0xFF>"} <= allowed[""]
    seen = {token for pair in pairs for ids in tokenizer.encode_src([pair.src]) for token in tokenizer.src_tokens(ids)}
    assert set(lines) - {""} == seen
    for pair in pairs:
        of_source = [allowed[token] for token in tokenizer.src_tokens(tokenizer.encode_src([pair.src])[0])]
        wanted = tokenizer.tgt_tokens(tokenizer.encode_tgt([pair.tgt])[0])
        assert not pair.src or set(wanted) <= set.union(allowed[""], *of_source)
    assert all(src in tgt | allowed[""] for src, tgt in allowed.items() if src)  # a name is its own translation


def test_ibm_model_1_finds_the_translations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that always occur together with one word of the other language, among others that vary."""
    random = np.random.default_rng(1)
    sources = [random.choice(20, size=5, replace=False) + 10 for _ in range(300)]
    src = [[*words.tolist(), 3] for words in sources]
    tgt = [(words + 100).tolist() for words in sources]
    table = ibm_model_1(EncodedPairs(Ragged.of(src, "<i8"), Ragged.of(tgt, "<i8")), 200)
    for word in range(10, 30):
        of_word = table.src == word
        assert table.tgt[of_word][table.probabilities[of_word].argmax()] == word + 100


def test_a_model_with_a_vocabulary_map_translates_the_same_and_new_words_too(
    trained: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, folder = trained.folder / "runs/config/model.safetensors", tmp_path / "exported"
    monkeypatch.setattr("mtformer.engines.ctranslate2.vocabulary_map._N_FREQUENT", 0)
    command = ("export", model, "--to", "ctranslate2", "--output", folder, "--vocabulary-map", "train.en", "train.de")
    result = trained.mtformer(*command)
    assert result.status == 0, result.stderr
    assert "swap them" not in result.stderr
    map_ = {line.split("\t")[0] for line in (folder / "vmap.txt").read_text(encoding="utf-8").splitlines()}
    texts = [src for src, _ in sentence_pairs(20, seed=9)]
    texts.append("the ÿ dog")  # bytes that the text does not have
    tokenizer = load_bundle(model).tokenizer
    assert not map_.issuperset(tokenizer.src_tokens(tokenizer.encode_src(texts)[-1]))
    for beam_size in (1, 4):
        ours, theirs = (
            Translator.load(path, raw=True, beam_size=beam_size).translate(texts) for path in (model, folder)
        )
        assert [best.text for best, *_ in theirs] == [best.text for best, *_ in ours]
        expected = [best.log_prob for best, *_ in ours]  # over the whole vocabulary
        assert [best.log_prob for best, *_ in theirs] == pytest.approx(expected, abs=1e-3)
    engine, source = Translator.load(folder).engine, tokenizer.encode_src(texts[:1])[0]
    prefix = tokenizer.encode_tgt(["ÿ Ω"])[0][:-1]  # not in the map
    [[best]] = results_of(engine, [SearchRequest(source, SearchOptions(beam_size=1), 30, prefix)])
    assert best.ids[: len(prefix)] == prefix
    swapped = ("--vocabulary-map", "train.de", "train.en")
    result = trained.mtformer("export", model, "--to", "ctranslate2", "--output", tmp_path / "swapped", *swapped)
    assert result.status == 0
    assert "train.de looks like the target side and train.en like the source side: swap them" in result.stderr
    assert re.search(r"the map has \d+ of \d+ source tokens", result.stderr)
    result = trained.mtformer(*command[:-1], "test.de")
    assert (result.status, "exists: name a new folder" in result.stderr) == (2, True)
    result = trained.mtformer(*(tmp_path / "new" if one == folder else one for one in command[:-1]), "test.de")
    assert (result.status, "not parallel" in result.stderr, (tmp_path / "new").exists()) == (2, True, False)


def test_a_package_that_is_missing_is_named(trained: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = trained.mtformer("export", "runs", "--to", "ctranslate2", "--output", "new")
    assert result.status == 2
    assert "needs the package ctranslate2, which is not installed; install it with " in result.stderr

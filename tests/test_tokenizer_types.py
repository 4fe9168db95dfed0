"""Models with tokens and normalizations of every kind are saved, searched, scored, explained and exported."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Project, make_project, sentence_pairs

from mtformer import Translator
from mtformer.bundle.format import Bundle, load_bundle, save_bundle
from mtformer.bundle.peek import peek_tokenizer
from mtformer.config import Facts, TokenizerConfig, load_config, resolve
from mtformer.engines.ctranslate2.conversion import write_ctranslate2
from mtformer.engines.ctranslate2.folder import read_folder
from mtformer.support.errors import UserError
from mtformer.text.glossary import Glossary
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.adopt import adopt
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import extend_tokenizer, train_tokenizer
from mtformer.training.model import build_model, make_header

PAIRS = [SentencePair(*pair) for pair in sentence_pairs(200)]
KINDS = [("unigram", "nfkc"), ("bpe", "identity"), ("char", "identity"), ("byte", "nfc"), ("byte", "nfkc")]
TEXTS = ["the ｒｅｄ house needs ½ friend.", "a small  dog…", "cafe\u0301 😀"]


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def bundle_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with fresh weights."""
    type, form = request.param
    folder = tmp_path_factory.mktemp(f"{type}-{form}")
    changes = [f"tokenizer.type={type}", f"tokenizer.normalization={form}", "search.max_length_offset=8"]
    config = resolve(load_config(make_project(folder).config, changes), Facts(n_pairs=len(PAIRS)))
    tokenizer = train_tokenizer(PAIRS, config.tokenizer, "en", "de", adjust=True)
    torch.manual_seed(1)
    path = folder / "model.safetensors"
    model = build_model(config, tokenizer)
    save_bundle(path, Bundle(model, tokenizer, make_header(config, model, tokenizer)))
    return path


def test_a_bundle_says_how_its_texts_are_tokenized(bundle_path: Path) -> None:
    bundle = load_bundle(bundle_path)
    found = bundle.header.tokenizer_type, bundle.header.normalization
    assert found == (bundle.tokenizer.src.type, bundle.tokenizer.src.form)
    assert "-".join(found) in str(bundle_path)
    peeked = peek_tokenizer(bundle_path)
    assert peeked is not None
    assert peeked.encode_src(TEXTS) == bundle.tokenizer.encode_src(TEXTS)


def test_a_model_translates_scores_and_explains(bundle_path: Path) -> None:
    translator = Translator.load(bundle_path, max_length_factor=0.5)
    for text, [best] in zip(TEXTS, translator.translate(TEXTS), strict=True):
        assert "\n" not in best.text, text
    [scored] = translator.score([TEXTS[0]], ["das rote  Haus½"])
    assert sum(scored.token_log_probs) == pytest.approx(scored.log_prob)
    trace = translator.explain(TEXTS[0])
    assert trace.source.tokens[-1].text == "</s>"
    [aligned] = translator.align([TEXTS[0]], ["das rote ｋｌｅｉｎｅ Haus ½ "])
    assert aligned


def test_terms_appear_as_the_model_writes_them(bundle_path: Path) -> None:
    translator = Translator.load(bundle_path, terms=Glossary([("friend", "fines ½ Haus")]), beam_size=4, raw=True)
    [[best]] = translator.translate(["my friend"])
    assert translator.tokenizer.tgt.normalize("ines ½ Haus") in best.text  # the first letter may be a capital


def test_ctranslate2_translates_alike(bundle_path: Path, tmp_path: Path) -> None:
    bundle = load_bundle(bundle_path)
    write_ctranslate2(tmp_path, bundle, name="model", quantization="float32")
    exported = read_folder(tmp_path)
    assert exported.tokenizer.src.form == bundle.header.normalization == exported.header.normalization
    ours, theirs = (
        Translator.load(path, raw=True, beam_size=1, max_length_factor=0.5) for path in (bundle_path, tmp_path)
    )
    assert [best.text for [best] in theirs.translate(TEXTS)] == [best.text for [best] in ours.translate(TEXTS)]


def test_a_normalization_that_the_tokenizer_does_not_have_is_refused(bundle_path: Path, tmp_path: Path) -> None:
    bundle = load_bundle(bundle_path)
    other = "nfc" if bundle.header.normalization != "nfc" else "nfkc"
    header = bundle.header.model_copy(update={"normalization": other})
    save_bundle(tmp_path / "model.safetensors", Bundle(bundle.model, bundle.tokenizer, header))
    with pytest.raises(UserError, match=f"its tokenizer has normalization {bundle.header.normalization}, not {other}"):
        load_bundle(tmp_path / "model.safetensors")


@pytest.mark.parametrize("type", ["unigram", "bpe", "char"])
@pytest.mark.parametrize("form", ["nfkc", "identity"])
def test_added_tokens_are_those_of_normalized_text(type: str, form: str) -> None:
    config = TokenizerConfig.model_validate(
        {"type": type, "normalization": form, "vocab_size": 300, "joint": True, "user_symbols": ["{x}"]}
    )
    old = train_tokenizer(PAIRS, config, "en", "de", adjust=True)
    text = [*PAIRS, *[SentencePair("ﬀ ☃ {x}", "☃ ﬀ {x}")] * 20]
    n_more = {("char", "nfkc"): 1, ("char", "identity"): 2}.get((type, form), 4)
    larger = config.model_copy(update={"vocab_size": old.src_vocab_size + n_more})
    new = extend_tokenizer(old, text, larger, "en", "de", seed=1)
    assert (new.src.type, new.src.form, new.src.user_symbols) == (type, form, ["{x}"])
    added = "".join(new.src_tokens(range(old.src_vocab_size, new.src_vocab_size)))
    assert "☃" in added
    assert ("ﬀ" in added) == (form == "identity")
    assert new.decode(new.encode_tgt(["ﬀ ☃ {x}"])[0]) == ("ﬀ ☃ {x}" if form == "identity" else "ff ☃ {x}")


def test_bytes_are_all_that_there_are() -> None:
    config = TokenizerConfig(type="byte", vocab_size=None)
    old = train_tokenizer(PAIRS, config, "en", "de", adjust=True)
    with pytest.raises(UserError, match="the initial model has 261 tokens and the text supports 0 more"):
        extend_tokenizer(old, PAIRS, config.model_copy(update={"vocab_size": 300}), "en", "de", seed=1)
    with pytest.raises(UserError, match=r"tokenizer\.vocab_size = 300 with tokenizer\.type = byte, .* 261 tokens"):
        train_tokenizer(PAIRS, config.model_copy(update={"vocab_size": 300}), "en", "de")


def test_an_old_bundle_composes_its_texts() -> None:
    bundle = load_bundle(Path(__file__).parent / "fixtures/bundle-3.safetensors")
    assert (bundle.header.normalization, bundle.tokenizer.src.form) == ("nfc", "nfc")
    assert bundle.tokenizer.src.type == bundle.header.tokenizer_type
    assert Tokenizer(adopt(bundle.tokenizer.src_model)).src_model == bundle.tokenizer.src_model


class Recorded(list[SentencePair]):
    """A sequence of pairs that remembers which were read."""

    def __init__(self) -> None:
        super().__init__(PAIRS)
        self.read: set[object] = set()

    def __getitem__(self, index: Any) -> Any:
        self.read.add(index)
        return super().__getitem__(index)


class Stream:
    """Pairs without a length."""

    def __iter__(self) -> Iterator[SentencePair]:
        return iter(PAIRS)


def test_only_the_drawn_pairs_of_a_sequence_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as of a stream, which has to be read."""
    monkeypatch.setattr("mtformer.text.tokenizer.train.MAX_TRAINING_TEXTS", 60)
    recorded = Recorded()
    config = TokenizerConfig(vocab_size=290, joint=True)
    of_sequence = train_tokenizer(recorded, config, "en", "de", adjust=True, seed=7)
    of_stream = train_tokenizer(Stream(), config, "en", "de", adjust=True, seed=7)
    assert of_sequence.src_model == of_stream.src_model
    assert 10 < len(recorded.read) < 60
    assert train_tokenizer(Stream(), config, "en", "de", adjust=True, seed=8).src_model != of_stream.src_model


def test_the_config_of_a_run_on_bytes_can_be_trained_again(project: Project) -> None:
    wrong = project.mtformer("train", project.config, "--set", "tokenizer.type=byte")
    assert (wrong.status, "tokenizer.vocab_size = 320 with tokenizer.type = byte" in wrong.stderr) == (2, True)
    changes = ("--set", "tokenizer.type=byte", "--set", "tokenizer.vocab_size=null", "--set", "training.max_steps=2")
    first = project.mtformer("train", project.config, *changes)
    assert (first.status, "training the tokenizer" in first.stderr) == (0, False), first.stderr
    saved = project.folder / "runs/config/config.yaml"
    assert "vocab_size: 261" in saved.read_text(encoding="utf-8")
    again = project.mtformer("train", saved, "--set", "run.name=again")
    assert again.status == 0, again.stderr
    models = [load_bundle(project.folder / "runs" / name / "model.safetensors").model for name in ("config", "again")]
    assert all(torch.equal(one, other) for one, other in zip(*(m.parameters() for m in models), strict=True))

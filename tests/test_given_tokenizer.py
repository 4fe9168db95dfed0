"""SentencePiece models that others have trained."""

import io
from pathlib import Path
from typing import Any

import pytest
from conftest import UNK_ID, Project, make_project, sentence_pairs
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from mtformer.bundle.format import load_bundle
from mtformer.config import TokenizerConfig
from mtformer.support.errors import UserError
from mtformer.text.slots import SLOTS
from mtformer.text.tokenizer.adopt import adopt, read_tokenizer
from mtformer.text.tokenizer.sentencepiece_file import (
    Kind,
    Token,
    append_tokens,
    read_settings,
    read_tokens,
    with_tokens,
)
from mtformer.text.tokenizer.tokenizer import MARKERS, Tokenizer

TEXTS = [text for pair in sentence_pairs(200) for text in pair]
ODD = ["the ｆｕｌｌ ﬁve  houses\u200b", " café 😀 <s> <pad> <0x41> ", "▁a▁", "", "über"]
DEFAULT: dict[str, Any] = {}  # SentencePiece's own: <unk> 0, <s> 1, </s> 2, no padding, nmt_nfkc
LIKE_T5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1, "model_type": "bpe"}
NAMED = {"pad_id": 3, "unk_piece": "[UNK]", "bos_piece": "[CLS]", "eos_piece": "[SEP]", "pad_piece": "[PAD]"}
SYMBOLS = {"control_symbols": ["<mask>"], "user_defined_symbols": ["{x}"], "model_type": "char"}
OURS = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "byte_fallback": True, "vocab_size": 330}


def trained(**settings: Any) -> bytes:
    model = io.BytesIO()
    defaults = {"vocab_size": 60, "hard_vocab_limit": False, "minloglevel": 2}
    SentencePieceTrainer.train(sentence_iterator=iter(TEXTS), model_writer=model, **defaults | settings)
    return model.getvalue()


@pytest.mark.parametrize("settings", [DEFAULT, LIKE_T5, NAMED, SYMBOLS, OURS])
def test_an_adopted_model_splits_texts_as_before(settings: dict[str, Any]) -> None:
    given = trained(**settings)
    theirs, ours = SentencePieceProcessor(model_proto=given), Tokenizer(adopt(given))
    for text in [*TEXTS[:50], *ODD]:
        tokens = theirs.encode(text, out_type=str)
        ids = ours.encode_src([text])[0][:-1]
        if theirs.unk_id() not in theirs.encode(text):
            assert ours.src_tokens(ids) == tokens
        assert UNK_ID not in ids
        assert ours.decode(ids) == ours.tgt.normalize(text)
    assert ours.src_tokens(range(4)) == ["<pad>", "<unk>", "<s>", "</s>"]
    special = {token.text for token in read_tokens(given) if token.kind in (Kind.UNKNOWN, Kind.CONTROL, Kind.BYTE)}
    assert {t.text for t in read_tokens(given)} - special <= {t.text for t in read_tokens(ours.src_model)}


def test_a_model_that_has_everything_stays_as_it_is() -> None:
    given = trained(**OURS)
    assert adopt(given) == given
    assert adopt(adopt(trained())) == adopt(trained())


@pytest.mark.parametrize("settings", [DEFAULT, LIKE_T5])
def test_an_adopted_model_gets_symbols(settings: dict[str, Any]) -> None:
    given = trained(vocab_size=150, **settings)
    hiding = max((token.text for token in read_tokens(given) if token.kind == Kind.NORMAL), key=len)
    inner = hiding[2:4]
    tokenizer = Tokenizer(adopt(given, control_symbols=MARKERS, user_symbols=["{x}", inner]))
    assert tokenizer.markers is not None
    assert set(tokenizer.src.user_symbols) == {"{x}", inner}
    text = f"see {{x}}<term> {hiding.removeprefix('▁')}"
    [ids] = tokenizer.encode_src([text])
    tokens = tokenizer.src_tokens(ids)
    assert "{x}" in tokens
    assert inner in tokens
    assert set(ids).isdisjoint(tokenizer.markers)
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("form", ["nfc", "nfkc", "identity"])
def test_texts_are_normalized_before_the_model_does_it(form: Any) -> None:
    plain = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    tokenizer = Tokenizer(adopt(trained(**plain), form))
    assert tokenizer.src.form == form
    expected = {"nfc": "ﬁ é", "nfkc": "fi é", "identity": "ﬁ  e\u0301"}[form]
    assert tokenizer.decode(tokenizer.encode_src(["ﬁ  e\u0301"])[0]) == expected


@pytest.mark.parametrize(
    ("given", "option"),
    [
        (trained(model_type="word"), "--model_type=word"),
        (trained(add_dummy_prefix=False), "--add_dummy_prefix=false"),
        (trained(treat_whitespace_as_suffix=True), "--treat_whitespace_as_suffix"),
        (trained() + b"\x1a\x02\x28\x00", "--escape_whitespaces=false"),  # in its normalizer_spec
    ],
)
def test_models_that_cannot_serve_are_refused(given: bytes, option: str) -> None:
    with pytest.raises(UserError, match=f"trained with {option}, which is not supported: train it again"):
        adopt(given)


def test_tokens_that_would_be_special_are_refused() -> None:
    with pytest.raises(UserError, match="tokens for the text <s>, which are special here"):
        adopt(append_tokens(trained(**NAMED), [Token("<s>")]))
    with pytest.raises(UserError, match="the token <mask> of this SentencePiece model cannot be a symbol"):
        adopt(trained(**SYMBOLS), user_symbols=["<mask>"])


@pytest.mark.parametrize("given", [b"", b"no model", trained()[:-9], bytes(100)], ids=["empty", "text", "cut", "zeros"])
def test_what_is_no_model_is_refused(given: bytes) -> None:
    with pytest.raises(UserError, match="this is not a SentencePiece model"):
        adopt(given)


def test_the_file_format_is_read_and_written_as_sentencepiece_does() -> None:
    given = trained(**NAMED)
    theirs = SentencePieceProcessor(model_proto=given)
    tokens = read_tokens(given)
    assert [token.text for token in tokens] == theirs.id_to_piece(list(range(len(tokens))))
    assert [token.score for token in tokens] == [theirs.get_score(i) for i in range(len(tokens))]
    assert [token.kind == Kind.CONTROL for token in tokens] == [theirs.is_control(i) for i in range(len(tokens))]
    settings = read_settings(given)
    assert settings.special_names == ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    assert settings.character_map
    adopted = adopt(given)
    tokens = read_tokens(adopted)
    longer = SentencePieceProcessor(model_proto=with_tokens(adopted, [*tokens, Token("▁☃", -3.5)]))
    assert (longer.get_score(len(tokens)), longer.piece_to_id("▁☃")) == (-3.5, len(tokens))


@pytest.fixture
def config_of_given(tmp_path: Path) -> Project:
    """A project whose folder has SentencePiece models."""
    project = make_project(tmp_path / "project", max_steps=3)
    (project.folder / "joint.model").write_bytes(trained())
    (project.folder / "en.model").write_bytes(trained(**LIKE_T5))
    (project.folder / "de.model").write_bytes(trained(**NAMED))
    text = project.config.read_text(encoding="utf-8")
    project.config.write_text(text.replace("vocab_size: 320", "model: joint.model"), encoding="utf-8")
    return project


def test_a_run_uses_the_given_model_and_resumes_with_it(config_of_given: Project) -> None:
    project = config_of_given
    result = project.mtformer("train", project.config)
    assert result.status == 0, result.stderr
    assert "training the tokenizer" not in result.stderr
    run = project.folder / "runs/config"
    bundle = load_bundle(run / "model.safetensors")
    given = adopt((project.folder / "joint.model").read_bytes())
    assert bundle.tokenizer.src_model == given == (run / "tokenizer.model").read_bytes()
    assert bundle.header.architecture.src_vocab_size == bundle.tokenizer.src_vocab_size > 300
    resumed = project.mtformer("train", project.config, "--set", "training.max_steps=5")
    assert resumed.status == 0, resumed.stderr
    assert "resuming from step 3" in resumed.stderr
    again = project.mtformer("train", run / "config.yaml", "--set", "run.name=again", "--set", "training.max_steps=1")
    assert again.status == 0, again.stderr
    (project.folder / "joint.model").write_bytes(trained(**NAMED))
    changed = project.mtformer("train", project.config)
    assert changed.status == 2
    assert "the SentencePiece model of the tokenizer has changed" in changed.stderr


def test_a_run_uses_a_model_for_each_language(config_of_given: Project) -> None:
    project = config_of_given
    text = project.config.read_text(encoding="utf-8")
    both = text.replace("model: joint.model", "src_model: en.model\n  tgt_model: de.model")
    project.config.write_text(both, encoding="utf-8")
    result = project.mtformer("train", project.config)
    assert result.status == 0, result.stderr
    tokenizer = load_bundle(project.folder / "runs/config/model.safetensors").tokenizer
    assert not tokenizer.joint
    assert (tokenizer.src.type, tokenizer.tgt_model) == ("bpe", adopt((project.folder / "de.model").read_bytes()))


def test_a_model_that_cannot_be_used_is_reported_before_the_text_is_stored(config_of_given: Project) -> None:
    project, cache = config_of_given, config_of_given.folder / "cache"
    (project.folder / "joint.model").write_bytes(b"no model")
    result = project.mtformer("train", project.config, env={"XDG_CACHE_HOME": str(cache)})
    assert result.status == 2
    assert "joint.model: this is not a SentencePiece model" in result.stderr
    assert not cache.exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab_size": 8000}, r"tokenizer\.vocab_size = 8000 contradicts .*joint\.model, with which it is .*remove"),
        ({"type": "bpe"}, r"tokenizer\.type = bpe contradicts .*joint\.model, with which it is unigram: remove type"),
    ],
)
def test_keys_that_contradict_the_model_are_refused(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    (tmp_path / "joint.model").write_bytes(trained())
    with pytest.raises(UserError, match=message):
        read_tokenizer(TokenizerConfig.model_validate({"model": tmp_path / "joint.model"} | settings))


def test_a_model_with_slots_decides_that_there_are_some(tmp_path: Path) -> None:
    model = tmp_path / "slots.model"
    model.write_bytes(adopt(trained(), user_symbols=SLOTS))
    assert read_tokenizer(TokenizerConfig(model=model)).settings.slots
    with pytest.raises(UserError, match=r"tokenizer\.slots = False contradicts .*slots\.model, .*remove slots"):
        read_tokenizer(TokenizerConfig(model=model, slots=False))
    model.write_bytes(trained())
    assert read_tokenizer(TokenizerConfig(model=model)).settings.slots is False
    assert read_tokenizer(TokenizerConfig(model=model, slots=True, user_symbols=["{x}", SLOTS[0]])).settings.slots


def test_models_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "text.model").write_text("no model", encoding="utf-8")
    with pytest.raises(UserError, match=r"text\.model: this is not a SentencePiece model"):
        read_tokenizer(TokenizerConfig(model=tmp_path / "text.model"))
    with pytest.raises(UserError, match=r"cannot read .*gone\.model: No such file"):
        read_tokenizer(TokenizerConfig(model=tmp_path / "gone.model"))

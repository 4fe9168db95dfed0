"""Imported models are fine-tuned, with more tokens and with languages that are new to them."""

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from conftest import Project, make_project
from pretrained import KINDS, LINES, SIZES, Case, case_of
from transformers import AutoTokenizer

from mtformer import Translator
from mtformer.bundle.format import Bundle, load_bundle
from mtformer.config import TokenizerConfig, TrainingConfig
from mtformer.config.sources import PrefixTokens
from mtformer.export.huggingface import write_huggingface
from mtformer.export.importing import read_model
from mtformer.model.transformer import Transformer
from mtformer.model.weights import weights
from mtformer.support.errors import UserError
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import extend_tokenizer
from mtformer.training.finetune import initialize, new_tags

WORDS = [("zebra", "Zebra"), ("walrus", "Walross"), ("hedgehog", "Stachelschwein"), ("squirrel", "Eichhörnchen")]
TEXT = [SentencePair(f"The {a} saw a {b}.", f"{c} sah {d}.") for a, c in WORDS for b, d in WORDS]
N_ADDED = 5


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A model of each kind."""
    return case_of(request.param, tmp_path_factory)


@pytest.mark.slow
def test_an_imported_model_is_fine_tuned(case: Case, tmp_path: Path) -> None:
    """A step with a tiny learning rate keeps the weights, the tokens and what stands before the texts."""
    training: dict[str, Any] = {"max_steps": 1, "learning_rate": 1e-9, "validate_every": 1}
    project = make_project(tmp_path, init_from=str(case.path), **training)
    config = yaml.safe_load(project.config.read_text(encoding="utf-8"))
    config["data"]["max_length"] = SIZES["max_position_embeddings"]
    config["tokenizer"] = {"vocab_size": case.ours.tokenizer.vocab_size}  # though it does not fit the text
    del config["model"]
    project.config.write_text(yaml.safe_dump(config), encoding="utf-8")
    result = project.mtformer("train", project.config)
    assert result.status == 0, result.stderr
    before, tuned = case.ours, load_bundle(project.folder / "runs" / "config" / "model.safetensors")
    assert tuned.header.architecture == before.header.architecture
    assert tuned.tokenizer.encode_src(LINES) == before.tokenizer.encode_src(LINES)
    assert tuned.tokenizer.prefixes == before.tokenizer.prefixes
    for name, tensor in weights(before.model).items():
        assert torch.allclose(weights(tuned.model)[name], tensor, atol=1e-6), name
    siblings = project.folder / "runs" / "config" / "model.safetensors", case.path
    require_to_go_together(project, *siblings)
    require_forced_tokens_to_be_hidden(tmp_path / "exported", tuned)


def require_forced_tokens_to_be_hidden(folder: Path, tuned: Bundle) -> None:
    """In transformers, a translation is shown without the language that it is forced to start with."""
    folder.mkdir()
    write_huggingface(folder, tuned, name="model.safetensors")
    target = folder / "target"
    decoder = AutoTokenizer.from_pretrained(target if target.exists() else folder)
    [ids], forced = tuned.tokenizer.encode_tgt(["das Haus"]), tuned.tokenizer.prefixes.tgt
    assert decoder.decode([*forced, *ids], skip_special_tokens=True).strip() == tuned.tokenizer.decode(ids)
    if forced:
        [tag] = tuned.tokenizer.src_tokens(tuned.tokenizer.prefixes.src)
        readme = (folder / "README.md").read_text(encoding="utf-8")
        assert f"The first token of a source is its language: `{tag}`." in readme


def require_to_go_together(project: Project, tuned: Path, base: Path) -> None:
    """Equal models, of which one may have many languages, are an ensemble and an average, and do not differ."""
    options: dict[str, Any] = {"engine": "torch", "beam_size": 1, "max_length": 12, "raw": True}
    alone, both = (
        Translator.load(models, src_lang="en", tgt_lang="de", **options).translate(LINES[:4])
        for models in ([tuned], [base, tuned])
    )
    assert [each[0].text for each in both] == [each[0].text for each in alone]
    average = project.folder / "average.safetensors"
    result = project.mtformer("average", tuned, base, "--output", average)
    assert result.status == 0, result.stderr
    text = project.folder / "text"
    text.write_text("\n".join(LINES[:4]) + "\n", encoding="utf-8")
    files = ("--src", text, "--ref", text, "--beam-size", "1", "--raw", "--resamples", "20", "--trials", "20")
    pair = ("--pair", "en-de") if load_bundle(base).header.src_lang == "mul" else ()
    result = project.mtformer("compare", average, base, *files, *pair)
    assert result.status == 0, result.stderr


def larger(bundle: Bundle) -> Tokenizer:
    """Add tokens to each side of a model's tokenizer."""
    old, joint = bundle.tokenizer, bundle.header.architecture.joint_vocab
    settings = {"type": bundle.header.tokenizer_type, "joint": joint, "vocab_size": old.vocab_size + N_ADDED}
    config = TokenizerConfig.model_validate({**settings, "normalization": "identity"})
    return extend_tokenizer(old, TEXT, config, "en", "de", seed=1)


def test_tokens_are_added_after_those_of_an_imported_model(case: Case) -> None:
    bundle = case.whole
    old, new = bundle.tokenizer, larger(bundle)
    assert new.src_vocab_size == old.vocab_size + N_ADDED
    assert new.special_ids == old.special_ids
    assert new.src_tokens(range(old.src_vocab_size)) == old.src_tokens(range(old.src_vocab_size))
    if bundle.header.architecture.joint_vocab:
        assert new.src_tokens(range(new.src_vocab_size)) == new.tgt_tokens(range(new.tgt_vocab_size))
    for before, after, texts in (
        (old.src, new.src, [pair.src for pair in TEXT]),
        (old.tgt, new.tgt, [pair.tgt for pair in TEXT]),
    ):
        fewer, more = after.encode(texts), before.encode(texts)
        assert sum(map(len, fewer)) <= sum(map(len, more))  # an unknown token may have become a known one
        assert max(map(max, fewer)) >= before.vocab_size
    assert [new.decode(ids) for ids in new.encode_tgt([pair.tgt for pair in TEXT])] == [pair.tgt for pair in TEXT]


def test_new_rows_start_as_the_mean_of_what_spelled_them(case: Case) -> None:
    bundle, new = case.whole, larger(case.whole)
    sizes = {"src_vocab_size": new.src_vocab_size, "tgt_vocab_size": new.tgt_vocab_size}
    model = Transformer(bundle.header.architecture.model_copy(update=sizes))
    initialize(model, new, bundle, {})
    before, after = weights(bundle.model), weights(model)
    for name, tensor in before.items():
        assert torch.equal(after[name][: len(tensor)], tensor), name
    embedding, n_known = after["tgt_embedding.weight"], bundle.tokenizer.tgt_vocab_size
    i = next(i for i in range(n_known, new.tgt_vocab_size) if not new.tgt.is_unused(i))
    token = new.tgt.tokens([i])[0]
    [spelled] = bundle.tokenizer.tgt.encode([token.replace("▁", " ")], inside=not token.startswith("▁"))
    assert torch.allclose(embedding[i], before["tgt_embedding.weight"][spelled[:-1]].mean(dim=0), atol=1e-6)


@pytest.mark.parametrize("kind", ["nllb", "m2m_100"])
def test_a_language_is_added_to_an_imported_model_and_exported(
    kind: str, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """Its token starts as that of the language that it is like; the text and the tokens grow, too."""
    case = case_of(kind, tmp_path_factory)
    project = make_project(tmp_path, init_from=str(case.path), max_steps=1, learning_rate=1e-9, like={"bar": "de"})
    config = yaml.safe_load(project.config.read_text(encoding="utf-8"))
    config["data"] |= {"tgt_lang": "bar", "max_length": SIZES["max_position_embeddings"]}
    for part in ("train", "valid", "test"):
        config["data"][part] = [{**config["data"][part][0]}]
    config["tokenizer"] = {"vocab_size": case.whole.tokenizer.vocab_size + 1 + N_ADDED}
    del config["model"]
    project.config.write_text(yaml.safe_dump(config), encoding="utf-8")
    result = project.mtformer("train", project.config)
    assert result.status == 0, result.stderr
    tuned, before = load_bundle(project.folder / "runs/config/model.safetensors"), case.ours
    [tag], [old] = tuned.tokenizer.prefixes.tgt, before.tokenizer.prefixes.tgt
    n_known = before.tokenizer.vocab_size
    assert tag == n_known
    assert tuned.tokenizer.tgt_tokens([tag]) == [{"nllb": "bar", "m2m_100": "__bar__"}[kind]]
    assert torch.allclose(tuned.model.tgt_embedding.weight[tag], before.model.tgt_embedding.weight[old], atol=1e-6)
    (tmp_path / "exported").mkdir()
    write_huggingface(tmp_path / "exported", tuned, name="model.safetensors")
    again = read_model(str(tmp_path / "exported"))
    assert again.tokenizers == tuple(tuned.tokenizer.models)


def test_tokens_of_languages_are_spelled_like_the_one_that_they_start_as(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    header = case_of("marian", tmp_path_factory).whole.header
    of_marian = {"en-deu": PrefixTokens(src=(">>deu<<",)), "en-nld": PrefixTokens(src=(">>nld<<",))}
    many = header.model_copy(update={"directions": tuple(of_marian), "prefixes": of_marian})
    like = TrainingConfig.model_construct(like={"bar": "de"})
    assert new_tags(like, many) == {">>bar<<": ">>deu<<"}
    with pytest.raises(UserError, match="the model has no token for fr"):
        new_tags(TrainingConfig.model_construct(like={"bar": "fr"}), many)

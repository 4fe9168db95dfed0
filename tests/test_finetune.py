"""Training that begins with a bundle."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from conftest import Project, Result, make_project, sentence_pairs, write_pairs

from mtformer.bundle.format import Bundle, load_bundle
from mtformer.config import TokenizerConfig
from mtformer.model.weights import weights
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.train import extend_tokenizer, train_tokenizer

ANIMALS = [("zebra", "Zebra"), ("walrus", "Walross"), ("hedgehog", "Stachelschwein"), ("squirrel", "Eichhörnchen")]
PLACES = [("jungle", "im Dschungel"), ("desert", "in der Wüste"), ("lighthouse", "im Leuchtturm"), ("☃", "beim ☃")]
VERBS = [("sleeps", "schläft"), ("whistles", "pfeift"), ("complains", "beschwert sich"), ("pays 7 €", "zahlt 7 €")]
NEW_TEXT = [
    (f"the {animal} in the {place} {verb} quickly.", f"das {tier} {ort} {wort} schnell.")
    for animal, tier in ANIMALS
    for place, ort in PLACES
    for verb, wort in VERBS
]


def finetune(trained: Project, folder: Path, *sets: str, **training: Any) -> tuple[Project, Result]:
    """Train for a few steps from the model of ``trained``."""
    base = trained.folder / "runs" / "config" / "model.safetensors"
    settings = {"max_steps": 4, "learning_rate": 0.001, "init_from": str(base), **training}
    project = make_project(folder, **settings)
    text = project.config.read_text().replace("tokenizer:\n  vocab_size: 320\n", "")
    project.config.write_text(text)
    overrides = [part for override in sets for part in ("--set", override)]
    return project, project.mtformer("train", project.config, *overrides)


def new_text(folder: Path) -> list[str]:
    """Write text about animals, and return the settings to train on it and to validate with it."""
    folder.mkdir(parents=True, exist_ok=True)
    source = yaml.safe_dump([write_pairs(folder, "new", NEW_TEXT)], default_flow_style=True).strip()
    return [f"data.train={source}", f"data.valid={source}"]


def bundle_of(project: Project) -> Bundle:
    return load_bundle(project.folder / "runs" / "config" / "model.safetensors")


def test_training_begins_where_the_bundle_ended(trained: Project, tmp_path: Path) -> None:
    project, result = finetune(trained, tmp_path, max_steps=1, learning_rate=1e-9)
    assert result.status == 0, result.stderr
    before, after = bundle_of(trained), bundle_of(project)
    assert after.tokenizer.src_model == before.tokenizer.src_model
    assert after.header.architecture == before.header.architecture
    for name, tensor in weights(before.model).items():
        assert torch.allclose(weights(after.model)[name], tensor, atol=1e-6), name
    assert after.header.scores["loss"] == pytest.approx(before.header.scores["loss"], rel=1e-3)


def test_the_model_and_the_tokens_are_those_of_the_bundle_whatever_the_size_of_the_text(
    trained: Project, tmp_path: Path
) -> None:
    project, result = finetune(trained, tmp_path, "model={dropout: 0.3}", max_steps=2)
    assert result.status == 0, result.stderr
    model = bundle_of(project).header.architecture
    assert (model.d_model, model.dropout) == (32, 0.3)
    again = project.mtformer("train", project.config, "--set", "model={dropout: 0.3}", "--set", "training.max_steps=4")
    assert again.status == 0
    assert "resuming from step 2" in again.stderr


def test_a_resumed_run_keeps_the_model_that_it_started_from_wherever_its_file_is(
    trained: Project, tmp_path: Path
) -> None:
    project, result = finetune(trained, tmp_path, max_steps=1)
    assert result.status == 0, result.stderr
    moved = shutil.copy(trained.folder / "runs/config/model.safetensors", tmp_path / "moved.safetensors")
    settings = ("--set", "training.max_steps=2", "--set")
    again = project.mtformer("train", project.config, *settings, f"training.init_from={moved}")
    assert again.status == 0, again.stderr
    other = shutil.copy(project.folder / "runs/config/model.safetensors", tmp_path / "other.safetensors")
    refused = project.mtformer("train", project.config, *settings, f"training.init_from={other}")
    assert refused.status == 2
    assert "the model of training.init_from has changed" in refused.stderr


def test_frozen_parts_stay_bit_for_bit_and_the_others_move(trained: Project, tmp_path: Path) -> None:
    sets = new_text(tmp_path)
    settings = {"freeze": ["embeddings", "encoder"], "optimizer": "muon", "ema_decay": 0.5}
    project, result = finetune(trained, tmp_path, *sets, early_stopping_metric="loss", **settings)
    assert result.status == 0, result.stderr
    before, after = weights(bundle_of(trained).model), weights(bundle_of(project).model)
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert same == {name for name in before if not name.startswith("decoder")}


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("joint", [True, False])
def test_added_pieces_come_after_the_old_ones_and_spell_the_new_text_shorter(kind: str, joint: bool) -> None:
    config = TokenizerConfig.model_validate({"type": kind, "joint": joint, "vocab_size": 300})
    old_text = [SentencePair(*pair) for pair in sentence_pairs(200)]
    new_text = [SentencePair(*pair) for pair in NEW_TEXT]
    old = train_tokenizer(old_text, config, "en", "de", adjust=True)
    larger = config.model_copy(update={"vocab_size": max(old.src_vocab_size, old.tgt_vocab_size) + 15})
    new = extend_tokenizer(old, new_text, larger, "en", "de", seed=1)
    assert new.joint == joint
    assert (new.src_vocab_size, new.tgt_vocab_size) == (larger.vocab_size, larger.vocab_size)
    ids = range(old.src_vocab_size)
    assert new.src_tokens(ids) == old.src_tokens(ids)
    assert new.tgt_tokens(range(old.tgt_vocab_size)) == old.tgt_tokens(range(old.tgt_vocab_size))
    texts = [pair.tgt for pair in new_text[::7]]
    before, after = old.encode_tgt(texts), new.encode_tgt(texts)
    assert sum(map(len, after)) < 0.97 * sum(map(len, before))
    assert [new.decode(row) for row in after] == texts
    assert "☃" in new.tgt_tokens(range(old.tgt_vocab_size, new.tgt_vocab_size))


def test_new_pieces_begin_as_the_mean_of_those_that_spelled_them_before(trained: Project, tmp_path: Path) -> None:
    sets = [new_text(tmp_path)[0], "tokenizer={vocab_size: 345}"]
    project, result = finetune(trained, tmp_path, *sets, max_steps=1, learning_rate=1e-9)
    assert result.status == 0, result.stderr
    before, after = bundle_of(trained), bundle_of(project)
    assert after.header.provenance["fingerprints"]["init_from"] == before.digest
    n_old = before.tokenizer.src_vocab_size
    assert n_old < after.tokenizer.src_vocab_size == 345
    embedding = after.model.tgt_embedding.weight
    assert torch.allclose(embedding[:n_old], before.model.tgt_embedding.weight, atol=1e-6)
    for number, piece in enumerate(after.tokenizer.tgt_tokens(range(n_old, 345)), n_old):
        [ids] = before.tokenizer.tgt.encode([piece.replace("▁", " ")], inside=not piece.startswith("▁"))
        expected = before.model.tgt_embedding.weight[ids[:-1]].mean(dim=0)
        assert torch.allclose(embedding[number], expected, atol=1e-6), piece


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"sets": ["model.d_model=64"]}, "model.d_model = 64, but the bundle has 32"),
        ({"sets": ["tokenizer={type: bpe}"]}, "tokenizer.type = bpe, but the bundle has unigram"),
        ({"sets": ["tokenizer={vocab_size: 270}"]}, "tokenizer.vocab_size = 270 is less than"),
        ({"sets": ["tokenizer={vocab_size: 9000}"]}, "is too large: the initial model has 320 tokens"),
        ({"freeze": ["embeddings", "encoder", "decoder"]}, "nothing is left to train"),
        ({"init_from": None, "freeze": ["encoder"]}, "freeze without init_from"),
        ({"init_from": "nowhere.safetensors"}, "there is no file"),
        ({"init_from": "train.en"}, "not an intact safetensors file"),
    ],
)
def test_what_cannot_be_is_told(trained: Project, tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    _, result = finetune(trained, tmp_path, *changes.pop("sets", []), **changes)
    assert result.status == 2
    assert told in result.stderr

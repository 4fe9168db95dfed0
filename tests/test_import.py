"""Models of other toolkits compute here what they compute there."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from conftest import make_project
from pretrained import KINDS, LINES, SIZES, Pretrained

from mtformer import Translator
from mtformer.bundle.format import Bundle, load_bundle
from mtformer.config import LanguagePair
from mtformer.export.importing import read_model, write_model
from mtformer.model.weights import weights


@dataclass(frozen=True)
class Case:
    """A model there and here."""

    folder: Path
    theirs: Pretrained
    path: Path

    @property
    def ours(self) -> Bundle:
        """The bundle for the languages of the case."""
        return load_bundle(self.path).toward(*self.theirs.languages)


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A model of each kind."""
    folder, output = tmp_path_factory.mktemp(request.param), tmp_path_factory.mktemp("ours")
    theirs = KINDS[request.param](folder, 1)
    write_model(read_model(str(folder), LanguagePair("en", "de")), output)
    return Case(folder, theirs, output / "model.safetensors")


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
    assert len(set(expected)) > 3
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


def test_an_imported_model_is_fine_tuned(case: Case, tmp_path: Path) -> None:
    """A step with a tiny learning rate keeps the weights, the tokens and what stands before the texts."""
    training: dict[str, Any] = {"max_steps": 1, "learning_rate": 1e-9, "validate_every": 1}
    project = make_project(tmp_path, init_from=str(case.path), **training)
    config = yaml.safe_load(project.config.read_text(encoding="utf-8"))
    config["data"]["max_length"] = SIZES["max_position_embeddings"]
    del config["model"], config["tokenizer"]
    project.config.write_text(yaml.safe_dump(config), encoding="utf-8")
    result = project.mtformer("train", project.config)
    assert result.status == 0, result.stderr
    before, tuned = case.ours, load_bundle(project.folder / "runs" / "config" / "model.safetensors")
    assert tuned.header.architecture == before.header.architecture
    assert tuned.tokenizer.encode_src(LINES) == before.tokenizer.encode_src(LINES)
    assert tuned.tokenizer.prefixes == before.tokenizer.prefixes
    for name, tensor in weights(before.model).items():
        assert torch.allclose(weights(tuned.model)[name], tensor, atol=1e-6), name

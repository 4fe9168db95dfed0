"""Sentences that are read after the previous sentence: in training, in translations and in scores."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from browser import Opener, needs_browser
from conftest import Project
from playwright.sync_api import expect

from mtformer import Translator
from mtformer.bundle.format import load_bundle
from mtformer.config import Config, Facts, load_config, resolve
from mtformer.data.arrays import Ragged
from mtformer.data.sources.parallel import ParallelText
from mtformer.data.store import stored_text
from mtformer.data.tokens import InContext, Prefixed
from mtformer.data.training import TrainingData
from mtformer.search.engine import succeeded
from mtformer.serve.segments import plan_segments
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import CONTEXT, Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.translate.plan import run
from mtformer.translate.translation_memory import TranslationMemory

NOUNS = {"dog": ("Der Hund", "Er"), "cat": ("Die Katze", "Sie"), "horse": ("Das Pferd", "Es")}
VERBS = {"sleeps": "schläft", "runs": "läuft", "eats": "isst", "sees": "sieht"}


def stories(n: int, seed: int = 1) -> Iterator[SentencePair]:
    """Yield pairs of sentences: one with a noun, and one with its pronoun."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        noun, (first, second) = list(NOUNS)[rng.integers(3)], rng.choice(list(VERBS), 2)
        article, pronoun = NOUNS[noun]
        yield SentencePair(f"The {noun} {first}.", f"{article} {VERBS[first]}.")
        yield SentencePair(f"It {second}.", f"{pronoun} {VERBS[second]}.")


# Training


def test_rows_in_context_begin_with_the_row_before() -> None:
    eos, separator, tag = 1, 9, 8
    before = Ragged.of([[4, 5, eos], [6, eos], [7, eos]])
    rows = Prefixed(Ragged.of([[4, eos], [6, eos], [3, 3, eos]]), [[tag]], np.zeros(3, dtype=int))
    found = InContext(rows, before, np.array([False, True, False]), separator)
    assert [found[i].tolist() for i in range(len(found))] == [
        [tag, 4, eos],
        [4, 5, separator, tag, 6, eos],
        [tag, 3, 3, eos],
    ]
    assert found.lengths.tolist() == [3, 6, 4]


def data_of(folder: Path, lines: list[str], **settings: Any) -> tuple[TrainingData, Config, Tokenizer]:
    for name, part in (("a.tsv", lines[:4]), ("b.tsv", lines[4:])):
        (folder / name).write_text("".join(f"{line}\t{line}\n" for line in part))
    data = {"src_lang": "en", "tgt_lang": "de", "train": [{"tsv": "a.tsv"}, {"tsv": "b.tsv"}], **settings}
    (folder / "config.yaml").write_text(yaml.safe_dump({"data": data, "tokenizer": {"type": "char"}}))
    config = resolve(load_config(folder / "config.yaml"), Facts(len(lines)))
    pairs = [SentencePair(line, line) for line in lines]
    tokenizer = train_tokenizer(pairs, config.tokenizer, "en", "de", adjust=True, control_symbols=[CONTEXT])
    text = stored_text(ParallelText(load_config(folder / "config.yaml").data.train, "en", "de"))
    return TrainingData(config, text, tokenizer), config, tokenizer


def sources(data: TrainingData, epoch: int, tokenizer: Tokenizer) -> list[str]:
    data.begin(epoch)
    rows = [data.corpus.src[i].tolist() for i in range(len(data.corpus))]
    return ["|".join(map(tokenizer.src.decode, _split(row, tokenizer.context_end))) for row in rows]


def _split(row: list[int], at: int | None) -> list[list[int]]:
    place = row.index(at) if at in row else None
    return [row] if place is None else [row[:place], row[place + 1 :]]


def test_a_source_follows_the_line_before_of_its_file_if_it_is_there_and_both_fit(
    tmp_path: Path,
) -> None:
    lines = ["aa", "bb", "", "cc", "dd", "ee", "ffffffff", "gg"]  # the empty line is dropped, and b.tsv begins with dd
    data, _, tokenizer = data_of(tmp_path, lines, context=1.0, max_length=12)
    assert sources(data, 0, tokenizer) == ["aa", "aa|bb", "cc", "dd", "dd|ee", "ffffffff", "gg"]


def test_each_epoch_draws_other_sources(tmp_path: Path) -> None:
    data, _, tokenizer = data_of(tmp_path, [f"{number} a" for number in range(400)], context=0.25)
    first, second, again = (sources(data, epoch, tokenizer) for epoch in (0, 1, 0))
    assert first == again != second
    assert 60 < sum("|" in source for source in first) < 140


# A model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A model that has learned which pronoun follows which noun, in ``runs/config``."""
    folder = tmp_path_factory.mktemp("context")
    for name, n, seed in (("train", 150, 1), ("valid", 5, 2)):
        lines = [f"{pair.src}\t{pair.tgt}\n" for pair in stories(n, seed)]
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    config = {
        "data": {
            "src_lang": "en",
            "tgt_lang": "de",
            "train": [{"tsv": "train.tsv"}],
            "valid": [{"tsv": "valid.tsv"}],
            "context": 0.7,
        },
        "model": {"d_model": 32, "n_heads": 2, "d_ff": 64, "n_encoder_layers": 1, "n_decoder_layers": 1, "dropout": 0},
        "training": {
            "max_steps": 250,
            "max_tokens": 512,
            "learning_rate": 0.01,
            "warmup_steps": 10,
            "precision": "fp32",  # which is faster in a model so small
        },
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    project = Project(folder, path)
    result = project.mtformer("train", path)
    assert result.status == 0, result.stderr
    return project


def translator_of(model: Project, **settings: Any) -> Translator:
    return Translator.load(model.folder / "runs" / "config", device="cpu", **settings)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_model_finds_what_it_is_in_the_sentence_before(model: Project, engine: str) -> None:
    texts = [f"The {noun} sleeps. It eats." for noun in NOUNS]
    found = translator_of(model, engine=engine).translate(texts)
    assert [best.text for [best] in found] == [f"{article} schläft. {it} isst." for article, it in NOUNS.values()]
    assert not any(best.notes for [best] in found)


def test_scores_are_those_of_translations_and_prefer_the_right_pronoun(model: Project) -> None:
    translator = translator_of(model)
    src = "The cat runs. It sees."
    [[best]] = translator.translate([src])
    tgts = [best.text, "Die Katze läuft. Er sieht.", "Die Katze läuft. Es sieht."]
    right, *wrong = translator.score([src] * 3, tgts)
    assert right.log_prob == pytest.approx(best.log_prob, abs=1e-3)
    assert all(each.log_prob < right.log_prob - 1 for each in wrong)
    [alignment] = translator.align([src], [best.text])
    assert all(src[slice(*link.src)].strip() and best.text[slice(*link.tgt)].strip() for link in alignment.links())


def reads_of(translator: Translator) -> list[list[int]]:
    """Return a list that gets the sources that the model reads from now on."""
    read, submit = list[list[int]](), translator.engine.submit

    def watch(given: Any, **rest: Any) -> Any:
        read.extend(list(request.src) for request in given)
        return submit(given, **rest)

    translator.engine.submit = watch  # type: ignore[method-assign,assignment]
    return read


def test_a_sentence_is_read_after_one_from_the_memory(model: Project) -> None:
    translator = translator_of(model, memory=TranslationMemory([("The cat sees.", "Die Katze sieht.")]))
    tokenizer, read = translator.tokenizer, reads_of(translator)
    assert tokenizer.context_end is not None
    before, *alone = tokenizer.encode_src(["The cat sees.", "The dog runs.", "It eats."])
    [[best]] = translator.translate(["The dog runs. The cat sees. It eats."])
    assert best.text == "Der Hund läuft. Die Katze sieht. Sie isst."
    assert sorted(read) == sorted([alone[0], [*before[:-1], tokenizer.context_end, *alone[1]]])


def test_the_page_of_a_server_shows_sentences_read_after_the_one_before(model: Project) -> None:
    translator = translator_of(model)
    texts = [f"The {noun} runs. It sees.\nIt eats." for noun in NOUNS]
    pages = succeeded(run((plan_segments(translator, text) for text in texts), translator.engine))
    assert [page["text"] for page in pages] == [best.text for [best] in translator.translate(texts)]


def test_explain_shows_the_last_sentence_after_the_one_before(model: Project) -> None:
    arguments = ["explain", "--model", "runs/config", "--format", "json"]
    for noun, (_, it) in NOUNS.items():
        result = model.mtformer(*arguments, f"It eats. The {noun} sleeps. It sees.", "--why-not", "eats")
        assert (result.status, result.stderr) == (0, "")
        [trace] = json.loads(result.stdout)["traces"]
        assert trace["target"]["text"] == f"{it} sieht."
        read = "".join(token["text"] for token in trace["source"]["tokens"])
        assert read == f"▁The▁{noun}▁sleeps.{CONTEXT}▁It▁sees.</s>"


@needs_browser
def test_a_lesson_says_what_is_read_first(model: Project, opener: Opener, tmp_path: Path) -> None:
    lesson = tmp_path / "lesson.html"
    result = model.mtformer("explain", "--model", "runs/config", "The dog runs. It sees.", "--output", lesson)
    assert result.status == 0, result.stderr
    with opener(lesson) as page:
        for text, n_contexts in (("", 1), ("It sees.", 0), ("It eats. The cat runs. It sees.", 1)):
            if text:
                page.get_by_label("Sentence", exact=True).fill(text)
            page.wait_for_selector("main[aria-busy=false]")
            expect(page.get_by_text("The sentence before <context> is read")).to_have_count(n_contexts)


def test_what_the_model_reads(model: Project) -> None:
    translator = translator_of(model, raw=False)
    tokenizer, read = translator.tokenizer, reads_of(translator)
    assert tokenizer.context_end is not None
    first, second = tokenizer.encode_src(["The dog runs.", "It eats."])
    translator.translate(["The dog runs. It eats."])
    assert sorted(read) == sorted([first, [*first[:-1], tokenizer.context_end, *second]])
    read.clear()
    translator.translate(["The dog runs.", "It eats."])  # texts of their own
    translator.translate(["The dog runs.\nIt eats."])  # lines
    assert sorted(map(tuple, read)) == sorted(map(tuple, [first, second] * 2))
    read.clear()
    long = "The " + "dog " * (translator.max_length - len(second))
    translator.translate([f"{long.strip()}. It eats."])
    assert second in read and not any(tokenizer.context_end in ids for ids in read)


def test_a_text_never_has_the_separator_and_tags_do_not_include_it(model: Project) -> None:
    tokenizer = load_bundle(model.folder / "runs" / "config" / "model.safetensors").tokenizer
    assert tokenizer.context_end not in tokenizer.encode_src([f"a {CONTEXT} b"])[0]
    assert CONTEXT not in tokenizer.control_symbols
    result = model.mtformer("translate", "It eats.", "--tag", "context")
    assert result.status == 2 and "it was trained without tags" in result.stderr


def test_fine_tuning_with_context_needs_a_model_that_has_it(model: Project, bundle: Path) -> None:
    base = ["--set", f"training.init_from={bundle}", "--set", "run.name=tuned"]
    small = ["--set", "model={}", "--set", "training.max_steps=1"]
    result = model.mtformer("train", "config.yaml", *base, *small)
    assert result.status == 2 and "no token that ends the previous sentence, which data.context needs" in result.stderr

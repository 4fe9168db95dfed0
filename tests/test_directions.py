"""Models of several directions: their config, training, use, evaluation and export."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from config_texts import load, problems
from conftest import EOS_ID, Project, Result, make_project, sentence_pairs
from engines import score

from mtformer.bundle.format import load_bundle
from mtformer.config import Config, LanguagePair, TokenizerConfig, dump_config
from mtformer.data.sources.parallel import ParallelText
from mtformer.data.tokens import Encoder
from mtformer.runs.folder import RunFolder
from mtformer.support.errors import UserError
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import PrefixIds, Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.translate.translator import Translator

DIRECTIONS = ["en-de", "de-en", "en-nl"]
TEXT = """\
data:
  directions: [en-de, de-en, en-zh_Hant]
  train:
    - {builtin: phrasebook}
    - {src: 'a.{src_lang}', tgt: 'a.{tgt_lang}', directions: [de-en]}
  valid: [{builtin: phrasebook, split: valid}]
"""

# The config


def test_each_source_is_read_for_its_directions(folder: Path) -> None:
    data = load(folder, TEXT).data
    assert [pair for source in data.train if (pair := source.languages)] == [
        *(LanguagePair("en", "de"), LanguagePair("de", "en"), LanguagePair("en", "zh_Hant")),
        LanguagePair("de", "en"),
    ]
    assert [source.directions for source in data.valid] == [["en-de"], ["de-en"], ["en-zh_Hant"]]
    assert (data.train[-1].src.name, data.train[-1].tgt.name) == ("a.de", "a.en")  # type: ignore[union-attr]
    assert (data.src_lang, data.tgt_lang) == ("mul", "mul")
    parts = ParallelText(data.train, data.src_lang, data.tgt_lang).parts()
    assert [(part.src_lang, part.tgt_lang) for part in parts][2:] == [("en", "zh_Hant"), ("de", "en")]


def test_a_written_config_of_several_directions_reads_back_equal(folder: Path) -> None:
    config = load(folder, TEXT)
    assert Config.model_validate(yaml.safe_load(dump_config(config))) == config


def test_one_direction_is_like_two_languages(folder: Path) -> None:
    text = TEXT.replace("[en-de, de-en, en-zh_Hant]", "[de-en]")
    assert (load(folder, text).data.src_lang, load(folder, text).data.tgt_lang) == ("de", "en")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("  train:", "  src_lang: en\n  train:", "C:1: data: give src_lang and tgt_lang, or directions, not both"),
        ("en-de,", "en-de, en-de,", "C:1: data: directions has duplicates: en-de, en-de, de-en, en-zh_Hant"),
        ("en-de,", "en-en,", "C:1: data: src_lang and tgt_lang are both en"),
        ("[de-en]", "[en-fr]", "C:5: data.train.1.tgt: there is no file a.fr"),
        (
            "split: valid",
            "split: valid, directions: [fr-en]",
            "a source of valid is for fr-en, which the model does not",
        ),
        ("phrasebook}", "phrasebook, directions: [en-de]}", "C:1: data: no source of train has en-zh_Hant"),
        ("phrasebook}", "phrasebook, sise: 3}", "C:4: data.train.0.sise: there is no such key; did you mean `size`?"),
    ],
)
def test_directions_that_cannot_be_are_refused(folder: Path, old: str, new: str, problem: str) -> None:
    [found] = problems(folder, TEXT.replace(old, new, 1))
    assert problem in found


# Tokens


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    pairs = [SentencePair(*pair) for pair in sentence_pairs(100)]
    config = TokenizerConfig(vocab_size=320)
    return train_tokenizer(pairs, config, ["en", "de"], ["de", "en"], control_symbols=["<2de>", "<2en>", "<bt>"])


def test_a_view_puts_control_tokens_in_front_of_sources_alone(tokenizer: Tokenizer) -> None:
    view = tokenizer.with_prefixes(tokenizer.prefixes_of(["<2de>", "<bt>"]))
    [plain], [tagged] = tokenizer.encode_src(["the dog"]), view.encode_src(["the dog"])
    assert tagged == [*tokenizer.prefixes_of(["<2de>", "<bt>"]).src, *plain]
    assert view.encode_tgt(["the dog"]) == [plain]
    assert view.decode_src(tagged) == "the dog"
    assert view.src.spans("the dog", tagged[:-1])[:2] == [(0, 0), (0, 0)]
    assert view.src.spans("the dog", tagged[:-1])[2:] == tokenizer.src.spans("the dog", plain[:-1])
    assert view.with_prefixes(PrefixIds()).encode_src(["the dog"]) == [plain]
    assert tokenizer.control_symbols == ["<2de>", "<2en>", "<bt>"]


def test_no_text_becomes_a_control_token(tokenizer: Tokenizer) -> None:
    tags = set(tokenizer.prefixes_of(tokenizer.control_symbols).src)
    assert tags.isdisjoint(tokenizer.encode_src(["<2de> the dog <bt>"])[0])
    with pytest.raises(UserError, match="no control token <2fr>"):
        tokenizer.prefixes_of(["<2fr>"])
    with pytest.raises(UserError, match="no control token ▁the"):
        tokenizer.prefixes_of(["▁the"])


# A model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A model of three directions that has hardly learned anything, in ``runs/config``."""
    folder = tmp_path_factory.mktemp("directions")
    project = make_project(folder, max_steps=12, learning_rate=0.01, validate_every=6)
    for name in ("train", "valid", "test"):
        lines = (folder / f"{name}.en").read_text().splitlines()
        (folder / f"{name}.nl").write_text("".join(f"{line[::-1]}\n" for line in lines))
    config = yaml.safe_load(project.config.read_text())
    sources = {
        name: [{"src": f"{name}.{{src_lang}}", "tgt": f"{name}.{{tgt_lang}}"}] for name in ("train", "valid", "test")
    }
    data = {"directions": DIRECTIONS, **sources}
    project.config.write_text(yaml.safe_dump(config | {"data": data, "eval": {"n_samples": 2}}))
    result = project.mtformer("train", project.config)
    assert result.status == 0, result.stderr
    return project


def run_of(project: Project) -> Path:
    return project.folder / "runs" / "config"


def test_a_direction_whose_validation_text_is_empty_is_an_error(model: Project) -> None:
    (model.folder / "empty.tsv").touch()
    valid = "data.valid=[{src: valid.en, tgt: valid.de, directions: [en-de]}, {tsv: empty.tsv, directions: [de-en]}]"
    result = model.mtformer("train", model.config, "--dry-run", "--fresh", "--set", valid)
    assert result.status == 2
    assert "Error: there are no validation pairs from de to en\n" in result.stderr


def test_a_direction_without_validation_text_is_warned_of(model: Project) -> None:
    valid = "data.valid=[{src: valid.en, tgt: valid.de, directions: [en-de]}]"
    result = model.mtformer("train", model.config, "--dry-run", "--fresh", "--set", valid)
    assert result.status == 0, result.stderr
    assert "no validation text for de-en, en-nl: the best model is chosen without it\n" in result.stderr


def test_validation_scores_each_direction_and_chooses_by_the_mean(model: Project) -> None:
    lines = [json.loads(line) for line in (run_of(model) / "metrics.jsonl").read_text().splitlines()]
    scored = [line for line in lines if "valid_loss" in line]
    assert len(scored) == 2
    for line in scored:
        for name in ("loss", "bleu"):
            of_each = [line[f"valid_{name}_{direction}"] for direction in DIRECTIONS]
            assert line[f"valid_{name}"] == pytest.approx(sum(of_each) / 3)
    header = load_bundle(run_of(model) / "model.safetensors").header
    assert header.scores["loss_en-nl"] == pytest.approx(scored[-1]["valid_loss_en-nl"])
    assert header.directions == tuple(DIRECTIONS)
    samples = json.loads((run_of(model) / "samples.jsonl").read_text().splitlines()[-1])["samples"]
    assert [sample["direction"] for sample in samples] == ["en-de"] * 2 + ["de-en"] * 2 + ["en-nl"] * 2
    texts = dict(
        zip(*((model.folder / f"valid.{side}").read_text().splitlines() for side in ("de", "en")), strict=True)
    )
    assert all(texts[sample["src"]] == sample["ref"] for sample in samples[2:4])


def test_the_validation_loss_is_that_of_tagged_sources(model: Project) -> None:
    bundle = load_bundle(run_of(model) / "model.safetensors")
    pairs = [
        SentencePair(*pair)
        for pair in zip(
            *((model.folder / f"valid.{side}").read_text().splitlines() for side in ("en", "nl")), strict=True
        )
    ]
    corpus = Encoder(bundle.tokenizer, max_length=255, max_ratio=100).corpus(pairs)
    [tag] = bundle.tokenizer.prefixes_of(["<2nl>"]).src
    engine = Translator.load(bundle.toward(tgt_lang="nl")).engine
    rows = range(len(corpus))
    found = score(engine, [[tag, *corpus.src[i]] for i in rows], [corpus.tgt[i][:-1].tolist() for i in rows])
    n_tokens = sum(map(len, found))
    assert -sum(map(sum, found)) / n_tokens == pytest.approx(bundle.header.scores["loss_en-nl"], abs=1e-4)


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_translator_asks_for_its_target_language(model: Project, engine: str) -> None:
    bundle = load_bundle(run_of(model) / "model.safetensors")
    texts = ["the red house.", "the dog sees the old house."]
    by_hand = Translator.load(bundle.toward("en", "de"))
    scores = []
    for language in ("de", "nl"):
        translator = Translator.load(run_of(model), engine=engine, tgt_lang=language, raw=True)
        assert (translator.src_lang, translator.tgt_lang) == ("en", language)
        prefix = bundle.tokenizer.prefixes_of([f"<2{language}>"]).src
        ids = [[*prefix, *row] for row in bundle.tokenizer.encode_src(texts)]
        targets = [row[:-1] for row in bundle.tokenizer.encode_tgt(["x", "y"])]
        expected = [sum(found) for found in score(by_hand.engine, ids, targets)]
        scores.append([one.log_prob for one in translator.score(texts, ["x", "y"])])
        assert scores[-1] == pytest.approx(expected, abs=1e-3)
    assert scores[0] != pytest.approx(scores[1], abs=1e-6)


def test_each_part_of_a_long_text_has_the_tag(model: Project) -> None:
    translator = Translator.load(run_of(model), tgt_lang="de", raw=True)
    tag, *_ = translator.tokenizer.prefixes.src
    requests: list[Any] = []
    engine, submit = translator.engine, translator.engine.submit
    engine.submit = lambda given, **rest: requests.extend(given) or submit(given, **rest)  # type: ignore[func-returns-value,method-assign]
    text = "the red house sees the old dog. " * 60
    translator.translate([text, ""])
    sources = [list(request.src) for request in requests]
    assert len(sources) > 1 and all(len(src) <= translator.max_length for src in sources)
    assert all(src[0] == tag and src[-1] == EOS_ID and tag not in src[1:] for src in sources)
    whole = [i for src in sources for i in src[1:-1]]
    assert whole == translator.tokenizer.encode_src([text])[0][1:-1]
    [alignment] = translator.align([text], ["der Hund " * 40])
    assert all(text[start:end].strip() for start, end in (link.src for link in alignment.links()))


def test_score_and_explain_take_a_direction(model: Project) -> None:
    translator = Translator.load(run_of(model), tgt_lang="nl")
    expected = [one.log_prob for one in translator.score(["the red house."], ["x"])]
    (model.folder / "pair.tsv").write_text("the red house.\tx\n")
    result = model.mtformer("score", "--input", "pair.tsv", "--to", "nl")
    assert float(result.stdout) == pytest.approx(expected[0], abs=1e-3)
    trace = model.mtformer("explain", "the dog", "--to", "nl", "--format", "json").stdout
    assert '"<2nl>"' in trace
    empty = model.mtformer("explain", " ", "--to", "nl")
    assert empty.status == 2 and "the text is empty" in empty.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the model translates en-de, de-en, en-nl: name the target language (--to)"),
        (["--from", "en"], "the model translates en-de, de-en, en-nl: name the target language (--to)"),
        (["--to", "fr"], "the model does not translate to fr; it translates en-de, de-en, en-nl"),
        (["--from", "nl", "--to", "en"], "the model does not translate from nl to en; it translates en-de, de-en"),
        (["--to", "en", "--tag", "bt"], "the model has no tag 'bt'; it was trained without tags"),
    ],
)
def test_a_direction_that_is_open_or_unknown_is_an_error(model: Project, arguments: list[str], message: str) -> None:
    result = model.mtformer("translate", "the dog", "--engine", "torch", *arguments)
    assert result.status == 2 and message in result.stderr and not result.stdout


def test_a_model_of_one_direction_accepts_its_own_languages_alone(trained: Project) -> None:
    assert trained.mtformer("translate", "the dog", "--to", "de", "--from", "en").status == 0
    result = trained.mtformer("translate", "the dog", "--to", "en")
    assert result.status == 2 and "the model does not translate to en; it translates en-de" in result.stderr


def test_eval_scores_each_direction_on_its_own_test_set(model: Project) -> None:
    result = model.mtformer("eval", "--json")
    assert result.status == 0, result.stderr
    found = json.loads(result.stdout)
    assert list(found["directions"]) == DIRECTIONS
    alone = json.loads(model.mtformer("eval", "--json", "--to", "nl").stdout)
    files = ["--src", "test.en", "--ref", "test.nl"]
    given = json.loads(model.mtformer("eval", "--json", "--to", "nl", *files).stdout)
    assert found["directions"]["en-nl"]["scores"] == alone["scores"] == given["scores"]
    chrf = [s["score"] for one in found["directions"].values() for s in one["scores"] if s["name"] == "chrF2"]
    assert len(chrf) == 3 and found["means"]["chrF2"] == pytest.approx(sum(chrf) / 3, abs=0.01)
    table = model.mtformer("eval", "--from", "en").stdout.split("\n\n")[-1].splitlines()
    assert [line.split()[0] for line in table] == ["direction", "en-de", "en-nl", "mean"]


def test_eval_leaves_out_directions_that_have_no_test_set(model: Project, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(run_of(model), run)
    config = RunFolder(run).config
    settings = yaml.safe_load(config.read_text())
    settings["data"]["test"] = [one for one in settings["data"]["test"] if one["directions"] != ["de-en"]]
    config.write_text(yaml.safe_dump(settings))
    result = model.mtformer("eval", "--json", "--beam-size", "1", "--model", run)
    assert list(json.loads(result.stdout)["directions"]) == ["en-de", "en-nl"]
    assert "not scored, since the run has no test set for it: de-en" in result.stderr


def test_the_translations_of_several_directions_do_not_fit_into_one_file(model: Project) -> None:
    result = model.mtformer("eval", "--output", "hyp.txt")
    assert result.status == 2
    assert (
        "--output takes the translations of one direction, of en-de, de-en, en-nl: add --from and --to" in result.stderr
    )


def test_reports_and_lists_know_of_several_directions(model: Project) -> None:
    assert model.mtformer("report", run_of(model)).status == 0
    page = (run_of(model) / "report.html").read_text()
    assert "en → de, de → en, en → nl" in page and "source, de-en" in page
    assert "3 directions" in model.mtformer("runs").stdout
    assert json.loads(model.mtformer("runs", "--json").stdout)[0]["directions"] == DIRECTIONS


def test_an_exported_model_has_all_directions(model: Project) -> None:
    assert model.mtformer("export", run_of(model), "--to", "ctranslate2", "--output", "exported").status == 0
    assert '["<2de>"] + source.encode' in (model.folder / "exported/README.md").read_text()
    command = ("translate", "the red house.", "--raw", "--beam-size", "1")  # with more beams, the engines may differ
    lines = [
        model.mtformer(*command, "--to", "nl", "--model", path, "--engine", engine).stdout
        for path, engine in (("exported", "auto"), (run_of(model), "torch"))
    ]
    assert lines[0] == lines[1]
    texts = ["--vocabulary-map", "train.en", "train.de"]
    refused = model.mtformer("export", run_of(model), "--to", "ctranslate2", "--output", "other", *texts)
    assert refused.status == 2 and "--vocabulary-map needs a model of one direction" in refused.stderr


def test_compare_chooses_a_direction(model: Project) -> None:
    reference = ["--src", "test.en", "--ref", "test.de"]
    refused = model.mtformer("compare", run_of(model), "test.de", *reference)
    assert refused.status == 2 and "translates en-de, de-en, en-nl: choose one direction with --pair" in refused.stderr
    result = model.mtformer("compare", run_of(model), "test.de", "--pair", "en-de", *reference, "--format", "json")
    assert result.status == 0, result.stderr
    assert "100.0" in result.stdout


def add_language(model: Project, folder: Path, **training: object) -> Result:
    """Fine-tune the model for a step with a target language that is new to it."""
    for name in ("train", "valid"):
        for language, new in (("en", "en"), ("nl", "fr"), ("de", "de")):
            shutil.copy(model.folder / f"{name}.{language}", folder / f"{name}.{new}")
    config = yaml.safe_load(model.config.read_text())
    sources = {name: [{"src": f"{name}.{{src_lang}}", "tgt": f"{name}.{{tgt_lang}}"}] for name in ("train", "valid")}
    settings = {"max_steps": 1, "learning_rate": 1e-9, "init_from": str(run_of(model)), "like": {"fr": "nl"}}
    config = {"data": {"directions": ["en-de", "en-fr"], **sources}, "training": {**settings, **training}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return Project(folder, folder / "config.yaml").mtformer("train", folder / "config.yaml")


def test_a_new_target_language_starts_like_a_related_one(model: Project, tmp_path: Path) -> None:
    result = add_language(model, tmp_path)
    assert result.status == 0, result.stderr
    before, after = (load_bundle(folder / "runs/config/model.safetensors") for folder in (model.folder, tmp_path))
    assert after.tokenizer.src_vocab_size == before.tokenizer.src_vocab_size + 1
    assert after.header.directions == ("en-de", "en-fr")
    [new], [old] = (after.tokenizer.src.control_ids([tag]) for tag in ("<2fr>", "<2nl>"))
    embeddings = [bundle.model.src_embedding.weight for bundle in (before, after)]
    assert torch.allclose(embeddings[1][new], embeddings[0][old], atol=1e-6)
    assert torch.allclose(embeddings[1][:new], embeddings[0], atol=1e-6)
    french, dutch = Translator.load(after, tgt_lang="fr"), Translator.load(before, tgt_lang="nl")
    assert french.translate(["the red house."])[0][0].text == dutch.translate(["the red house."])[0][0].text


@pytest.mark.parametrize(
    ("training", "told"),
    [
        ({"like": {"fr": "it"}}, "training.like: it lacks the token <2it>"),
        ({"like": {}}, "it has no tokens <2fr>, which data.directions or a tag needs (training.like adds"),
        ({"like": {"de": "nl"}}, "training.like: it has the token <2de>"),
        ({"init_from": None}, "like without init_from"),
        ({"lora": {}}, "like with lora"),
    ],
)
def test_a_language_that_cannot_be_added_is_refused(
    model: Project, tmp_path: Path, training: dict[str, object], told: str
) -> None:
    result = add_language(model, tmp_path, **training)
    assert result.status == 2
    assert told in result.stderr

"""Annotated terms: training pairs with them, translations that copy them, and their markers."""

import json
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from conftest import EOS_ID, GERMAN, GERMAN_VERBS, Project, make_project, sentence_pairs, varied_corpus

from mtformer.bundle.format import load_bundle
from mtformer.config import TokenizerConfig
from mtformer.data.augment import EncodedPair, TermSampler
from mtformer.data.tokens import Encoder, Variation
from mtformer.runs.checkpoints import list_checkpoints
from mtformer.search.engine import Request, SearchRequest
from mtformer.support.errors import UserError
from mtformer.text.glossary import Glossary
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import MARKERS, Annotator, Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.text.tokenizer.vocabulary import byte_of
from mtformer.text.words import find_words, word_rule
from mtformer.translate.translator import Translator

PAIRS = [SentencePair(*pair) for pair in sentence_pairs(200)]
CHINESE = [SentencePair("I ate chips.", "我吃了薯片。"), SentencePair("He buys chips.", "他买薯片。")] * 50
TERMS = [("dog", "Hund"), ("red house", "rote Haus"), ("car", "Auto"), ("garden", "Garten")]


def tokenizer_with_markers(pairs: list[SentencePair] = PAIRS, tgt_lang: str = "de", **config: object) -> Tokenizer:
    settings = TokenizerConfig.model_validate({"vocab_size": 330, "joint": True, **config})
    return train_tokenizer(pairs, settings, "en", tgt_lang, adjust=True, control_symbols=MARKERS)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return tokenizer_with_markers()


def shown(tokenizer: Tokenizer, ids: list[int]) -> str:
    """Return the text that tokens spell, with a bar for the space before a word."""
    spelled = [bytes([byte]) if (byte := byte_of(token)) else token.encode() for token in tokenizer.src_tokens(ids)]
    return b"".join(spelled).decode().replace("▁", "|")


def annotated(tokenizer: Tokenizer, text: str, glossary: Glossary, tgt_lang: str = "de") -> str:
    matches = glossary.find(text, word_rule("en"))
    return shown(tokenizer, Annotator(tokenizer, tgt_lang).encode(text, matches))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a small dog sees.", "|a|small<term>|dog<is>|Hund</term>|sees.</s>"),
        ("dog", "<term>|dog<is>|Hund</term></s>"),
        (
            "the red house, (dog) car.",
            "|the<term>|red|house<is>|rote|Haus</term>,|(<term>dog<is>|Hund</term>)<term>|car<is>|Auto</term>.</s>",
        ),
        ("a dogs", "|a|dogs</s>"),
    ],
)
def test_translations_stand_beside_terms(tokenizer: Tokenizer, text: str, expected: str) -> None:
    assert annotated(tokenizer, text, Glossary(TERMS)) == expected


def test_chinese_translations_have_the_tokens_that_they_have_within_a_sentence() -> None:
    tokenizer = tokenizer_with_markers(CHINESE, "zh")
    text = "I ate chips."
    assert annotated(tokenizer, text, Glossary([("chips", "薯片")]), "zh") == ("|I|ate<term>|chips<is>薯片</term>.</s>")


def test_text_around_terms_keeps_its_tokens(tokenizer: Tokenizer) -> None:
    for pair in PAIRS:
        matches = Glossary(TERMS).find(pair.src, word_rule("en"))
        ids = Annotator(tokenizer, "de").encode(pair.src, matches)
        kept, is_translation = [], False
        begin, middle, end = tokenizer.markers or ()
        for i in ids:
            is_translation = i == middle or (is_translation and i != end)
            if not is_translation and i not in (begin, end):
                kept.append(i)
        assert kept == tokenizer.encode_src([pair.src])[0]


@pytest.mark.parametrize("type", ["unigram", "bpe"])
def test_no_text_becomes_a_marker(type: str) -> None:
    pairs = [*PAIRS, *[SentencePair(" ".join(MARKERS), "".join(MARKERS))] * 50]
    tokenizer = tokenizer_with_markers(pairs, type=type)
    markers = set(tokenizer.markers or ())
    assert len(markers) == 3 and min(markers) > EOS_ID
    for text in ["<term>", "a <term>dog<is>Hund</term>", "".join(MARKERS), "<is> </term>"]:
        for ids in (*tokenizer.encode_src([text]), *tokenizer.encode_tgt([text])):
            assert markers.isdisjoint(ids)
            assert tokenizer.decode(ids) == text
        assert markers.isdisjoint(tokenizer.encode_tgt_inside(text))
    evil = Glossary([("<term>", "</term>")])
    ids = Annotator(tokenizer, "de").encode("a <term> b", evil.find("a <term> b", word_rule("en")))
    assert [ids.count(marker) for marker in tokenizer.markers or ()] == [1, 1, 1]


def test_markers_spell_nothing(tokenizer: Tokenizer) -> None:
    begin, middle, end = tokenizer.markers or ()
    ids = tokenizer.encode_tgt(["ein Hund"])[0]
    assert tokenizer.decode([begin, *ids[:-1], middle, end]) == "ein Hund"


@pytest.mark.parametrize("joint", [True, False])
def test_other_tokenizers_have_no_markers(joint: bool) -> None:
    config = TokenizerConfig(vocab_size=330, joint=joint)
    tokenizer = train_tokenizer(PAIRS, config, "en", "de", adjust=True)
    assert tokenizer.markers is None
    assert not set(MARKERS) & set(tokenizer.src_tokens(range(tokenizer.src_vocab_size)))


def sampler(
    tokenizer: Tokenizer, share: float = 1.0, seed: int = 1, terms: list[tuple[str, str]] = TERMS
) -> TermSampler:
    return TermSampler(Glossary(terms), tokenizer, src_lang="en", tgt_lang="de", share=share, seed=seed)


def sides(tokenizer: Tokenizer, row: EncodedPair) -> tuple[str, str]:
    """Return the two sides of a pair as text."""
    return shown(tokenizer, row.src).replace("|", " ").removesuffix("</s>").strip(), tokenizer.decode(row.tgt)


def test_only_terms_whose_translations_are_in_the_target_are_annotated(tokenizer: Tokenizer) -> None:
    pairs = [
        SentencePair("the dog sees a car", "der Hund sieht ein Fahrrad"),
        SentencePair("dog dog", "Hund Hunde"),
        SentencePair("the cat", "die Katze"),
        SentencePair("dogs", "Hund"),
        SentencePair("the red house", "das rote Haus"),
    ]
    terms = [("dog", "Hund"), ("car", "Auto"), ("red", "rote Haus"), ("house", "Haus")]
    rows = sampler(tokenizer, terms=terms).annotated(pairs, 0, epoch=0)
    assert sorted(rows) == [0, 1, 4]
    for row in rows.values():
        assert shown(tokenizer, row.src).count("<term>") == 1


def test_the_target_has_the_translations_that_the_source_is_annotated_with(tokenizer: Tokenizer) -> None:
    pairs = [SentencePair("the dog and a car, a dog", "der Hund und ein Auto, ein Hund")] * 500
    seen = Counter[str]()
    for row in sampler(tokenizer).annotated(pairs, 0, epoch=0).values():
        src, tgt = sides(tokenizer, row)
        plain = re.sub("<term>( .*?)<is> .*?</term>", r"\1", src)
        assert plain == pairs[0].src
        annotations = dict.fromkeys(re.findall("<term> (?:.*?)<is> (.*?)</term>", src))
        seen.update(list(annotations))
        assert all(find_words(tgt, word, word_rule("de")) for word in annotations)
        expected = "der {} und ein {}, ein {}"
        words = re.findall("der (.*) und ein (.*), ein (.*)", tgt)[0]
        assert set(words) <= {"Hund", "Auto", *annotations} and expected.format(*words) == tgt
    translations = {tgt for _, tgt in TERMS}
    assert translations <= set(seen)  # those of other terms
    assert len(set(seen) - translations) > 20  # words made up from two


def test_half_of_the_translations_are_replaced_and_any_number_of_terms_annotated(tokenizer: Tokenizer) -> None:
    pairs = [SentencePair("dog car garden", "Hund Auto Garten")] * 2_000
    rows = sampler(tokenizer, share=0.5).annotated(pairs, 0, epoch=0)
    assert len(rows) == pytest.approx(1_000, abs=100)
    texts = [sides(tokenizer, row)[0] for row in rows.values()]
    counts = Counter(text.count("<term>") for text in texts)
    assert set(counts) == {1, 2, 3} and min(counts.values()) > 250
    usual = sum(text.count(f"<term> {src}<is> {tgt}</term>") for text in texts for src, tgt in TERMS)
    assert usual / sum(text.count("<term>") for text in texts) == pytest.approx(0.6, abs=0.06)


def test_epochs_and_seeds_draw_other_terms_and_the_same_again(tokenizer: Tokenizer) -> None:
    def rows(seed: int, epoch: int) -> dict[int, EncodedPair]:
        return sampler(tokenizer, 0.5, seed).annotated(PAIRS, 0, epoch)

    assert rows(1, 3) == rows(1, 3)
    assert rows(1, 3) != rows(1, 4)
    assert rows(1, 3) != rows(2, 3)


def test_annotations_leave_the_choice_of_pairs_as_it_is(tokenizer: Tokenizer) -> None:
    longest = max(map(len, tokenizer.encode_src([pair.src for pair in PAIRS])))
    long = [("dog", "Hund"), ("car", "Auto" + " und Auto" * 50)]
    pairs = [*PAIRS, SentencePair("a car", "ein " + long[1][1])]
    encoder = Encoder(tokenizer, longest + 2, 6.0)
    plain = encoder.corpus(pairs)
    corpus = varied_corpus(encoder, pairs, Variation(encoder, 0, terms=sampler(tokenizer, terms=long)))
    assert corpus.numbers.tolist() == plain.numbers.tolist() and corpus.dropped == plain.dropped
    assert sum(corpus.src.lengths) > sum(plain.src.lengths)
    assert max(corpus.src.lengths) <= longest + 2


def soft_project(folder: Path, **training: Any) -> Project:
    """Write a project whose model learns from annotated terms: all verbs and some nouns."""
    project = make_project(folder, **training)
    verbs = zip(["sees", "likes", "finds", "needs"], GERMAN_VERBS, strict=True)
    nouns = zip(["house", "dog", "friend", "car"], [text.split()[-1] for text in GERMAN], strict=False)
    (folder / "terms.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in [*verbs, *nouns]), encoding="utf-8")
    config = yaml.safe_load(project.config.read_text(encoding="utf-8"))
    config["data"] |= {"terms": "terms.tsv", "terms_share": 0.5}
    project.config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return project


@pytest.fixture(scope="module")
def soft(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with annotated terms and a run of two and a half epochs, with all its checkpoints."""
    settings = {"max_steps": 30, "checkpoint_every": 4, "keep_last": 10, "validate_every": 15}
    project = soft_project(tmp_path_factory.mktemp("soft") / "project", **settings)
    done = project.mtformer("train", project.config)
    assert done.status == 0, done.stderr
    return project


def test_a_run_that_is_resumed_within_an_epoch_ends_with_the_same_weights(soft: Project, tmp_path: Path) -> None:
    folder = tmp_path / "moved"
    shutil.copytree(soft.folder, folder)
    run = folder / "runs/config"
    for checkpoint in list_checkpoints(run / "checkpoints"):
        if checkpoint.name > "step-000016":
            shutil.rmtree(checkpoint)
    model = run / "model.safetensors"
    model.unlink()
    resumed = Project(folder, folder / "config.yaml")
    done = resumed.mtformer("train", resumed.config)
    assert done.status == 0 and "resuming from step 16" in done.stderr, done.stderr
    before, after = (load_bundle(path) for path in (soft.folder / "runs/config/model.safetensors", model))
    assert before.header.scores == after.header.scores
    old, new = before.model.state_dict(), after.model.state_dict()
    assert all(torch.equal(old[name], new[name]) for name in old)


def test_a_run_is_not_resumed_with_another_glossary_or_share(soft: Project, tmp_path: Path) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(soft.folder, folder)
    project = Project(folder, folder / "config.yaml")
    done = project.mtformer("train", project.config, "--set", "data.terms_share=0.4")
    assert done.status == 2 and "data.terms_share was 0.5, is now 0.4" in done.stderr
    (folder / "terms.tsv").write_text("dog\tKatze\n", encoding="utf-8")
    done = project.mtformer("train", project.config)
    assert done.status == 2 and "the glossary of data.terms has changed" in done.stderr


def test_a_glossary_is_warned_of_once(project: Project) -> None:
    (project.folder / "terms.tsv").write_text("Source\tTarget\ndog\tHund\n", encoding="utf-8")
    done = project.mtformer("train", project.config, "--dry-run", "--set", f"data.terms={project.folder / 'terms.tsv'}")
    assert (done.status, done.stderr.count("is read as a term")) == (0, 1), done.stderr


def test_a_model_says_what_it_was_trained_with_and_not_where(soft: Project) -> None:
    bundle = load_bundle(soft.folder / "runs/config/model.safetensors")
    provenance = bundle.header.provenance
    assert bundle.tokenizer.joint and bundle.tokenizer.markers is not None
    assert provenance["config"]["data"]["terms"] == "terms.tsv"
    assert len(provenance["fingerprints"]["terms"]) == 16


LINE = "A small dog sees the green car."
GLOSSARY = "dog\tKöter\ncar\tAuto\n"


@pytest.fixture
def glossary(tmp_path: Path) -> Path:
    path = tmp_path / "terms.tsv"
    path.write_text(GLOSSARY, encoding="utf-8")
    return path


def requests_of(translator: Translator, texts: list[str]) -> list[SearchRequest]:
    """Return what the engine is asked for."""
    asked: list[SearchRequest] = []
    engine = translator.engine

    class Observed:
        def submit(self, requests: list[Request[Any]], **rest: Any) -> Any:
            asked.extend(request for request in requests if isinstance(request, SearchRequest))
            return engine.submit(requests, **rest)

        def __getattr__(self, name: str) -> Any:
            return getattr(engine, name)

    observed: Any = Observed()
    replace(translator, engine=observed, guard=None).translate(texts)
    return asked


@pytest.mark.parametrize(
    ("mode", "is_annotated", "is_constrained"), [("hard", False, True), ("soft", True, False), ("both", True, True)]
)
def test_soft_terms_are_annotated_and_hard_ones_constrain_the_search(
    soft: Project, glossary: Path, mode: str, is_annotated: bool, is_constrained: bool
) -> None:
    translator = Translator.load(soft.folder / "runs/config", "cpu", terms=glossary, terms_mode=mode)
    tokenizer = translator.tokenizer
    annotated, plain = requests_of(translator, [LINE, "my old friend."])
    text = shown(tokenizer, list(annotated.src))
    assert ("<term>|dog<is>|Köter</term>" in text and "<term>|car<is>|Auto</term>." in text) is is_annotated
    assert (annotated.constraint is not None) is is_constrained
    assert plain.src == tokenizer.encode_src(["my old friend."])[0] and plain.constraint is None


def test_terms_are_annotated_in_what_the_preparations_leave(soft: Project) -> None:
    terms = Glossary([("dog", "Hund"), ("car", "Auto")])
    translator = Translator.load(soft.folder / "runs/config", "cpu", terms=terms, terms_mode="soft")
    asked = requests_of(translator, ["A SMALL DOG SEES THE CAR. This <b>dog</b> sees."])
    texts = [shown(translator.tokenizer, list(request.src)) for request in asked]
    assert [text.count("<term>|dog<is>|Hund</term>") for text in texts] == [1, 1]
    assert [text.count("<term>|car<is>|Auto</term>") for text in texts] == [1, 0]


def test_each_part_of_a_long_line_has_its_terms_and_no_more_tokens_than_the_model_takes(soft: Project) -> None:
    monster = " ".join(["Hund"] * 400)
    terms = Glossary([("dog", "Hund"), ("car", monster), ("house", "Haus")])
    translator = Translator.load(soft.folder / "runs/config", "cpu", terms=terms, terms_mode="soft", beam_size=1)
    line = " ".join(["a small dog sees the red house and this green car"] * 40)
    asked = requests_of(translator, [line])
    assert len(asked) > 1
    begin, *_ = translator.tokenizer.markers or ()
    assert all(len(request.src) <= translator.max_length for request in asked)
    assert sum(list(request.src).count(begin) for request in asked) > 20
    assert all("Hund|Hund" not in shown(translator.tokenizer, list(request.src)) for request in asked)
    [[best]] = translator.translate(["this green car."])
    assert f"the term 'car' is not translated as {monster!r}" in best.notes


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_the_command_reports_soft_terms(soft: Project, glossary: Path, engine: str) -> None:
    if engine == "ctranslate2":
        pytest.importorskip("ctranslate2")
    options: list[str | Path] = ["--terms", glossary, "--engine", engine, "--format", "json", "--model", "runs/config"]
    done = soft.mtformer("translate", *options, "--terms-mode", "soft", LINE)
    assert done.status == 0, done.stderr
    [best] = json.loads(done.stdout)["translations"]
    assert best["terms"] == [{"src": "dog", "tgt": "Köter"}, {"src": "car", "tgt": "Auto"}]
    assert "Köter" in best["text"] or "line 1: the term 'dog' is not translated as 'Köter'" in done.stderr
    assert not any(marker in best["text"] for marker in MARKERS)


def test_both_modes_together_guarantee_the_terms(soft: Project, glossary: Path) -> None:
    done = soft.mtformer("translate", "--terms", glossary, "--terms-mode", "both", "--model", "runs/config", LINE)
    assert done.status == 0 and "Köter" in done.stdout and "Auto" in done.stdout


def test_soft_terms_go_with_samples(soft: Project, glossary: Path) -> None:
    options: list[str | Path] = ["--terms", glossary, "--model", "runs/config", "--sample", LINE]
    assert soft.mtformer("translate", "--terms-mode", "soft", *options).status == 0
    done = soft.mtformer("translate", "--terms-mode", "both", *options)
    assert done.status == 2 and "terms cannot be combined with sample" in done.stderr


def test_other_models_have_no_soft_terms(trained: Project, glossary: Path) -> None:
    done = trained.mtformer("translate", "--terms", glossary, "--terms-mode", "soft", LINE)
    assert done.status == 2 and "soft terms need a model that was trained with annotated terms" in done.stderr
    with pytest.raises(UserError, match="terms_mode medium: it is hard, soft or both"):
        Translator.load(trained.folder / "runs/config", "cpu", terms=glossary, terms_mode="medium")


def test_a_mode_without_a_glossary_is_an_error(soft: Project) -> None:
    done = soft.mtformer("translate", "--terms-mode", "soft", "--model", "runs/config", LINE)
    assert done.status == 2 and "--terms-mode soft needs --terms FILE" in done.stderr


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("data.terms=nowhere.tsv", "there is no file"),
        ("data.terms_share=0", "allowed: more than 0"),
        ("tokenizer.joint=false", "data.terms with tokenizer.joint = false"),
        ("data.terms=null", "terms_share without terms"),
    ],
)
def test_settings_that_cannot_be_used_are_errors(soft: Project, setting: str, problem: str) -> None:
    done = soft.mtformer("train", soft.config, "--dry-run", "--set", setting)
    assert done.status == 2 and problem in done.stderr


def test_a_bad_glossary_is_an_error_before_training(tmp_path: Path) -> None:
    project = soft_project(tmp_path / "bad")
    (project.folder / "terms.tsv").write_text("dog Hund\n", encoding="utf-8")
    done = project.mtformer("train", project.config)
    assert done.status == 2 and "terms.tsv:1: this line has no tab" in done.stderr


def test_a_model_without_markers_cannot_be_fine_tuned_with_terms(trained: Project, tmp_path: Path) -> None:
    project = soft_project(tmp_path / "tuned", init_from=str(trained.folder / "runs/config/model.safetensors"))
    done = project.mtformer("train", project.config)
    assert done.status == 2 and "it has no tokens that mark terms, which data.terms needs" in done.stderr

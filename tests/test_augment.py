"""Variations of training pairs: each kind, how they are drawn, and what training makes of them."""

import pickle
import re
import runpy
import shutil
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
import torch
import yaml
from config_texts import MINIMAL, load, problems
from conftest import Project, make_project, sentence_pairs, varied_corpus
from test_corpus import rows_of

from mtformer.bundle.format import load_bundle
from mtformer.config import AugmentConfig, LanguagePair, TokenizerConfig
from mtformer.data.augment import Augmenter, TermSampler, TokenizerText
from mtformer.data.clean.filters import filters_of
from mtformer.data.sources.parallel import ParallelText
from mtformer.data.store import stored_text
from mtformer.data.tokens import Encoder, Variation
from mtformer.data.training import TrainingData
from mtformer.runs.checkpoints import list_checkpoints
from mtformer.text.glossary import Glossary
from mtformer.text.pairs import SentencePair
from mtformer.text.tags import all_tags
from mtformer.text.tokenizer.tokenizer import MARKERS, Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.translate.casing import Casing

ROOT = Path(__file__).parent.parent
NAMES = tuple(AugmentConfig.model_fields)
NONE = dict.fromkeys(NAMES, 0.0)
PAIRS = [SentencePair(f"{src[0].upper()}{src[1:]}", f"{tgt[0].upper()}{tgt[1:]}") for src, tgt in sentence_pairs(300)]
LONGER = SentencePair("The man in the red hat waves.", "Der Mann mit dem roten Hut winkt.")


def only(**shares: float) -> Augmenter:
    return Augmenter(AugmentConfig.model_validate(NONE | shares), seed=1)


def variations(pair: SentencePair, kind: str, n: int = 200) -> list[SentencePair]:
    """Vary a pair many times in one way; where nothing changes, the pair itself is not among them."""
    return list(only(**{kind: 1}).vary([pair] * n, 0, epoch=0).values())


def test_each_kind_varies_its_share_of_the_pairs() -> None:
    for name in NAMES:
        assert only().vary(PAIRS, 0, epoch=0) == {}
        assert len(only(**{name: 0.3}).vary([LONGER] * 2_000, 0, epoch=0)) == pytest.approx(600, abs=80), name
        assert len(variations(LONGER, name)) >= 190, name  # a typo may change nothing


def test_kinds_are_drawn_independently_of_each_other() -> None:
    varied = only(upper=0.5, emoji=0.5).vary([LONGER] * 2_000, 0, epoch=0).values()
    counts = Counter((pair.src.isupper(), pair.src.isascii()) for pair in varied)
    assert len(counts) == 3 and min(counts.values()) > 420
    alone = only(upper=0.5).vary([LONGER] * 2_000, 0, epoch=0)
    assert len(alone) == counts[True, False] + counts[True, True]


def test_variations_depend_on_the_number_of_the_pair_and_not_on_how_the_text_is_divided() -> None:
    augmenter = Augmenter(AugmentConfig(), seed=1)
    whole = augmenter.vary(PAIRS, 0, epoch=3)
    assert {i: pair for i, pair in whole.items() if i >= 100} == {
        100 + i: pair for i, pair in augmenter.vary(PAIRS[100:], 100, epoch=3).items()
    }
    assert whole == pickle.loads(pickle.dumps(augmenter)).vary(PAIRS, 0, epoch=3)  # as another process does it
    assert whole != augmenter.vary(PAIRS, 0, epoch=4)
    assert whole != augmenter.vary(PAIRS, 300, epoch=3)
    assert whole != Augmenter(AugmentConfig(), seed=2).vary(PAIRS, 0, epoch=3)


def test_variations_of_a_seed_stay_what_they_are() -> None:
    """A resumed run would otherwise see other pairs than before. If they must change, raise _VERSION."""
    varied = Augmenter(AugmentConfig.model_validate(dict.fromkeys(NAMES, 0.2)), seed=1).vary([LONGER] * 5, 0, epoch=0)
    assert {i: pair.src for i, pair in varied.items()} == {
        0: "The man in the red hat Waves.",
        1: "The man in the red hat 🎧 waves.",
        3: "The man in the red hat waces.",
    }


def test_turkish_capitals_have_dots() -> None:
    pair = SentencePair("it is ısı", "bir kedi ısırır")
    shares = AugmentConfig.model_validate(NONE | {"upper": 1})

    def varied(*languages: tuple[str, str]) -> list[SentencePair]:
        augmenter = Augmenter(shares, seed=1, languages=[LanguagePair(*codes) for codes in languages])
        return list(augmenter.vary([pair], 0, epoch=0).values())

    assert varied(("en", "tr"), ("de", "tr")) == [SentencePair("IT IS ISI", "BİR KEDİ ISIRIR")]
    assert varied(("tr", "az_Latn")) == [SentencePair("İT İS ISI", "BİR KEDİ ISIRIR")]
    assert varied(("en", "de")) == [SentencePair("IT IS ISI", "BIR KEDI ISIRIR")]
    assert varied(("en", "tr"), ("en", "de")) == []  # nothing tells which language a pair is in
    one, other = (Augmenter(shares, seed=1, languages=[LanguagePair("en", code)]) for code in ("tr", "de"))
    assert one.identity != other.identity


def test_typos_change_letters_of_the_source_within_words() -> None:
    pair = SentencePair("Write to mary@example.org about {first_name} is it.", "Schreib mary@example.org.")
    seen = set()
    for src, tgt in variations(pair, "typos", 1_000):
        assert tgt == pair.tgt
        assert "mary@example.org" in src and "{first_name}" in src and src.endswith(" is it.")
        assert src.startswith("W") and abs(len(src) - len(pair.src)) <= 2  # first letters stay
        seen.add(src.split()[0])
    assert {"Wirte", "Wrte", "Writte", "Wrute"} <= seen  # swapped, left out, doubled, a neighbour on the keyboard


def test_typos_in_chinese_swap_drop_or_double_characters() -> None:
    pair = SentencePair("我昨天买了薯片。", "I bought chips yesterday.")
    found = {src for src, _ in variations(pair, "typos", 500)}
    assert {"我昨天了买薯片。", "我昨天了薯片。", "我昨天买买了薯片。"} <= found
    assert all(set(src) <= set(pair.src) and src.endswith("。") for src in found)


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (("The dog's 3 cars.", "Die 3 Autos."), {("THE DOG'S 3 CARS.", "DIE 3 AUTOS.")}),
        (("Große Straße", "Big street"), {("GROSSE STRASSE", "BIG STREET"), ("GROẞE STRAẞE", "BIG STREET")}),
        (("Big street", "Große Straße"), {("BIG STREET", "GROSSE STRASSE")}),
        (("I ate.", "我吃了。"), {("I ATE.", "我吃了。")}),
        (("我在IBM工作过，他用iPhone。", "I worked at IBM, he has an iPhone."), set()),
        (("ALL CAPS", "Alles groß"), {("ALL CAPS", "ALLES GROSS")}),
        (("A dog.", "ძაღლი."), {("A DOG.", "ძაღლი.")}),
        (("ძაღლი.", "A dog."), set()),
    ],
)
def test_capitals(pair: tuple[str, str], expected: set[tuple[str, str]]) -> None:
    assert set(variations(SentencePair(*pair), "upper")) == {SentencePair(*varied) for varied in expected}


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (
            ("a man with 'old' hats is in it.", "ein Mann mit 'alten' Hüten ist da."),
            {
                ("A Man With 'Old' Hats Is In It.", "Ein Mann Mit 'Alten' Hüten Ist Da."),
                ("A man With 'old' Hats is in it.", "Ein Mann mit 'Alten' Hüten ist da."),
            },
        ),
        (("red hat", "红帽子"), {("Red Hat", "红帽子"), ("Red hat", "红帽子")}),
        (("他用iPhone。", "he has an iPhone"), set()),
    ],
)
def test_title_case(pair: tuple[str, str], expected: set[tuple[str, str]]) -> None:
    assert set(variations(SentencePair(*pair), "title")) == {SentencePair(*varied) for varied in expected}


@pytest.mark.parametrize("pair", [LONGER, SentencePair("Yes, he is not here.", "是的，他不在这里。")])
def test_an_emoji_is_the_same_on_both_sides_and_stands_between_words(pair: SentencePair) -> None:
    seen, places = set(), Counter[int]()
    for src, tgt in variations(pair, "emoji"):
        words = src.split(" ")
        [place] = [i for i in range(len(words)) if words[:i] + words[i + 1 :] == pair.src.split(" ")]
        seen.add(words[place])
        places[place] += 1
        assert re.sub(rf" ?{re.escape(words[place])} ?", "", tgt).replace(" ", "") == pair.tgt.replace(" ", "")
        assert re.search(rf"(?<!\S){re.escape(words[place])}(?!\S)", tgt)
        assert (place == 0) == tgt.startswith(words[place])
    n_words = len(pair.src.split(" "))
    assert set(places) == set(range(n_words + 1)) and places[n_words] >= 80  # mostly at the end
    assert len(seen) > 20


def test_emoji_are_assigned_characters_of_all_sorts() -> None:
    emoji = {
        src.removeprefix("Hi ").removesuffix(" Hi") for src, _ in variations(SentencePair("Hi", "Hi"), "emoji", 5_000)
    }
    assert len(emoji) > 400
    characters = {character for text in emoji for character in text}
    assert all(unicodedata.category(character) in ("So", "Sk", "Mn") for character in characters)
    assert {len(text) for text in emoji} == {1, 2}  # with skin tones, and signs that are shown as emoji


def test_empty_sides_stay_empty() -> None:
    pairs = [SentencePair("", "leer"), SentencePair(" ", ""), SentencePair("empty", "\t")]
    assert Augmenter(AugmentConfig.model_validate(dict.fromkeys(NAMES, 1)), seed=1).vary(pairs, 0, epoch=0) == {}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    text = TokenizerText(PAIRS, AugmentConfig(upper=0.3), seed=1)
    return train_tokenizer(text, TokenizerConfig(vocab_size=400, joint=True), "en", "de", control_symbols=MARKERS)


def test_the_tokenizer_has_tokens_for_capitals_and_not_for_typos_and_emoji(tokenizer: Tokenizer) -> None:
    plain = train_tokenizer(PAIRS, TokenizerConfig(vocab_size=300, joint=True), "en", "de")
    capitals = [pair.src.upper() for pair in PAIRS]
    assert 2 * sum(map(tokenizer.n_src_tokens, capitals)) < sum(map(plain.n_src_tokens, capitals))
    characters = tokenizer.src.characters or frozenset()
    assert not any(unicodedata.category(character) == "So" for character in characters)
    assert set("".join(capitals)) <= characters
    text = list(TokenizerText(PAIRS, AugmentConfig.model_validate(NONE | {"typos": 1, "emoji": 1}), seed=1))
    assert text == PAIRS


def test_capitals_are_undone_for_a_model_that_has_tokens_for_them(tokenizer: Tokenizer) -> None:
    ties = 0
    for pair in PAIRS:
        text = pair.src.upper()
        prepared = Casing(tokenizer, "en")(text)
        assert prepared and len(prepared.parts) == 1 and prepared.parts[0].upper() == text
        ties += tokenizer.n_src_tokens(text) == tokenizer.n_src_tokens(prepared.parts[0])
    assert ties


@pytest.mark.parametrize("text", ["abcdefgh", "我每天", "a" + " " * 99, "." * 99 + ",", "1"])
def test_lines_of_any_length_are_varied(text: str) -> None:
    """In time that grows with their length: with its square, this would take minutes."""
    pair = SentencePair(text * (100_000 // len(text)), "a b")
    for kind in ("typos", "emoji"):
        for varied in variations(pair, kind, n=5):
            assert abs(len(varied.src) - len(pair.src)) < 0.1 * len(pair.src)


def test_variations_leave_the_choice_of_pairs_as_it_is(tokenizer: Tokenizer) -> None:
    augmenter = Augmenter(AugmentConfig(emoji=0.5), seed=1)
    encoder = Encoder(tokenizer, 256, 2.0)
    varied = varied_corpus(encoder, PAIRS, Variation(encoder, 0, augmenter=augmenter))
    lengths = sorted(max(map(len, row)) for row in rows_of(varied))
    encoder = Encoder(tokenizer, lengths[len(lengths) * 3 // 4], 2.0)  # some variations are longer
    pairs = [*PAIRS, SentencePair("", "leer"), SentencePair("the " * 99, "der " * 99), *PAIRS]
    plain = encoder.corpus(pairs)
    corpora = [varied_corpus(encoder, pairs, Variation(encoder, epoch, augmenter=augmenter)) for epoch in (0, 1, 0)]
    first, second, again = map(rows_of, corpora)
    assert first == again != second
    for corpus, rows in zip(corpora, (first, second, again), strict=True):
        assert corpus.numbers.tolist() == plain.numbers.tolist() and corpus.dropped == plain.dropped
        assert max(max(map(len, row)) for row in rows) <= encoder.max_length  # a pair whose variation is too long stays
        n_changed = sum(row != other for row, other in zip(rows, rows_of(plain), strict=True))
        assert 0.1 * len(plain) < n_changed < 0.9 * len(plain)


def test_variations_go_with_annotated_terms(tokenizer: Tokenizer) -> None:
    terms = TermSampler(Glossary([("dog", "Hund")]), tokenizer, src_lang="en", tgt_lang="de", share=1, seed=1)
    begin, _, end = tokenizer.markers or ()
    encoder = Encoder(tokenizer, 256, 6)
    corpus = varied_corpus(encoder, PAIRS, Variation(encoder, 0, only(emoji=0.5), terms))
    annotated = [i for i in range(len(corpus)) if begin in corpus.src[i]]
    texts = [tokenizer.decode(corpus.tgt[i].tolist()) for i in annotated]
    shares = [sum(max(text) > "\u2000" for text in texts) / len(texts), len(annotated) / len(PAIRS)]
    assert 0.3 < shares[0] < 0.7 and shares[1] > 0.2
    assert {tuple(corpus.src[i].tolist()).count(end) for i in annotated} <= {1, 2}


DIRECTIONS = f"""\
data:
  directions: [en-de, de-en]
  filters: [copy]
  augment: {NONE | {"upper": 0.5}}
  train: [{{src: 'a.{{src_lang}}', tgt: 'a.{{tgt_lang}}'}}]
  valid: [{{src: 'a.{{src_lang}}', tgt: 'a.{{tgt_lang}}'}}]
"""


def test_variations_follow_filters_and_stay_within_a_direction(tmp_path: Path) -> None:
    copy = SentencePair("Mary saw the old red car.", "Mary saw the old red car.")
    pairs = [*PAIRS[:20], copy, *PAIRS[20:30]]
    for side, name in enumerate(("a.en", "a.de")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    config = load(tmp_path, DIRECTIONS)
    source = ParallelText(config.data.train, config.data.src_lang, config.data.tgt_lang)
    text = stored_text(source, filters_of(config.data))
    settings = TokenizerConfig(vocab_size=340, joint=True)
    tokenizer = train_tokenizer(text, settings, "en", "de", adjust=True, control_symbols=all_tags(config.data))
    data = TrainingData(config, text, tokenizer)
    data.begin(0)
    [toward_de], [toward_en] = (tokenizer.prefixes_of([tag]).src for tag in ("<2de>", "<2en>"))
    kept = PAIRS[:30]
    expected = {toward_de: kept, toward_en: [SentencePair(tgt, src) for src, tgt in kept]}
    assert len(data.corpus) == 60
    for number in range(60):
        tag, *src = data.corpus.src[number].tolist()
        assert tag == (toward_de if number < 30 else toward_en)
        i = number % 30
        both = list(expected[tag][i])
        found = [tokenizer.decode_src(src), tokenizer.decode(data.corpus.tgt[number].tolist())]
        assert found in (both, [text.upper() for text in both])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("true", AugmentConfig()),
        ("false", None),
        ("null", None),
        ("{upper: 0.2, emoji: 0}", AugmentConfig(upper=0.2, emoji=0)),
    ],
)
def test_one_word_switches_augmentation_on_and_a_section_sets_shares(
    tmp_path: Path, value: str, expected: AugmentConfig | None
) -> None:
    for name in ("a.en", "a.de", "pairs.tsv"):
        (tmp_path / name).touch()
    assert load(tmp_path, MINIMAL).data.augment is None
    assert load(tmp_path, f"{MINIMAL}  augment: {value}\n").data.augment == expected
    assert load(tmp_path, MINIMAL, f"data.augment={value}").data.augment == expected
    upper = load(tmp_path, f"{MINIMAL}  augment: true\n", "data.augment.upper=0.2").data.augment
    assert upper == AugmentConfig(upper=0.2)


def test_wrong_shares_are_reported_with_the_nearest_key(tmp_path: Path) -> None:
    for name in ("a.en", "a.de", "pairs.tsv"):
        (tmp_path / name).touch()
    assert problems(tmp_path, f"{MINIMAL}  augment: {{emojis: 0.1, upper: 2}}\n") == [
        "C:6: data.augment.upper: given `2`, allowed: 1.0 or less",
        "C:6: data.augment.emojis: there is no such key; did you mean `emoji`?",
    ]
    assert problems(tmp_path, f"{MINIMAL}  augment: some\n") == [
        "C:6: data.augment: given `some`, allowed: true, false, or a section of shares",
    ]


@pytest.fixture(scope="module")
def augmented(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with augmentation and terms, and a run of two and a half epochs."""
    settings = {"max_steps": 30, "checkpoint_every": 4, "keep_last": 10, "validate_every": 15}
    project = make_project(tmp_path_factory.mktemp("augmented") / "project", **settings)
    (project.folder / "terms.tsv").write_text("dog\tHund\ncar\tAuto\n", encoding="utf-8")
    config = yaml.safe_load(project.config.read_text(encoding="utf-8"))
    config["data"] |= {"augment": True, "terms": "terms.tsv"}
    config["tokenizer"] |= {"vocab_size": 400}
    project.config.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    done = project.mtformer("train", project.config)
    assert done.status == 0, done.stderr
    return project


def test_a_run_that_is_resumed_within_an_epoch_ends_with_the_same_weights(augmented: Project, tmp_path: Path) -> None:
    folder = tmp_path / "moved"
    shutil.copytree(augmented.folder, folder)
    run = folder / "runs/config"
    for checkpoint in list_checkpoints(run / "checkpoints"):
        if checkpoint.name > "step-000016":
            shutil.rmtree(checkpoint)
    (run / "model.safetensors").unlink()
    resumed = Project(folder, folder / "config.yaml")
    done = resumed.mtformer("train", resumed.config)
    assert done.status == 0 and "resuming from step 16" in done.stderr, done.stderr
    paths = (augmented.folder / "runs/config/model.safetensors", run / "model.safetensors")
    old, new = (load_bundle(path).model.state_dict() for path in paths)
    assert all(torch.equal(old[name], new[name]) for name in old)


def test_a_run_is_not_resumed_with_other_shares(augmented: Project) -> None:
    done = augmented.mtformer("train", augmented.config, "--set", "data.augment.upper=0.5")
    assert done.status == 2 and "data.augment was " in done.stderr, done.stderr


@pytest.mark.slow
def test_the_report_compares_runs_without_and_with_augmentation(
    trained: Project, augmented: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(project.folder / "runs/config") for project in (trained, augmented)]
    monkeypatch.setattr("sys.argv", ["augmentation_report.py", *runs])
    runpy.run_path(str(ROOT / "scripts/augmentation_report.py"), run_name="__main__")
    clean, stress = capsys.readouterr().out.split("\n\n")
    plain, with_capitals = ([float(n) for n in re.findall(r"(\d+\.\d) and", line)] for line in clean.split("\n")[2:])
    assert with_capitals[1] < plain[1]  # tokens of text in capitals
    rows = [re.split(r" *\| *", line.strip("| ")) for line in stress.strip().split("\n")]
    assert [row[0] for row in rows[2:5]] == ["clean", "all caps", "title case"]
    assert all(len(row) == 5 for row in rows) and rows[2][1].endswith("(100.0 %)")

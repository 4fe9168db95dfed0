"""Passages out of alignment: found by the lengths of lines and by learned rules, reported, and realigned."""

import csv
import dataclasses
import itertools
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from conftest import Project, phrasebook_pairs
from numpy.typing import NDArray

from mtformer.config import Config, LanguagePair, TextFiles, parse_source
from mtformer.data.clean.checkup import check
from mtformer.data.clean.line_lengths import aligned_by_lengths, are_surely_aligned, are_unrelated, lengths_of
from mtformer.data.clean.passages import Passage, align, find_passages
from mtformer.data.clean.realign import RealignedText
from mtformer.data.clean.report import as_text, write_clean
from mtformer.data.sources.parallel import ParallelText
from mtformer.data.store import stored_text
from mtformer.evaluate.testsets import read_eval_sets
from mtformer.support.errors import UserError
from mtformer.text.pairs import SentencePair

QUICK = {"type": "char"}  # a tokenizer that is trained at once, where lengths do not matter


def write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def small_text(folder: Path, *, missing: Sequence[int] = (), shuffled: bool = False, first: int = 0) -> dict[str, Path]:
    """Write 400 pairs, from whose targets the lines of some are missing, as many as if others followed."""
    pairs = phrasebook_pairs()[first : first + 400 + len(missing)]
    targets = [pair.tgt for place, pair in enumerate(pairs) if place not in missing]
    if shuffled:
        targets = [targets[place] for place in np.random.default_rng(1).permutation(len(targets))]
    files = {"src": folder / f"{first}.en", "tgt": folder / f"{first}.de"}
    write(files["src"], [pair.src for pair in pairs[:400]])
    write(files["tgt"], targets)
    return files


def config_of(train: dict[str, Path], **sources: object) -> Config:
    data = {"src_lang": "en", "tgt_lang": "de", "train": [train], **sources}
    return Config.model_validate({"data": data, "tokenizer": QUICK})


def aligned_by_numbers(sources: Sequence[int], targets: Sequence[int]) -> list[Passage]:
    """Align texts that are translations if they are the same number; every tenth number is unclear."""
    src, tgt = np.array(sources), np.array(targets)

    def score(at_src: NDArray[np.int64], at_tgt: NDArray[np.int64]) -> NDArray[np.float64]:
        is_same = src[at_src] == tgt[at_tgt]
        return np.where(is_same, np.where(src[at_src] % 10 == 0, 1.0, -4.0), 5.0)

    places = np.arange(min(len(src), len(tgt)))
    return align(score, score(places, places))


@pytest.mark.parametrize("n_missing", [1, 8, 60])
@pytest.mark.parametrize("from_sources", [False, True])
def test_missing_lines_are_found_where_they_are(n_missing: int, from_sources: bool) -> None:
    whole = list(range(400))
    shorter, longer = whole[:100] + whole[100 + n_missing :], whole[: 400 - n_missing]
    sources, targets = (shorter, longer) if from_sources else (longer, shorter)
    passages = aligned_by_numbers(sources, targets)
    assert [passage.first for passage in passages[:2]] == [0, 100]
    assert passages[1].shift == (n_missing if from_sources else -n_missing)
    joined = realigned_lines(passages, len(sources))
    assert all(sources[src] == targets[tgt] for src, tgt in joined)
    assert len(joined) == len(set(sources) & set(targets))


def realigned_lines(passages: Sequence[Passage], n_pairs: int) -> list[tuple[int, int]]:
    """Return the numbers of sources and of their translations, by the text that passages stand for."""
    text = RealignedText(
        [parse_source("builtin:phrasebook", "en", "de")], "en", "de", passages=passages, n_pairs=n_pairs
    )
    text = dataclasses.replace(text, sources=[text.sources[0].model_copy(update={"size": n_pairs})])
    return [(src.line - 1, tgt.line - 1) for src, tgt in text.joined() if tgt]


def test_each_missing_line_is_found_at_its_place() -> None:
    sources = list(range(3_000))
    targets = [i for i in sources if i not in (500, 1_700, *range(2_000, 2_400))]
    passages = aligned_by_numbers(sources, targets)
    assert [passage.first for passage in passages] == [0, 500, 1_700, 2_000]
    assert [passage.shift for passage in passages] == [0, -1, -2, -402]


@pytest.mark.parametrize(("at", "n_missing"), [(376, 3), (350, 8), (0, 3)])
def test_a_slip_of_the_first_or_last_lines_is_found(at: int, n_missing: int) -> None:
    sources = list(range(1, 400))
    targets = sources.copy()
    if at:
        del sources[at : at + n_missing]
        sources += [-2] * n_missing  # the lines that the shorter file lacks
    else:
        del targets[:n_missing], sources[25 : 25 + n_missing]
    joined = realigned_lines(aligned_by_numbers(sources, targets), len(sources))
    assert {(sources[src], targets[tgt]) for src, tgt in joined if sources[src] > 0} == {
        (n, n) for n in set(sources) & set(targets) if n > 0
    }


@pytest.mark.parametrize(("first", "end", "there"), [(200, 500, 700), (700, 1_000, 200), (300, 400, 800)])
def test_a_block_that_has_moved_costs_no_more_than_its_lines(first: int, end: int, there: int) -> None:
    sources = list(range(1, 1_501))
    left = sources[:first] + sources[end:]
    targets = left[:there] + sources[first:end] + left[there:]
    joined = realigned_lines(aligned_by_numbers(sources, targets), len(sources))
    assert all(sources[src] == targets[tgt] for src, tgt in joined)
    assert len(joined) >= len(sources) - (end - first)


@pytest.mark.parametrize("there", [20, 300, 340])
def test_a_few_lines_whose_translations_stand_elsewhere_do_not_cost_those_between(there: int) -> None:
    whole = list(range(1, 400))
    targets = whole.copy()
    targets[200:240] = [-1] * 40
    targets[there : there + 40] = whole[200:240]  # where sources have none
    sources = whole.copy()
    sources[there : there + 40] = [-2] * 40
    joined = realigned_lines(aligned_by_numbers(sources, targets), len(sources))
    assert all(sources[src] == targets[tgt] for src, tgt in joined)
    assert len(joined) >= len(set(sources) & set(targets)) - 45


@pytest.mark.parametrize("bad", [30, 120])
@pytest.mark.parametrize("translation", ["", "TODO", "only the beginning", "of another line"])
@pytest.mark.parametrize("take_turns", [False, True])
def test_a_block_without_translations_is_no_slip(take_turns: bool, translation: str, bad: int) -> None:
    """In text with and without headings that take turns with paragraphs."""
    random = np.random.default_rng(5)
    for n in (120, 300, 600):
        pairs = phrasebook_pairs()[:n]
        if take_turns:
            pairs = [pair if n % 2 else SentencePair(pair.src * 4, pair.tgt * 4) for n, pair in enumerate(pairs)]
        lengths = lengths_of(pairs)
        targets = lengths[n // 3 : n // 3 + bad, 1]
        if translation == "only the beginning":
            targets[:] = np.minimum(targets, 12)
        else:
            targets[:] = random.permutation(targets) if translation == "of another line" else len(translation)
        assert aligned_by_lengths(lengths) == [Passage(0, n, 0)]
        assert n == 120 or not are_unrelated(lengths)


@pytest.mark.parametrize("n_missing", [20, 101])
def test_lengths_show_where_many_lines_are_missing(n_missing: int) -> None:
    pairs = phrasebook_pairs()[: 800 + n_missing]
    lengths = lengths_of(pairs[:800])
    lengths[400:, 1] = lengths_of(pairs[400 + n_missing :])[:, 1]
    before, after = aligned_by_lengths(lengths)
    assert (before.shift, after.shift) == (0, -n_missing)
    assert abs(after.first - 400) <= 10
    assert are_surely_aligned([before, after], lengths)


def test_it_is_unsure_whether_sorted_text_is_aligned(tmp_path: Path) -> None:
    pairs = sorted(phrasebook_pairs()[:400], key=lambda pair: len(pair.src))
    write(tmp_path / "a.en", [pair.src for pair in pairs])
    write(tmp_path / "a.de", [pair.tgt for pair in pairs[1:]])
    checkup = check(config_of({"src": tmp_path / "a.en", "tgt": tmp_path / "a.de"}))
    assert not checkup.sources[0].is_surely_aligned
    with pytest.raises(UserError, match="does not show where lines are missing"):
        write_clean(checkup, tmp_path / "clean")


def test_what_is_no_shifted_translation_is_not_realigned() -> None:
    random = np.random.default_rng(1)

    def by_chance(sources: NDArray[np.int64], targets: NDArray[np.int64]) -> NDArray[np.float64]:
        return random.normal(1.0, 2.0, len(sources))

    assert align(by_chance, np.full(200, 2.0)) == [Passage(0, 200, None)]
    assert align(by_chance, np.empty(0)) == []


def least_cost(costs: dict[int, NDArray[np.float64]], border: float) -> float:
    """Try all ways to divide a text into passages; a border at the very end costs nothing."""
    by_state = [*costs.values(), np.zeros(len(costs[0]))]
    divisions = itertools.product(range(len(by_state)), repeat=len(costs[0]))
    return min(cost_of(states, by_state, border) for states in divisions)


def cost_of(states: Sequence[int], by_state: Sequence[NDArray[np.float64]], border: float) -> float:
    """Return the cost of a division by the state of each line."""
    changes = sum(one != other for one, other in itertools.pairwise((0, *states)))
    return float(sum(by_state[state][place] for place, state in enumerate(states)) + border * changes)


def test_passages_are_the_best_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    border = 2.0
    monkeypatch.setattr("mtformer.data.clean.passages._BORDER", border)
    random = np.random.default_rng(1)
    n_found = 0
    for _ in range(30):
        costs = {shift: random.normal(scale=2, size=7).clip(-5, 5) for shift in (0, 3)}
        passages = find_passages(costs)
        n_found += len(passages)
        shifts = [passage.shift for passage in passages for _ in range(passage.first, passage.end)]
        states = [2 if shift is None else list(costs).index(shift) for shift in shifts]
        total = cost_of(states, [*costs.values(), np.zeros(7)], border)
        assert total == pytest.approx(least_cost(costs, border))
    assert n_found > 40


def test_a_passage_in_the_middle() -> None:
    log_odds = np.concatenate([np.full(300, -6.0), np.full(40, 2.0), np.full(300, -6.0)])
    log_odds[320] = -50.0  # one good pair among the bad ones
    assert find_passages({0: log_odds}) == [Passage(0, 300, 0), Passage(300, 340, None), Passage(340, 640, 0)]
    assert find_passages({0: np.array([])}) == []


@pytest.mark.slow
@pytest.mark.parametrize("is_shuffled", [False, True])
def test_a_slip_near_the_beginning_is_found(tmp_path: Path, is_shuffled: bool) -> None:
    pairs = phrasebook_pairs()[:2_400]
    targets = [pair.tgt for place, pair in enumerate(pairs) if place != 4] + ["Zu viel."]
    if is_shuffled:
        targets = [targets[place] for place in np.random.default_rng(1).permutation(len(targets))]
    write(tmp_path / "train.en", [pair.src for pair in pairs])
    write(tmp_path / "train.de", targets)
    files = {"src": tmp_path / "train.en", "tgt": tmp_path / "train.de"}
    checkup = check(config_of(files))
    found = [(slip.first_line, slip.offset) for slip in checkup.sources[0].slips]
    assert found == ([] if is_shuffled else [(5, -1)])


@pytest.mark.parametrize(("missing", "found"), [((), []), ((0,), [(0, -1)]), ((150, 300), [(150, -1), (299, -2)])])
def test_lengths_show_where_a_text_slips_that_is_too_small_to_learn_from(
    missing: tuple[int, ...], found: list[tuple[int, int]], tmp_path: Path
) -> None:
    checkup = check(config_of(small_text(tmp_path, missing=missing)))
    [source] = checkup.sources
    assert source.filters.learned is None
    assert [slip.offset for slip in source.slips] == [offset for _, offset in found]
    for slip, (place, _) in zip(source.slips, found, strict=True):
        assert abs(slip.first_line - 1 - place) <= 10
    [clean] = write_clean(checkup, tmp_path / "clean")
    kept = list(ParallelText([clean], "en", "de"))
    assert len(set(kept) - set(phrasebook_pairs())) <= 10 * len(missing)  # near the borders
    assert len(kept) >= 350


@pytest.mark.parametrize("at_end", [False, True])
def test_fix_of_small_files_of_unequal_length_keeps_translations_alone(at_end: bool, tmp_path: Path) -> None:
    pairs = phrasebook_pairs()[:400]
    targets = [pair.tgt for pair in pairs]
    write(tmp_path / "a.en", [pair.src for pair in pairs])
    write(tmp_path / "a.de", targets[:-1] if at_end else targets[1:])
    checkup = check(config_of({"src": tmp_path / "a.en", "tgt": tmp_path / "a.de"}))
    [clean] = write_clean(checkup, tmp_path / "clean")
    kept = list(ParallelText([clean], "en", "de"))
    assert len(kept) > 380
    assert len(set(kept) - set(pairs)) <= 5


def test_a_validation_set_that_slips_is_a_problem(tmp_path: Path) -> None:
    slipped = small_text(tmp_path, missing=[200], first=1_000)
    checkup = check(config_of(small_text(tmp_path), valid=[slipped]))
    train, valid = checkup.sources
    assert (train.slips, [slip.offset for slip in valid.slips]) == ([], [-1])
    assert checkup.n_problems == train.problems.total() + valid.problems.total() + 1
    assert "to 400 are out of alignment: the translations stand 1 line earlier\n" in as_text(checkup)


@pytest.mark.parametrize("n_pairs", [1_000, pytest.param(5_000, marks=pytest.mark.slow)])
def test_pairs_whose_sides_are_swapped_are_no_slip(tmp_path: Path, n_pairs: int) -> None:
    """The words and lengths of English and Chinese would say that a pair is misaligned, or that all are."""
    source = parse_source(f"builtin:phrasebook,size:{n_pairs}", "en", "zh")
    pairs = list(ParallelText([source], "en", "zh"))
    is_swapped = np.random.default_rng(1).random(n_pairs) < 0.3
    is_swapped[-n_pairs // 5 :] = True
    sides = zip(
        *(pair[::-1] if swapped else pair for pair, swapped in zip(pairs, is_swapped, strict=True)), strict=True
    )
    files = {"src": tmp_path / "a.en", "tgt": tmp_path / "a.zh"}
    for path, lines in zip(files.values(), sides, strict=True):
        write(path, lines)
    data = {"src_lang": "en", "tgt_lang": "zh", "train": [files]}
    [found] = check(Config.model_validate({"data": data, "tokenizer": QUICK})).sources
    assert (found.filters.learned is not None) == (n_pairs == 5_000)
    assert (found.slips, found.has_no_translations) == ([], False)
    assert found.problems["script"] >= 0.95 * is_swapped.sum()
    assert found.problems["misaligned"] == 0


def test_lines_that_take_turns_do_not_hide_another_order() -> None:
    pairs = [
        pair if n % 2 else SentencePair(pair.src * 2, pair.tgt * 2) for n, pair in enumerate(phrasebook_pairs()[:3_000])
    ]
    assert not are_unrelated(lengths_of(pairs))
    exchanged = [SentencePair(pair.src, pairs[n - 1_500].tgt) for n, pair in enumerate(pairs)]
    assert are_unrelated(lengths_of(exchanged))


def test_a_small_text_in_another_order_is_a_problem(tmp_path: Path) -> None:
    checkup = check(config_of(small_text(tmp_path, shuffled=True)))
    assert (checkup.sources[0].slips, checkup.sources[0].has_no_translations) == ([], True)
    assert checkup.n_problems > checkup.sources[0].problems.total()


@pytest.mark.parametrize("n", [0, 1, 2, 30, 500])
def test_lengths_that_say_nothing_are_no_problem(n: int) -> None:
    """As of codes, or of words, whose lengths depend little on each other."""
    random = np.random.default_rng(1)
    for values in (np.full((n, 2), 20), random.integers(1, 12, (n, 2)), random.integers(38, 42, (n, 2))):
        lengths = values.astype(np.int32)
        assert aligned_by_lengths(lengths) == [Passage(0, n, 0)]
        assert not are_surely_aligned([Passage(0, n, 0)], lengths)
        assert not are_unrelated(lengths)


def test_training_warns_of_a_text_that_slips(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each time, also if the text is in the cache."""
    for files, n_warnings in ((small_text(tmp_path, missing=[100]), 1), (small_text(tmp_path, first=1_000), 0)):
        for name in ("a", "b"):
            caplog.clear()
            files["src"] = files["src"].rename(tmp_path / f"{name}.en")
            stored_text(ParallelText([TextFiles.model_validate(files)], "en", "de"))
            warnings = [record.message for record in caplog.records if "out of alignment" in record.message]
            assert len(warnings) == n_warnings, warnings
            assert all(
                ": the translations stand 1 line earlier; mtformer data check --fix" in line for line in warnings
            )


@pytest.mark.slow
@pytest.mark.parametrize("end", [["Zu viel.", "Zu viel."], []])
def test_fix_loses_little_of_a_text_that_slips_early_and_twice(tmp_path: Path, end: list[str]) -> None:
    """Whether the files have the same number of lines or not."""
    pairs = phrasebook_pairs()[:3_500]
    missing = {99, 1_999}
    write(tmp_path / "train.en", [pair.src for pair in pairs])
    left = [pair.tgt for place, pair in enumerate(pairs) if place not in missing]
    write(tmp_path / "train.de", [*left, *end])
    files = {"src": tmp_path / "train.en", "tgt": tmp_path / "train.de"}
    checkup = check(config_of(files))
    assert checkup.sources[0].blank.counts == ({} if end else {f"only in {files['src']}": 2})
    first, second = checkup.sources[0].slips
    assert (first.first_line, first.offset) == (100, -1)
    assert (second.first_line, second.offset) == (2_000, -2)
    [clean] = write_clean(checkup, tmp_path / "clean")
    kept = set(ParallelText([clean], "en", "de"))
    rows = [row.split("\t") for row in (tmp_path / "clean" / "rejected.tsv").read_text().splitlines()[1:]]
    copies = {SentencePair(src, tgt) for _, _, rule, src, tgt in rows if rule in ("near_duplicates", "many_targets")}
    assert len(kept - set(pairs)) <= 0.005 * len(pairs)
    assert len(set(pairs) - kept - copies) <= 0.01 * len(pairs)


@pytest.mark.slow
@pytest.mark.parametrize("missing", [(), (100,)])
def test_eval_warns_of_a_test_set_that_slips(missing: tuple[int, ...], trained: Project, tmp_path: Path) -> None:
    files = small_text(tmp_path, missing=missing)
    result = trained.mtformer("eval", "--src", files["src"], "--ref", files["tgt"], "--beam-size", "1")
    assert result.status == 0, result.stderr
    slips = [line for line in result.stderr.splitlines() if "out of alignment" in line]
    assert [line.startswith(f"{files['src']}: lines ") for line in slips] == [True] * len(missing)
    assert all(line.endswith(" to 400 are out of alignment: the translations stand 1 line earlier") for line in slips)


def test_slips_of_test_sets_in_tables_are_reported_by_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = small_text(tmp_path, missing=[100])
    pairs = zip(*(path.read_text(encoding="utf-8").splitlines() for path in files.values()), strict=True)
    with (tmp_path / "test.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("en", "de"), *((f"{src}\n", tgt) for src, tgt in pairs)])
    found = []
    for test_set in ({"src": files["src"], "ref": [files["tgt"]]}, {"data": [f"csv:{tmp_path / 'test.csv'}"]}):
        caplog.clear()
        read_eval_sets(tmp_path, LanguagePair("en", "de"), **test_set)
        [warning] = [record.message for record in caplog.records if "out of alignment" in record.message]
        found.append([int(number) for number in re.findall(r"lines (\d+) to (\d+) are", warning)[0]])
    assert found[1] == [2 * line for line in found[0]]  # the lines of a pair begin after the header

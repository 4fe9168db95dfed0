"""Searching for translations that contain phrases: against exhaustive search, and on random tables and models."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
import torch
from conftest import EOS_ID
from engines import candidates, request, score
from test_search import RandomDecoder, assert_same_hypotheses, make_model, rules
from torch import Tensor

from mtformer.config import SearchOptions
from mtformer.config.search import LengthPenalty
from mtformer.engines.torch import TorchEngine
from mtformer.model.architecture import SPECIAL_IDS
from mtformer.search import constraints
from mtformer.search.beam import beam_search
from mtformer.search.constrained import ConstrainedSelection
from mtformer.search.constraints import Constraint, Phrase, Spellings, TokenTexts
from mtformer.search.engine import SearchRequest
from mtformer.search.hypothesis import Hypothesis
from mtformer.search.processors import ForcePrefixes, Prefixes, Processor
from mtformer.text.words import find_words, word_rule

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
TOKENS = [*SPECIAL, "▁a", "▁b", "b", "a"]  # of the words a, b, ab, ba, aab, …
A, B, B_INSIDE, A_INSIDE = 4, 5, 6, 7
WORDS = word_rule("de")
VOCABULARY = TokenTexts(TOKENS, SPECIAL_IDS, WORDS)


class Decoder(RandomDecoder):
    """Random probabilities of EOS and four tokens."""

    vocab_size = len(TOKENS)


def spelled(text: str) -> Phrase:
    """Make a phrase of the letters a and b."""
    inside = [("▁" if i and text[i - 1] == " " else "") + letter for i, letter in enumerate(text) if letter != " "]
    unspaced = tuple(map(TOKENS.index, inside))
    spaced = (TOKENS.index("▁" + text[0]), *unspaced[1:])
    return Phrase(text, Spellings((spaced,), spaced, unspaced), WORDS, with_spaces=True)


PHRASES = {text: spelled(text) for text in ("a", "b", "ab", "a b", "b a", "aab", "a a")}


def constraint(*texts: str) -> Constraint:
    """Require each of ``texts`` as often as it is given."""
    return Constraint([(PHRASES[text], texts.count(text)) for text in dict.fromkeys(texts)], VOCABULARY)


def text_of(ids: Sequence[int]) -> str:
    return "".join(TOKENS[i] for i in ids).replace("▁", " ").strip()


def contains(ids: Sequence[int], texts: Sequence[str]) -> bool:
    return all(len(find_words(text_of(ids), text, WORDS)) >= texts.count(text) for text in texts)


def search(
    decoder: RandomDecoder,
    required: Sequence[Sequence[str]],
    limits: Sequence[int],
    k: int,
    *processors: Processor,
    alpha: float = 1.0,
) -> list[list[Hypothesis]]:
    options = SearchOptions(beam_size=k, n_best=k, length_penalty=alpha)
    sentences = zip(limits, required, strict=True)
    requests = [SearchRequest([EOS_ID], options, limit, constraint=constraint(*texts)) for limit, texts in sentences]
    selection = ConstrainedSelection(requests, EOS_ID)
    return beam_search(decoder, limits, options, [selection, *rules(limits), *processors], selection=selection)


def likeliest_of_all(seed: int, limit: int, texts: Sequence[str]) -> list[Hypothesis]:
    """Return every translation that contains ``texts``, best first."""
    decoder, found = Decoder(seed), []
    for length in range(limit + 1):
        for ids in filter(lambda ids: contains(ids, texts), product(range(A, len(TOKENS)), repeat=length)):
            log_probs = [float(decoder.log_probs(0, ids[:t])[token]) for t, token in enumerate((*ids, EOS_ID))]
            found.append(Hypothesis(list(ids), log_probs))
    return sorted(found, key=lambda hypothesis: -hypothesis.score(LengthPenalty(1.0)))


@pytest.mark.parametrize("texts", [["a"], ["ab"], ["a", "a"], ["b a"], ["a", "b"], ["a b"], ["b", "b"]])
def test_a_wide_beam_finds_the_best_translations_that_contain_the_phrases(texts: list[str]) -> None:
    for seed in range(3):
        expected = likeliest_of_all(seed, 3, texts)
        [found] = search(Decoder(seed), [texts], [3], 64)
        assert 0 < len(expected) < 64
        assert_same_hypotheses(found, expected)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_every_translation_contains_the_phrases_at_narrow_beams(k: int) -> None:
    random = np.random.default_rng(k)
    required = [random.choice(list(PHRASES), random.integers(1, 5)).tolist() for _ in range(80)]
    limits = [constraint(*texts).max_tokens + int(random.integers(0, 6)) for texts in required]
    found = search(Decoder(*range(80)), required, limits, k)
    for seed, (texts, limit, hypotheses) in enumerate(zip(required, limits, found, strict=True)):
        assert 1 <= len(hypotheses) <= k
        assert len({tuple(hypothesis.ids) for hypothesis in hypotheses}) == len(hypotheses)
        for hypothesis in hypotheses:
            assert contains(hypothesis.ids, texts) and len(hypothesis.ids) <= limit
            prefixes = [tuple(hypothesis.ids[:t]) for t in range(len(hypothesis.ids) + 1)]
            chosen = zip(prefixes, [*hypothesis.ids, EOS_ID], strict=True)
            expected = [float(Decoder(seed).log_probs(0, prefix)[token]) for prefix, token in chosen]
            assert hypothesis.token_log_probs == pytest.approx(expected, abs=1e-4)


def test_sentences_of_a_batch_are_searched_as_alone() -> None:
    required, limits = [["a"], ["b a"], ["a", "b"], ["b"]], [8, 5, 7, 6]
    together = search(Decoder(*range(4)), required, limits, 3)
    for seed, (texts, limit) in enumerate(zip(required, limits, strict=True)):
        [alone] = search(Decoder(seed), [texts], [limit], 3)
        assert_same_hypotheses(together[seed], alone)


def test_a_step_has_no_more_beams_than_its_sentences_need() -> None:
    decoder = Decoder(0)
    prefix = ForcePrefixes([[A, B, A]], decoder.device)
    options = SearchOptions(beam_size=2)
    required = constraint("ab", "a b")
    selection = ConstrainedSelection([SearchRequest([EOS_ID], options, 9, [A, B, A], required)], EOS_ID)
    beam_search(decoder, [9], options, [selection, prefix, *rules([9])], selection=selection)
    assert decoder.n_rows[:4] == [1, 1, 1, 1]  # BOS and the prefix, which has one of the two phrases
    assert 2 <= max(decoder.n_rows[4:]) <= 2 + required.n_phrases


def test_phrases_are_placed_whatever_other_rules_forbid() -> None:
    class NoTokenTwice:
        """Forbids every token but EOS to be chosen twice, and tokens inside words."""

        def __call__(self, prefixes: Prefixes, log_probs: Tensor) -> Tensor:
            eos = log_probs[:, :, EOS_ID].clone()
            log_probs = log_probs.scatter(2, prefixes.ids, float("-inf"))
            log_probs[:, :, [B_INSIDE, A_INSIDE]] = float("-inf")
            log_probs[:, :, EOS_ID] = eos
            return log_probs

    texts = ["ab", "a", "a", "b a"]
    found = search(Decoder(*range(20)), [texts] * 20, [20] * 20, 2, NoTokenTwice())
    assert all(contains(hypothesis.ids, texts) for hypotheses in found for hypothesis in hypotheses)


@pytest.mark.parametrize("k", [1, 3])
def test_an_engine_combines_phrases_with_prefixes_limits_and_other_requests(k: int) -> None:
    engine = TorchEngine(make_model(3))
    vocabulary = TokenTexts([*TOKENS, "▁c", "c", "(", "."], SPECIAL_IDS, WORDS)
    sources = [[7, 4, 5, EOS_ID], [6, EOS_ID], [4, 11, EOS_ID], [7, 4, 5, EOS_ID]]
    wanted: list[list[str]] = [["ab"], [], ["a", "b", "aab"], ["b a", "b"]]
    prefixes = [[8, 9], [], [A], []]
    requests = []
    for src, texts, prefix in zip(sources, wanted, prefixes, strict=True):
        phrases = [(PHRASES[text], 1) for text in texts]
        requests.append(request(src, 2, prefix, Constraint(phrases, vocabulary) if phrases else None))
    options = SearchOptions(beam_size=k, n_best=k)
    found = candidates(engine, requests, options)
    assert found[1] == candidates(engine, [request(sources[1], 2)], options)[0]
    spell = [*TOKENS, "▁c", "c", "(", "."]
    for asked, texts, hypotheses in zip(requests, wanted, found, strict=True):
        for hypothesis in hypotheses:
            assert hypothesis.ids[: len(asked.prefix)] == asked.prefix
            text = "".join(spell[i] for i in hypothesis.ids).replace("▁", " ")
            assert all(find_words(text, required, WORDS) for required in texts)
            [token_log_probs] = score(engine, [asked.src], [hypothesis.ids])
            assert hypothesis.token_log_probs == pytest.approx(token_log_probs, abs=1e-4)


@pytest.mark.parametrize(
    ("language", "phrase", "tokens", "n"),
    [
        ("de", "Hund", "▁Hund", 1),
        ("de", "Hund", "▁Hund ert", 0),
        ("de", "Hund", "▁Schäfer Hund", 0),
        ("de", "Hund", "▁H un d ▁ Hund ,", 2),
        ("de", "Hund", "▁Hund ert ▁ ( Hund )", 1),
        ("de", "ein Hund", "▁ein ▁ein ▁Hund", 1),
        ("de", "ein Hund", "▁Ein ▁Hund", 1),
        ("de", "ein Hund", "▁und ▁Ein ▁Hund", 0),
        ("de", "a a", "▁a ▁a b", 0),
        ("de", "a a", "▁a ▁a ▁a", 2),
        ("de", "Öl", "▁ <0xC3> <0x96> l", 1),
        ("de", "Öl", "▁ <0xC3> l", 0),
        ("de", "l", "▁ <0xC3> l", 1),
        ("zh", "饮", "▁ <0xE9> <0xE9> <0xA5> <0xAE>", 1),  # the first byte spells nothing
        ("zh", "饮", "▁ <0xE9> <0xA5> <0xE9> <0xA5> <0xAE>", 1),
        ("zh", "饮", "▁ <0xA5> <0xAE> <0xE9> <0xA5>", 0),
        ("zh", "狗", "▁ 热 狗", 1),
        ("zh", "AI", "▁M AI N", 0),
        ("zh", "AI", "▁用 AI 。", 1),
    ],
)
def test_phrases_are_found_as_whole_words_however_tokens_spell_them(
    language: str, phrase: str, tokens: str, n: int
) -> None:
    spelled = tokens.split()
    vocabulary = [*SPECIAL, *dict.fromkeys(spelled)]
    ids = list(map(vocabulary.index, spelled))
    is_word = word_rule(language)
    for required in (1, 2, 3):
        made = Phrase(phrase, Spellings(((4,),), (4,), (4,)), is_word, with_spaces=True)
        found = Constraint([(made, required)], TokenTexts(vocabulary, SPECIAL_IDS, is_word))
        state = found.start
        for token in ids:
            state = found.advance(state, token)
        assert state.n_missing == max(0, required - n)


def test_the_example_in_the_documentation_is_true() -> None:
    rows = [line.split() for line in (constraints.__doc__ or "").splitlines() if line.startswith("    ")]
    example = [(token, int(n_missing)) for token, n_missing, *_ in rows[3:-1]]
    tokens = [*SPECIAL, *dict.fromkeys(token for token, _ in example)]
    spaced, unspaced = ((tokens.index(token),) for token in ("▁rot", "rot"))
    phrase = Phrase("rot", Spellings((spaced,), spaced, unspaced), WORDS, with_spaces=True)
    required = Constraint([(phrase, 1)], TokenTexts(tokens, SPECIAL_IDS, WORDS))
    state, found = required.start, list[tuple[str, int]]()
    for token, _ in example:
        state = required.advance(state, tokens.index(token))
        found.append((token, state.n_missing))
        can_follow = {way.ids for way in required.ways(state)}
        assert can_follow == (set() if state.is_met else {unspaced, spaced} if token == "▁(" else {spaced})
    assert found == example and len(found) == 8


@pytest.mark.parametrize(
    ("language", "token", "can_follow"),
    [
        ("de", "▁(", {"▁rot", "rot"}),
        ("de", ".", {"▁rot"}),
        ("de", "▁a,", {"▁rot"}),
        ("de", "▁(a)", {"▁rot"}),
        ("zh", "。", {"rot"}),
        ("zh", ",", {"rot"}),
    ],
)
def test_a_phrase_follows_a_stop_or_a_bracket_after_a_space(language: str, token: str, can_follow: set[str]) -> None:
    tokens, is_word = [*SPECIAL, "▁rot", "rot", "x", token], word_rule(language)
    phrase = Phrase("rot", Spellings(((4,),), (4,), (5,)), is_word, with_spaces=language == "de")
    required = Constraint([(phrase, 1)], TokenTexts(tokens, SPECIAL_IDS, is_word))
    state = required.advance(required.advance(required.start, 6), 7)
    assert {tokens[way.ids[0]] for way in required.ways(state)} == can_follow


def test_the_automaton_agrees_with_the_text_on_random_tokens() -> None:
    tokens = [*SPECIAL, "▁", "a", "b", "▁a", "▁b", "ab", "▁ba", ",", "a▁b", "<0x61>"]
    vocabulary, random = TokenTexts(tokens, SPECIAL_IDS, WORDS), np.random.default_rng(0)
    for _ in range(2000):
        ids = random.integers(4, len(tokens), random.integers(0, 9)).tolist()
        text = "".join(tokens[i] for i in ids).replace("▁", " ").replace("<0x61>", "a")
        required = random.choice(list(PHRASES), 2, replace=False).tolist()
        found = Constraint([(PHRASES[text], 2) for text in required], vocabulary)
        state = found.start
        for token in ids:
            state = found.advance(state, token)
        counts = [len(find_words(text, phrase, WORDS)) for phrase in required]
        assert state.n_missing == sum(max(0, 2 - n) for n in counts), (text, required)


def test_the_tokens_still_needed_are_enough_from_every_state() -> None:
    random = np.random.default_rng(1)
    for _ in range(300):
        texts = random.choice(list(PHRASES), random.integers(1, 5)).tolist()
        required, ids = constraint(*texts), list[int]()
        state = required.start
        for token in random.integers(A, len(TOKENS), random.integers(0, 6)).tolist():
            state, ids = required.advance(state, token), [*ids, token]
        while not state.is_met:
            ways = [(way, required.force(state, way)) for way in required.ways(state)]
            possible = [(way, after) for way, after in ways if after.n_needed < state.n_needed]
            way, state = possible[random.integers(len(possible))]
            ids = [*ids, way.ids[0]]
        assert contains(ids, texts)


def test_tokens_of_bytes_are_enough_from_every_state() -> None:
    texts, random = ["饮料", "猎犬", "饮"], np.random.default_rng(2)
    letters = sorted({byte for text in texts for byte in text.encode()})
    tokens = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in letters)]
    is_word = word_rule("zh")
    phrases = []
    for text in texts:
        ids = tuple(4 + letters.index(byte) for byte in text.encode())
        phrases.append((Phrase(text, Spellings((ids,), ids, ids), is_word, with_spaces=False), 2))
    for _ in range(100):
        required, spelled = Constraint(phrases, TokenTexts(tokens, SPECIAL_IDS, is_word)), b""
        state = required.start
        for token in random.integers(4, len(tokens), random.integers(0, 6)).tolist():
            state, spelled = required.advance(state, token), spelled + bytes([letters[token - 4]])
        while not state.is_met:
            ways = [(way, required.force(state, way)) for way in required.ways(state)]
            possible = [(way, after) for way, after in ways if after.n_needed < state.n_needed]
            way, state = possible[random.integers(len(possible))]
            spelled += bytes([letters[way.ids[0] - 4]])
        assert all(spelled.decode(errors="replace").count(text) >= 2 for text in texts)


def test_greedy_search_becomes_a_small_beam_that_follows_the_model() -> None:
    class Certain(Decoder):
        """Says 'a b ab' and ends."""

        def log_probs(self, sentence: int, prefix: tuple[int, ...]) -> Tensor:
            said = (A, B, A, B_INSIDE, EOS_ID)
            probabilities = torch.full((len(TOKENS),), 0.01)
            probabilities[:4] = 0.0
            probabilities[said[len(prefix)] if prefix == said[: len(prefix)] else EOS_ID] = 0.9
            return probabilities.log()

    [[best]] = search(Certain(0), [["ab"]], [8], 1)
    assert best.ids == [A, B, A, B_INSIDE]

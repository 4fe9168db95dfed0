"""Constraints: phrases that a translation must contain, as an automaton that reads its tokens.

Phrases are found in the text that the tokens spell, however they spell it, and as whole words. This is how many phrases
are missing while a constraint that requires the German word *rot* once reads "Ein rotes Brot (rot)":

    =========  =========  =============================================
    token      n_missing
    =========  =========  =============================================
    ▁Ein       1
    ▁rot       0          complete: a translation may end here
    es         1          it goes on, and the word is *rotes*
    ▁B         1
    rot        1          inside *Brot*
    ▁(         1
    rot        0          complete again
    )          0          no part of a word follows: found for good
    =========  =========  =============================================

A search need not wait for the model to write a phrase. In each state where it is missing, the search may *open* it:
append the first token of a spelling that can follow there, which is ``rot`` after the parenthesis, and ``▁rot`` after
the words. A spelling of several tokens is then continued token by token. What is opened is not missing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mtformer.model.architecture import SpecialIds
from mtformer.text.tokenizer.vocabulary import byte_of
from mtformer.text.words import WordRule

# Before a place in a text: nothing but spaces; a part of a word; a mark that a space follows; anything else.
_START, _WORD, _STOP, _BREAK = range(4)
_STOPS = frozenset(".,;:!?…)]}،؛؟۔।")
_REPLACEMENT = "\ufffd"  # for bytes that spell no character

Ids = tuple[int, ...]
Matches = tuple[int, ...]  # with how many characters of a phrase a text may end: for "a a", those of "a a" are 3 and 1


class Spellings(NamedTuple):
    """The tokens of a phrase.

    Attributes:
        first: at the start of a translation, in order of preference.
        spaced: after a space, which is part of the first token.
        unspaced: after a character that neither is part of a word nor has a space after it: an opening parenthesis.
    """

    first: tuple[Ids, ...]
    spaced: Ids
    unspaced: Ids


class Phrase:
    """A phrase of the target language.

    A phrase that begins with a small letter may begin with a capital letter at the start of a translation.

    Attributes:
        text: the phrase.
        spellings: its tokens.
        initials: the characters that it may begin with.
        most_tokens: the number of tokens of the longest spelling.
    """

    def __init__(self, text: str, spellings: Spellings, is_word: WordRule, *, with_spaces: bool) -> None:
        """Prepare to find a phrase.

        Args:
            text: the phrase, normalized and not empty.
            spellings: its tokens, which must spell it.
            is_word: whether a character is part of a word.
            with_spaces: whether spaces separate words.
        """
        self.text = text
        self.spellings = spellings
        self.most_tokens = max(map(len, (*spellings.first, spellings.spaced, spellings.unspaced)))
        self._is_word = is_word
        self._with_spaces = with_spaces
        self.initials = {text[0], capitalized(text)[0]}

    def advance(self, matches: Matches, before: int, characters: str) -> tuple[Matches, int]:
        """Read characters, and return the new matches and how many times the phrase has been confirmed.

        A phrase whose last character has been read stays among the matches, until the next character confirms that its
        last word ends there.
        """
        if not matches and self.initials.isdisjoint(characters):
            return matches, 0
        n_confirmed, end = 0, len(self.text)
        for character in characters:
            is_word = self._is_word(character)
            if end in matches and not (is_word and self._is_word(self.text[-1])):
                n_confirmed += 1
            begins = character == self.text[0] or (before == _START and character in self.initials)
            is_inside = before == _WORD and is_word
            longer = [n + 1 for n in matches if n < end and self.text[n] == character]
            matches = (*longer, 1) if begins and not is_inside else tuple(longer)
            before = _next_before(before, character, is_word)
        return matches, n_confirmed

    def is_complete(self, matches: Matches) -> bool:
        """Whether the phrase has been read and counts if no part of a word follows."""
        return len(self.text) in matches

    def spellings_after(self, before: int) -> Sequence[Ids]:
        """Return the spellings that can follow; at least one."""
        if before == _START:
            return self.spellings.first
        needs_space = (before == _WORD and self._is_word(self.text[0])) or (before == _STOP and self._with_spaces)
        unspaced = [] if needs_space else [self.spellings.unspaced]
        return [*unspaced, self.spellings.spaced] if self._with_spaces or needs_space else unspaced


class TokenTexts:
    """The text of each token."""

    def __init__(self, tokens: Sequence[str], special_ids: SpecialIds, is_word: WordRule) -> None:
        """Take the tokens of the target language by id, of which the special ones spell nothing."""
        self._bytes = [byte_of(token) for token in tokens]
        self._texts = ["" if i in special_ids else token.replace("▁", " ") for i, token in enumerate(tokens)]
        self._is_word = is_word
        self._before: dict[tuple[int, str], int] = {}

    def read(self, waiting: bytes, token: int) -> tuple[str, bytes]:
        """Return the characters that ``token`` completes after bytes that begin one, and the bytes now waiting."""
        byte = self._bytes[token]
        if byte is None:
            return (_REPLACEMENT + self._texts[token] if waiting else self._texts[token]), b""
        characters, waiting = "", waiting + bytes([byte])
        while waiting:
            try:
                return characters + waiting.decode(), b""
            except UnicodeDecodeError as error:
                if error.reason == "unexpected end of data":
                    break
                characters, waiting = characters + _REPLACEMENT, waiting[error.end :]  # which may begin a character
        return characters, waiting

    def before(self, before: int, characters: str) -> int:
        """Return the kind of place that the next character is at."""
        key = before, characters
        if key not in self._before:
            for character in characters:
                before = _next_before(before, character, self._is_word(character))
            self._before[key] = before
        return self._before[key]


class Way(NamedTuple):
    """A phrase in progress.

    Attributes:
        phrase: its number.
        ids: the tokens to come, at least one.
    """

    phrase: int
    ids: Ids


class _Text(NamedTuple):
    """A summary of the tokens that have been read.

    Attributes:
        before: what the next character has before it.
        waiting: bytes that begin a character.
        matches: of each phrase.
        unconfirmed: how many times each phrase is still to be confirmed.
        opened: the phrase whose spelling is in progress; None for none.
    """

    before: int
    waiting: bytes
    matches: tuple[Matches, ...]
    unconfirmed: tuple[int, ...]
    opened: Way | None


@dataclass(eq=False)
class State:
    """A state of a :class:`Constraint`. Texts between which it makes no difference lead to the same object.

    Attributes:
        text: what matters of the tokens that have been read.
        missing: how many times each phrase is neither there nor opened.
        n_missing: the sum of these.
        n_needed: the number of tokens that are enough for what is missing or opened.
        is_met: whether a translation that ends here contains all phrases.
        is_idle: whether no phrase is in progress, so that most tokens make no difference.
        steps: the states that tokens lead to, as far as they are known.
        forced: the states that ways lead to, as far as they are known.
        ways: what can be opened or continued; None if not yet known.
    """

    text: _Text
    missing: list[int]
    n_missing: int
    n_needed: int
    is_met: bool
    is_idle: bool
    steps: dict[int, "State"] = field(default_factory=dict)
    forced: dict[Way, "State"] = field(default_factory=dict)
    ways: Sequence[Way] | None = None


class Constraint:
    """Phrases that a translation must contain, each a number of times.

    From every state, :meth:`ways` has one that leads to a state with ``n_needed`` less by one, until it is met.

    Attributes:
        n_phrases: how many phrases there must be, repetitions included.
        start: the state of the empty translation.
    """

    def __init__(self, phrases: Sequence[tuple[Phrase, int]], texts: TokenTexts) -> None:
        """Require each phrase, and how many times, at least once."""
        self.n_phrases = sum(count for _, count in phrases)
        self._phrases = [phrase for phrase, _ in phrases]
        self._initials = frozenset[str]().union(*(phrase.initials for phrase in self._phrases))
        self._texts = texts
        self._states: dict[_Text, State] = {}
        self.start = self._state(_Text(_START, b"", ((),) * len(phrases), tuple(count for _, count in phrases), None))

    @property
    def max_tokens(self) -> int:
        """The number of tokens that are enough for all phrases."""
        return self.start.n_needed

    def advance(self, state: State, token: int) -> State:
        """Return the state after a token that opens and continues nothing."""
        after = state.steps.get(token)
        if after is None:
            after = state.steps[token] = self._advance(state, token)
        return after

    def _advance(self, state: State, token: int) -> State:
        if state.is_idle:
            characters, waiting = self._texts.read(b"", token)
            if not waiting and self._initials.isdisjoint(characters):
                before = self._texts.before(state.text.before, characters)
                return state if before == state.text.before else self._state(state.text._replace(before=before))
        return self._state(self._read(state.text, token, opened=None))

    def ways(self, state: State) -> Sequence[Way]:
        """Return the ways to continue the opened phrase, and to open a missing one with each of its spellings."""
        if state.ways is None:
            state.ways = list(dict.fromkeys(self._ways(state)))
        return state.ways

    def _ways(self, state: State) -> Iterator[Way]:
        if state.text.opened is not None:
            yield state.text.opened
        closed = self._state(state.text._replace(opened=None))
        for number, (phrase, n_missing) in enumerate(zip(self._phrases, closed.missing, strict=True)):
            if n_missing:
                yield from (Way(number, ids) for ids in phrase.spellings_after(state.text.before))

    def force(self, state: State, way: Way) -> State:
        """Return the state after the next token of one of :meth:`ways`."""
        after = state.forced.get(way)
        if after is None:
            token, *ids = way.ids
            opened = Way(way.phrase, tuple(ids)) if ids else None
            after = state.forced[way] = self._state(self._read(state.text, token, opened))
        return after

    def _read(self, text: _Text, token: int, opened: Way | None) -> _Text:
        characters, waiting = self._texts.read(text.waiting, token)
        steps = [
            phrase.advance(matches, text.before, characters)
            for phrase, matches in zip(self._phrases, text.matches, strict=True)
        ]
        unconfirmed = tuple(max(0, n - confirmed) for n, (_, confirmed) in zip(text.unconfirmed, steps, strict=True))
        before = self._texts.before(text.before, characters)
        return _Text(before, waiting, tuple(matches for matches, _ in steps), unconfirmed, opened)

    def _state(self, text: _Text) -> State:
        """Return the state of a text, the same for equal ones."""
        state = self._states.get(text)
        if state is None:
            missing = self._missing(text)
            n_needed = sum(n * phrase.most_tokens for n, phrase in zip(missing, self._phrases, strict=True))
            state = self._states[text] = State(
                text,
                missing,
                n_missing=sum(missing),
                n_needed=n_needed + (len(text.opened.ids) if text.opened is not None else 0),
                is_met=text.opened is None and not any(missing),
                is_idle=not text.waiting and text.opened is None and not any(text.matches),
            )
        return state

    def _missing(self, text: _Text) -> list[int]:
        """Return the number of times that each phrase is neither there nor opened.

        What has been read last is there if the word ends. It may not while a spelling is incomplete; but it has to
        where the first character of a spelling is, since phrases are opened only where a word may begin.
        """
        missing = list(text.unconfirmed)
        if text.opened is not None:
            missing[text.opened.phrase] -= 1
        if text.opened is None or self._lacks_first_character(text.opened, text.waiting):
            for i, (phrase, matches) in enumerate(zip(self._phrases, text.matches, strict=True)):
                missing[i] -= phrase.is_complete(matches)
        return [max(0, n) for n in missing]

    def _lacks_first_character(self, opened: Way, waiting: bytes) -> bool:
        """Tell whether the tokens of a phrase so far are only some of the bytes of its first character."""
        ids = self._phrases[opened.phrase].spellings.unspaced
        return len(ids) - len(opened.ids) == len(waiting) and opened.ids == ids[len(waiting) :]


def capitalized(text: str) -> str:
    """Return ``text`` with a capital letter at the start, if that is one letter; else as it is."""
    initial = text[:1].upper()
    return initial + text[1:] if len(initial) == 1 else text


def _next_before(before: int, character: str, is_word: bool) -> int:
    if before == _START and character == " ":
        return _START
    if is_word:
        return _WORD
    return _STOP if character in _STOPS else _BREAK

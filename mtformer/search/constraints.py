"""What a translation must contain, as an automaton over its tokens.

Phrases are found in the text that the tokens spell, however they spell it, and as whole words: *Hund* is neither in
*Hundert* nor in *Schäferhund*. A search that must place a phrase itself appends the tokens of one of its spellings.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mtformer.model.architecture import SpecialIds
from mtformer.text.tokenizer.tokenizer import byte_of
from mtformer.text.words import WordRule

_START, _BREAK, _WORD = range(3)  # before a place in a text: nothing but spaces; no part of a word; a part of a word
_REPLACEMENT = "\ufffd"  # for bytes that spell no character

Ids = tuple[int, ...]
Places = tuple[int, ...]  # how many characters of a phrase have been found, for each place where it may start


class Spellings(NamedTuple):
    """The tokens of a phrase.

    Attributes:
        first: at the start of a translation, in order of preference.
        spaced: after a space, which is part of the first token.
        unspaced: after a character that is not part of a word, such as an opening parenthesis.
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
        initials: what it may begin with.
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
        self._steps: dict[tuple[Places, int, str], tuple[Places, int]] = {}

    def advance(self, places: Places, before: int, characters: str) -> tuple[Places, int]:
        """Read characters, and return the new places and how many times the phrase has been found.

        A phrase whose last character has been read stays among the places, until the next character shows that its
        last word ends there.
        """
        if not places and self.initials.isdisjoint(characters):
            return places, 0
        key = places, before, characters
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = self._advance(*key)
        return found

    def _advance(self, places: Places, before: int, characters: str) -> tuple[Places, int]:
        n_found, end = 0, len(self.text)
        for character in characters:
            is_word = self._is_word(character)
            if end in places and not (is_word and self._is_word(self.text[-1])):
                n_found += 1
            begins = character == self.text[0] or (before == _START and character in self.initials)
            alone = not (before == _WORD and is_word)
            further = [p + 1 for p in places if p < end and self.text[p] == character]
            places = (*further, 1) if begins and alone else tuple(further)
            before = _next_before(before, character, is_word)
        return places, n_found

    def is_complete(self, places: Places) -> bool:
        """Whether the phrase has been read and counts if no part of a word follows."""
        return len(self.text) in places

    def ways(self, before: int) -> Sequence[Ids]:
        """Return the spellings that can follow; at least one."""
        if before == _START:
            return self.spellings.first
        unspaced = [] if before == _WORD and self._is_word(self.text[0]) else [self.spellings.unspaced]
        return [*unspaced, self.spellings.spaced] if self._with_spaces or not unspaced else unspaced


class Vocabulary:
    """What each token spells."""

    def __init__(self, tokens: Sequence[str], special_ids: SpecialIds, is_word: WordRule) -> None:
        """Take the tokens of the target language by id, of which the special ones spell nothing."""
        self._bytes = [byte_of(token) for token in tokens]
        self._texts = ["" if i in special_ids else token.replace("▁", " ") for i, token in enumerate(tokens)]
        self._is_word = is_word
        self._before: dict[tuple[int, str], int] = {}

    def advance(self, rest: bytes, token: int) -> tuple[str, bytes]:
        """Return the characters that ``token`` completes after bytes that begin one, and the bytes now waiting."""
        byte = self._bytes[token]
        if byte is None:
            return (_REPLACEMENT + self._texts[token] if rest else self._texts[token]), b""
        characters, rest = "", rest + bytes([byte])
        while rest:
            try:
                return characters + rest.decode(), b""
            except UnicodeDecodeError as error:
                if error.reason == "unexpected end of data":
                    break
                characters, rest = characters + _REPLACEMENT, rest[error.end :]  # which may begin a character
        return characters, rest

    def before(self, before: int, characters: str) -> int:
        """Return what the next character has before it."""
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


class _State(NamedTuple):
    """What has been read.

    Attributes:
        before: what the next character has before it.
        rest: bytes that begin a character.
        places: of each phrase.
        missing: how many times each phrase is still to be found; those complete but not confirmed count as missing.
        opened: the phrase whose spelling is in progress; None for none.
    """

    before: int
    rest: bytes
    places: tuple[Places, ...]
    missing: tuple[int, ...]
    opened: Way | None


class Constraint:
    """Phrases that a translation must contain, each a number of times.

    States are numbers; 0 is that of the empty translation. A search may *open* a missing phrase, which appends the
    first token of a spelling, and then continue it token by token. From every state with ``n_needed`` tokens left,
    :meth:`forced` has a continuation that needs one less.

    Attributes:
        n_phrases: how many phrases there must be, repetitions included.
    """

    def __init__(self, phrases: Sequence[tuple[Phrase, int]], vocabulary: Vocabulary) -> None:
        """Require each phrase, and how many times, at least once."""
        self.n_phrases = sum(count for _, count in phrases)
        self._phrases = [phrase for phrase, _ in phrases]
        self._vocabulary = vocabulary
        self._states: list[_State] = []
        self._numbers: dict[_State, int] = {}
        self._steps: dict[tuple[int, int], int] = {}
        self._ways: dict[int, list[Way]] = {}
        self._forced: dict[tuple[int, Way], int] = {}
        self._missing: list[list[int]] = []  # of each state, and so the following
        self._n_missing: list[int] = []
        self._n_needed: list[int] = []
        self._is_idle: list[bool] = []  # no phrase is in progress, so that most tokens make no difference
        self._initials = frozenset[str]().union(*(phrase.initials for phrase in self._phrases))
        self._number(_State(_START, b"", ((),) * len(phrases), tuple(count for _, count in phrases), None))

    @property
    def max_tokens(self) -> int:
        """The number of tokens that are enough for all phrases."""
        return self.n_needed(0)

    def n_missing(self, state: int) -> int:
        """How many phrases are neither there nor opened."""
        return self._n_missing[state]

    def n_needed(self, state: int) -> int:
        """The number of tokens that are enough for what is missing or opened."""
        return self._n_needed[state]

    def is_met(self, state: int) -> bool:
        """Whether a translation that ends here contains all phrases."""
        return self._states[state].opened is None and self.n_missing(state) == 0

    def advance(self, state: int, token: int) -> int:
        """Return the state after a token that opens and continues nothing."""
        key = state, token
        number = self._steps.get(key)
        if number is None:
            number = self._steps[key] = self._advance(state, token)
        return number

    def _advance(self, number: int, token: int) -> int:
        state = self._states[number]
        if self._is_idle[number]:
            characters, rest = self._vocabulary.advance(b"", token)
            if not rest and self._initials.isdisjoint(characters):
                before = self._vocabulary.before(state.before, characters)
                return number if before == state.before else self._number(state._replace(before=before))
        return self._number(self._read(state, token, None))

    def forced(self, state: int) -> Sequence[Way]:
        """Return what continues the opened phrase, and what opens a missing one: each of its spellings."""
        if state not in self._ways:
            self._ways[state] = list(dict.fromkeys(self._ways_from(self._states[state])))
        return self._ways[state]

    def _ways_from(self, state: _State) -> Iterator[Way]:
        if state.opened is not None:
            yield state.opened
        closed = self._number(state._replace(opened=None))
        for phrase, n_missing in enumerate(self._missing[closed]):
            if n_missing:
                yield from (Way(phrase, ids) for ids in self._phrases[phrase].ways(state.before))

    def force(self, state: int, way: Way) -> int:
        """Return the state after the next token of one of :meth:`forced`."""
        key = state, way
        number = self._forced.get(key)
        if number is None:
            phrase, (token, *rest) = way
            opened = Way(phrase, tuple(rest)) if rest else None
            number = self._forced[key] = self._number(self._read(self._states[state], token, opened))
        return number

    def _read(self, state: _State, token: int, opened: Way | None) -> _State:
        characters, rest = self._vocabulary.advance(state.rest, token)
        steps = [
            phrase.advance(places, state.before, characters)
            for phrase, places in zip(self._phrases, state.places, strict=True)
        ]
        missing = tuple(max(0, n - n_found) for n, (_, n_found) in zip(state.missing, steps, strict=True))
        before = self._vocabulary.before(state.before, characters)
        return _State(before, rest, tuple(places for places, _ in steps), missing, opened)

    def _number(self, state: _State) -> int:
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self._states)
            self._states.append(state)
            missing = self._still_missing(state)
            n_opened = len(state.opened.ids) if state.opened is not None else 0
            n_needed = sum(n * phrase.most_tokens for n, phrase in zip(missing, self._phrases, strict=True))
            self._missing.append(missing)
            self._n_missing.append(sum(missing))
            self._n_needed.append(n_needed + n_opened)
            self._is_idle.append(not state.rest and state.opened is None and not any(state.places))
        return number

    def _still_missing(self, state: _State) -> list[int]:
        """Return how many times each phrase is neither there nor opened.

        What has been read last is there if the word ends. It may not while a spelling is incomplete; but it has to
        where the first character of a spelling is, since phrases are opened only where a word may begin.
        """
        missing = list(state.missing)
        if state.opened is not None:
            missing[state.opened.phrase] -= 1
        if state.opened is None or self._lacks_first_character(state.opened, state.rest):
            for i, (phrase, places) in enumerate(zip(self._phrases, state.places, strict=True)):
                missing[i] -= phrase.is_complete(places)
        return [max(0, n) for n in missing]

    def _lacks_first_character(self, opened: Way, rest: bytes) -> bool:
        """Tell whether the tokens of a phrase so far are only some of the bytes of its first character."""
        ids = self._phrases[opened.phrase].spellings.unspaced
        return len(ids) - len(opened.ids) == len(rest) and opened.ids == ids[len(rest) :]


def capitalized(text: str) -> str:
    """Return ``text`` with a capital letter at the start, if that is one letter; else as it is."""
    initial = text[:1].upper()
    return initial + text[1:] if len(initial) == 1 else text


def _next_before(before: int, character: str, is_word: bool) -> int:
    if before == _START and character == " ":
        return _START
    return _WORD if is_word else _BREAK

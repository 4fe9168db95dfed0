"""The spelling of a trace: the tokens and texts of a sentence, with its slots and bytes resolved."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from mtformer.explain.trace import Token
from mtformer.text.slots import Slotted, readable
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.vocabulary import byte_of


class Spelling:
    """The tokens and texts of a sentence and its translations. A slot is spelled as its original: ⟨4711⟩.

    Attributes:
        sentence: the sentence.
    """

    def __init__(self, sentence: str, tokenizer: Tokenizer, slotted: Slotted | None) -> None:
        """Take a sentence, the tokenizer of the model, and the sentence as the model reads it, if it has slots."""
        self.sentence = sentence
        self._tokenizer, self._slotted = tokenizer, slotted or Slotted(sentence)

    @property
    def read(self) -> str:
        """The sentence as the model reads it, slots readable."""
        return self._slotted.shown

    def encode_src(self) -> list[int]:
        """Return the ids of the sentence, EOS last."""
        [ids] = self._tokenizer.encode_src([self._slotted.text])
        return ids

    @property
    def is_empty(self) -> bool:
        """Whether the sentence has no token of its own."""
        return len(self.encode_src()) == len(self._tokenizer.prefixes.src) + 1

    def encode_tgt(self, text: str, *, inside: bool = False) -> list[int]:
        """Return the ids of a part of a translation, without EOS; ``inside`` if it follows text without a space."""
        text = self._slotted.emptied(text)
        return self._tokenizer.encode_tgt_inside(text) if inside else self._tokenizer.encode_tgt([text])[0][:-1]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the translation that target ids make."""
        return self._slotted.filled([self._tokenizer.decode(ids)])[0].strip()

    def src_tokens(self, ids: Sequence[int]) -> tuple[Token, ...]:
        """Return the tokens of source ids."""
        return self._tokens(ids, self._tokenizer.src_tokens(ids), self._slotted.originals)

    def tgt_tokens(self, ids: Sequence[int]) -> tuple[Token, ...]:
        """Return the tokens of target ids."""
        return self._tokens(ids, self._tokenizer.tgt_tokens(ids), self._slotted.fillings)

    def _tokens(self, ids: Sequence[int], texts: Sequence[str], meanings: Mapping[str, str]) -> tuple[Token, ...]:
        shown, special_ids = [readable(text, meanings) for text in texts], self._tokenizer.special_ids
        characters: list[str | None] = []
        for is_byte, run in groupby(shown, key=lambda text: byte_of(text) is not None):
            spelled = list(run)
            run_bytes = bytes(byte for text in spelled if (byte := byte_of(text)) is not None)
            characters += _characters(run_bytes) if is_byte else [None] * len(spelled)
        return tuple(
            Token(text, i, "special" if i in special_ids else "word" if byte_of(text) is None else "byte", character)
            for i, text, character in zip(ids, shown, characters, strict=True)
        )


def _characters(run: bytes) -> list[str | None]:
    """Return for each byte the character that it is a part of; None where the bytes are not UTF-8."""
    result: list[str | None] = []
    while len(result) < len(run):
        left = run[len(result) :]
        for length in range(1, 5):
            try:
                result += [left[:length].decode()] * length
                break
            except UnicodeDecodeError:
                continue
        else:
            result.append(None)
    return result

"""Names of a source that a translation lacks: those that the model has to spell, where the loss is nearly certain."""

import re

from mtformer.text.languages import base_language, letters_of
from mtformer.text.names import FEWEST_TOKENS_OF_RARE, LATIN_NAME
from mtformer.text.tokenizer.tokenizer import Tokenizer

FEWEST_TOKENS = 8_000  # of a vocabulary; a smaller one spells words as well as names
_RESPELLING = ("lt", "lv", "sq")  # Kovaļčiks
INSIDE = re.compile(rf"(?<=[a-z,;] ){LATIN_NAME}")  # a sentence
_FEWEST_LETTERS = 3  # that a name shares with what it has become


def finds_lost_names(tokenizer: Tokenizer, src_lang: str, tgt_lang: str) -> bool:
    """Return whether lost names can be found: from English, where nouns have no capital, into Latin letters.

    A model with slots keeps names by itself.
    """
    is_copied = letters_of(tgt_lang) == letters_of("en") and base_language(tgt_lang) not in _RESPELLING
    has_words = tokenizer.src_vocab_size >= FEWEST_TOKENS and not tokenizer.has_slots
    return base_language(src_lang) == "en" and is_copied and has_words


def lost_names(source: str, translation: str, tokenizer: Tokenizer) -> list[str]:
    """Return the words with a capital inside a sentence that the model has to spell and that a translation lacks.

    It has one if it shares three letters in a row with it. A word of few tokens in small letters is no name: "Court".
    """
    small = translation.lower()
    names = []
    for name in dict.fromkeys(INSIDE.findall(source)):
        if min(map(tokenizer.n_src_tokens, (name, name.lower()))) >= FEWEST_TOKENS_OF_RARE:
            word = name.lower()
            parts = (word[i : i + _FEWEST_LETTERS] for i in range(len(word) - _FEWEST_LETTERS + 1))
            names += [name] * (word not in small and not any(part in small for part in parts))
    return names

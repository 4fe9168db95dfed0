"""What happens to every text, unless a user wants the model alone."""

from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.translate.casing import Casing
from mtformer.translate.characters import KnownCharacters
from mtformer.translate.copying import CopyUnknown
from mtformer.translate.plan import Preparation
from mtformer.translate.sentences import SplitSentences


def known_characters(tokenizer: Tokenizer) -> KnownCharacters:
    """Return which characters of a source a model knows."""
    return KnownCharacters(tokenizer.src_characters(), composes=tokenizer.normalization != "identity")


def standard_preparations(tokenizer: Tokenizer, src_lang: str, tgt_lang: str) -> tuple[Preparation, ...]:
    """Return the preparations for a model, in order.

    What has no letter that the model knows is copied. In other texts unknown characters are replaced, and then each
    sentence is translated alone, in the casing that the model knows.
    """
    characters = known_characters(tokenizer)
    return (
        CopyUnknown(characters.can_write),  # first, so that copies are exact
        characters,
        SplitSentences(src_lang, tgt_lang),
        CopyUnknown(characters.can_write, is_noted=True),
        Casing(tokenizer, src_lang),
    )

"""The built-in corpus."""

from collections.abc import Iterator

from mtformer.config import BuiltinText
from mtformer.support.errors import UserError
from mtformer.text.pairs import Example


def read_phrasebook(source: BuiltinText, src_lang: str, tgt_lang: str) -> Iterator[Example]:
    """Yield the pairs of the phrasebook.

    Raises:
        UserError: it does not have one of the languages.
    """
    from mtformer.phrasebook.splits import LANGUAGES, sentences  # builds its tables

    for language in (src_lang, tgt_lang):
        if language not in LANGUAGES:
            raise UserError(f"the phrasebook has {', '.join(LANGUAGES)}, not {language}")
    sayings = sentences(source.split, source.size, source.seed)
    for number, saying in enumerate(sayings, 1):
        yield Example(saying.text(src_lang), saying.text(tgt_lang), number)

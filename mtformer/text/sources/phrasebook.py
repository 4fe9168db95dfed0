"""The built-in corpus."""

from collections.abc import Iterator

from mtformer.config import BuiltinText
from mtformer.errors import UserError
from mtformer.text.sources.pairs import Example


def read_phrasebook(source: BuiltinText, src_lang: str, tgt_lang: str) -> Iterator[Example]:
    """Yield the pairs of the phrasebook.

    Raises:
        UserError: it does not have one of the languages.
    """
    from mtformer import phrasebook  # reads its tables

    for language in (src_lang, tgt_lang):
        if language not in phrasebook.LANGUAGES:
            raise UserError(f"the phrasebook has {', '.join(phrasebook.LANGUAGES)}, not {language}")
    sayings = phrasebook.sentences(source.split, source.size, source.seed)
    for number, saying in enumerate(sayings, 1):
        yield Example(saying.text(src_lang), saying.text(tgt_lang), number)

"""The target language that a file names."""

from mtformer.support.errors import UserError
from mtformer.text.languages import base_language, is_language
from mtformer.translate.documents.seam import Settings


def new_target_language(named: str, settings: Settings) -> str | None:
    """Return the language that a file has to name as that of its translations; None if it names it already.

    Args:
        named: the one that it names; empty if there is none. Templates name that of the source.
        settings: the languages of the translation.

    Raises:
        UserError: it is another language, so that the file would have translations into two.
    """
    language = base_language(named.strip().lower())
    if language == base_language(settings.tgt_lang):
        return None
    if is_language(named) and language != base_language(settings.src_lang):
        raise UserError(
            f"{settings.name} names {named.strip()} as the language of its translations, not {settings.tgt_lang}: "
            "take a file without translations, or correct the language in it"
        )
    return settings.tgt_lang

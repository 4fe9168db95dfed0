"""Control tokens in front of source texts: the language to translate to, and the kind of the text."""

from collections.abc import Sequence

from mtformer.config import DataConfig, LanguagePair, Source


def target_tag(language: str) -> str:
    """Return the token that asks for a target language (Johnson et al. 2017)."""
    return f"<2{language}>"


def corpus_tag(name: str) -> str:
    """Return the token of a corpus, such as one of back-translated text (Caswell et al. 2019)."""
    return f"<{name}>"


def tags_toward(directions: Sequence[LanguagePair], tgt_lang: str, tag: str | None = None) -> list[str]:
    """Return the tokens in front of a source text.

    Args:
        directions: those of the model; only several target languages take a token.
        tgt_lang: the language to translate to.
        tag: of the corpus.
    """
    has_targets = len({pair.tgt_lang for pair in directions}) > 1
    return [target_tag(tgt_lang)] * has_targets + ([] if tag is None else [corpus_tag(tag)])


def tags_of_source(data: DataConfig, source: Source) -> list[str]:
    """Return the tokens in front of the texts of a source of training text."""
    directions = data.language_pairs
    return tags_toward(directions, (source.languages or directions[0]).tgt_lang, source.tag)


def all_tags(data: DataConfig) -> list[str]:
    """Return the tokens that a model's vocabulary needs for its training text, each once."""
    return list(dict.fromkeys(tag for source in data.train for tag in tags_of_source(data, source)))

"""Tokens in front of texts, which ask for a target language or name a corpus."""

from collections.abc import Sequence

from mtformer.config import DataConfig, LanguagePair
from mtformer.config.sources import PrefixTokens


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


def prefix_tokens(data: DataConfig, pair: LanguagePair, tag: str | None = None) -> PrefixTokens:
    """Return the tokens before the texts of a direction, and of a corpus."""
    if not data.prefixes:
        return PrefixTokens(src=tuple(tags_toward(data.language_pairs, pair.tgt_lang, tag)))
    own = data.prefixes.get(str(pair), PrefixTokens())
    return own if tag is None else PrefixTokens(src=(*own.src, corpus_tag(tag)), tgt=own.tgt)


def prefixes_of_sources(data: DataConfig) -> list[PrefixTokens]:
    """Return the tokens before the texts of each source of training text."""
    return [prefix_tokens(data, data.direction_of(source), source.tag) for source in data.train]


def all_tags(data: DataConfig) -> list[str]:
    """Return the tokens that a model's vocabulary needs before sources of its training text, each once."""
    return list(dict.fromkeys(tag for prefix in prefixes_of_sources(data) for tag in prefix.src))

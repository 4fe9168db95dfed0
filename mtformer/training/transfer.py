"""Whether a model suits the text that it is fine-tuned on: its languages and its vocabulary."""

import logging
from collections.abc import Sequence

import numpy as np

from mtformer.bundle.format import Bundle
from mtformer.config import Config, LanguagePair, ResolvedConfig
from mtformer.data.store import StoredText
from mtformer.support.errors import UserError
from mtformer.text.languages import base_language
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer

log = logging.getLogger(__name__)

# A tokenizer is trained on as many pairs as are counted, and on others: it spells the text that it is trained on best.
_N_COUNTED = 2_000
# Times the tokens of a tokenizer of the text's own. In another domain, 1.0 to 1.25: Tatoeba with a tokenizer of
# Multi30k, and the other way round; in another script, 3.4: Chinese subtitles with one of English and German.
_MOST_TOKENS = 1.6
_MOST_UNKNOWN = 0.02  # of the tokens


def translates(bundle: Bundle, pairs: Sequence[LanguagePair]) -> bool:
    """Tell whether a model translates in all of some directions, by whatever codes their languages have."""
    known = {_languages(pair) for pair in bundle.header.language_pairs}
    return all(_languages(pair) in known for pair in pairs)


def _languages(pair: LanguagePair) -> tuple[str, str]:
    return base_language(pair.src_lang), base_language(pair.tgt_lang)


def log_start(given: Config, resolved: ResolvedConfig, bundle: Bundle) -> None:
    """Log the model that fine-tuning starts from, and the defaults of fine-tuning."""
    name, directions = given.training.init_from, given.data.language_pairs
    is_known = translates(bundle, directions)
    if not is_known:
        wanted = ", ".join(map(str, directions))
        log.warning("%s translates %s, not %s, which it has to learn", name, bundle.header.title, wanted)
    elif not any(source.general for source in given.data.train):
        log.warning("no source of data.train is general: the model will forget how to translate other text")
    share = "as" if resolved.training.lora or not is_known else "less than"
    by_default = f" by default, {share} from scratch (training.learning_rate)"
    log.info(
        "fine-tuning %s: the learning rate peaks at %g%s",
        name,
        resolved.training.learning_rate,
        by_default if given.training.learning_rate is None else "",
    )


def check_vocabulary(given: Config, resolved: ResolvedConfig, tokenizer: Tokenizer, text: StoredText) -> None:
    """Compare the tokens that a model's vocabulary splits the new text into with those of a vocabulary of its own.

    Args:
        given: the config; if it sets ``tokenizer.vocab_size``, a vocabulary that does not fit is a warning.
        resolved: with the settings of the model's tokenizer.
        tokenizer: the model's, with the tokens that are added.
        text: of which that of general sources is left out.

    Raises:
        UserError: there are too many, or too many unknown ones.
    """
    pairs = _sample(given, text)
    if tokenizer.src.type in ("char", "byte") or len(pairs) < 2:
        return
    languages = zip(*given.data.language_pairs, strict=True)
    own = train_tokenizer(
        pairs[::2], resolved.tokenizer.model_copy(update={"user_symbols": []}), *languages, adjust=True
    )
    problems = [
        problem
        for side in ("source", "target")
        if (problem := _misfit(side, tokenizer, own, [pair[side == "target"] for pair in pairs[1::2]]))
    ]
    if not problems:
        return
    size = tokenizer.vocab_size
    message = f"the vocabulary of {given.training.init_from} (training.init_from) does not fit: {'; '.join(problems)}"
    if given.tokenizer.vocab_size is None:
        raise UserError(
            f"{message}. Set tokenizer.vocab_size to more than its {size} to add tokens, or to {size} to use it as it "
            "is; or train from scratch"
        )
    log.warning("%s", message)


def _sample(given: Config, text: StoredText) -> Sequence[SentencePair]:
    """Return pairs of the new text at random."""
    is_new = np.array([not source.general for source in given.data.train])
    places = np.flatnonzero(is_new[text.sources])
    chosen = np.random.default_rng(given.training.seed).permutation(places)[: 2 * _N_COUNTED]
    return [text[place] for place in chosen.tolist()]


def _misfit(side: str, tokenizer: Tokenizer, own: Tokenizer, texts: Sequence[str]) -> str:
    """Say by how many tokens the vocabulary of a side does not fit its texts; return nothing if it does."""
    tokens, of_own = (
        np.concatenate([np.array(row[:-1], dtype=np.int64) for row in encode(texts)])
        for encode in ((each.encode_src if side == "source" else each.encode_tgt) for each in (tokenizer, own))
    )
    n_unknown = np.count_nonzero(tokens == tokenizer.special_ids.unk)
    if n_unknown > _MOST_UNKNOWN * len(tokens):
        return f"{n_unknown:,} of {len(tokens):,} {side} tokens are unknown to it"
    if len(tokens) > _MOST_TOKENS * len(of_own):
        return (
            f"it needs {len(tokens):,} {side} tokens for {len(texts):,} of the training texts, where a vocabulary of "
            f"their own needs {len(of_own):,}"
        )
    return ""

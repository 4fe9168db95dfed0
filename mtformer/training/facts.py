"""The facts of a run that need no model, and its tokenizer."""

import hashlib
import logging
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

import numpy as np

from mtformer.config import Config, Facts, Provenance, ResolvedConfig, resolve
from mtformer.data.augment import Augmenter, TokenizerText
from mtformer.data.store import StoredText
from mtformer.data.tokens import stored_tokenizer
from mtformer.data.training import mixing_weights
from mtformer.runs.folder import RunFolder
from mtformer.support.hardware import pick_device, pick_precision
from mtformer.support.reproducibility import versions
from mtformer.text.languages import suit_joint_vocabulary
from mtformer.text.pairs import SentencePair, fingerprint
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import MAX_TRAINING_TEXTS, train_tokenizer
from mtformer.training.finetune import inherit, tokenizer_of
from mtformer.training.history import SavedRun, history, load_saved_run, require_same_run, warn_of_foreign_provenance
from mtformer.training.inputs import Inputs, control_symbols
from mtformer.training.transfer import check_vocabulary

log = logging.getLogger(__name__)


def collect_facts(
    config: Config, inputs: Inputs, n_processes: int, folder: RunFolder | None
) -> tuple[Facts, Tokenizer, bool]:
    """Collect the facts and get the tokenizer: those of the run in ``folder``, if there is one.

    Returns:
        the facts, the tokenizer, and whether they are those of a run that is resumed.

    Raises:
        UserError: the run in ``folder`` cannot be resumed with ``config``, or there is no tokenizer as it asks for.
    """
    facts = _facts_of(config, inputs, n_processes)
    saved = load_saved_run(folder) if folder else None
    if folder and saved:
        tokenizer = saved.tokenizer
        if inputs.base:  # the files of a tokenizer do not say what starts decoding
            tokenizer = tokenizer.with_start(inputs.base.tokenizer.special_ids.start)
        return _facts_of_resumed(config, facts, folder, saved), tokenizer, True
    warn_of_foreign_provenance(config.provenance, facts.provenance)
    resolved = resolve(config, facts)
    tokenizer = _new_tokenizer(resolved, inputs, adjust=config.tokenizer.vocab_size is None)
    if inputs.base:
        check_vocabulary(config, resolved, tokenizer, inputs.text)
    return replace(facts, vocab_size=tokenizer.vocab_size), tokenizer, False


def _facts_of(config: Config, inputs: Inputs, n_processes: int) -> Facts:
    """Collect the facts of the text and the other inputs, and all that the result depends on."""
    text, base, given, sizes = inputs.text, inputs.base, inputs.tokenizer, _sizes(config, inputs.text)
    valid_text = fingerprint(chain.from_iterable([*inputs.valid_pairs.values(), *inputs.general_pairs.values()]))
    fingerprints = {"train": text.digest, "valid": valid_text.digest}
    if inputs.glossary is not None:
        fingerprints["terms"] = inputs.glossary.digest
    if base:
        fingerprints["init_from"] = base.digest
    if given:
        models = b"".join(path.read_bytes() for path in config.tokenizer.paths)
        fingerprints["tokenizer"] = hashlib.sha256(models).hexdigest()
    device = pick_device(config.training.device)
    hardware = {"device": device.type, "processes": str(n_processes)}
    return Facts(
        n_pairs=sum(sizes),
        n_new=sum(n for n, source in zip(sizes, config.data.train, strict=True) if not source.general),
        base=inherit(config, base) if base else None,
        tokenizer=given.settings if given else None,
        joint=base.tokenizer.joint if base else _share_tokens(config),
        precision=pick_precision(config.training.precision, device),
        provenance=Provenance(versions=versions(), hardware=hardware, fingerprints=fingerprints),
    )


def _sizes(config: Config, text: StoredText) -> list[int]:
    """Return the pairs of each source by which settings are chosen: all, or those in an epoch if some are general."""
    sizes = np.bincount(text.sources, minlength=len(config.data.train)).tolist()
    if not any(source.general for source in config.data.train):
        return sizes
    return [round(size * weight) for size, weight in zip(sizes, mixing_weights(config.data, sizes), strict=True)]


def _facts_of_resumed(config: Config, facts: Facts, folder: RunFolder, saved: SavedRun) -> Facts:
    """Add the measurements of the first start and the changes since; refuse changes that a run cannot take."""
    measured, tokenizer = saved.config.training, saved.tokenizer
    facts = replace(facts, joint=tokenizer.joint, slots=tokenizer.has_slots, vocab_size=tokenizer.vocab_size)
    facts = replace(facts, precision=measured.precision, threads=measured.threads, max_tokens=measured.max_tokens)
    now = resolve(config, facts)
    require_same_run(folder, saved, now)
    provenance = facts.provenance.model_copy(update={"changes": history(saved, now)})
    return replace(facts, provenance=provenance)


def _new_tokenizer(config: ResolvedConfig, inputs: Inputs, *, adjust: bool) -> Tokenizer:
    """Take the tokenizer of the bundle or the given one, or train one.

    With ``adjust``, it has the nearest size that the text supports.
    """
    text = _tokenizer_text(config, inputs.text)
    if inputs.base:
        return tokenizer_of(inputs.base, config, text)
    if inputs.tokenizer:
        return inputs.tokenizer.tokenizer
    src_langs, tgt_langs = zip(*config.data.language_pairs, strict=True)
    symbols, seed, shares = control_symbols(config), config.training.seed, config.data.augment

    def train() -> Tokenizer:
        if config.tokenizer.type != "byte":
            log.info("training the tokenizer")
        return train_tokenizer(
            text, config.tokenizer, src_langs, tgt_langs, seed=seed, adjust=adjust, control_symbols=symbols
        )

    varied = Augmenter(shares, seed=seed, languages=config.data.language_pairs).identity if shares else None
    settings = config.tokenizer.model_dump(mode="json")
    return stored_tokenizer(
        inputs.text, [settings, list(src_langs), list(tgt_langs), seed, adjust, list(symbols), varied], train
    )


def _tokenizer_text(config: Config, text: StoredText) -> Iterable[SentencePair]:
    """Return the tokenizer's training text: the corpus, or a part of it as epochs will vary it."""
    shares, seed = config.data.augment, config.training.seed
    if not shares:
        return text
    return TokenizerText(text.sampled(MAX_TRAINING_TEXTS, seed), shares, seed, config.data.language_pairs)


def _share_tokens(config: Config) -> bool:
    """Whether there is one tokenizer for both languages, if the config leaves it open; annotated terms need one."""
    return config.data.terms is not None or suit_joint_vocabulary(*zip(*config.data.language_pairs, strict=True))

"""The inputs of a run: text, a bundle to start from, a tokenizer, a glossary."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from mtformer.bundle.format import Bundle, load_bundle
from mtformer.config import Config, LanguagePair, ResolvedConfig
from mtformer.config.sources import SOURCES
from mtformer.data.held_out import describe_held_out, training_text, warnings_of_copies, warnings_of_mistakes
from mtformer.data.sources.hub import pinned
from mtformer.data.sources.parallel import ParallelText, require_readable, source_name
from mtformer.data.store import StoredText
from mtformer.runs.finding import find_model
from mtformer.runs.folder import RunFolder
from mtformer.support.errors import Problems, UserError
from mtformer.support.files import shown_path
from mtformer.support.processes.ranks import Ranks
from mtformer.text.glossary import Glossary
from mtformer.text.pairs import Example, SentencePair
from mtformer.text.tags import all_tags
from mtformer.text.tokenizer.adopt import GivenTokenizer, read_tokenizer
from mtformer.text.tokenizer.tokenizer import CONTEXT, MARKERS

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Inputs:
    """The contents of the files that a config names.

    Attributes:
        text: the training text.
        valid_pairs: the validation pairs of each direction.
        general_pairs: those that show what fine-tuning forgets.
        base: the bundle to fine-tune; None to train from scratch.
        tokenizer: the given one; None if it is to be trained, or that of the bundle.
        glossary: the terms to annotate; None for none.
    """

    text: StoredText
    valid_pairs: Mapping[LanguagePair, Sequence[SentencePair]]
    general_pairs: Mapping[LanguagePair, Sequence[SentencePair]]
    base: Bundle | None
    tokenizer: GivenTokenizer | None
    glossary: Glossary | None


def read_inputs(config: Config, ranks: Ranks) -> Inputs:
    """Read the inputs that ``config`` names; the test set only to report its problems now.

    Raises:
        UserError: something cannot be read or used, or there is no sentence pair.
    """
    data, base = config.data, config.training.init_from
    general = [source for source in data.valid if source.general]
    own = [source for source in data.valid if not source.general]
    train, valid, general_valid, test = (
        ParallelText(sources, data.src_lang, data.tgt_lang) for sources in (data.train, own, general, data.test)
    )
    if ranks.size > 1 and (train.has_pipe or valid.has_pipe or general_valid.has_pipe):
        raise UserError("several processes cannot read a pipe: write its text to a file first")
    ranks.by_first(lambda: require_readable((train, valid, general_valid, test)))
    tokenizer = ranks.by_first(
        lambda: read_tokenizer(config.tokenizer, control_symbols(config)) if config.tokenizer.paths else None
    )
    glossary = ranks.by_first(lambda: Glossary.read(data.terms) if data.terms else None)
    text = ranks.after_first(lambda: training_text(data))
    read = _read(valid.parts())
    valid_pairs = _by_direction(read) if data.valid else text.held_out.get("valid", {})
    ranks.by_first(lambda: _require_pairs(config, text, valid_pairs))
    local_test = [part for part in test.parts() if part.files and not part.has_pipe]
    ranks.by_first(lambda: _report(text, {"data.valid": read, "data.test": _read(local_test)}))
    bundle = load_bundle(find_model(base)) if base else None
    return Inputs(text, valid_pairs, _by_direction(_read(general_valid.parts())), bundle, tokenizer, glossary)


def require_apart(folder: RunFolder, config: Config) -> None:
    """Refuse inputs in the place of what a run writes, and a config there that is not that of a run.

    Raises:
        UserError: naming the first of them.
    """
    data = config.data
    texts = [ParallelText(getattr(data, key), data.src_lang, data.tgt_lang) for key in SOURCES]
    files = [file for text in texts for file in text.files]
    for path in filter(None, (config.training.init_from, data.terms, *config.tokenizer.paths, *files)):
        for place in (path.resolve(), *path.resolve().parents):
            if place.exists() and any(part.exists() and part.samefile(place) for part in folder.parts):
                raise UserError(
                    f"{shown_path(path)} is in the place of a file of the run {folder.path}: choose another name "
                    "(--set run.name=…)"
                )
    records = (folder.starts, folder.metrics, folder.checkpoints)
    if folder.config.exists() and not any(record.exists() for record in records):
        try:
            folder.read_config(ResolvedConfig)
        except UserError:
            raise UserError(
                f"{folder.config} is not the config of a run, and training would overwrite it: choose another name "
                "(--set run.name=…)"
            ) from None


def named_commits(config: Config) -> Config:
    """Return ``config`` with the commits of data sets, which the config of the run records."""
    data = config.data
    sources = {key: pinned(getattr(data, key)) for key in ("train", "valid", "test")}
    return config.model_copy(update={"data": data.model_copy(update=sources)})


def control_symbols(config: Config) -> list[str]:
    """Return the source tokens that no text contains: those for terms, context, languages and corpora."""
    data = config.data
    return [*(MARKERS if data.terms else ()), *([CONTEXT] if data.context else ()), *all_tags(data)]


def require_some(n_kept: int, dropped: Counter[str]) -> None:
    """Refuse a text of which no pair is kept.

    Raises:
        UserError: with the reasons.
    """
    if not n_kept:
        raise UserError(f"all {dropped.total():,} training pairs were dropped: {'; '.join(dropped)}")


def _read(parts: Iterable[ParallelText]) -> list[tuple[ParallelText, list[Example]]]:
    """Read sources; if one cannot be read, still read the others, to report all problems."""
    read, problems = [], Problems()
    for part in parts:
        with problems.collected():
            read.append((part, list(part.examples())))
    problems.raise_all()
    return read


def _by_direction(read: Iterable[tuple[ParallelText, Sequence[Example]]]) -> dict[LanguagePair, list[SentencePair]]:
    pairs: dict[LanguagePair, list[SentencePair]] = {}
    for part, examples in read:
        pairs.setdefault(part.languages, []).extend(SentencePair(src, tgt) for src, tgt, _ in examples)
    return pairs


def _report(text: StoredText, held_out: Mapping[str, Sequence[tuple[ParallelText, Sequence[Example]]]]) -> None:
    """Describe the pairs that are held out, and warn of validation and test text that seems to be the wrong one."""
    if text.held_out:
        log.info("%s", describe_held_out(text))
    copies = {
        key: (SentencePair(src, tgt) for _, examples in read for src, tgt, _ in examples)
        for key, read in held_out.items()
    }
    warnings = list(warnings_of_copies(text, copies))
    for part, examples in chain.from_iterable(held_out.values()):
        warnings += warnings_of_mistakes(source_name(part.sources[0]), part.languages, examples)
    for warning in warnings:
        log.warning("%s", warning)


def _require_pairs(
    config: Config, text: StoredText, valid_pairs: Mapping[LanguagePair, Sequence[SentencePair]]
) -> None:
    data, n_valid = config.data, sum(map(len, valid_pairs.values()))
    for sources, n_pairs in ((data.train, sum(text.n_pairs)), (data.valid, n_valid)):
        if sources and not n_pairs:
            raise UserError(f"there are no sentence pairs in {', '.join(dict.fromkeys(map(source_name, sources)))}")
    require_some(len(text), sum((drops.counts for drops in text.drops), Counter()))

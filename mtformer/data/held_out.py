"""Validation and test text held out of the training text, where a config names none.

A hash of its letters and digits decides whether a pair is held out, so all copies of a pair are on the same side, in
either direction of translation. Adding text does not move pairs, except that the share that is held out halves when the
text has grown enough: then half of the held-out pairs are trained on. No pair moves the other way.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from mtformer.config import DataConfig, LanguagePair, Source
from mtformer.data.arrays import read_arrays
from mtformer.data.clean.filters import filters_of
from mtformer.data.clean.language import N_TEXTS, language_warning
from mtformer.data.clean.line_lengths import describe_alignment, lengths_of
from mtformer.data.clean.seen import Hashes, HeldOut, hashes, near_key
from mtformer.data.sources.parallel import ParallelText
from mtformer.data.store import MAX_BYTES, Chunk, Portion, StoredText, TextFacts, TextWriter, stored_text, unpack
from mtformer.support.cache import cache_folder, from_cache
from mtformer.support.errors import UserError
from mtformer.support.files import digest_of
from mtformer.support.processes.workers import in_order
from mtformer.support.progress import Progress
from mtformer.support.terminal import counted
from mtformer.text.pairs import Example, SentencePair

_FORMAT = 1
_PARTS = ("valid", "test")
# A sixty-fourth of the text costs next to nothing. With fewer than 200 pairs, scores say little. With 2,000, as many as
# the test sets of WMT have, BLEU is known to about one point, and each validation still takes only seconds.
_SHARE, _FEWEST, _MOST = 1 / 64, 200, 2_000
_MOST_COPIES = 0.1  # of the pairs of a validation or test set; with more in the training text, scores are too good
_LARGEST_SHARE = 1 / 16  # of a text so small that this is fewer than 200 pairs
_FEW = 10_000  # pairs of a text, any of which may be held out
_RANGE = 2.0**64  # of the hashes
_NEVER = 2**64 - 1  # in place of the hash of a pair that must not be held out


def training_text(data: DataConfig) -> StoredText:
    """Read the training text of a config, filter it, and hold out the validation and the test set if it names none.

    Raises:
        UserError: a source cannot be read, or the text is too small to hold anything out.
        MtformerError: the cache cannot be written.
    """
    text = stored_text(ParallelText(data.train, data.src_lang, data.tgt_lang), filters_of(data))
    if not data.held_out or not len(text):
        return text
    sources: list[JsonValue] = [[str(source.languages), is_apart(source)] for source in data.train]
    key = digest_of([_FORMAT, text.key, list(data.held_out), sources, data.filters_by("held_out")])
    folder = cache_folder("text") / key
    stored = from_cache(folder, read_arrays, lambda folder: _write(folder, text, data), max_bytes=MAX_BYTES)
    return StoredText(key, text.names, stored)


def held_out_share(n_pairs: int) -> float:
    """Return the share of the pairs of a direction that the validation set gets, and also the test set."""
    share = _LARGEST_SHARE
    while share * n_pairs > min(max(_SHARE * n_pairs, _FEWEST), _MOST):
        share /= 2
    return share


def describe_held_out(text: StoredText) -> str:
    """Describe how many pairs are held out of a text."""
    counts = {part: sum(map(len, by_direction.values())) for part, by_direction in text.held_out.items()}
    test = f", and {counts['test']:,} to test it" if "test" in counts else ""
    verb = "is" if counts["valid"] == 1 else "are"
    held_out = f"{counts['valid']:,} of {counted(sum(text.n_pairs), 'pair')} {verb} held out"
    return f"no data.valid: {held_out} to choose the best model{test}"


def warnings_of_copies(text: StoredText, held_out: Mapping[str, Iterable[SentencePair]]) -> Iterator[str]:
    """Yield a warning for each text of which more than a tenth of the pairs are in the training text, unchanged.

    Args:
        text: the training text.
        held_out: the pairs of each text to look for, by its key in a config.
    """
    pairs = {key: set(of_key) for key, of_key in held_out.items()}
    wanted = set[SentencePair]().union(*pairs.values())
    chunks = text.chunks() if wanted else iter(())
    copies = set[SentencePair]().union(*(found for _, found in in_order(partial(_copies, wanted), chunks)))
    for key, of_key in pairs.items():
        n_copies = len(of_key & copies)
        if n_copies > _MOST_COPIES * len(of_key):
            verb = "is" if n_copies == 1 else "are"
            yield (
                f"{key}: {n_copies:,} of {counted(len(of_key), 'different pair')} {verb} in data.train as well, so its "
                "scores will be too good: name other text, or keep such pairs out of training (data.filters: "
                "[held_out])"
            )


def warnings_of_mistakes(name: str, languages: LanguagePair, examples: Sequence[Example]) -> Iterator[str]:
    """Yield a warning if a validation or test set is in other languages, and if its two sides are out of step.

    Args:
        name: what the messages call the text.
        languages: those that it should be in.
        examples: its pairs.
    """
    first = [(src, tgt) for src, tgt, _ in examples[:N_TEXTS]]
    if warning := language_warning(name, dict(zip(languages, zip(*first, strict=True), strict=False))):
        yield warning
    for slip in describe_alignment(lengths_of(examples), [example.line for example in examples], fixable=False):
        yield f"{name}: {slip}"


def _copies(pairs: set[SentencePair], chunk: Chunk) -> set[SentencePair]:
    return pairs.intersection(unpack(chunk.packed))


def _write(folder: Path, text: StoredText, data: DataConfig) -> None:
    """Write the training pairs, and the held-out ones as facts."""
    chosen, excluded = _choose(text, data)
    held_out = {
        part: [(direction, [text[index] for index in indices]) for direction, indices in by_direction.items()]
        for part, by_direction in chosen.items()
    }
    sentences = HeldOut()
    for direction, pairs in chain.from_iterable(held_out.values()):
        sentences.add(pairs, direction)
    facts = TextFacts(digest=text.digest, n_pairs=text.n_pairs, drops=text.drops, held_out=held_out)
    facts.digest = digest_of(facts.model_dump(mode="json", include={"digest", "held_out"}))[:16]
    n_kept = 0
    with TextWriter(folder) as out, Progress("holding out pairs", len(text), unit="pairs") as progress:
        for chunk in text.chunks():
            kept = np.setdiff1d(np.arange(chunk.size), excluded - chunk.first, assume_unique=True)
            pairs = unpack(chunk.packed)
            source = int(text.sources[chunk.first])
            languages = data.direction_of(data.train[source])
            lines = text.lines[chunk.first + kept].tolist()
            portion = Portion(source, languages, [pairs[index] for index in kept.tolist()], lines)
            if data.filters_by("held_out"):
                is_known = sentences.contains(portion.pairs, languages=languages, near=True)
                rules = ["held_out" if known else None for known in is_known]
                portion = portion.without(rules, facts.drops[source])
            out.append_portion(portion)
            n_kept += len(portion.pairs)
            progress.advance(chunk.size)
        if not n_kept or not all(any(pairs for _, pairs in by_direction) for by_direction in held_out.values()):
            n_usable = len({pair for pair in text if not pair.is_blank})
            raise UserError(
                "data.valid is left out, and data.train has too few different pairs without a blank side to hold any "
                f"out ({n_usable:,}): name sources of data.valid"
            )
        out.facts = facts.model_dump(mode="json")


def _choose(text: StoredText, data: DataConfig) -> tuple[dict[str, dict[LanguagePair, list[int]]], NDArray[np.int64]]:
    """Choose the pairs of each direction that are held out.

    They come from sources of the kind of text to translate: without a tag, as that of back-translations, and not
    general.

    Returns:
        the indices of those for each part, and the indices of all their copies.
    """
    indices, values = _candidates(text)
    sizes = np.bincount(text.sources, minlength=len(data.train))
    chosen: dict[str, dict[LanguagePair, list[int]]] = {part: {} for part in data.held_out}
    taken: list[Hashes] = []
    for direction in data.language_pairs:
        is_own = np.array([not is_apart(source) and data.direction_of(source) == direction for source in data.train])
        limit = 2 * held_out_share(int(sizes[is_own].sum())) * _RANGE
        own = np.flatnonzero(is_own[text.sources[indices]])
        for part in data.held_out:
            possible = own[values[own] % 2 == _PARTS.index(part)]
            keys, first = np.unique(values[possible], return_index=True)  # of copies, the first
            n = max(1, np.count_nonzero(keys < limit))
            taken.append(keys[:n])
            chosen[part][direction] = sorted(indices[possible[first[:n]]].tolist())
    is_taken = np.isin(values, np.concatenate(taken), kind="sort")  # NumPy 2.0 fails to choose a kind for large values
    return chosen, indices[is_taken]


def is_apart(source: Source) -> bool:
    """Tell whether the text of a source differs in kind from the text to translate."""
    return source.tag is not None or source.general


def _candidates(text: StoredText) -> tuple[NDArray[np.int64], Hashes]:
    """Return the indices of the pairs that may be held out, and their hashes."""
    limit = 2 * _LARGEST_SHARE * _RANGE if len(text) >= _FEW else _NEVER
    indices, values = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    for chunk, of_chunk in in_order(_hashes, text.chunks()):
        near = np.flatnonzero(of_chunk < limit)
        indices.append(chunk.first + near)
        values.append(of_chunk[near])
    return np.concatenate(indices), np.concatenate(values)


def _hashes(chunk: Chunk) -> Hashes:
    """Return the hash of each pair, the same for near duplicates in either direction."""
    pairs = unpack(chunk.packed)
    values = hashes("\n".join(sorted(map(near_key, pair))) for pair in pairs)
    values[[pair.is_blank for pair in pairs]] = _NEVER
    return values

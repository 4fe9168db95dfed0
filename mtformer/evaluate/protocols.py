"""Published protocols: test set, search, text processing and metric, fixed so that scores can be compared."""

import hashlib
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from mtformer.engines.loading import LoadedModel
from mtformer.evaluate.evaluation import best_translations, opened, read_test_sets
from mtformer.evaluate.metrics import Score, bleu
from mtformer.evaluate.results import ScoredModel
from mtformer.evaluate.testsets import TextOptions, combined
from mtformer.support.errors import MtformerError, UserError
from mtformer.support.packages import require_package
from mtformer.text.languages import base_language
from mtformer.translate.translator import Translator


@dataclass(frozen=True)
class Protocol:
    """The procedure of a published score on test2016 of Multi30k, English to German.

    Attributes:
        name: the value of ``--protocol``.
        description: the procedure, and its differences from others.
        published: scores computed this way, with their sources.
        references: the digest of the references after :func:`lower_case_moses`; empty if text is compared as it is.
        fingerprint: of the unprocessed test set.
        languages: source and target.
    """

    name: str
    description: str
    published: str = ""
    references: str = ""
    fingerprint: str = "8e62472e2e143ec7"
    languages: tuple[str, str] = ("en", "de")


_TEST_SET = "test2016 of Multi30k, English to German, unprocessed"
SEARCH = {"beam_size": 5, "length_penalty": 1.0}  # fairseq's --lenpen 1 divides by the length alone
PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            "multi30k-2016-lc-tok",
            "Translations and references are lower-cased, their punctuation is normalized and their words are split by "
            "the tokenizer of Moses before they are compared, as in papers on Multi30k: errors in case or in the kind "
            "of quotation marks do not count. multi30k-2016-cased-13a translates the same way, and compares the text "
            "as it is.",
            published="41.02, Transformer-tiny of Wu et al. 2021, which was trained on text processed the same way",
            references="c6a33d39d48f9f51",
        ),
        Protocol(
            "multi30k-2016-cased-13a",
            "Translations and references are compared as they are, with sacreBLEU's defaults (Post 2018): case and the "
            "kind of quotation marks count, and the tokenizer 13a of WMT splits words. multi30k-2016-lc-tok translates "
            "the same way, and compares lower-cased, normalized text that Moses has tokenized.",
        ),
    )
}


def lower_case_moses(lines: Sequence[str], language: str) -> list[str]:
    """Lower-case, normalize punctuation and tokenize as the scripts of Moses do (Koehn et al. 2007)."""
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    normalizer, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)
    return [tokenizer.tokenize(normalizer.normalize(line.lower()), return_str=True) for line in lines]


@dataclass(frozen=True)
class ProtocolResult:
    """A score by a protocol.

    Attributes:
        protocol: the protocol.
        model: what was scored.
        score: BLEU.
        n_sentences: the size of the test set.
    """

    protocol: Protocol
    model: ScoredModel
    score: Score
    n_sentences: int

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        return {
            "protocol": self.protocol.name,
            "description": self.protocol.description,
            "published": self.protocol.published or None,
            **self.model.to_dict(),
            "test_set": _TEST_SET,
            "fingerprint": self.protocol.fingerprint,
            "sentences": self.n_sentences,
            "scores": [self.score.to_dict()],
        }

    def to_text(self) -> str:
        """Show the score, the description of the protocol and the published scores."""
        protocol, options = self.protocol, self.model.loaded.options
        lines = [
            self.score.to_text(),
            f"{_TEST_SET}, {self.n_sentences:,} sentences, beam size {options.beam_size}, "
            f"length penalty {options.length_penalty:g}, the model alone",
            textwrap.fill(protocol.description, width=100, break_on_hyphens=False),
        ]
        if protocol.published:
            lines.append(f"Published: {protocol.published}")
        return "\n".join(lines)


def find_protocol(name: str) -> Protocol:
    """Return the protocol of that name.

    Raises:
        UserError: it does not exist, in which case the message lists all; or a required package is not installed.
    """
    if name not in PROTOCOLS:
        raise UserError(f"there is no protocol {name!r}; there are {' and '.join(PROTOCOLS)}")
    if PROTOCOLS[name].references:
        require_package("sacremoses", f"--protocol {name}", "moses")
    return PROTOCOLS[name]


def run_protocol(
    paths: Sequence[Path],
    model: LoadedModel,
    protocol: Protocol,
    *,
    output: Path | None = None,
    **texts: Unpack[TextOptions],
) -> ProtocolResult:
    """Translate the test set of a protocol and score it the way that the protocol says.

    The model translates alone: published scores have no changes to texts before and no checks of translations after.

    Args:
        paths: what the model was loaded from, as for :func:`mtformer.evaluate.evaluation.evaluate_loaded`.
        model: the model, toward one of its directions, with the options of :data:`SEARCH`.
        protocol: how to do it; see :func:`find_protocol`.
        output: write the unprocessed translations there, one a line.
        texts: the protocol's test set, unprocessed, as for :func:`mtformer.evaluate.testsets.read_eval_sets`; without
            any, that of the first one's run.

    Raises:
        UserError: the model or the test set is another than the protocol's.
        MtformerError: the installed sacremoses processes text differently.
    """
    sets = read_test_sets(paths, model, [output], **texts)
    translator = Translator.load(model, raw=True)
    languages = base_language(model.header.src_lang), base_language(model.header.tgt_lang)
    if languages != protocol.languages:
        wanted, own = "-".join(protocol.languages), "-".join(languages)
        raise UserError(f"the protocol {protocol.name} is for {wanted}; this model translates {own}")
    test_set = combined(sets)
    if test_set.fingerprint != protocol.fingerprint:
        raise UserError(
            f"the protocol {protocol.name} needs {_TEST_SET}: name it with --data or --src and --ref; {test_set.name} "
            f"has another text (fingerprint {test_set.fingerprint}, not {protocol.fingerprint})"
        )
    references = test_set.references[0]
    if protocol.references:
        references = lower_case_moses(references, languages[1])
        if _digest(references) != protocol.references:
            raise MtformerError(
                f"the installed sacremoses does not process the references as {protocol.name} does: install sacremoses "
                "0.2"
            )
    with opened(output) as file:  # first: a wrong path must not cost the work
        hypotheses = [translation.text for translation in best_translations(translator, test_set.sources)]
        if file is not None:
            file.writelines(f"{hypothesis}\n" for hypothesis in hypotheses)
    if protocol.references:
        score = bleu(lower_case_moses(hypotheses, languages[1]), references, "none", lowercase=True)
    else:
        score = bleu(hypotheses, references)
    return ProtocolResult(protocol, ScoredModel(tuple(paths), model, raw=True), score, len(hypotheses))


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()[:16]

"""The model of an exported folder, as CTranslate2 computes with it. Nothing here imports torch."""

import logging
import math
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ctranslate2

from mtformer.engines.ctranslate2.folder import VOCABULARY_MAP
from mtformer.search.engine import AlignRequest, EngineError, ScoreRequest, SearchRequest
from mtformer.search.hypothesis import PREDICTS_NAN
from mtformer.support.errors import MtformerError
from mtformer.support.hardware import pick_device_of, usable_cores
from mtformer.text.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ctranslate2.set_log_level(logging.ERROR)  # its warnings do not look like ours


class Model:
    """A model exported for CTranslate2, which fulfils requests of one kind at once.

    Requests of a batch have the same forced ids, and searches the same options.

    Attributes:
        n_workers: how many batches it can compute at once.
        compute_type: CTranslate2's name for the types that it computes with, as in ``int8_float32``.
    """

    def __init__(self, folder: Path, tokenizer: Tokenizer, device: str, precision: str) -> None:
        """Load the model of an exported folder.

        Args:
            folder: where the model is.
            tokenizer: the one that it was trained with.
            device: ``cpu`` or ``cuda``.
            precision: ``int8`` quantizes weights that are stored otherwise; ``fp32`` computes as they are stored.

        Raises:
            EngineError: CTranslate2 cannot load it.
        """
        self._tokenizer = tokenizer
        self.n_workers = usable_cores() if device == "cpu" else 1
        kind = "int8" if precision == "int8" else "default"
        threads = {"inter_threads": self.n_workers, "intra_threads": 1}
        try:
            model = ctranslate2.Translator(str(folder), device=device, compute_type=kind, **threads)
        except (RuntimeError, ValueError) as error:
            raise EngineError(f"CTranslate2 cannot load {folder}: {error}") from error
        self.compute_type = str(model.compute_type)
        self._models = [model]
        weakref.finalize(self, self._models.clear)  # at exit too, while its threads can still release callbacks
        self._mapped = _mapped_tokens(folder / VOCABULARY_MAP)
        self._never = tokenizer.tgt_tokens(tokenizer.special_ids.never)

    @property
    def _model(self) -> Any:
        """The model; the list that it is in ends with this object or with the program, whichever is first."""
        return self._models[0]

    def score(self, requests: Sequence[ScoreRequest]) -> list[list[float]]:
        """Score one batch by teacher forcing."""
        results = self._model.score_batch(
            [self._tokenizer.src_tokens(request.src) for request in requests],
            [self._tokenizer.tgt_tokens([*request.forced, *request.tgt]) for request in requests],
            max_input_length=0,
        )
        scores = [list(result.log_probs)[len(requests[0].forced) :] for result in results]
        if any(math.isnan(log_prob) for log_probs in scores for log_prob in log_probs):
            raise MtformerError(PREDICTS_NAN)
        return scores

    def align(self, requests: Sequence[AlignRequest], *, reading: bool) -> "list[NDArray[np.float32]]":
        """Align one batch by the heads of one layer, in the step that predicts a token or in that of reading it.

        CTranslate2 gives attention while it decodes, here with the whole target as the prefix.
        """
        import numpy as np  # only for this

        results = self._model.translate_batch(
            [self._tokenizer.src_tokens(request.src) for request in requests],
            [self._tokenizer.tgt_tokens([*request.forced, *request.tgt]) for request in requests],
            beam_size=1,
            max_input_length=0,
            max_decoding_length=max(len(request.forced) + len(request.tgt) for request in requests) + 1,
            return_attention=True,
            return_end_token=True,
        )
        first = len(requests[0].forced) + reading
        weights = []
        for request, result in zip(requests, results, strict=True):
            shape = len(request.tgt), len(request.src)
            if len(request.src) == 1:  # EOS alone, for which CTranslate2 computes nothing
                weights.append(np.ones(shape, dtype=np.float32))
                continue
            rows = np.array(result.attention[0][first : first + len(request.tgt)], dtype=np.float32)
            weights.append(rows.reshape(shape))
        if not all((rows.sum(axis=1) > 0.5).all() for rows in weights):  # of NaN it makes 0; usual rows sum to 1
            raise MtformerError(PREDICTS_NAN)
        return weights

    def is_mapped(self, request: SearchRequest) -> bool:
        """Tell whether the vocabulary map knows every token of a source; it need not allow those of a prefix.

        Greedy search does not use it: scoring its hypotheses over the whole vocabulary would take longer than it saves.
        """
        return (
            self._mapped is not None
            and request.options.beam_size > 1
            and not request.prefix
            and not request.forced
            and self._mapped.issuperset(self._tokenizer.src_tokens(request.src))
        )

    def search(
        self, requests: Sequence[SearchRequest], limit: int, *, suppress: bool, **settings: Any
    ) -> list[list[tuple[list[int], float]]]:
        """Return the hypotheses of each sentence as CTranslate2 finds them: their ids without EOS, and their scores.

        What is suppressed has probability 0 before the softmax, which changes the log probabilities of all others. The
        model rarely predicts it, so that searching again where it was chosen is better.

        Args:
            requests: sentences that :meth:`is_mapped` accepts, or others.
            limit: the maximum length of their hypotheses, in tokens without EOS; CTranslate2 chooses one at least.
            suppress: whether special tokens are suppressed, which no translation may contain.
            settings: CTranslate2's own, such as ``beam_size``.
        """
        options, n_forced = requests[0].options, len(requests[0].forced)
        prefixes = [self._tokenizer.tgt_tokens([*request.forced, *request.prefix]) for request in requests]
        limit = n_forced + max(1, limit)
        results = self._model.translate_batch(
            [self._tokenizer.src_tokens(request.src) for request in requests],
            prefixes if any(prefixes) else None,
            suppress_sequences=[[token] for token in self._never] if suppress else None,
            length_penalty=0,
            max_input_length=0,
            min_decoding_length=min(n_forced + options.min_length, limit),
            max_decoding_length=limit,
            repetition_penalty=options.repetition_penalty,  # of logits, unlike ours
            no_repeat_ngram_size=options.no_repeat_ngram_size,
            return_scores=True,
            use_vmap=self.is_mapped(requests[0]),
            **({"beam_size": 1} | settings),
        )
        to_ids = self._tokenizer.tgt.ids
        return [
            [(to_ids(each)[n_forced:], score) for each, score in zip(result.hypotheses, result.scores, strict=True)]
            for result in results
        ]


def _mapped_tokens(path: Path) -> frozenset[str] | None:
    """Return the source tokens that a vocabulary map has a line for; None if there is no map."""
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", newline="\n") as file:
        return frozenset(line.partition("\t")[0] for line in file)


def pick_device(choice: str) -> str:
    """Resolve ``auto`` to a GPU where CTranslate2 finds one.

    Raises:
        UserError: there is no such device.
    """
    return pick_device_of("CTranslate2", choice, {"cuda": lambda: ctranslate2.get_cuda_device_count() > 0})

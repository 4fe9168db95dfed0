"""Decoding with examples: predictions are mixed with tokens of translations of similar sentences.

This is kNN-MT (Khandelwal et al. 2021) with a small datastore for each sentence (Dai et al. 2023). The states of the
decoder while it reads each example are keys, and the tokens that follow are their values. In each step the nearest keys
of a sentence's examples vote for their values, and a token has the probability (1 - λ)·p + λ·vote. λ is larger the
nearer the nearest key is, and the less certain the model: λ = (1 - max p)·(1 - d/τ), and 0 for distances d above τ. So
what the model is sure of stays. docs/search.md has measurements.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mtformer.search.decoder import TransformerDecoder

_N_NEAREST = 4
_LARGEST_DISTANCE = 0.35  # τ; distances are 1 - cosine
_TEMPERATURE = 0.17  # of the votes
_NOWHERE = 2.0  # the distance of padding: the largest that there is


class Datastore(NamedTuple):
    """The examples of one sentence.

    Attributes:
        keys: (M, D) states of the decoder, of length 1.
        values: (M,) the ids that follow them.
    """

    keys: Tensor
    values: Tensor

    @classmethod
    def of(cls, examples: Sequence[tuple[Tensor, Tensor]], d_model: int, device: torch.device) -> "Datastore":
        """Join the states (T, D) and the ids (T,) that follow them of any number of examples."""
        keys, values = [torch.zeros(0, d_model, device=device)], [torch.zeros(0, dtype=torch.long, device=device)]
        for states, ids in examples:
            keys.append(F.normalize(states.float(), dim=-1))
            values.append(ids)
        return cls(torch.cat(keys), torch.cat(values))


class NearestDecoder:
    """A :class:`.Decoder` for the Transformer that follows examples where the model is not certain."""

    def __init__(self, decoder: TransformerDecoder, datastores: Sequence[Datastore]) -> None:
        """Take the model's decoder, and the examples of each of its sentences."""
        self.device, self.special_ids = decoder.device, decoder.special_ids
        self._decoder = decoder
        n_keys = max(_N_NEAREST, *(len(store.values) for store in datastores))
        missing = [n_keys - len(store.values) for store in datastores]
        rows = list(zip(datastores, missing, strict=True))
        self._keys = torch.stack([F.pad(store.keys, (0, 0, 0, n)) for store, n in rows])  # (n, M, D)
        self._values = torch.stack([F.pad(store.values, (0, n)) for store, n in rows])  # (n, M)
        self._is_padding = torch.stack([torch.arange(n_keys, device=self.device) >= n_keys - n for n in missing])

    def step(self, tokens: Tensor) -> Tensor:
        """Take a step, and mix the probabilities with those of the nearest keys."""
        state, log_probs = self._decoder.step_with_state(tokens)  # (N, D), (N, V)
        states = F.normalize(state, dim=-1).view(len(self._keys), -1, state.size(1))  # (n, K, D)
        distances = 1 - states @ self._keys.transpose(1, 2)  # (n, K, M)
        distances = distances.masked_fill(self._is_padding[:, None], _NOWHERE)
        nearest, places = distances.topk(_N_NEAREST, largest=False)  # (n, K, k)
        values = self._values[:, None].expand_as(distances).gather(2, places).flatten(0, 1)  # (N, k)
        votes = torch.softmax(-nearest / _TEMPERATURE, dim=-1).flatten(0, 1)  # (N, k)
        is_same = values[:, :, None] == values[:, None]  # (N, k, k)
        votes = (votes[:, None] * is_same).sum(dim=-1)  # (N, k), where equal tokens have all votes for them
        closeness = (1 - nearest[..., :1].flatten(0, 1) / _LARGEST_DISTANCE).clamp(min=0)  # (N, 1)
        share = closeness * (1 - log_probs.max(dim=-1, keepdim=True).values.exp())  # λ
        log_probs += torch.log1p(-share)
        mixed = torch.logaddexp(log_probs.gather(1, values), torch.log(share * votes))
        return log_probs.scatter_(1, values, mixed)

    def select(self, sentences: Tensor, beams: Tensor) -> None:
        """Select in the model's decoder, and the examples of the sentences."""
        self._decoder.select(sentences, beams)
        if len(sentences) < len(self._keys) or self.device.type != "cpu" or not _in_order(sentences):
            self._keys, self._values = self._keys[sentences], self._values[sentences]
            self._is_padding = self._is_padding[sentences]


def _in_order(sentences: Tensor) -> bool:
    return torch.equal(sentences, torch.arange(len(sentences)))

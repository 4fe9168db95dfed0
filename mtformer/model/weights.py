"""Build a model, copy its weights out and in."""

import torch
from torch import Tensor

from mtformer.config import Config
from mtformer.model.transformer import Transformer
from mtformer.text.tokenizer import Tokenizer


def build_model(config: Config, tokenizer: Tokenizer) -> Transformer:
    """Build the Transformer of ``config`` for the vocabularies of ``tokenizer``, with fresh weights."""
    return Transformer(
        config.model,
        src_vocab_size=tokenizer.src_vocab_size,
        tgt_vocab_size=tokenizer.tgt_vocab_size,
        joint=tokenizer.joint,
        max_length=config.data.max_length,
    )


def weights(model: torch.nn.Module) -> dict[str, Tensor]:
    """Return a copy of each parameter once, under its first name, however many places share it."""
    # Copies, for numpy(), which a digest needs, would keep the storage of a sharded model's weights from being let go.
    return {name: parameter.detach().to("cpu", copy=True).contiguous() for name, parameter in model.named_parameters()}


def load_weights(model: torch.nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy what :func:`weights` returned into ``model``.

    Raises:
        ValueError: names or shapes differ from the model's.
    """
    parameters = dict(model.named_parameters())
    if parameters.keys() != tensors.keys():
        raise ValueError(f"the weights differ from the model's in {sorted(parameters.keys() ^ tensors.keys())[:3]}")
    for name, parameter in parameters.items():
        if parameter.shape != tensors[name].shape:
            raise ValueError(f"{name} is of shape {tuple(tensors[name].shape)}, not {tuple(parameter.shape)}")
    for name, parameter in parameters.items():
        parameter.data.copy_(tensors[name])

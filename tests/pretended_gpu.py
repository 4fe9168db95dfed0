"""A GPU where there is none: a device of its own, whose tensors compute on the processor.

As with CUDA, an operation on tensors of two devices is an error, and the processor waits for the device whenever it
needs a value or a shape that depends on values. Run as a program, this module computes an update, a validation and
translations of several architectures on the device and on the processor, and prints both and the places of the code
that waited.
"""

import itertools
import json
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

import mtformer

PACKAGE = Path(mtformer.__file__).parent
NAME = "pretended"
WAITS = {"_local_scalar_dense", "nonzero", "equal", "_unique2"}

waits: list[str] = []


class Module(_DummyBackendModule):
    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


class OnDevice(Tensor):
    on_cpu: Tensor

    @staticmethod
    def __new__(cls, values: Tensor) -> "OnDevice":
        wrapper = torch.Tensor._make_wrapper_subclass(
            cls,
            values.size(),
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device=torch.device(NAME, 0),
        )
        wrapper.on_cpu = values
        return wrapper

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return compute(func, args, kwargs or {})

    def tolist(self) -> Any:
        note()
        return self.on_cpu.tolist()


class Repeated:
    """The graph of a step that takes it again, so that its waits are seen."""

    def __init__(self, take: Callable[[], None]) -> None:
        self.replay = take


class Device(TorchDispatchMode):
    """Inside, tensors can be made on the device and sent to it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


def note() -> None:
    """Record the place of our code that waits for the device."""
    frames = [(Path(frame.filename), frame.name) for frame in traceback.extract_stack()]
    places = [(path.relative_to(PACKAGE), name) for path, name in frames if path.is_relative_to(PACKAGE)]
    waits.extend(f"{path.as_posix()} {name}" for path, name in places[-1:])


def plain(value: Any) -> Any:
    return value.on_cpu if isinstance(value, OnDevice) else value


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """Return ``value`` with all that lists and tuples in it hold changed."""
    if isinstance(value, list | tuple):
        return type(value)([mapped(change, each) for each in value])
    return change(value)


def tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from tensors_in(each)


def compute(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute an operation on the processor, and say that the result is where it would be."""
    tensors = list(tensors_in((args, tuple(kwargs.values()))))
    ours = [tensor for tensor in tensors if isinstance(tensor, OnDevice)]
    given = kwargs.get("device")
    goes_to_device = bool(ours) if given is None else torch.device(given).type == NAME
    if not (ours or goes_to_device):
        return func(*args, **kwargs)
    name = func.overloadpacket.__name__
    if name == "copy_":
        plain(args[0]).copy_(plain(args[1]))
        return args[0]
    moves = name == "_to_copy"
    others = [tensor for tensor in tensors if tensor.dim() and not isinstance(tensor, OnDevice)]
    if ours and others and not moves:
        raise RuntimeError(f"{name}: tensors on {NAME} and on {others[0].device}")
    by_mask = name in ("index", "index_put_", "index_put") and any(
        index is not None and index.dtype == torch.bool for index in args[1]
    )
    is_sent = moves and goes_to_device and not ours and not kwargs.get("non_blocking")
    if is_sent or (ours and (name in WAITS or by_mask or (moves and not goes_to_device))):
        note()
    kwargs = kwargs | ({} if given is None else {"device": torch.device("cpu")})
    result = func(*mapped(plain, args), **{key: mapped(plain, value) for key, value in kwargs.items()})
    if not goes_to_device:
        return result
    known = {id(tensor.on_cpu): tensor for tensor in ours}  # of operations in place

    def on_device(value: Any) -> Any:
        return known[id(value)] if id(value) in known else OnDevice(value) if isinstance(value, Tensor) else value

    return mapped(on_device, result)


def send(model: nn.Module) -> None:
    """Move the weights to the device; ``nn.Module.to`` cannot replace tensors by those of a subclass."""
    sent: dict[int, nn.Parameter] = {}
    for module in model.modules():
        for name, weight in module._parameters.items():
            if weight is not None:
                module._parameters[name] = sent.setdefault(id(weight), nn.Parameter(OnDevice(weight.detach())))
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = OnDevice(buffer)


def prepare() -> None:
    """Register the device, and replace what torch does not offer for tensors of subclasses."""
    _setup_privateuseone_for_python_backend(NAME, Module())
    tensor = torch.tensor

    def sent_tensor(data: Any, *, dtype: torch.dtype | None = None, device: Any = None) -> Tensor:
        made = tensor(data, dtype=dtype)
        return made if device is None else made.to(device)

    setattr(torch, "tensor", sent_tensor)  # noqa: B010
    setattr(torch, "inference_mode", lambda mode=True: torch.no_grad())  # noqa: B010
    from mtformer.model.graphs import CAPTURES

    CAPTURES[NAME] = lambda take, device: Repeated(take)


VOCAB_SIZE = 320
LIMITS = (8, 3, 5, 8)  # of the translations of each sentence
ARCHITECTURES: tuple[dict[str, Any], ...] = (
    {"norm": "post"},
    {"norm": "pre", "positions": "rotary"},
    {"norm": "pre", "feed_forward": "gelu", "positions": "learned"},
    {"norm": "pre", "feed_forward": "silu", "positions": "none"},
)


def make_validator() -> Any:
    """Return a validator of a few pairs, with a tokenizer of ``VOCAB_SIZE`` tokens."""
    from conftest import sentence_pairs

    from mtformer.config import Config, Facts, TokenizerConfig, resolve
    from mtformer.text.pairs import SentencePair
    from mtformer.text.tokenizer.train import train_tokenizer
    from mtformer.training.validation import Validator

    pairs = [SentencePair(*pair) for pair in sentence_pairs(40)]
    tokenizer = train_tokenizer(pairs, TokenizerConfig(vocab_size=VOCAB_SIZE), "en", "de")
    files = {"src_lang": "en", "tgt_lang": "de", "train": [{"src": "train.en", "tgt": "train.de"}], "max_length": 64}
    sections = {"data": files, "training": {"max_tokens": 64, "precision": "fp32"}}
    config = resolve(Config.model_validate(sections), Facts(n_pairs=1))
    [languages] = config.data.language_pairs
    return Validator(config, tokenizer, {languages: pairs[:3]})


def results(settings: dict[str, Any], on_device: bool, validator: Any) -> dict[str, Any]:
    """Train a model once, validate it and search with it."""
    from conftest import training_settings
    from test_update import CORPUS

    from mtformer.config import ModelConfig, SearchOptions
    from mtformer.data.batches import make_batch
    from mtformer.engines.torch import TorchEngine
    from mtformer.model.transformer import Transformer
    from mtformer.search.engine import AlignRequest, ScoreRequest, SearchRequest, results_of
    from mtformer.training.update import Updater

    torch.manual_seed(1)
    config = ModelConfig(
        d_model=16, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=2, dropout=0.0, **settings
    )
    model = Transformer(
        config.architecture(src_vocab_size=VOCAB_SIZE, tgt_vocab_size=VOCAB_SIZE, joint=True, max_length=16)
    )
    if on_device:
        send(model)
    updater = Updater(model, training_settings(optimizer="muon", ema_decay=0.9))
    shown: dict[str, Any] = {"device": str(updater.device)}
    waited: dict[str, Any] = {}
    waits.clear()
    batches = [make_batch(CORPUS, rows).to(updater.device) for rows in ([0, 1, 2], [3, 4])]
    losses = [updater.update(batches, step, 0.01).loss for step in (1, 2)]
    shown["losses"], waited["update"] = losses, Counter(waits)
    waits.clear()
    shown["validation"] = list(validator.validate(model).scores.values())
    waited["validation"] = Counter(waits)
    engine = TorchEngine(model.eval())
    sources = [CORPUS.src[i].tolist() for i in range(4)]
    for beam_size in (1, 4):
        waits.clear()
        options = SearchOptions(beam_size=beam_size)
        requests = [SearchRequest(row, options, limit) for row, limit in zip(sources, LIMITS, strict=True)]
        found = results_of(engine, requests)
        shown[f"beam {beam_size}"] = [[(list(h.ids), sum(h.token_log_probs)) for h in row] for row in found]
        waited[f"beam {beam_size}"] = Counter(waits)
    targets = [CORPUS.tgt[i][:-1].tolist() for i in range(4)]
    pairs = list(zip(sources, targets, strict=True))
    shown["scores"] = results_of(engine, [ScoreRequest(*pair) for pair in pairs])
    shown["alignments"] = [a.tolist() for a in results_of(engine, [AlignRequest(*pair) for pair in pairs])]
    return {"results": shown, "waits": waited}


if __name__ == "__main__":
    torch.set_num_threads(1)
    prepare()
    validator = make_validator()
    for architecture, on_device in itertools.product(ARCHITECTURES, (False, True)):
        with Device():  # type: ignore[no-untyped-call]
            print(json.dumps(results(architecture, on_device, validator)))

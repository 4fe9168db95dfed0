import errno
import io
import json
import math
import pickle
import runpy
import shutil
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Project, make_project, sentence_pairs
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from torch.utils._python_dispatch import TorchDispatchMode

from mtformer.bundle.adapter import load_adapter
from mtformer.bundle.format import Bundle, digest, load_bundle, save_bundle
from mtformer.bundle.peek import BUNDLE_FORMAT, peek, peek_shapes, peek_tokenizer
from mtformer.config import Facts, load_config, resolve
from mtformer.support.errors import UserError
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.training.model import build_model, make_header
from mtformer.translate.translator import Translator

FIXTURES = Path(__file__).parent / "fixtures"
PAIRS = [SentencePair(*pair) for pair in sentence_pairs(200)]


def make_bundle(folder: Path, *settings: str, joint: bool = True, tied: bool = True) -> Bundle:
    """Make a bundle of a model with fresh weights, for a config in ``folder``."""
    always = [f"tokenizer.joint={joint}", f"model.tie_embeddings={tied}", "data.tgt_lang=de-AT", "run.name=Ünï"]
    config = resolve(load_config(make_project(folder).config, [*always, *settings]), Facts(n_pairs=len(PAIRS)))
    tokenizer = train_tokenizer(PAIRS, config.tokenizer, "en", "de", adjust=True)
    torch.manual_seed(1)
    model = build_model(config, tokenizer)
    header = make_header(config, model, tokenizer, {"bleu": 12.34, "loss": 0.1 + 0.2, "step": 20.0})
    return Bundle(model, tokenizer, header)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return make_bundle(tmp_path_factory.mktemp("original"))


@pytest.fixture
def saved(original: Bundle, tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_bundle(path, original)
    return path


def tensor_shapes(path: Path) -> dict[str, list[int]]:
    with safe_open(path, framework="pt") as file:
        return {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("joint", [True, False])
def test_a_bundle_comes_back_as_it_was_without_the_run_folder(joint: bool, tied: bool, tmp_path: Path) -> None:
    run = tmp_path / "run"
    bundle = make_bundle(run, joint=joint, tied=tied)
    save_bundle(run / "model.safetensors", bundle)
    elsewhere = tmp_path / "elsewhere.safetensors"
    shutil.move(run / "model.safetensors", elsewhere)
    shutil.rmtree(run)

    loaded = load_bundle(elsewhere)
    assert loaded.header == bundle.header
    assert loaded.tokenizer.joint == joint
    assert loaded.tokenizer.src_model == bundle.tokenizer.src_model
    assert loaded.tokenizer.tgt_model == bundle.tokenizer.tgt_model
    ours, theirs = loaded.model.state_dict(), bundle.model.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert not loaded.model.training


@pytest.mark.parametrize(
    ("joint", "tied", "n_matrices"), [(True, True, 1), (False, True, 2), (True, False, 3), (False, False, 3)]
)
def test_each_weight_is_stored_once_and_still_shared_after_loading(
    joint: bool, tied: bool, n_matrices: int, tmp_path: Path
) -> None:
    bundle = make_bundle(tmp_path, joint=joint, tied=tied)
    path = tmp_path / "model.safetensors"
    save_bundle(path, bundle)
    sizes = ([bundle.tokenizer.src_vocab_size, 32], [bundle.tokenizer.tgt_vocab_size, 32])
    assert sum(shape in sizes for shape in tensor_shapes(path).values()) == n_matrices
    model = load_bundle(path).model
    weights = {layer.weight.data_ptr() for layer in (model.src_embedding, model.tgt_embedding, model.output)}
    assert len(weights) == n_matrices


def test_a_bundle_of_an_earlier_version_loads_and_translates_as_it_did() -> None:
    # scripts/make_bundle_fixture.py made it. Never replace it: it stands for the bundles that users have.
    translator = Translator.load(FIXTURES / "bundle-3.safetensors", "cpu", beam_size=1)
    expected = json.loads((FIXTURES / "bundle-3.json").read_text(encoding="utf-8"))
    found = translator.translate([line["src"] for line in expected])
    assert [best.text for [best] in found] == [line["translation"] for line in expected]
    assert [best.log_prob for [best] in found] == pytest.approx([line["log_prob"] for line in expected], abs=1e-3)


def test_the_script_does_not_replace_a_fixture(tmp_path: Path) -> None:
    main = runpy.run_path(str(Path(__file__).parent.parent / "scripts/make_bundle_fixture.py"))["main"]
    fixture = tmp_path / f"{BUNDLE_FORMAT.removeprefix('mtformer-')}.safetensors"
    fixture.write_bytes(b"a user's")
    main.__globals__["FIXTURES"] = tmp_path
    with pytest.raises(SystemExit, match="never replaced"):
        main()
    assert fixture.read_bytes() == b"a user's"


def test_loading_draws_no_random_numbers(saved: Path) -> None:
    before = torch.get_rng_state()
    load_bundle(saved)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_in_half_precision_are_converted(dtype: torch.dtype, original: Bundle, saved: Path) -> None:
    convert(dtype)(saved)
    loaded = dict(load_bundle(saved).model.named_parameters())
    for name, parameter in original.model.named_parameters():
        assert loaded[name].dtype == torch.float32
        assert torch.equal(loaded[name], parameter.to(dtype).float()), name


def test_keys_of_a_later_version_are_ignored(original: Bundle, saved: Path) -> None:
    edit_header(
        notes="new",
        architecture__n_experts=1,
        search__n_best=9,
        architecture__special_ids__mask=4,
        provenance__config="renamed",
    )(saved)
    header = load_bundle(saved).header
    assert header.architecture == original.header.architecture
    assert header.provenance["config"] == "renamed"


def test_keys_that_a_later_version_may_leave_out_are_optional(saved: Path) -> None:
    edit_header(
        scores=...,
        provenance=...,
        bleu_tokenize=...,
        architecture__dropout=...,
        architecture__attention_dropout=...,
    )(saved)
    assert load_bundle(saved).header.scores == {}


def test_a_bundle_names_files_without_their_folders(original: Bundle, tmp_path: Path, saved: Path) -> None:
    config = original.header.provenance["config"]
    [source] = config["data"]["train"]
    assert (source["src"], source["tgt"]) == ("train.en", "train.de")
    assert config["training"]["max_steps"] == 20
    content = saved.read_bytes()
    assert b"train.en" in content
    for folder in (tmp_path, Path.home(), Path.cwd()):
        assert str(folder.parent if folder == tmp_path else folder).encode() not in content


def test_every_setting_of_the_config_that_shapes_the_model_is_in_the_header(tmp_path: Path) -> None:
    settings = ["model.positions=learned", "model.norm=post", "model.feed_forward=gelu"]
    bundle = make_bundle(tmp_path, *settings, "data.max_length=40", "search.beam_size=7", "eval.bleu_tokenize=char")
    save_bundle(tmp_path / "model.safetensors", bundle)
    loaded = load_bundle(tmp_path / "model.safetensors")
    src = torch.tensor([[5, 6, 7, 3]])
    arguments = src, src != 0, torch.tensor([[2, 8, 9]])
    assert torch.equal(loaded.model(*arguments), bundle.model.eval()(*arguments))
    architecture = loaded.header.architecture
    assert (architecture.positions, architecture.norm) == ("learned", "post")
    assert (architecture.activation, architecture.max_length) == ("gelu", 40)
    assert (loaded.header.search.beam_size, loaded.header.bleu_tokenize) == (7, "char")


def put_a_folder_there(path: Path) -> None:
    path.unlink()
    path.mkdir()


def cut_to(share: float) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def flip_in(name: str) -> Callable[[Path], None]:
    """Flip a bit in the middle of a tensor."""

    def flip(path: Path) -> None:
        content = bytearray(path.read_bytes())
        [header_size] = struct.unpack("<Q", content[:8])
        start, end = json.loads(content[8 : 8 + header_size])[name]["data_offsets"]
        content[8 + header_size + (start + end) // 2] ^= 0x10
        path.write_bytes(content)

    return flip


def flip_at(place: int) -> Callable[[Path], None]:
    def flip(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[place] ^= 0x10
        path.write_bytes(content)

    return flip


Tensors = dict[str, torch.Tensor]


def rewrite(change: Callable[[Tensors, dict[str, str]], object]) -> Callable[[Path], None]:
    """Write the bundle anew with other tensors or metadata, and with the digest of these."""

    def apply(path: Path) -> None:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            metadata = dict(file.metadata())
        metadata.pop("digest", None)
        change(tensors, metadata)
        save_file(tensors, path, metadata | {"digest": digest(metadata, tensors)})

    return apply


def save_without_digest(path: Path) -> None:
    with safe_open(path, framework="pt") as file:
        metadata = {key: value for key, value in file.metadata().items() if key != "digest"}
    save_file({name: tensor.clone() for name, tensor in load_file(path).items()}, path, metadata)


def replace_tensor(name: str, tensor: torch.Tensor) -> Callable[[Path], None]:
    return rewrite(lambda tensors, metadata: tensors.update({name: tensor}))


def drop_tensor(name: str) -> Callable[[Path], None]:
    return rewrite(lambda tensors, metadata: tensors.pop(name))


def put_into(name: str, value: float) -> Callable[[Path], None]:
    """Change one number of a tensor."""

    def change(tensors: Tensors, metadata: dict[str, str]) -> None:
        tensors[name].view(-1)[-1] = value

    return rewrite(change)


def convert(dtype: torch.dtype) -> Callable[[Path], None]:
    """Store the weights as another type."""

    def change(tensors: Tensors, metadata: dict[str, str]) -> None:
        tensors |= {name: tensor.to(dtype) for name, tensor in tensors.items() if name.startswith("model.")}

    return rewrite(change)


def replace_metadata(**values: str) -> Callable[[Path], None]:
    return rewrite(lambda tensors, metadata: metadata.update(values))


def edit_header(**values: Any) -> Callable[[Path], None]:
    """Set keys of the header (``a__b`` is key b of its part a); ``...`` removes the key."""

    def change(tensors: Tensors, metadata: dict[str, str]) -> None:
        header = json.loads(metadata["header"])
        for place, value in values.items():
            *parts, key = place.split("__")
            section = header
            for part in parts:
                section = section[part]
            section[key] = value
            if value is ...:
                del section[key]
        metadata["header"] = json.dumps(header)

    return rewrite(change)


def retokenize(**options: Any) -> Callable[[Path], None]:
    """Put in another SentencePiece model of the same size."""

    def change(tensors: Tensors, metadata: dict[str, str]) -> None:
        model = io.BytesIO()
        sizes = {"vocab_size": json.loads(metadata["header"])["architecture"]["src_vocab_size"], "byte_fallback": True}
        ids = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
        texts = (text for pair in PAIRS for text in pair)
        settings = {"normalization_rule_name": "identity", "minloglevel": 2, **ids, **sizes, **options}
        SentencePieceTrainer.train(sentence_iterator=texts, model_writer=model, **settings)
        tensors["tokenizer.src"] = torch.frombuffer(bytearray(model.getvalue()), dtype=torch.uint8)

    return rewrite(change)


def append_token(token: str) -> Callable[[Path], None]:
    """Add a token to the SentencePiece model, however long; in protobuf's encoding, added fields are merged."""

    def field(content: bytes) -> bytes:
        n = len(content)
        length = bytes([n >> shift & 127 | 128 for shift in (0, 7, 14, 21)] + [n >> 28])  # a varint of five bytes
        return b"\x0a" + length + content

    def change(tensors: Tensors, metadata: dict[str, str]) -> None:
        model = tensors["tokenizer.src"].numpy().tobytes() + field(field(token.encode()))
        tensors["tokenizer.src"] = torch.frombuffer(bytearray(model), dtype=torch.uint8)

    return rewrite(change)


def spoil_token(path: Path) -> None:
    """Replace the first byte of a token by one that starts no character."""

    def change(tensors: Tensors, metadata: dict[str, str]) -> None:
        model = tensors["tokenizer.src"].numpy().tobytes()
        tokenizer = SentencePieceProcessor(model_proto=model)
        token = tokenizer.id_to_piece(next(i for i in range(260, 300) if len(tokenizer.id_to_piece(i)) > 4)).encode()
        tensors["tokenizer.src"] = torch.frombuffer(
            bytearray(model.replace(token, b"\x81" + token[1:])), dtype=torch.uint8
        )

    rewrite(change)(path)


NO_FILE = "there is no model at"
NOT_INTACT = "this is not an intact safetensors file"
NOT_OURS = "this safetensors file is not a model bundle of mtformer"
CHANGED = "this bundle is damaged: its contents are not those that were written"
INVALID = "this bundle's header is invalid: "
BIAS = "model.decoder_norm.bias"
SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (Path.unlink, NO_FILE),
    "a folder": (put_a_folder_there, NO_FILE),
    "empty": (lambda path: path.write_bytes(b""), NOT_INTACT),
    "cut off in the header's size": (cut_to(0.00001), NOT_INTACT),
    "cut off in the header": (cut_to(0.01), NOT_INTACT),
    "cut off in the middle": (cut_to(0.5), NOT_INTACT),
    "cut off near the end": (cut_to(0.9999), NOT_INTACT),
    "other header size": (flip_at(0), NOT_INTACT),
    "huge header size": (flip_at(7), NOT_INTACT + ": its header is missing or cut off"),
    "flipped bit in the header": (flip_at(8), NOT_INTACT),
    "text": (lambda path: path.write_text("the red house\n" * 50), NOT_INTACT + ": its header is missing or cut off"),
    "zeros": (lambda path: path.write_bytes(bytes(5000)), NOT_INTACT),
    "other weights": (lambda path: save_file({"weight": torch.zeros(3)}, path), NOT_OURS),
    "other weights with metadata": (
        lambda path: save_file({"weight": torch.zeros(3)}, path, {"format": "pt"}),
        NOT_OURS,
    ),
    "flipped bit in a matrix": (flip_in("model.tgt_embedding.weight"), CHANGED),
    "flipped bit in a bias": (flip_in("model.decoder_layers.0.self_attention.out_proj.bias"), CHANGED),
    "flipped bit in the tokenizer": (flip_in("tokenizer.src"), CHANGED),
    "no digest": (save_without_digest, CHANGED),
    "no tokenizer": (drop_tensor("tokenizer.src"), "it lacks tokenizer.src"),
    "no second tokenizer": (edit_header(architecture__joint_vocab=False), "it lacks tokenizer.tgt"),
    "a second tokenizer": (
        replace_tensor("tokenizer.tgt", torch.zeros(9, dtype=torch.uint8)),
        "this is not a SentencePiece model",
    ),
    "a tokenizer of floats": (replace_tensor("tokenizer.src", torch.zeros(9)), "tokenizer.src is not a sequence of"),
    "no real tokenizer": (
        replace_tensor("tokenizer.src", torch.zeros(9, dtype=torch.uint8)),
        "this is not a SentencePiece model",
    ),
    "no bytes of a tokenizer": (
        replace_tensor("tokenizer.src", torch.zeros(0, dtype=torch.uint8)),
        "this is not a SentencePiece model",
    ),
    "special tokens in another order": (retokenize(unk_id=0, pad_id=1), "its tokenizer has the special ids"),
    "special tokens of other names": (retokenize(unk_piece="unk"), "other special tokens"),
    "a token that is no text": (spoil_token, "its tokenizer has a token that is not UTF-8"),
    "an endless token": (append_token("x" * 5_000_000), "this is not a SentencePiece model"),
    "a larger tokenizer": (retokenize(vocab_size=301), "its tokenizer has 301 and 301 tokens, its embeddings have"),
    "too few weights": (drop_tensor("model.tgt_embedding.weight"), "the weights lack tgt_embedding.weight"),
    "too many weights": (replace_tensor("model.extra", torch.zeros(1)), "the weights contain extra, which"),
    "an unknown tensor": (replace_tensor("extra", torch.zeros(1)), "it contains extra, which is not a weight"),
    "a weight of another shape": (
        replace_tensor(BIAS, torch.zeros(31)),
        "decoder_norm.bias has shape (31,), not (32,)",
    ),
    "integer weights": (convert(torch.int32), "is of type I32, not a float"),
    "double weights": (convert(torch.float64), "is of type F64, not a float"),
    "not a number": (put_into(BIAS, math.nan), "decoder_norm.bias has values that are not finite"),
    "infinity": (put_into(BIAS, -math.inf), "decoder_norm.bias has values that are not finite"),
    "format 4": (
        replace_metadata(format="mtformer-bundle-4"),
        "this bundle: its format is mtformer-bundle-4, and this one reads mtformer-bundle-3",
    ),
    "no header": (rewrite(lambda tensors, metadata: metadata.pop("header")), "it has no header"),
    "empty header": (replace_metadata(header="{}"), INVALID + "src_lang is missing"),
    "half a header": (replace_metadata(header="{"), INVALID + "Invalid JSON"),
    "deeply nested header": (replace_metadata(header="[" * 100_000), INVALID + "Invalid JSON"),
    "a list as header": (replace_metadata(header="[]"), INVALID + "Input should be an object"),
    "no sizes": (edit_header(architecture=...), INVALID + "architecture is missing"),
    "no width": (edit_header(architecture__d_model=...), INVALID + "architecture.d_model is missing"),
    "a width in words": (edit_header(architecture__d_model="32"), INVALID + "architecture.d_model: Input should be"),
    "a wider model": (edit_header(architecture__d_model=64), "has shape"),
    "huge width": (edit_header(architecture__d_model=2**62), INVALID + "architecture.d_model: Input should be"),
    "wide": (edit_header(architecture__d_model=2**16), "has shape"),
    "heads that do not divide": (edit_header(architecture__n_heads=3), INVALID + "architecture: n_heads = 3 does not"),
    "more layers": (edit_header(architecture__n_decoder_layers=2), "the weights lack decoder_layers.1"),
    "endless layers": (edit_header(architecture__n_encoder_layers=9_999), "more layers than it has weights"),
    "learned positions": (edit_header(architecture__positions="learned"), "the weights lack src_positions.weight"),
    "unknown activation": (edit_header(architecture__activation="tanh"), INVALID + "architecture.activation: Input"),
    "other special ids": (
        edit_header(architecture__special_ids__eos=0),
        INVALID + "architecture.special_ids: padding, unknown, BOS and EOS share an id",
    ),
    "special ids beyond the vocabulary": (
        edit_header(architecture__special_ids__start=10**6),
        INVALID + "architecture: a special id is beyond the vocabulary",
    ),
    "endless translations": (edit_header(search__max_length_factor=1e9), INVALID + "search.max_length_factor: Input"),
    "a search of gigabytes": (edit_header(search__batch_tokens=2**20), INVALID + "search.batch_tokens: Input"),
    "endless beams": (edit_header(search__beam_size=256), INVALID + "search.beam_size: Input"),
    "a path as language": (edit_header(tgt_lang="../../etc"), INVALID + "tgt_lang: String should match pattern"),
    "one language": (edit_header(languages={"en": "<en>"}), INVALID + "languages has only one language"),
    "no real scores": (edit_header(scores={"bleu": "high"}), INVALID + "scores.bleu: Input should be a valid number"),
}


@pytest.mark.parametrize("kind", SPOILED)
def test_what_is_not_an_intact_bundle_is_refused_in_a_sentence_that_names_it(kind: str, saved: Path) -> None:
    spoil, sentence = SPOILED[kind]
    spoil(saved)
    with pytest.raises(UserError) as caught:
        load_bundle(saved)
    assert str(saved) in str(caught.value)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < len(str(saved)) + 200
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("load", [load_bundle, load_adapter])
def test_a_file_that_the_system_does_not_let_us_read_is_not_called_damaged(
    load: Callable[[Path], object], saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UserError) as caught:
        load(saved)
    assert str(caught.value) == f"{saved}: it cannot be read: Permission denied"


def test_a_message_quotes_nothing_that_a_terminal_would_obey(saved: Path) -> None:
    replace_tensor("\x1b[2J\u202e" + "x" * 10_000, torch.zeros(1))(saved)
    with pytest.raises(UserError, match=r"it contains \\x1b\[2J\\u202exxx") as caught:
        load_bundle(saved)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < len(str(saved)) + 250


def test_sizes_that_the_file_does_not_bear_out_allocate_nothing(saved: Path) -> None:
    # Nine thousand times the width of this model would need 5 GB for one matrix.
    edit_header(architecture__d_model=32 * 1024, architecture__d_ff=2**20, architecture__max_length=2**16)(saved)
    with MemoryMeter() as meter, pytest.raises(UserError, match="has shape"):
        load_bundle(saved)
    assert meter.largest < 2**20


class MemoryMeter(TorchDispatchMode):
    """Notes the size in bytes of the largest tensor that torch makes anywhere but on the meta device."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.device.type != "meta":
            self.largest = max(self.largest, result.untyped_storage().nbytes())
        return result


def test_memory_meter_sees_what_loading_allocates(saved: Path) -> None:
    with MemoryMeter() as meter:
        load_bundle(saved)
    assert meter.largest > 10_000


def test_spoiled_bundles_are_refused_or_work(tmp_path: Path) -> None:
    script = runpy.run_path(str(Path(__file__).parent.parent / "scripts" / "fuzz_bundle.py"))
    content = (FIXTURES / "bundle-3.safetensors").read_bytes()
    kinds = Counter(script["try_case"](content, number, tmp_path) for number in range(150))
    assert {kind for kind, outcome in kinds if outcome == "refused"} == {kind for kind, _ in script["KINDS"]}
    assert ("tensors", "loaded") in kinds


@pytest.mark.parametrize(
    "header",
    [
        b"[1]",
        b"[" * 200_000,
        b'{"a": {"data_offsets": [0]}, "__metadata__": {}}',
        b'{"a": {"data_offsets": [0, 8], "shape": "ab"}}',
        b"7",
    ],
)
def test_a_file_whose_header_is_any_other_json_is_refused_in_one_sentence(
    header: bytes, trained: Project, tmp_path: Path
) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    assert peek(path) is None and peek_tokenizer(path) is None and peek_shapes(path) == {}
    for command in ("translate", "tokenize"):
        result = trained.mtformer(command, "--model", path, "a")
        assert (result.status, f"Error: {path}: {NOT_INTACT}" in result.stderr) == (2, True), result.stderr


def test_a_step_that_is_no_number_is_not_known(original: Bundle) -> None:
    assert original.header.model_copy(update={"scores": {"step": math.nan}}).step is None
    assert original.header.model_copy(update={"scores": {"step": 7.0}}).step == 7


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, sign: Path) -> None:
        self.sign = sign

    def __reduce__(self) -> tuple[Callable[[Path], None], tuple[Path]]:
        return Path.touch, (self.sign,)


@pytest.mark.parametrize(
    "write",
    [lambda trap, path: path.write_bytes(pickle.dumps(trap)), lambda trap, path: torch.save({"model": trap}, path)],
)
def test_a_pickle_is_refused_and_not_executed(write: Callable[[Trap, Path], object], tmp_path: Path) -> None:
    path, sign = tmp_path / "model.safetensors", tmp_path / "the trap was sprung"
    write(Trap(sign), path)
    with pytest.raises(UserError, match=f"^{path}: {NOT_INTACT}"):
        load_bundle(path)
    assert not sign.exists()
    pickle.loads(pickle.dumps(Trap(sign)))
    assert sign.exists()  # the trap does work


def test_loading_and_translating_do_not_import_torchs_compiler() -> None:
    code = """
import sys
import torch
from mtformer import Translator
from mtformer.model.architecture import POSITIONS
from mtformer.model.lora import adapted, adapter_shapes
from mtformer.model.weights import without_weights
translator = Translator.load(sys.argv[1], "cpu")
translator.translate(["a"])
model = translator.engine.model
for name in POSITIONS:
    without_weights(model.architecture.model_copy(update={"positions": name}))
adapted(model, {name: torch.zeros(shape) for name, shape in adapter_shapes(model, 1)})
sys.exit("torch._dynamo" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code, str(FIXTURES / "bundle-3.safetensors")], check=True)

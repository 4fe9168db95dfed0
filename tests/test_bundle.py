import json
import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from conftest import make_project, sentence_pairs
from safetensors import safe_open
from safetensors.torch import save_file

from mtformer.bundle import Bundle, load_bundle, save_bundle
from mtformer.config import Config, load_config
from mtformer.errors import UserError
from mtformer.model.weights import build_model
from mtformer.text.sources import SentencePair
from mtformer.text.tokenizer import train_tokenizer

PAIRS = [SentencePair(*pair) for pair in sentence_pairs(200)]


def make_bundle(folder: Path, *, joint: bool = True, tied: bool = True) -> Bundle:
    """Make a bundle of a model with fresh weights, trained by a config in ``folder``."""
    settings = [f"tokenizer.joint={joint}", f"model.tie_embeddings={tied}", "data.tgt_lang=de-AT", "run.name=Ünï"]
    config: Config = load_config(make_project(folder).config, settings)
    tokenizer = train_tokenizer(PAIRS, config.tokenizer, "en", "de", adjust=True)
    torch.manual_seed(1)
    return Bundle(build_model(config, tokenizer), tokenizer, config, {"bleu": 12.34, "loss": 0.1 + 0.2, "step": 20.0})


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
    assert loaded.config == bundle.config
    assert loaded.scores == bundle.scores
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


def rewrite(change: Callable[[dict[str, torch.Tensor], dict[str, str]], object]) -> Callable[[Path], None]:
    """Write the bundle anew with other tensors or metadata."""

    def apply(path: Path) -> None:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = dict(file.metadata())
        change(tensors, metadata)
        save_file(tensors, path, metadata)

    return apply


NOT_INTACT, NOT_OURS, DAMAGED = "this is not an intact safetensors file", "is not a model bundle of mtformer", "damaged"


def replace_tensor(name: str, tensor: torch.Tensor) -> Callable[[Path], None]:
    return rewrite(lambda tensors, metadata: tensors.update({name: tensor}))


def drop_tensor(name: str) -> Callable[[Path], None]:
    return rewrite(lambda tensors, metadata: tensors.pop(name))


def replace_metadata(**values: str) -> Callable[[Path], None]:
    return rewrite(lambda tensors, metadata: metadata.update(values))


NO_FILE = "there is no model at"
NOT_INTACT = "this is not an intact safetensors file"
NOT_OURS = "this safetensors file is not a model bundle of mtformer"
DAMAGED = "this bundle is damaged"
SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (Path.unlink, NO_FILE),
    "a folder": (put_a_folder_there, NO_FILE),
    "empty": (lambda path: path.write_bytes(b""), NOT_INTACT),
    "cut off in the header's size": (cut_to(0.0001), NOT_INTACT),
    "cut off in the header": (cut_to(0.01), NOT_INTACT),
    "cut off in the middle": (cut_to(0.5), NOT_INTACT),
    "cut off near the end": (cut_to(0.9999), NOT_INTACT),
    "other header size": (flip_at(0), NOT_INTACT),
    "huge header size": (flip_at(7), NOT_INTACT),
    "flipped bit in the header": (flip_at(8), NOT_INTACT),
    "text": (lambda path: path.write_text("the red house\n" * 50), NOT_INTACT),
    "zeros": (lambda path: path.write_bytes(bytes(5000)), NOT_INTACT),
    "other weights": (lambda path: save_file({"weight": torch.zeros(3)}, path), NOT_OURS),
    "other weights with metadata": (
        lambda path: save_file({"weight": torch.zeros(3)}, path, {"format": "pt"}),
        NOT_OURS,
    ),
    "flipped bit in a matrix": (flip_in("model.tgt_embedding.weight"), DAMAGED),
    "flipped bit in a bias": (flip_in("model.decoder_layers.0.self_attention.out_proj.bias"), DAMAGED),
    "flipped bit in the tokenizer": (flip_in("tokenizer.src"), DAMAGED),
    "no tokenizer": (drop_tensor("tokenizer.src"), DAMAGED),
    "no real tokenizer": (replace_tensor("tokenizer.src", torch.zeros(9, dtype=torch.uint8)), DAMAGED),
    "too few weights": (drop_tensor("model.tgt_embedding.weight"), DAMAGED),
    "too many weights": (replace_tensor("model.extra", torch.zeros(1)), DAMAGED),
    "a weight of another shape": (replace_tensor("model.decoder_norm.bias", torch.zeros(31)), DAMAGED),
    "no config": (rewrite(lambda tensors, metadata: metadata.pop("config")), DAMAGED),
    "empty config": (replace_metadata(config="{}"), DAMAGED),
    "half a config": (replace_metadata(config="{"), DAMAGED),
    "no real scores": (replace_metadata(scores="?"), DAMAGED),
}


@pytest.mark.parametrize("kind", SPOILED)
def test_what_is_not_an_intact_bundle_is_refused_in_a_sentence_that_names_it(kind: str, saved: Path) -> None:
    spoil, sentence = SPOILED[kind]
    spoil(saved)
    with pytest.raises(UserError) as caught:
        load_bundle(saved)
    assert str(saved) in str(caught.value)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


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

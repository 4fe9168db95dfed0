"""Models of Hugging Face's transformers as the hub has them, but small and with random weights."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import transformers
from conftest import sentence_pairs
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from transformers import (
    M2M100Config,
    M2M100ForConditionalGeneration,
    M2M100Tokenizer,
    MarianConfig,
    MarianMTModel,
    MarianTokenizer,
    MBart50Tokenizer,
    MBartConfig,
    MBartForConditionalGeneration,
    NllbTokenizer,
    PegasusConfig,
    PegasusForConditionalGeneration,
    PegasusTokenizer,
)

from mtformer.bundle.format import Bundle, load_bundle
from mtformer.config import LanguagePair
from mtformer.export.imported import Imported
from mtformer.export.importing import read_model, write_model

LINES = [
    *(text for pair in sentence_pairs(40, seed=3) for text in pair),
    *(
        "",
        "Hello, World! 1,250.50 € on 3/14",
        "naïve café",
        "e\u0301 a\u0308",
        "ﬁ ﬂ ½ ™",
        "\u200bzero",
        "Ｆｕｌｌ ｗｉｄｔｈ",
    ),
    *(
        "你好，世界！",
        "Привет, мир",
        "한국어 日本語",
        "😀 emoji 👩‍👩‍👧",
        "a\u00a0b",
        "<0x41> <3 [x]",
        "▁ under",
        "x" * 200,
        "؟ العربية",
    ),
]
_DOCS = Path(__file__).parents[1] / "docs"
SIZES = {
    "d_model": 48,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 80,
    "decoder_ffn_dim": 80,
    "max_position_embeddings": 128,
    "scale_embedding": True,
}


class Pretrained(NamedTuple):
    """A model and its tokenizer in transformers.

    Attributes:
        model: the model.
        tokenizer: the tokenizer.
        languages: those to translate between, where it has many.
    """

    model: Any
    tokenizer: Any
    languages: tuple[str, str] | tuple[None, None] = (None, None)


@dataclass(frozen=True)
class Case:
    """A model of transformers in its folder, as it is imported, and its bundle."""

    folder: Path
    theirs: Pretrained
    imported: Imported
    path: Path

    @property
    def whole(self) -> Bundle:
        """The bundle."""
        return load_bundle(self.path)

    @property
    def ours(self) -> Bundle:
        """The bundle for the languages of the model."""
        return self.whole.toward(*self.theirs.languages)


_CASES: dict[str, Case] = {}


def case_of(kind: str, factory: pytest.TempPathFactory) -> Case:
    """Return the model of a kind, which all tests of a process share."""
    if kind not in _CASES:
        folder, output = factory.mktemp(kind), factory.mktemp("ours")
        theirs = KINDS[kind](folder, 1)
        imported = read_model(str(folder), LanguagePair("en", "de"))
        write_model(imported, output)
        _CASES[kind] = Case(folder, theirs, imported, output / "model.safetensors")
    return _CASES[kind]


def marian(folder: Path, seed: int) -> Pretrained:
    """Two SentencePiece models, of which the vocabulary lacks some tokens, and padding that starts decoding."""
    source, target = _train(folder / "source.spm", 0), _train(folder / "target.spm", 1)
    vocabulary = list(dict.fromkeys(["</s>", "<unk>", *source[10:], *target, "<pad>"]))
    ids = {token: i for i, token in enumerate(vocabulary)}
    (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    files = (str(folder / name) for name in ("source.spm", "target.spm", "vocab.json"))
    tokenizer = MarianTokenizer(*files, source_lang="en", target_lang="de")
    special = {"pad_token_id": ids["<pad>"], "eos_token_id": 0, "decoder_start_token_id": ids["<pad>"]}
    config = MarianConfig(
        vocab_size=len(ids), activation_function="swish", forced_eos_token_id=None, **special, **SIZES
    )
    return _saved(folder, MarianMTModel(config), tokenizer, seed)


def marian_two_vocabularies(folder: Path, seed: int) -> Pretrained:
    """Vocabularies of their own for both languages, and weights in a pickle."""
    names = {"source.spm": "vocab.json", "target.spm": "target_vocab.json"}
    sizes = []
    for side, (spm, file) in enumerate(names.items()):
        ids = {token: i for i, token in enumerate(["</s>", "<unk>", "<pad>", *_train(folder / spm, side)])}
        (folder / file).write_text(json.dumps(ids), encoding="utf-8")
        sizes.append(len(ids))
    files = (str(folder / name) for name in ("source.spm", "target.spm", "vocab.json", "target_vocab.json"))
    tokenizer = MarianTokenizer(*files, source_lang="eng", target_lang="deu", separate_vocabs=True)
    special = {"pad_token_id": 2, "eos_token_id": 0, "decoder_start_token_id": 2, "forced_eos_token_id": None}
    sharing = {"share_encoder_decoder_embeddings": False, "vocab_size": sizes[0], "decoder_vocab_size": sizes[1]}
    config = MarianConfig(**sharing, activation_function="relu", **special, **SIZES)
    pretrained = _saved(folder, MarianMTModel(config), tokenizer, seed)
    torch.save(pretrained.model.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return pretrained


def m2m_100(folder: Path, seed: int) -> Pretrained:
    """A vocabulary beside the SentencePiece model, and languages that no file lists."""
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *_train(folder / "sentencepiece.bpe.model", model_type="bpe")]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}), encoding="utf-8")
    tokenizer = M2M100Tokenizer(str(folder / "vocab.json"), str(folder / "sentencepiece.bpe.model"))
    config = M2M100Config(vocab_size=len(tokens) + 108, **_fairseq_ids(), **SIZES)
    return _saved(folder, M2M100ForConditionalGeneration(config), tokenizer, seed, "en", "de")


def nllb(folder: Path, seed: int) -> Pretrained:
    """No SentencePiece model, only a fast tokenizer."""
    _train(folder / "sentencepiece.bpe.model", model_type="bpe")
    codes = ["ace_Arab", "deu_Latn", "eng_Latn", "zho_Hans", "zho_Hant"]
    tokenizer = NllbTokenizer.from_pretrained(folder, additional_special_tokens=codes, src_lang="eng_Latn")
    (folder / "sentencepiece.bpe.model").unlink()
    config = M2M100Config(vocab_size=len(tokenizer), **_fairseq_ids(), **SIZES)
    return _saved(folder, M2M100ForConditionalGeneration(config), tokenizer, seed, "eng_Latn", "deu_Latn")


def mbart(folder: Path, seed: int) -> Pretrained:
    """Learned positions, normalized embeddings, and weights in several files."""
    _train(folder / "sentencepiece.bpe.model")
    tokenizer = MBart50Tokenizer.from_pretrained(folder, src_lang="en_XX")
    config = MBartConfig(vocab_size=len(tokenizer), activation_function="gelu", **_fairseq_ids(), **SIZES)
    model = MBartForConditionalGeneration(config)
    return _saved(folder, model, tokenizer, seed, "en_XX", "de_DE", max_shard_size="200KB")


def pegasus(folder: Path, seed: int) -> Pretrained:
    """Ids that 103 reserved tokens shift."""
    _train(folder / "spiece.model", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    tokenizer = PegasusTokenizer.from_pretrained(folder)
    special = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "forced_eos_token_id": None}
    config = PegasusConfig(vocab_size=len(tokenizer), activation_function="relu", **special, **SIZES)
    return _saved(folder, PegasusForConditionalGeneration(config), tokenizer, seed)


KINDS: dict[str, Callable[[Path, int], Pretrained]] = {
    make.__name__: make for make in (marian, marian_two_vocabularies, m2m_100, nllb, mbart, pegasus)
}


def _fairseq_ids() -> dict[str, int | None]:
    special = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    return {**special, "forced_eos_token_id": None}


def _train(path: Path, *sides: int, **settings: Any) -> list[str]:
    """Train a SentencePiece model on the text of some sides, by default both; return its tokens but special ones."""
    pages = [(_DOCS / name).read_text(encoding="utf-8").split("\n")[:400] for name in ("tour.md", "tour.zh.md")]
    texts = [line for side in sides or (0, 1) for line in [*(pair[side] for pair in sentence_pairs(300)), *pages[side]]]
    prefix = str(path.with_suffix(""))
    trained = {"vocab_size": 700, "hard_vocab_limit": False, "minloglevel": 2, **settings}
    SentencePieceTrainer.train(sentence_iterator=iter(texts), model_prefix=f"{prefix}-trained", **trained)
    shutil.move(f"{prefix}-trained.model", path)
    Path(f"{prefix}-trained.vocab").unlink()
    model = SentencePieceProcessor(model_file=str(path))
    return [token for i in range(len(model)) if not model.is_control(i) and (token := model.id_to_piece(i)) != "<unk>"]


def _saved(folder: Path, model: Any, tokenizer: Any, seed: int, *languages: str, **settings: Any) -> Pretrained:
    """Draw weights that make translations vary, but for sinusoids, and write the model's folder."""
    generator = torch.Generator().manual_seed(seed)
    sinusoids = () if isinstance(model, MBartForConditionalGeneration) else ("embed_positions",)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not any(part in name for part in sinusoids):
                noise = torch.randn(parameter.shape, generator=generator)
                scale = 0.12 if "embed" in name or "shared" in name else 0.3
                parameter.copy_(1 + noise / 10 if name.endswith("norm.weight") else noise * scale)
        if isinstance(model, MarianMTModel | PegasusForConditionalGeneration):
            model.final_logits_bias.copy_(torch.randn(model.final_logits_bias.shape, generator=generator) / 2)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder, **settings)
    return Pretrained(model.eval(), tokenizer, languages or (None, None))  # type: ignore[arg-type]


transformers.utils.logging.disable_progress_bar()

"""scripts/pronoun_attention.py: which heads know what *it* refers to."""

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mtformer.config import TokenizerConfig
from mtformer.model.attention import MultiHeadAttention
from mtformer.phrasebook.meaning import Sentence
from mtformer.phrasebook.splits import held_out
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.train import train_tokenizer

SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).parent.parent / "scripts" / "pronoun_attention.py"))
Question, measure, places_of, questions = (SCRIPT[name] for name in ("Question", "measure", "places_of", "questions"))
TIRED, WIDE = 8, 9


def attentions(**n_heads: int) -> nn.ModuleDict:
    return nn.ModuleDict({name: MultiHeadAttention(d_model=4, n_heads=n) for name, n in n_heads.items()})


class ModelByHand(nn.Module):
    """Two encoder heads and one of cross-attention, whose weights are written down instead of computed.

    In the sources below the subject is at 1 and 2, the object at 4, *it* at 6 and its reason at 7.
    """

    def __init__(self) -> None:
        super().__init__()
        self.encoder_layers = nn.ModuleList([attentions(self_attention=2)])
        self.decoder_layers = nn.ModuleList([attentions(), attentions(self_attention=1, cross_attention=1)])

    def forward(self, src: Tensor, _src_mask: Tensor, tgt_in: Tensor) -> None:
        """Show the observers the weights."""
        encoder = torch.zeros(len(src), 2, src.size(1), src.size(1))
        encoder[:, 0, 6, 1] = encoder[:, 0, 6, 2] = 0.2  # always more at the subject, in sum only
        encoder[:, 0, 6, 4] = 0.3
        for row, ids in enumerate(src):
            encoder[row, 1, 6, 2 if ids[7] == TIRED else 4] = 0.9  # the right one
        cross = torch.zeros(len(src), 1, tgt_in.size(1), src.size(1))
        cross[:, 0, :, 4] = 0.5
        cross[:, 0, 2, 4], cross[:, 0, 2, 1] = 0.1, 0.7
        decoder = torch.zeros(len(src), 1, tgt_in.size(1), tgt_in.size(1))
        weights = {
            "encoder_layers.0.self_attention": encoder,
            "decoder_layers.1.self_attention": decoder,
            "decoder_layers.1.cross_attention": cross,
        }
        for name, module in self.named_modules():
            if isinstance(module, MultiHeadAttention) and module.observer is not None:
                module.observer(weights[name])


def question(reason: int, *, step: int = 2, padding: int = 0) -> Any:
    src = [5, 6, 7, 4, 6, 4, 5, reason, *[4] * padding, 3]
    return Question(src, [4, 5, 6], it=6, step=step, subject=[1, 2], object=[4], is_subject=reason == TIRED)


def test_heads_are_counted_by_hand() -> None:
    asked = [question(WIDE), question(TIRED, padding=3), question(WIDE, step=1), question(WIDE, padding=1)]
    knowing, step, subject = measure(ModelByHand(), asked)
    assert (knowing.kind, knowing.layer, knowing.number) == ("encoder", 1, 2)
    assert (knowing.subject_share, knowing.object_share, knowing.share) == (1, 1, 1)
    assert knowing.strongest == 1
    assert (knowing.right_weight, knowing.wrong_weight) == pytest.approx((0.9, 0))
    assert (subject.kind, subject.layer, subject.number) == ("encoder", 1, 1)
    assert (subject.subject_share, subject.object_share, subject.share) == (1, 0, 0.25)
    assert subject.strongest == 1  # where the object is right, the subject's tokens count one by one
    assert (subject.right_weight, subject.wrong_weight) == pytest.approx(((0.4 + 3 * 0.3) / 4, (0.3 + 3 * 0.4) / 4))
    assert (step.kind, step.layer, step.number) == ("cross", 2, 1)  # one of the three WIDE has another step
    assert (step.subject_share, step.object_share, step.share) == pytest.approx((1, 1 / 3, 0.5))
    assert step.strongest == 0.5


def test_a_word_is_found_in_the_tokens_that_spell_it() -> None:
    tokens = ["▁The", "▁bir", "ds", "▁catch", "▁the", "▁mou", "se", ",", "▁cat", "</s>"]
    assert places_of(r"\bbirds\b", tokens) == [1, 2]
    assert places_of(r"\bcat\b", tokens) == [8]
    assert places_of(r"\bthe\b", tokens) == [0]
    assert places_of(r"\bthe\b", tokens, start=1) == [4]
    assert places_of("(?<=因为)马路", ["▁马路", "，", "因", "为", "马", "路太", "宽"]) == [4, 5]
    with pytest.raises(ValueError, match="no mice in"):
        places_of("mice", tokens)


@pytest.mark.parametrize("tgt_lang", ["de", "zh"])
def test_nouns_and_pronouns_are_found_in_all_sentences(tgt_lang: str) -> None:
    """A small vocabulary breaks nouns into several tokens."""
    sayings = held_out("pronouns")
    pairs = [SentencePair(saying.en, saying.text(tgt_lang)) for saying in sayings]
    tokenizer = train_tokenizer(pairs, TokenizerConfig(type="bpe", vocab_size=600, joint=False), "en", tgt_lang)
    bundle = SimpleNamespace(tokenizer=tokenizer, header=SimpleNamespace(tgt_lang=tgt_lang))
    n_broken = 0
    for saying, asked in zip(sayings, questions(bundle, sayings), strict=True):
        meaning = saying.meaning
        assert isinstance(meaning, Sentence)
        tokens = tokenizer.src_tokens(asked.src)
        for places, phrase in ((asked.subject, meaning.main.subject), (asked.object, meaning.main.object)):
            spelled = "".join(tokens[place] for place in places).replace("▁", " ").strip(" .,").lower()
            assert spelled == phrase.head.word.lower()  # type: ignore[union-attr]
            n_broken += len(places) > 1
        assert asked.subject[-1] < asked.object[0] < asked.it
        assert tokens[asked.it] == "▁it"
        before = tokenizer.decode(asked.tgt[: asked.step])
        assert before.endswith({"de": "weil", "zh": "因为"}[tgt_lang])
    assert n_broken > 100
    assert 300 < sum(asked.is_subject for asked in questions(bundle, sayings)) < 700

"""Measure which attention heads know what *it* refers to.

In "The animal did not cross the street because it was too tired", *it* is the animal; "too wide" makes it the street.
For each head of a phrasebook model from English, this counts in how many of the 1,000 sentences of the split
``pronouns`` the right noun gets more weight than the other one: in the encoder's self-attention from *it*, and in the
cross-attention of the step that chooses the German pronoun, or 它 or the noun in Chinese. A head that always looks at
the same noun is no use, so heads are ranked by the worse of two shares: where the subject is right, as for *tired*, and
where the object is, as for *wide*. *Strongest* is the share in which no other token gets more weight than the right
noun.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from program import run_program
from torch import Tensor, nn

from mtformer.bundle.format import Bundle, load_bundle
from mtformer.data.batches import pad
from mtformer.model.architecture import SPECIAL_IDS
from mtformer.model.attention import record_attention
from mtformer.phrasebook.lexicon import Noun
from mtformer.phrasebook.meaning import NounPhrase, Sentence
from mtformer.phrasebook.splits import LANGUAGES, Saying, antecedent, held_out
from mtformer.runs.finding import find_model
from mtformer.search.engine import fill_batches, longest_first
from mtformer.support.errors import UserError

_BATCH_TOKENS = 4096
_BECAUSE = {"de": "weil ", "zh": "因为"}


class Question(NamedTuple):
    """A sentence with an *it*, in tokens.

    Attributes:
        src: the source, EOS included.
        tgt: the reference translation.
        it: the place of *it* in ``src``.
        step: the place in ``tgt`` of the pronoun, or of the noun that Chinese repeats.
        subject: the places of the subject's noun in ``src``.
        object: those of the object's noun.
        is_subject: whether *it* is the subject.
    """

    src: Sequence[int]
    tgt: Sequence[int]
    it: int
    step: int
    subject: Sequence[int]
    object: Sequence[int]
    is_subject: bool


@dataclass(frozen=True)
class Head:
    """How often a head gives the right noun more weight than the other one.

    Attributes:
        kind: ``encoder`` for the encoder's self-attention, ``cross`` for that of the decoder to the source.
        layer: from 1.
        number: of the head in its attention, from 1.
        subject_share: the share among sentences in which *it* is the subject.
        object_share: the share among the others.
        share: the share among all.
        strongest: the share among all in which no other token has more weight than the right noun.
        right_weight: the mean weight of the right noun.
        wrong_weight: the mean weight of the other noun.
    """

    kind: Literal["encoder", "cross"]
    layer: int
    number: int
    subject_share: float
    object_share: float
    share: float
    strongest: float
    right_weight: float
    wrong_weight: float

    @property
    def worse_share(self) -> float:
        """The smaller one of the shares of the two kinds of sentences."""
        return min(self.subject_share, self.object_share)


def questions(bundle: Bundle, sayings: Sequence[Saying]) -> list[Question]:
    """Find *it*, its two candidates and its translation in the tokens of sentences of the split ``pronouns``."""
    tokenizer, tgt_lang = bundle.tokenizer, bundle.header.tgt_lang
    sources = tokenizer.encode_src([saying.en for saying in sayings])
    targets = tokenizer.encode_tgt([saying.text(tgt_lang) for saying in sayings])
    found = []
    for saying, src, tgt in zip(sayings, sources, targets, strict=True):
        assert isinstance(saying.meaning, Sentence)
        it, main = antecedent(saying.meaning), saying.meaning.main
        assert it and isinstance(main.subject, NounPhrase) and isinstance(main.object, NounPhrase)
        assert isinstance(main.subject.head, Noun) and isinstance(main.object.head, Noun)
        tokens = tokenizer.src_tokens(src)
        subject = places_of(rf"\b{main.subject.head.word}\b", tokens)
        pronoun = LANGUAGES[tgt_lang].pronoun(it)
        found.append(
            Question(
                src=src,
                tgt=tgt[:-1],
                it=places_of(r"(?<=because )it\b", tokens)[0],
                step=places_of(f"(?<={_BECAUSE[tgt_lang]}){pronoun}", tokenizer.tgt_tokens(tgt))[0],
                subject=subject,
                object=places_of(rf"\b{main.object.head.word}\b", tokens, start=subject[-1] + 1),
                is_subject=it.antecedent is main.subject.head,
            )
        )
    return found


def places_of(pattern: str, tokens: Sequence[str], start: int = 0) -> list[int]:
    """Return the places of the tokens that spell the first match of ``pattern`` from the token at ``start`` on.

    Raises:
        ValueError: there is no match.
    """
    ends = list(accumulate(len(token) for token in tokens))
    begins = [0, *ends]
    match = re.compile(pattern, re.IGNORECASE).search("".join(tokens).replace("▁", " "), begins[start])
    if match is None:
        raise ValueError(f"no {pattern} in {' '.join(tokens)}")
    return [place for place, end in enumerate(ends) if begins[place] < match.end() and end > match.start()]


@torch.inference_mode()
def measure(model: nn.Module, asked: Sequence[Question]) -> list[Head]:
    """Return every head of the encoder and of cross-attention, the best first, by its worse share."""
    lengths = [max(len(question.src), len(question.tgt) + 1) for question in asked]
    weights: dict[str, list[Tensor]] = defaultdict(list)  # by attention: (B, H, 3), see _heads
    is_subject: list[bool] = []
    for batch in fill_batches(longest_first(lengths), lengths, _BATCH_TOKENS):
        rows = [asked[i] for i in batch]
        is_subject += [row.is_subject for row in rows]
        src = pad([row.src for row in rows], SPECIAL_IDS.pad)  # (B, S)
        nouns = torch.zeros(len(rows), 2, src.size(1))  # (B, 2, S): where the right noun and the other one are
        for nouns_of_row, row in zip(nouns, rows, strict=True):
            nouns_of_row[0 if row.is_subject else 1, row.subject] = 1
            nouns_of_row[1 if row.is_subject else 0, row.object] = 1
        with record_attention(model) as recorded:
            tgt_in = pad([[SPECIAL_IDS.start, *row.tgt] for row in rows], SPECIAL_IDS.pad)
            model(src, src != SPECIAL_IDS.pad, tgt_in)
        for name, [all_weights] in recorded.items():  # (B, H, T, S)
            if name.startswith("encoder") or name.endswith("cross_attention"):
                queries = [row.it if name.startswith("encoder") else row.step for row in rows]
                of_query = all_weights[torch.arange(len(rows)), :, queries]  # (B, H, S)
                of_nouns = of_query @ nouns.transpose(1, 2)  # (B, H, 2)
                others = of_query.masked_fill(nouns[:, :1] > 0, 0).amax(dim=-1, keepdim=True)
                weights[name].append(torch.cat([of_nouns, others], dim=-1))
    subjects = torch.tensor(is_subject)
    heads = (head for name, parts in weights.items() for head in _heads(name, torch.cat(parts), subjects))
    return sorted(heads, key=lambda head: -head.worse_share)


def _heads(attention: str, weights: Tensor, is_subject: Tensor) -> Iterator[Head]:
    """Count the weights (N, H, 3) of the right noun, the other noun, and the strongest token but the right noun."""
    for number, (right, wrong, strongest) in enumerate(weights.permute(1, 2, 0), 1):
        knows = (right > wrong).float()
        yield Head(
            "encoder" if attention.startswith("encoder") else "cross",
            int(attention.split(".")[1]) + 1,
            number,
            subject_share=knows[is_subject].mean().item(),
            object_share=knows[~is_subject].mean().item(),
            share=knows.mean().item(),
            strongest=(right >= strongest).float().mean().item(),
            right_weight=right.mean().item(),
            wrong_weight=wrong.mean().item(),
        )


def main() -> None:
    """Print a table of all heads and name the best one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run's folder or a model bundle")
    bundle = load_bundle(find_model(parser.parse_args().run))
    if bundle.header.src_lang != "en" or bundle.header.tgt_lang not in _BECAUSE:
        raise UserError("the sentences are in English: use a model from English to German or Chinese")
    heads = measure(bundle.model, questions(bundle, held_out("pronouns")))
    print("attention  layer  head  subject  object     all  strongest  weight right, wrong")
    for head in heads:
        shares = f"{head.subject_share:8.1%} {head.object_share:7.1%} {head.share:7.1%}  {head.strongest:9.1%}"
        weights = f"{head.right_weight:12.2f} {head.wrong_weight:6.2f}"
        print(f"{head.kind:<9}  {head.layer:>5} {head.number:>5} {shares}  {weights}")
    best = heads[0]
    print(
        f"best: {best.kind}, layer {best.layer}, head {best.number}, right in {100 * best.share:.1f} % of the sentences"
    )


if __name__ == "__main__":
    run_program(main)

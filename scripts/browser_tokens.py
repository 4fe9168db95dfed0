"""Compare what a web page makes of texts with what Python makes of them, on hostile lines; print the differences.

For each line: the ids of the source and of the target, the text of ids, the sentences, the requests to the model, and
the translation and its notes for hypotheses that are made up from the ids of the requests, so that some are copies,
loops, too short or garbage. The lines are those of tests/nasty.jsonl, lines of FILES if given, and made-up ones. The
exit status is 1 if there are differences.
"""

import argparse
import json
import re
import sys
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise
from pathlib import Path
from random import Random
from typing import Any

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from browser import opened
from nasty_report import read_suite
from playwright.sync_api import Page
from program import run_program

from mtformer.browser.tokenizer import TEXT_ASSETS, describe_texts
from mtformer.bundle.format import load_bundle
from mtformer.bundle.header import Header
from mtformer.config import SearchOptions
from mtformer.runs.finding import find_model
from mtformer.search.hypothesis import Hypothesis
from mtformer.support.page import assemble
from mtformer.text.lines import read_lines, without_surrogates
from mtformer.text.marks import EMOJI, LONG_WORD, separators
from mtformer.text.sentences import split_sentences
from mtformer.text.slots import Slotted
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.vocabulary import on_one_line
from mtformer.translate.guard import Guard
from mtformer.translate.markup.scanner import Mark, Role, without_overlaps
from mtformer.translate.parts import parts_of
from mtformer.translate.plan import Plan, run, together
from mtformer.translate.planner import Planner
from mtformer.translate.preparation import standard_preparations
from mtformer.translate.translation import Translation, joined

_EMOJI = re.compile(f"(?![©®™‼⁉]){EMOJI}")
_SPACES = [*"    ", "  ", *"\t\u00a0\u202f\u3000\u2003\u2028\x0b\x1c\x85\ufeff"]
_FRAGMENTS = """
the The THE house House HOUSE houses red dogs chips. Mr. Smith's U.S. e.g. i.e. z.B. am 3. Mai Dr. A. No. 5 iPhone NASA
DON'T don't I'M it's naïve café cafe\u0301 Å A\u030a ǆ ŉ ﬁne ﬀ ½ ² ① Ⅳ ⅳ ẞ straße STRASSE ΣΊΣΥΦΟΣ ΟΔΌΣ ς İstanbul ıi DŽ
ǅ 3,500 3.500 12,000.50 10:45 10.45 1'000 000 24.12.2023 12/5/2024 007 ٣٤٥ १२३ 𝟗𝟖 42% $5 -7 +49 4711 ⅓ Hello! Hello.
Hello? What?! Wait... … (Yes.) "No." “Well.” «Ah !» » ‹x› 'Oh.' 你好。 我吃了薯片。 真的吗？ 《加油！》 太好了！！”
；，、 「はい。」と言った。 これはペンです。 カﾞ ｶﾞ 한국어 가 \u1100\u1161\u11a8 ไทย हिन्दी। नमस्ते॥ שלום עולם مرحبا؟ السلام۔
ﷺ русский Ёж Ελληνικά Ꭰꭰ 😀 👍🏽 👨‍👩‍👧‍👦 🇩🇪 ❤️ ☃ ✓ → © ™ {{name}} {0} <b>bold</b> &amp; https://a.b/c?d=e a@b.de
#tag @user \\n %s </s> <s> <unk> <0x41> <2de> ▁ ▁a \u200b \u200d \u200e \u202e
\u2060 \ufe0f \u0300 \u0334 \u0345 \u20dd \ufffd \uffff
\U0010ffff \ue000 \x00 \x07 \x1b[31m \x7f \ud800 \udc00 \ud83d haha hahaha hahahahahahaha nonono
哈哈哈哈哈 !!!! ---- aaaaaaaaaaaa la-la-la-la
""".split()
_FRAGMENTS += [
    "1 000 000",
    "no no no",
    "ja ja ja ja",
    "« Ah ! »",
    "I ate chips.",
    "J. R. R. Tolkien",
    'He said "No. Yes."',
]
_SIGNS = "- * • ■ → \uf0b7 1. a) (1) # > ##".split()
_STARTS = [*(f"{sign} " for sign in _SIGNS), "•", ">", "1.", "|", "‣\t", " 23)  ", "\t- [x] ", "> > ", "**Dog:** "]
_BLOCKS = [  # of code points
    (0x20, 0x7E), (0xA0, 0x24F), (0x250, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F),
    (0x1100, 0x11FF), (0x1E00, 0x20CF), (0x2100, 0x2BFF), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
    (0xF900, 0xFAFF), (0xFB00, 0xFFFD), (0x1D400, 0x1D7FF), (0x1F000, 0x1FAFF), (0, 0x10FFFF),
]  # fmt: skip


def hostile_lines(n: int, seed: int, texts: Sequence[str] = ()) -> list[str]:
    """Make up ``n`` lines, some of them from pieces of ``texts``; surrogates without their other half are among them.

    Characters that Python does not know are not: a browser may know a later version of Unicode.
    """
    random = Random(seed)
    return [_line(random, texts) for _ in range(n)]


def _line(random: Random, texts: Sequence[str]) -> str:
    kind = random.random()
    if kind < 0.02:
        return random.choice(_SPACES) * random.randrange(4)
    if kind < 0.04:
        return random.choice(_FRAGMENTS).strip() * random.randrange(1, 200)
    if kind < 0.08:
        return "".join(_character(random) for _ in range(random.randrange(1, 60)))
    parts = [_part(random, texts) for _ in range(random.randrange(1, 14))]
    joiner = random.choice(["", " ", " ", " ", " | ", None])
    start = random.choice(_STARTS) if random.random() < 0.2 else ""
    return start + "".join(part + (random.choice(_SPACES) if joiner is None else joiner) for part in parts)


def _part(random: Random, texts: Sequence[str]) -> str:
    kind = random.random()
    if texts and kind < 0.3:
        words = random.choice(texts).split(" ")
        start = random.randrange(len(words))
        return " ".join(words[start : start + random.randrange(1, 12)])
    if kind < 0.4:
        return "".join(_character(random) for _ in range(random.randrange(1, 5)))
    return random.choice(_FRAGMENTS)


def _character(random: Random) -> str:
    while True:
        character = chr(random.randint(*random.choice(_BLOCKS)))
        if unicodedata.category(character) != "Cn":
            return character


class MadeUp:
    """An engine whose hypotheses follow from the ids of the requests, as those of ``_IN_PAGE`` do."""

    def __init__(self, n_tokens: int) -> None:
        """Take the number of target tokens."""
        self._n_tokens = n_tokens

    def submit(self, requests: Sequence[Any], *, on_done: Any = None) -> list[Any]:
        """Return one hypothesis for each request."""
        return [[Hypothesis(made_up(request.src[:-1], self._n_tokens), [-1.0])] for request in requests]

    def require_supported(self, options: SearchOptions) -> None:
        """Support everything."""


def made_up(ids: Sequence[int], n_tokens: int) -> list[int]:
    """Return a hypothesis for a source: a copy, reversed, a loop, nothing, a part, or garbage."""
    made = [
        [*ids],
        ids[::-1],
        [*ids] * 5,
        [],
        ids[: len(ids) // 3],
        [(i * 7919 + place * 31) % n_tokens for place, i in enumerate(ids)],
    ]
    return [i % n_tokens for i in made[sum(ids) % len(made)]]


class PagePlanner(Planner):
    """A planner that divides a line as a page does, at emoji and long words as well; other markup inside is text.

    It adds no slots to the translation of a text that is cut, either.
    """

    def _plan_all_slots(self, slotted: Slotted, first: str) -> Plan[list[Translation]]:
        is_whole = len(parts_of(slotted.text, self.tokenizer, self.terms, self.max_length)) == 1
        return (yield from super()._plan_all_slots(slotted, first)) if is_whole else []

    def _plan_line(self, line: str) -> Plan[list[Translation]]:
        text = on_one_line(line)
        spans = [*separators(text, self.src_lang), *(emoji.span() for emoji in _EMOJI.finditer(text))]
        marks = without_overlaps([Mark(*span, Role.BREAK) for span in spans])
        starts, ends = [0, *(mark.end for mark in marks)], [*(mark.start for mark in marks), len(text)]
        stretches = [each for start, end in zip(starts, ends, strict=True) for each in _divided(text, start, end)]
        if len(stretches) == 1:
            return (yield from self._plan_unmarked(line))
        between = [(start, text[start:end].strip()) for start, end in stretches]
        texts = [(start, each) for start, each in between if any(map(str.isalnum, each))]
        of_texts = yield from together(self._plan_text(each) for _, each in texts)
        whole, end = "", 0
        for (place, each), [translation, *_] in zip(texts, of_texts, strict=True):
            start = text.index(each, place)
            whole, end = whole + text[end:start] + translation.text, start + len(each)
        return [replace(joined([each[0] for each in of_texts], ""), text=whole + text[end:])]

    def _plan_text(self, text: str) -> Plan[list[Translation]]:
        if not LONG_WORD.fullmatch(text):
            return (yield from self._plan_unmarked(text))
        [empty] = yield from self._plan_unmarked("")
        return [replace(empty, text=text, notes=("check: copied what is too long for a word",))]


def _divided(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of the long words in a stretch of a text, and of what is before, between and after them."""
    spans = (word.span() for word in LONG_WORD.finditer(text, start, end) if any(map(str.isalnum, word[0])))
    yield from pairwise([start, *chain.from_iterable(spans), end])


_IN_PAGE = """
function madeUp(ids, nTokens) {
  const made = [
    () => ids, () => ids.toReversed(), () => [1, 2, 3, 4, 5].flatMap(() => ids), () => [],
    () => ids.slice(0, Math.floor(ids.length / 3)), () => ids.map((id, place) => (id * 7919 + place * 31) % nTokens),
  ];
  return made[ids.reduce((sum, id) => sum + id, 0) % made.length]().map((id) => id % nTokens);
}
function resultsOf([name, lines, chosen]) {
  const description = pageData[name];
  const directions = chosen?.map((number) => description.directions[number]) ?? description.directions;
  return JSON.stringify(directions.map((direction) => {
    const translator = Object.create(TextTranslator.prototype);
    Object.assign(translator, { texts: description, planners: new Map() });
    const planner = translator.plannerOf({ from: direction.src_lang, to: direction.tgt_lang });
    const { src, tgt } = planner.tokenizer;
    const nTokens = tgt.known.length;
    translator.searchAll = function* ({ ids }) {
      return [{ ids: madeUp(ids.slice(0, -1), nTokens), score: -1 }];
    };
    return JSON.parse(lines).map((line) => {
      const plan = planner.plan(line);
      const requests = plan.requests.map(({ ids, limit, forced }) => [ids, limit, forced]);
      const hypotheses = [];
      for (const leaf of plan.leaves) {
        const found = [];
        for (const _ of translator.translateLeaf(leaf, planner, undefined, found)); // which never waits
        hypotheses.push(...found);
      }
      const [srcIds, tgtIds] = [src.encode(line), tgt.encode(line)];
      return {
        src: srcIds,
        tgt: tgtIds,
        decoded: tgt.decode(madeUp(tgtIds, nTokens)),
        sentences: splitSentences(line.toWellFormed(), description.languages[direction.src_lang]),
        requests,
        ...plan.finish(hypotheses),
      };
    });
  }));
}
"""


def write_page(path: Path, models: Mapping[str, tuple[Header, Tokenizer]]) -> None:
    """Write a page with which :func:`in_page` works, for models by their names."""
    data = {name: describe_texts(*model) for name, model in models.items()}
    page = assemble("texts", "", data=data, assets=[*TEXT_ASSETS, ("mtformer.browser", "translation.js")])
    path.write_text(page.replace("</body>", f"<script>{_IN_PAGE}</script></body>"), encoding="utf-8")


def in_page(
    page: Page, name: str, lines: Sequence[str], directions: Sequence[int] | None = None
) -> list[list[dict[str, Any]]]:
    """Return what a page makes of lines, for each direction of a model, or those with these numbers."""
    as_json = json.dumps(lines)  # in which surrogates stay what they are
    return json.loads(page.evaluate("resultsOf", [name, as_json, directions]))


def in_python(
    header: Header, tokenizer: Tokenizer, lines: Sequence[str], directions: Sequence[int] | None = None
) -> list[list[dict[str, Any]]]:
    """Return what Python makes of lines, for each direction of the model, or those with these numbers."""
    checked, pairs = list(map(without_surrogates, lines)), header.language_pairs
    chosen = pairs if directions is None else [pairs[number] for number in directions]
    return [_of_direction(header, tokenizer, checked, *pair) for pair in chosen]


def _of_direction(
    header: Header, tokenizer: Tokenizer, lines: Sequence[str], src_lang: str, tgt_lang: str
) -> list[dict[str, Any]]:
    _, tokenizer = header.toward(tokenizer, src_lang, tgt_lang)
    n_tokens = tokenizer.tgt_vocab_size
    planner = PagePlanner(
        MadeUp(n_tokens),
        tokenizer,
        SearchOptions.model_validate(header.search.model_dump()),
        tgt_lang=tgt_lang,
        max_length=header.architecture.max_length,
        src_lang=src_lang,
        preparations=standard_preparations(tokenizer, src_lang, tgt_lang, header.known_words),
        guard=Guard(tokenizer, src_lang, tgt_lang),
        slots=tokenizer.has_slots,
    )
    results = []
    for line in lines:
        [src], [tgt] = tokenizer.src.encode([line]), tokenizer.tgt.encode([line])
        [outcome] = run([planner.plan(line)], planner.engine)
        assert isinstance(outcome, list), outcome
        first = next(planner.plan(line), [])
        requests = [[list(each.src), each.limit, list(each.forced)] for each in first]  # type: ignore[attr-defined]
        results.append(
            {
                "src": src,
                "tgt": tgt,
                "decoded": tokenizer.decode(made_up(tgt, n_tokens)),
                "sentences": split_sentences(line, src_lang),
                "requests": requests,
                "text": outcome[0].text,
                "notes": list(outcome[0].notes),
            }
        )
    return results


def differences(
    lines: Sequence[str], python: Sequence[Sequence[dict[str, Any]]], page: Sequence[Sequence[dict[str, Any]]]
) -> Iterator[str]:
    """Describe each difference between two results."""
    for of_python, of_page in zip(python, page, strict=True):
        for line, ours, theirs in zip(lines, of_python, of_page, strict=True):
            for key in ours:
                if ours[key] != theirs[key]:
                    yield f"{key} of {line!a}\n  Python: {ours[key]!a}\n  page:   {theirs[key]!a}"


def main() -> None:
    """Compare, and print the differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="a run's folder or a model bundle")
    parser.add_argument("files", type=Path, nargs="*", help="text files with lines to compare, .gz or plain")
    parser.add_argument("-n", type=int, default=5_000, help="lines in all (default: 5000)")
    parser.add_argument("--seed", type=int, default=1, help="of the made-up lines (default: 1)")
    arguments = parser.parse_args()
    bundle = load_bundle(find_model(arguments.model))
    texts = [text for _, text in read_suite()]
    for path in arguments.files:
        texts += islice(read_lines(path), arguments.n // (2 * len(arguments.files)))
    lines = texts[: arguments.n]
    lines += hostile_lines(arguments.n - len(lines), arguments.seed, texts)
    python = in_python(bundle.header, bundle.tokenizer, lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        write_page(path, {"model": (bundle.header, bundle.tokenizer)})
        with opened(path) as page:
            found = list(differences(lines, python, in_page(page, "model", lines)))
    print("\n".join([*found, f"{len(lines)} lines, {len(found)} differences"]))
    sys.exit(bool(found))


if __name__ == "__main__":
    run_program(main)

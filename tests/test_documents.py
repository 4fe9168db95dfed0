"""Documents: which lines are joined, and how translations are laid out."""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from mtformer.support.terminal import text_width, wrap
from mtformer.text.lines import Line
from mtformer.translate.jobs.core import run
from mtformer.translate.jobs.reading import TextInput, paragraphs
from mtformer.translate.jobs.translating import TranslationJob
from mtformer.translate.translation import Translation
from mtformer.translate.translator import Translator

WRAPPED = """\
  Two dogs are running through the snow because a man
is throwing a red ball for them.

Shopping:
- apples and a very long list item that nobody has
- bread

A title

1. Wash the dog. This takes the whole afternoon, and
   a lot of water.
"""


def texts_of(document: str) -> list[str]:
    lines = (Line(number, text) for number, text in enumerate(document.splitlines(), 1))
    return [paragraph.text for paragraph in paragraphs(lines)]


def test_wrapped_lines_are_joined_and_other_lines_are_not() -> None:
    assert texts_of(WRAPPED) == [
        "Two dogs are running through the snow because a man is throwing a red ball for them.",
        "",
        "Shopping:",
        "apples and a very long list item that nobody has",
        "bread",
        "",
        "A title",
        "",
        "Wash the dog. This takes the whole afternoon, and a lot of water.",
    ]


@pytest.mark.parametrize(
    "document",
    [
        "Roses are red,\nViolets are blue,\nSugar is sweet,\nAnd so are you.",  # a verse
        "This line is short.\nThis one is much longer than the one before it, as no program would have wrapped it.",
        f"{'A paragraph on a line of its own. ' * 9}\n{'Another one. ' * 30}",
        "a\n\n\n\nb",
    ],
)
def test_lines_that_were_not_wrapped_stay(document: str) -> None:
    assert texts_of(document) == document.split("\n")


def test_wrapped_chinese_is_joined_without_spaces() -> None:
    lines = ["两只狗在雪地里奔跑,因为一个男人正在为它们扔一个红色", "的球。"]
    assert texts_of("\n".join(lines)) == ["".join(lines)]


class Fake:
    """A translator from English that applies a function."""

    src_lang = "en"
    computation = "a function"

    def __init__(self, function: Callable[[str], str]) -> None:
        self.function = function

    def translate(self, texts: list[str], **_: Any) -> list[list[Translation]]:
        return [[Translation(self.function(text), 0.0, 0.0)] for text in texts]


def translated(document: str, function: Callable[[str], str], folder: Path) -> str:
    """Translate a document with a function."""
    source, output, model = (folder / name for name in ("in", "out", "model"))
    source.write_text(document)
    model.touch()
    job = TranslationJob(source=TextInput(path=source, is_document=True), models=[model], output=output)
    run(job, lambda: cast(Translator, Fake(function)))
    return output.read_text()


def test_a_translated_document_is_laid_out_as_the_source(tmp_path: Path) -> None:
    assert (
        translated(WRAPPED, lambda text: text[::-1], tmp_path)
        == """\
  .meht rof llab der a gniworht si nam a esuaceb wons
eht hguorht gninnur era sgod owT

:gnippohS
- sah ydobon taht meti tsil gnol yrev a dna selppa
- daerb

eltit A

1. .retaw fo tol a dna ,noonretfa elohw eht sekat
   sihT .god eht hsaW
"""
    )


def test_chinese_is_wrapped_by_columns_between_characters(tmp_path: Path) -> None:
    chinese = "两只狗在雪地里奔跑,因为一个男人正在为它们扔一个红色的球,Tom Smith 在一旁看着,大家都说:“这真好。”" * 2
    document = textwrap.fill("Two dogs are running through the snow because a man throws a ball. " * 3, 50) + "\n"
    printed = translated(document, lambda text: chinese, tmp_path)
    lines = printed.splitlines()
    assert len(lines) > 3
    assert "".join(printed.split()) == "".join(chinese.split())
    width = max(map(len, document.splitlines()))
    assert all(width - 6 <= text_width(line) <= width for line in lines[:-1])


def test_lines_do_not_start_with_closing_nor_end_with_opening_punctuation() -> None:
    for width in range(8, 30):
        lines = wrap("他说：“好！”（真的）。她说：《书》、笔，都在3.5米的桌上。", width, keeps_words=True)
        assert not any(line[0] in "：！”）》、，。." for line in lines)
        assert not any(line[-1] in "“（《" for line in lines)
        assert all(text_width(line) <= width for line in lines)


def test_korean_is_wrapped_between_words() -> None:
    assert wrap("개 두 마리가 눈밭을 달린다", 12, "- ", "  ") == ["- 개 두", "  마리가", "  눈밭을", "  달린다"]


QUOTED = """\
Dear all,

On Monday, Anna wrote:
> The two dogs are running through the snow
> because a man is throwing a ball.
>
> - bread
>> Are you sure that they are dogs, and that this
>> is snow?
I am.
"""


def test_quoted_lines_are_joined_and_quoted_again(tmp_path: Path) -> None:
    read: list[str] = []

    def translate(text: str) -> str:
        read.append(text)
        return text.upper()

    assert (
        translated(QUOTED, translate, tmp_path)
        == """\
DEAR ALL,

ON MONDAY, ANNA WROTE:
> THE TWO DOGS ARE RUNNING THROUGH THE SNOW
> BECAUSE A MAN IS THROWING A BALL.
>
> - BREAD
>> ARE YOU SURE THAT THEY ARE DOGS, AND THAT THIS
>> IS SNOW?
I AM.
"""
    )
    assert "The two dogs are running through the snow because a man is throwing a ball." in read
    assert "Are you sure that they are dogs, and that this is snow?" in read

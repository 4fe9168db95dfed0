"""How paragraphs are written in Word, in drawings and slides, and in sheets."""

from dataclasses import dataclass

# A word in the name of a style of code, as in SourceCode, Code_20_Block and HTML Preformatted, but not in Postcode.
CODE_WORD = (
    "(?:(?<![A-Za-z])(?i:code|preformatted|verbatim|listing)(?![A-Za-z])"
    "|(?:Code|Preformatted|Verbatim|Listing)(?![a-z]))"
)


@dataclass(frozen=True)
class Dialect:
    """The elements of a paragraph, by their names.

    Attributes:
        paragraphs: the paragraphs.
        prefix: the prefix of the other names.
        line_break: what breaks a line, with the prefix of a document in its places.
        breaks: the elements that break lines, without the prefix.
        marks_spaces: whether spaces at the ends of a text count only if its element says so.
        containers: the elements around runs, such as links.
        dropped: the elements that a translation does not need, such as marks of misspelled words, without the prefix.
        line_end: a pattern of line breaks in a text.
        code: a pattern of escapes for characters that XML does not allow; empty if there are none.
    """

    paragraphs: frozenset[str]
    prefix: str
    line_break: str
    breaks: frozenset[str] = frozenset(["br"])
    marks_spaces: bool = True
    containers: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    line_end: str = r"\r?\n"
    code: str = ""


WORD = Dialect(
    frozenset(["w:p"]),
    "w:",
    "<{0}r><{0}br/></{0}r>",
    frozenset(["br", "cr"]),
    containers=frozenset("w:hyperlink w:ins w:moveTo w:smartTag w:customXml w:sdt w:fldSimple w:bdo w:dir".split()),
    dropped=frozenset(["proofErr", "lastRenderedPageBreak", "softHyphen"]),
)
DRAWING = Dialect(frozenset(["a:p"]), "a:", "<{0}br/>", marks_spaces=False)
SHEET = Dialect(
    frozenset(["si", "is"]),
    "",
    '<{0}r><{0}t xml:space="preserve">\n</{0}t></{0}r>',
    dropped=frozenset(["rPh", "phoneticPr"]),  # readings count the characters of the source
    line_end=r"(?:_x000[dD]_)?\r?\n",
    code=r"_x[0-9A-Fa-f]{4}_",
)

"""Where the sentences of a text end."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from mtformer.text.languages import base_language, has_full_stops_in_ordinals

_CLOSING, _WIDE_CLOSING = "\"'”’»«“)\\]」』）】", "”’」』）】"
_MARKS, _WIDE_MARKS = ".!?…؟۔।॥", "。！？｡"
_GERMAN = "de"
_OPENING = "(\"'“‘„«["
END = re.compile(  # no sentence starts with the second of two marks, or with what closes after them
    rf"(?<![{_MARKS}])(?P<mark>[{_MARKS}]+)(?![{_MARKS}])[{_CLOSING}]*(?![{_CLOSING}])"
    r"(?:\s»(?!\S)|(?!\s»(?!\S)))\s+(?=\S)"  # a space follows; « Ah ! »
    rf"|(?<![{_WIDE_MARKS}])[{_WIDE_MARKS}]+(?![{_WIDE_MARKS}》〉])[{_WIDE_CLOSING}]*(?![{_WIDE_CLOSING}])"
    r"\s*(?=\S)"  # none is needed
)
INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # the A of "A. Smith", the U.S of "U.S. team"
ORDINAL = re.compile(r"(?:\d{1,2}\.?[-–/])?\d{1,2}")  # the 24.-26 of "24.-26. Dezember"

# Those whose full stops end no sentence, as a name, a number or, in German, a noun follows them. Those that often end
# one, such as "etc.", are left out, and so are those of single letters, as in "z.B.", which need no list.
_ABBREVIATIONS = {
    "cs": "bc csc čl doc dr gen judr kap kpt mgr mjr mudr mvdr nám např obr odst ing phdr plk popř prof resp rndr str "
    "sv tab tel tj tř tzn tzv ul",
    "de": "abb abs allg anm art art.-nr aufl bd bes bio bsp bzgl bzw ca dipl dr ehem evtl exkl fam fr geb gem gest ggf "
    "hbf hl hr hrsg ing inkl insb jh jhd kap lfd lt max min mind mio mrd nr prof sek sog st std stk str tab tel "
    "tel.-nr tsd v.chr n.chr vgl zzgl zzt jan feb apr jun jul aug sep sept okt nov dez",
    "en": "adm al approx bros ca capt cf ch cmdr col cpl dept dr ed eds eq est excl ext fig figs ft gen gov hon "
    "incl lt maj messrs mr mrs ms mt no nos pp pres prof pt pvt rep rev sen sgt st tel viz vol vs jan feb "
    "mar apr jun jul aug sep sept oct nov dec",
    "es": "aprox arq art av avda cap cnel ctra dr dra dña ee ee.uu fig gral ing lic máx mín núm núms p.ej pág págs "
    "prof profa sr sra sras sres srta tel tfno tte ud uds vd vds vol ene feb abr jun jul ago sept oct nov dic",
    "fr": "av bd cf chap dr env fig lt me mgr mlle mlles mm mme mmes no p.ex pp pr prof réf st ste tél vol janv févr "
    "avr juil sept oct nov déc",
    "it": "arch art artt avv ca cap cfr dott dott.ssa es fig geom ing mons nn num on p.es pag pagg prof prof.ssa rag "
    "sig sig.na sig.ra sigg ss tel vol gen feb apr mag giu lug sett ott nov dic",
    "nl": "afb art bijv blz ca dhr dr drs ds excl fig hfst incl ing ir max mevr min mr mw nr nrs prof resp st tel vgl "
    "jan feb mrt apr jun jul aug sep sept okt nov dec",
    "pl": "al art dr dyr gen godz hab im inż kpt ks lek m.in mgr mjr np nr ok os pl płk por prof red rozdz rys str św "
    "tab tel tzn tzw ul ust",
    "pt": "aprox arq art av cap dr dra drs eng ex exma exmo fig máx mín núm p.ex pág págs prof profa sr sra sras srs "
    "srta tel vol jan fev abr jun jul ago out nov dez",
}


def split_sentences(text: str, language: str) -> list[str]:
    """Split a text into its sentences, with the spaces between them left out.

    A sentence ends at a full stop, question or exclamation mark, with the quotes and brackets that close after it,
    before a space and anything but a small letter; in Chinese and Japanese no space is needed. The full stop of an
    abbreviation, of an initial, or of an ordinal number where the language writes it so, ends none, nor does the last
    mark of a title, as in 《加油！》, and nothing ends one between straight quotes.
    """
    starts = [0, *_ends(text, base_language(language)), len(text)]
    return [part for start, end in pairwise(starts) if (part := text[start:end].strip())]


def _ends(text: str, language: str) -> Iterator[int]:
    """Yield where each sentence but the first starts."""
    has_quotes = text.count('"') % 2 == 0 and '"' in text
    n_quotes = counted = 0  # straight quotes in the text up to there
    for match in END.finditer(text):
        n_quotes, counted = n_quotes + text.count('"', counted, match.end()), match.end()
        follows = text[match.end()]
        if follows.islower() or follows in ",;:)" or (has_quotes and n_quotes % 2):
            continue
        if follows == "と" and text[match.end() - 1] in "」』":  # the sentence goes on, as in 「はい。」と言った。
            continue
        if match["mark"] != "." or not _has_own_stop(text, match.start(), follows, language):
            yield match.end()


def _has_own_stop(text: str, end: int, follows: str, language: str) -> bool:
    """Tell whether a full stop belongs to the word before it: an abbreviation, an initial or an ordinal number."""
    word = text[text.rfind(" ", 0, end) + 1 : end].lstrip(_OPENING)
    return (
        word.lower() in abbreviations(language)
        or (INITIALS.fullmatch(word) is not None and word != "I")
        or (has_full_stops_in_ordinals(language) and ORDINAL.fullmatch(word) is not None)
        or (language == _GERMAN and word.lower().endswith("str") and follows.isdecimal())  # Hauptstr. 12
    )


def abbreviations(language: str) -> Sequence[str]:
    """Return the abbreviations of a language in small letters, without their last full stops."""
    return _ABBREVIATIONS.get(base_language(language), "").split()

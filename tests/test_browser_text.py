"""Tokens and texts in a web page, in a headless browser, against those of Python."""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import needs_browser, opened
from browser_tokens import differences, hostile_lines, in_page, in_python, write_page
from conftest import sentence_pairs
from faithful_report import lines as faithful_lines
from nasty_report import read_suite
from playwright.sync_api import Page
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from test_amounts import AMOUNTS, CLOCKS, CODES, DATES, UNITS, UNITS_ELSEWHERE
from test_guard import NUMBERS, OTHER_NUMBERS, SAME_NUMBERS
from test_slots import IN_PLACE, STARTS
from test_stand_ins import DATES as OF_DATES

import mtformer.browser
import mtformer.explain
import mtformer.support
from mtformer.browser.patterns import in_javascript, patterns_script
from mtformer.browser.tokenizer import TEXT_ASSETS, _language, character_rules
from mtformer.bundle.header import Header
from mtformer.bundle.peek import peek
from mtformer.config import TokenizerConfig
from mtformer.text import lost_names
from mtformer.text.lost_numbers import lost_numbers, lost_words, made_up_numbers
from mtformer.text.pairs import SentencePair
from mtformer.text.slots import SLOTS, with_slots
from mtformer.text.tokenizer.adopt import adopt
from mtformer.text.tokenizer.sentencepiece_file import SPECIAL_TOKENS, in_order, read_settings, read_tokens, with_rule
from mtformer.text.tokenizer.tokenizer import CONTEXT, Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.text.tokenizer.vocabulary import RULES, on_one_line
from mtformer.translate import stand_ins
from mtformer.translate.guard import LOST_NUMBERS, Guard
from mtformer.translate.translation import Translation

NASTY = [text for _, text in read_suite()]
PAIRS = [  # short ones: longer ones take seconds to train on; control characters are in no text
    *(SentencePair(*pair) for pair in sentence_pairs(50)),
    *(SentencePair(text, text.swapcase()) for text in map(on_one_line, NASTY[::2]) if 0 < len(text) < 80),
]
KNOWN_WORDS = tuple(sorted({word.lower() for pair in PAIRS for word in re.findall(r"[^\W\d_]+", pair.src)})[::2])
SYMBOLS = ["{x}", "nono", "ab", "bc", "。！", "Haus"]
N_LINES = 60  # of each model, for all its directions together

KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {  # the languages, and settings of the tokenizer
    "unigram, joint": ("en", "de", {"type": "unigram", "vocab_size": 800, "user_symbols": SYMBOLS}),
    "unigram, nfkc": ("zh", "en", {"type": "unigram", "vocab_size": 800, "normalization": "nfkc"}),
    "unigram, identity": ("de", "fr", {"type": "unigram", "vocab_size": 800, "normalization": "identity"}),
    "bpe": ("en", "zh", {"type": "bpe", "vocab_size": 800, "user_symbols": SYMBOLS}),
    "bpe, joint, nfkc": ("de", "en", {"type": "bpe", "vocab_size": 800, "normalization": "nfkc"}),
    "bpe, joint, identity": ("ru", "es", {"type": "bpe", "vocab_size": 800, "normalization": "identity"}),
    "char": ("de", "ja", {"type": "char", "vocab_size": 400, "user_symbols": SYMBOLS}),
    "char, joint, identity": ("en", "en", {"type": "char", "vocab_size": 500, "normalization": "identity"}),
    "byte": ("fr", "de", {"type": "byte", "vocab_size": None}),
    "byte, nfkc": ("ja", "th", {"type": "byte", "vocab_size": None, "normalization": "nfkc"}),
    "byte, identity": ("en", "de", {"type": "byte", "vocab_size": None, "normalization": "identity"}),
}
MAX_LENGTH = 30  # tokens: longer lines are cut
WITH_SLOTS = ["en-de", "de-en", "fr-cs", "cs-zh", "zh-en", "en-zh", "da-ru", "cs-en", "en-pl"]


def header_of(src_lang: str, tgt_lang: str, directions: tuple[str, ...] = ()) -> Header:
    """Return a header with these languages."""
    peeked = peek(Path(__file__).parent / "fixtures/bundle-3.safetensors")
    assert peeked is not None
    architecture = peeked.header.architecture.model_copy(update={"max_length": MAX_LENGTH})
    changes = {"src_lang": src_lang, "tgt_lang": tgt_lang, "directions": directions, "architecture": architecture}
    return peeked.header.model_copy(update=changes)


def trained_elsewhere(**settings: Any) -> bytes:
    """Return a SentencePiece model that maps characters itself (nmt_nfkc)."""
    model = io.BytesIO()
    texts = (text for pair in PAIRS for text in pair)
    defaults = {"vocab_size": 600, "hard_vocab_limit": False, "minloglevel": 2, "num_threads": 2}
    SentencePieceTrainer.train(sentence_iterator=texts, model_writer=model, **defaults | settings)
    return model.getvalue()


def foreign(model: bytes, *others: str) -> bytes:
    """Return a model for a Transformer that lacks some of its tokens, and has others.

    SentencePiece 0.2.2 takes single characters among them for known ones in BPE models, later releases do not.
    """
    texts = [token.text for token in read_tokens(model) if token.text not in SPECIAL_TOKENS]
    vocabulary = [*SPECIAL_TOKENS, ">>de<<", *texts[::-2], "▁Haus", *others]
    return with_rule(in_order(model, vocabulary, {">>de<<"}), RULES["identity"])


@pytest.fixture(scope="module", autouse=True)
def names() -> Iterator[None]:
    """Look for lost names with the small vocabularies here, too; let no numbers stand in, as pages do not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lost_names, "FEWEST_TOKENS", 100)
        patch.setattr(stand_ins, "stand_ins", lambda _: iter(()))
        yield


@pytest.fixture(scope="module")
def slots() -> tuple[Header, Tokenizer]:
    """A model with slots for many directions."""
    config = TokenizerConfig(type="char", vocab_size=500, joint=True, slots=True)
    tags = ["<2de>", "<2en>", "<2cs>", "<2zh>", "<2ru>", "<2pl>"]
    tokenizer = train_tokenizer(PAIRS, config, "en", "de", adjust=True, control_symbols=tags)
    return header_of("mul", "mul", tuple(WITH_SLOTS)).model_copy(update={"known_words": KNOWN_WORDS}), tokenizer


@pytest.fixture(scope="module")
def models(slots: tuple[Header, Tokenizer]) -> dict[str, tuple[Header, Tokenizer]]:
    """Models of all kinds: those that are trained here, for several directions, adopted ones and imported ones."""
    made = {"slots": slots}
    for name, (src_lang, tgt_lang, settings) in KINDS.items():
        config = TokenizerConfig.model_validate({"joint": "joint" in name, **settings})
        tokenizer = train_tokenizer(PAIRS, config, src_lang, tgt_lang, adjust=True)
        made[name] = (header_of(src_lang, tgt_lang), tokenizer)
    config = TokenizerConfig(vocab_size=500, joint=True)
    tags = ["<2de>", "<2en>", CONTEXT]
    tokenizer = train_tokenizer(PAIRS, config, "en", "de", adjust=True, control_symbols=tags)
    header = header_of("mul", "mul", ("en-de", "de-en")).model_copy(update={"known_words": KNOWN_WORDS})
    made["two directions"] = (header, tokenizer)
    unigram, bpe = trained_elsewhere(), trained_elsewhere(model_type="bpe")
    symbols = ["he", "ou", "{x}", "薯片"]  # which hide tokens
    made["adopted unigram"] = (header_of("en", "de"), Tokenizer(adopt(unigram, user_symbols=symbols)))
    made["adopted bpe"] = (header_of("en", "de"), Tokenizer(adopt(bpe, "identity", user_symbols=symbols)))
    made["imported"] = (header_of("en", "de"), Tokenizer(foreign(unigram, "☃", "ﬀ"), foreign(bpe)))
    return made


NAMES = [*KINDS, "two directions", "slots", "adopted unigram", "adopted bpe", "imported"]


@pytest.fixture(scope="module")
def page(models: dict[str, tuple[Header, Tokenizer]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page with all models."""
    path = tmp_path_factory.mktemp("texts") / "page.html"
    write_page(path, models)
    with opened(path) as page:
        yield page


@pytest.fixture(scope="module")
def slots_page(slots: tuple[Header, Tokenizer], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page with the model with slots alone."""
    path = tmp_path_factory.mktemp("slots") / "page.html"
    write_page(path, {"slots": slots})
    with opened(path) as page:
        yield page


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("name", NAMES)
def test_a_page_reads_and_writes_texts_as_python_does(
    models: dict[str, tuple[Header, Tokenizer]], page: Page, name: str
) -> None:
    seed = NAMES.index(name)
    n_lines = N_LINES // len(models[name][0].language_pairs)
    lines = ["", " ", *NASTY[seed :: len(NAMES)], *hostile_lines(n_lines, seed, NASTY)]
    lines += [
        "The dog sleeps. It is tired! 它累了。",
        f"{'dog ' * 60}. It runs.",
        "2千人",
        "1.5 million dogs",
        "Python 3.11-3.13, See Sections 3.2 and 3.4 or USB 2.0; HTTP/1.1 in Berlin 3.5 million",
        "Only 3.5, about 2.5 %, NOK 3.5, pH 7.4 and 第3.2节、图3.1和3.2",
        "5千米，3 Tausend",
        "5千字节，3千字，3 Mill. dogs",
        "The Dog And The Man Of Louis XIV, In The UUID",
        "the DOG and the MAN of pH 7.4, 0.9 % NaCl and LOUIS XIV",
        "Wow!!!! What?!?! 哇！！！ Dogs &amp; cats & cows??",
        "10⁶ or 5×10³ kg, 10⁻³ m, 2³, x², H₂O, ①②③ dogs and ⑩",
        "3. Mai ist ein Tag.\n 1. und 2. Klasse\r\n 1. FC Köln spielt\n1. 5 Hunde\n3. Open the box!\n## 2. Setup",
        "1. Tür auf\n2.\tOpen  it. Close it.\r\n\t– [x] • a) dogs \n\n- \n-3 dogs\n> > dogs\n‣ dog\n▪ dog\n1.dog",
        "**Dog: man**\n- ~~dog~~ \n1. _Dog:_ 3. man\n***Dog***: man\n*Dog* and *man*\n__DOG__\n**- dog**\n__a_b__",
        f"dog {'a1_' * 67} man {'b' * 200} {'!' * 201} {'猫' * 201}",
        "3) Mai\n| dog | 12 |\n|:--|--:|\n | | man |\n| dog",
        "dog 😀 man! 👍🏽👍 It runs❤️.\n☐ dog\n© dog™, what⁉ ✅ - dog\n\x1b[1m- dog\x1b[0m",
    ]
    lines.append("\n".join(lines[:5]) + "\r\nThe last line.")
    lines = [line for line in lines if len(line) < 2_000]
    if name == "slots":
        lines += [
            "OPEN REPORT.PDF AND COVID-19 FOR THE mp3",
            "192.168.100.200, 1.250.000 und 1万2千",
            "3万5，3万50，１万２千3百",
            "a1 b2 c3 d4 e5",
            "I see Gołǰb, 1.5亿 and Ǧołǰb \x1b[31m12",
            "a1 b2 c3 d4 Gołǰb “5”",
            "1.250,50",
            "Visit a-b.co.uk/c_d?e=1. IBAN DE89 3704 0044 0532 0130 00, ISBN 978-3-16-148410-0",
            "-5 °C (−3,7), -1, -€50, -1,5 m, 3-5, A-5, e-5, - 5, –7",
            "They call Gołǰb-Ǧołǰb and Gołǰb-Hotels",
            "COVID-19-Pandemie, H1N1- or CO₂-Überschuss, python3-dev, XÖV-Reform und XÖV-REFORM",
            "x² + v₀ auf 5 m² mit (H₂O), Ca²⁺-Ionen und Wort²",
            "1.250,50 € für 1 kg, $5, EUR 3 oder 20 °C, 1,5 km/h, 3 m/s, 2\u00a0m², 7 Meter, 5 EUR",
            "1,250.50 ★. 3,500",
            "1.5 " * 20,
            "3D" + " 1.5" * 20,
            "2010 l'eau, 2012 m’a, 7 t-shirts, 8 °Celsius, 2010 $5, 2010 EUR 5, 5€50, 8€/kg",
            "9 ${items}, 5 %s, 6 %(n)s, 01-23-45-67-89",
            "10-20 dogs, 3–4 km, $5-$10, 5%-10%, 1-2, 1.500-2.000",
            "From 2 to 4 pm, 9-10 am, 8 until 9 pm or 10 am to 2 pm",
            "2 of 3 million, 2 bis 3 Tausend, 2, 3 million, $4 or $5 million and 4 or 5-6 million",
            "2 million to 3 million",
            "At 10:45 PM, 9 a.m. or 12:05 am, not 8 p.m.",
            "Um 18:30 Uhr, 12 Uhr, 8.05 UHR, von 8 bis 17 Uhr, 7 Uhren, 18-Uhr-Nachrichten",
            "18 Uhr 30, 24 Uhr, à 18h30, 7 h 05, 5 h, 5h 7",
            "1.5 million dogs, $2-3 billion, 1 million, 5 Thousand, 2010 million, 3 millionaires, 1.2345 thousand",
            "1,5 Mio. Hunde, 3 Milliarden €, 2 millions de chiens, 2 millions d'euros, $8-million",
            "3,5 milionů psů, 9 am",
            "It has 2 Mio.",
            '"We close at 10 p.m."',
            "£1,250.50, -$5, $ 5k, €3M, $5-$10, 1.250,5 €, −5€, 3 Mio. €, 5 M€, ￥５０, EUR 5",
            "US$6, 7 US$, C$ 8.50, abc$9, 5 M$",
            "„Es kostet 2 Mrd.“",
            "£1.5m, $2-3bn, EUR 5 M, 1.5 m, 2bn, 5 M€, 3,5 k€, 100k, -5k, £2.5k, 5k-run, 9 am, 2bn$, 5k€",
            "4.5M, $4.5M, 2.5B, 1.5MB, $100K, 2.5K, $1.2T",
            "Eqs. (3.2), (3.3) and (3.4), Rule (2.5 m), Oslo (1.5)",
            "$15M, $5 bn, $1.5m-2m, $2bn-3bn, a $50 B&B, $3 B-movie, $5M&M, £9M.2, $20 M, €3m-deal",
            "10x15 cm, 10 x 15 cm, 1920 × 1080, 2x3x4, 2 x 3 x 4 m, 10.5x15, 0x42, 0x1F",
            "3 1/2 cups on 3 1/20, -5 1/2 kg, 2-2 1/2, $5 1/2, ½ kg",
            "It is 20℃, 5％, ￥50, 5 ￥, 5 t, 3 min, 1 km, EUR 50, 10-20 kg, 20 °C",
            "12345-AB, 12-A7-X, 90-PS-Motor, 5-Star, EXAMPLE.COM, Example.com, HTTP://A.B/C, ½ of 1½",
            "I see Gołǰ O'Gołǰb, O’Gołǰb and McGołǰb, O'clock",
            "O'Gołǰb here",
            "Einundſechzig, zwanzigtauſend, ſechzig, FÜNFUNDDREISSIG, DREIẞIG, halb ſieben und dreissigſte",
            "ſixty, twenty-ſix, FORTY-FIVE, fıfty, fİfty and half paſt ſix",
            "Drei Komma fünf Liter, null Komma acht, two point oh five miles, four point three five million",
            "四点三五亿人，百分之零点五，三十七点五，八点五，十点一刻，两点五公里，一点一滴",
            "In der Hauptstr. 12b, Bahnhofstr. ９. Die Bahnhofstr. Komm!",
            "GOŁ und FBI, das FBI's, QXZ-Qxz, LH 1234, ONLY, ABCDEFG, ÄÖÜ",
            "3-5月, 10～20人, 3-5万, 2万-3万, 3至5亿, 10 - 20, 10–20–30, 10:45-11:15",
            "To GB82 WEST 1234 5698 7654 AND, AB12 WITH FREE GIFT FROM US",
        ]
        lines += [f"{''.join(SLOTS[start:])} and 12" for start in (5, 14)]
    python = in_python(*models[name], lines)
    assert list(differences(lines, python, in_page(page, name, lines))) == []


@needs_browser
@pytest.mark.parametrize("number", range(len(WITH_SLOTS)), ids=WITH_SLOTS)
def test_a_page_reads_values_as_python_does(slots: tuple[Header, Tokenizer], slots_page: Page, number: int) -> None:
    """Those of all lines in the source language, and some of those in others."""
    lines = [(languages[:2], text) for languages, text, _ in DATES + CLOCKS]
    lines += [(languages[:2], f"It has {text}.") for languages, text, _, _ in UNITS]
    lines += [(languages[:2], f"It has {text}.") for languages, text, _ in AMOUNTS]
    lines += [("en", f"Call {code}, please") for code in CODES]
    languages = dict.fromkeys(pair[:2] for pair in WITH_SLOTS[:6])
    suites = ((src_lang, list(faithful_lines(src_lang, seed=1))) for src_lang in languages)
    lines += [(src_lang, line.text) for src_lang, suite in suites for line in suite[number::16]]
    own = WITH_SLOTS[number][:2]
    chosen = [text for place, (src_lang, text) in enumerate(lines) if src_lang == own or place % 4 == number % 4]
    python = in_python(*slots, chosen, [number])
    assert list(differences(chosen, python, in_page(slots_page, "slots", chosen, [number]))) == []


@needs_browser
def test_a_page_takes_the_translations_with_slots_that_python_takes(
    slots: tuple[Header, Tokenizer], slots_page: Page
) -> None:
    cases, expected = [], []
    n_tokens = slots[1].n_src_tokens
    for languages, text, translation, start in [
        *((languages, text, translation, "") for languages, text, translation, _ in IN_PLACE),
        *((languages, text, "", start) for languages, text, start, _ in STARTS),
    ]:
        slotted = with_slots(text, *languages.split("-"), n_tokens=n_tokens)
        assert slotted is not None
        filled = translation.format(*slotted.fillings)
        cases.append([WITH_SLOTS.index(languages), text, filled, start])
        expected.append([slotted.text, slotted.fits(filled), slotted.emptied(start)])
    script = """cases => cases.map(([direction, text, translation, start]) => {
        const planner = new TextPlanner(pageData.slots, pageData.slots.directions[direction]);
        const slotted = planner.slotMaker.make(text);
        return [slotted.text, slotted.fits(translation), slotted.emptied(start)];
    })"""
    assert slots_page.evaluate(script, cases) == expected


@needs_browser
def test_a_page_writes_what_python_writes_and_misses_the_units_that_it_misses(
    slots: tuple[Header, Tokenizer], slots_page: Page
) -> None:
    cases, expected = [], []
    n_tokens = slots[1].n_src_tokens
    of_dates = ((languages, text, "") for languages, text, _ in DATES + CLOCKS if languages in WITH_SLOTS)
    of_units = (*((*case[:2], case[3]) for case in UNITS), *UNITS_ELSEWHERE)
    for languages, text, translation in [*of_units, *of_dates]:
        src, tgt = languages.split("-")
        of_python = [with_slots(text, src, tgt, n_tokens=n_tokens, words=words) for words in (False, True)]
        cases.append([WITH_SLOTS.index(languages), text, translation])
        fillings = [list(found.fillings.values()) if found else [] for found in of_python]
        expected.append([*fillings, bool(lost_words(text, translation, src, tgt))])
    script = """cases => cases.map(([direction, text, translation]) => {
        const { slotMaker } = new TextPlanner(pageData.slots, pageData.slots.directions[direction]);
        const fillings = [false, true].map((units) => Array.from(slotMaker.make(text, units)?.fillings.values() ?? []));
        return [...fillings, slotMaker.losesWords(text, translation)];
    })"""
    assert slots_page.evaluate(script, cases) == expected


@needs_browser
def test_a_page_misses_the_numbers_that_python_misses(slots: tuple[Header, Tokenizer], slots_page: Page) -> None:
    cases, expected = [], []
    units = [(pair.split("-"), text, translation, ()) for pair, text, _, translation in UNITS]
    numbers = [(pair.split("-"), source, translation, ()) for pair, source, translation in SAME_NUMBERS + OTHER_NUMBERS]
    numbers += [(languages[::-1], translation, source, ()) for languages, source, translation, _ in numbers]
    dates = [(pair.split("-"), source, translation, ()) for source, translation, pair, _ in OF_DATES]
    for languages, source, translation, _ in [*NUMBERS, *numbers, *units, *dates]:
        cases.append([source, translation, *map(_language, languages)])
        texts = (source, translation, languages)
        guard, given = Guard(slots[1], *languages), Translation(translation)
        notes = [note for note in guard.checked(source, given, lambda *_: ()).notes if LOST_NUMBERS in note]
        expected.append([lost_numbers(*texts), made_up_numbers(*texts), notes])
    script = """cases => cases.map((texts) => {
        const [source, text, src, tgt] = texts;
        const guard = new Guard({ tgt: { characters: null } }, src, tgt, false);
        const { notes } = guard.checked(source, { text, notes: [] });
        return [lostNumbers(...texts), madeUpNumbers(...texts), notes.filter((note) => note.includes(LOST_NUMBERS))];
    })"""
    assert slots_page.evaluate(script, cases) == expected
    assert all(map(any, zip(*expected, strict=True)))


# What does not need a browser


def test_a_pattern_is_written_for_javascript() -> None:
    assert in_javascript(r"(?P<a>\d[\d.\w]).\.\w(?P=a)[^\W\d_]\Z") == (
        r"(?<a>\p{Nd}[\p{Nd}.${WORD}])[^\n]\.[${WORD}]\k<a>[${LETTER}]$"
    )
    assert in_javascript(r"\[\d[^\s\"\]]\"\s") == r"\[\p{Nd}[^${SPACE}\"\]]\"[${SPACE}]".replace(r"\"", '"')


def test_the_rules_of_a_model_are_those_of_its_normalizer() -> None:
    model = trained_elsewhere()
    rules = character_rules(read_settings(model).character_map)
    normalize = SentencePieceProcessor(model_proto=model).normalize
    some = list(rules.items())[::20]
    assert [normalize(f"0{source}0") for source, _ in some] == [f"▁0{target}0".replace(" ", "▁") for _, target in some]
    assert (len(rules) > 10_000, rules["ﬀ"], rules["ｱ"], rules["\t"], rules["\u200b"]) == (True, "ff", "ア", " ", " ")
    assert character_rules(b"") == {}


@pytest.mark.parametrize(
    "pattern", [r"explain/.*|browser/(?!translator|server_)\w+", r"browser/(?!server_)\w+", r"browser/(?!engine)\w+"]
)
def test_the_scripts_of_a_page_declare_each_name_once(pattern: str) -> None:
    """The scripts of a lesson, of a translator's page with a model, and of that of a server."""
    folders = [Path(str(package.__file__)).parent for package in (mtformer.browser, mtformer.explain, mtformer.support)]
    declared = re.compile(r"^(?:async )?(?:function\*?|const|let|class) (\w+)", re.MULTILINE)
    paths = [path for folder in folders for path in sorted(folder.glob("*.js"))]
    texts = [
        path.read_text(encoding="utf-8")
        for path in paths
        if re.fullmatch(rf"(?:support/dom|{pattern})\.js", path.relative_to(folders[0].parent).as_posix())
    ]
    names = [name for text in (*texts, patterns_script()) for name in declared.findall(text)]
    assert {asset[1] for asset in TEXT_ASSETS if not isinstance(asset, str)} <= {path.name for path in paths}
    assert len(texts) > len(TEXT_ASSETS)
    assert [name for name in sorted(set(names)) if names.count(name) > 1] == []

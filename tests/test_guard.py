"""The guard: which translations it rejects, what it does about them, and what users hear of it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Project
from documents import n_steps
from engines import given, result_of

from mtformer.config import SearchConfig, SearchOptions, TokenizerConfig
from mtformer.text import lost_names
from mtformer.text.glossary import Term
from mtformer.text.lost_numbers import lost_numbers, made_up_numbers
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import PrefixIds, Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.translate.guard import Guard, stricter
from mtformer.translate.jobs.core import Tally
from mtformer.translate.plan import Plan
from mtformer.translate.planner import Planner
from mtformer.translate.translation import Translation
from mtformer.translate.translator import Translator

SOURCE = "Two dogs play in the snow with a small child."


def nothing_missing(terms: Sequence[Term], text: str) -> list[str]:
    return []


class GivenAttempts(Planner):
    """A planner whose searches have the results of ``searches``."""

    searches: Callable[[SearchOptions], list[Translation]]

    def _plan_search(self, text: str, options: SearchOptions) -> Plan[list[Translation]]:
        return given(self.searches(options))


def guarded(
    guard: Guard,
    source: str,
    first: list[Translation],
    options: SearchOptions,
    searches: Callable[[SearchOptions], list[Translation]],
) -> list[Translation]:
    """Return what the guard makes of the first attempt, with the results of more searches."""
    engine: Any = None
    tokenizer: Any = SimpleNamespace(prefixes=PrefixIds())
    planner = GivenAttempts(engine, tokenizer, options, tgt_lang="de", max_length=40)
    vars(planner).update(searches=searches)
    return result_of(planner._plan_guarded(guard, source, first))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A tokenizer of all printable ASCII, some German letters and some Chinese characters."""
    characters = "".join(map(chr, range(33, 127))) + "äöüÄÖÜß你好世界我们狗在雪里玩。，"
    return train_tokenizer(
        [SentencePair(characters, characters)] * 10, TokenizerConfig(vocab_size=400), "en", "de", adjust=True
    )


@pytest.fixture
def german(tokenizer: Tokenizer) -> Guard:
    return Guard(tokenizer, "en", "de")


@pytest.mark.parametrize(
    ("source", "translation", "problem"),
    [
        (SOURCE, "", "empty"),
        (SOURCE, "  ", "empty"),
        (SOURCE, "Zwei Hunde auf der Straße auf der Straße auf der Straße.", "repeats itself"),
        (
            SOURCE,
            "Zwei Hunde und der Hund und die Katze und der Hund und die Katze und der Hund und die Katze.",
            "repeats itself",
        ),
        (SOURCE, "Hunde Hunde Hunde spielen", "repeats itself"),
        (SOURCE, "Zwei Hunde im Zaundigigigigig.", "repeats itself"),
        (SOURCE, "ZWEI GOWWWSSSSSSSSWWWW IM SCHNEE", "repeats itself"),
        ("Number 2021 is here.", "Nummer Nummer 2021 ist hier.", "doubles words"),
        (SOURCE, "Zwei Hunde spielen im Schnee im Schnee.", "doubles words"),
        ("Have you seen it today?", "Haben Sie Sie es gesehen?", "doubles words"),
        ("Fenfenfen Kwabrin", "Wemaammaa-Mo-Mo-Ko.", "doubles words"),
        ("Write if you have a question write if you have a question", "Auf, wo es es sich ist.", "doubles words"),
        ("no no no no!", "nein " * 9, "repeats itself"),
        ("no " * 9, "nein " * 18, "repeats itself more than its source does"),
        ("a " * 300, "ein " * 20, "repeats itself as its source does"),
        ("A dog", "Ein Hund, der mit einem anderen Hund im Schnee spielt", "too long"),
        (SOURCE * 4, "Zwei Hunde.", "too short"),
        (SOURCE, SOURCE, "not translated"),
        ("Bus 48 leaves at 10:45.", "Bus 84 fährt um 10:45.", "numbers lost: 48"),
        ("It is 007.", "Es ist 7.", "numbers lost: 007"),
        ("It costs $1,500.", "Es kostet 500 $.", "numbers lost: 1,500"),
        ("It is 3.5 km.", "Es sind 35 km.", "numbers lost: 3.5"),
        ("There are 1,234,567 dogs.", "Es gibt 234 567 Hunde.", "numbers lost: 1,234,567"),
        ("10:30:15 A dog runs", "Eine 30 Jahre mit der 15 läuft.", "numbers lost: 10:30:15"),
        ("At 9:05 a dog runs", "Um 9 Uhr läuft ein Hund.", "numbers lost: 9:05"),
        ("It costs 11.", "Es kostet 2,30.", "numbers lost: 11"),
        ("It costs 2.30.", "Es kostet 11.", "numbers lost: 2.30"),
        ("11 dogs bark at night.", "Hunde bellen in der Nacht.", "numbers lost: 11"),
        ("8 dogs bark at night.", "Hunde bellen in der Nacht.", "numbers lost: 8"),
        ("The lake is 312.25 km wide.", "Der See ist 312 durch die 25.", "numbers lost: 312.25"),
        ("In 1980 a dog ran.", "Ein Hund rannte 80 Meter.", "numbers lost: 1980"),
        ("At 2.30 pm a dog runs.", "Um 14.45 Uhr läuft ein Hund.", "numbers lost: 2.30"),
        ("The train leaves at 10:45.", "Der Zug fährt um 10:15 Uhr ab.", "numbers lost: 10:45"),
        ("In the 1850s dogs ran.", "In den 1950er Jahren liefen Hunde.", "numbers lost: 1850"),
        ("There are 1,900 dogs.", "Es gibt neun Hunde.", "numbers lost: 1,900"),
        (f"No. {'7' * 5_000}", "Nr. 7", f"numbers lost: {'7' * 5_000}"),
        (SOURCE, "Zwei Hunde spielen im Schneё", "stray characters: ё"),
        (SOURCE, "Zwei Hunde \ufffd spielen im Schnee", "stray characters: \ufffd"),
        (SOURCE, "我们狗在雪里玩。", "another script"),
    ],
)
def test_problems_are_found(german: Guard, source: str, translation: str, problem: str) -> None:
    assert problem in german.problems(source, translation)


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        (SOURCE, "Zwei Hunde spielen im Schnee mit einem kleinen Kind."),
        ("", ""),
        ("dog", "Hund"),
        ("no no no no!", "nein nein nein nein!"),
        ("Wait ............ what?", "Warte ............ was?"),
        ("Very, very big", "Sehr, sehr groß"),
        ("The film is very very good.", "Der Film ist sehr sehr gut."),
        ("The woman who sees the dogs.", "Die Frau, die die Hunde sieht."),
        ("I am on Bora Bora.", "Ich bin auf Bora Bora."),
        ("Two of 12 dogs, 3 cats", "Zwei von zwölf Hunden, drei Katzen"),
        ("On 2026-11-22 about 1,000 people came at 10:45.", "Am 22.11.2026 kamen um 10.45 Uhr etwa 1.000 Leute."),
        ("1,234,567 dogs on 2026-11-22", "1 234 567 Hunde am 22. November 2026"),
        ("1 234 567 dogs, 17 100", "1.234.567 Hunde, 100, 17"),
        ("It takes 1,234.56 m and 1,000 men 3.5 h.", "1000 Männer brauchen 3,5 h für 1.234,56 m."),
        ("١٩٨٧ dogs", "1987 Hunde"),
        ("2 of 11 dogs", "Beide von elf Hunden"),
        ("The dog eats at 12 o'clock.", "Der Hund frisst um zwölf Uhr."),
        ("The dog eats at 11 pm and 8:30 a.m.", "Der Hund frisst um 23 Uhr und 08.30 Uhr."),
        ("It is 2.30 pm.", "Es ist 14.30 Uhr."),
        ("It is 2.30 pm.", "Es ist halb drei."),
        ("It is 2:30.", "Es ist zwei Uhr dreißig."),
        ("It is 8:00, 2:45 or 9:50.", "Es ist acht Uhr, Viertel vor drei oder zehn vor zehn."),
        ("In the 1980s dogs ran 30 minutes.", "In den 80er Jahren liefen Hunde eine halbe Stunde."),
        ("In the 1990s and in 1960", "In den Neunzigern und neunzehnhundertsechzig"),
        (
            "It costs 2.00 or 21,325 euros on August 25.",
            "Es kostet 2 oder einundzwanzigtausenddreihundertfünfundzwanzig Euro am 25.8. abends.",
        ),
        ("On 3.12.2024, I saw an mp3 24 times.", "Am 3. Dezember 2024 sah ich vierundzwanzigmal ein MP."),
        ("FC Bayern Munich Real Madrid", "FC Bayern Munich Real Madrid"),
        ("100%", "100 %"),
        ("She says привет to 你好.", "Sie sagt привет zu 你好."),
        ("5 < 6", "5 < 6"),
        ("A man\u00a0runs.", "Ein Mann\u00a0rennt."),
    ],
)
def test_good_translations_have_no_problems(german: Guard, source: str, translation: str) -> None:
    assert german.problems(source, translation) == ()


@pytest.mark.parametrize(
    ("text", "translation"), [("1 000, ", "1 000, "), ("1 000, ", "y 99 "), ("3-4-5 ", "y 99 "), ("x-5 ", "y 99 ")]
)
def test_many_numbers_are_compared_in_linear_time(text: str, translation: str) -> None:
    """Else a request could hold a server for minutes."""

    def n_steps_for(size: int) -> int:
        return n_steps(lambda: lost_numbers(text * size, translation * size, ("en", "de")))

    n_steps_for(1)  # compiles patterns
    assert n_steps_for(1_000) < 2.5 * n_steps_for(500)


def test_problems_of_texts_without_spaces(tokenizer: Tokenizer) -> None:
    chinese, english = Guard(tokenizer, "en", "zh"), Guard(tokenizer, "zh", "en")
    assert chinese.problems(SOURCE, "我们狗在雪里玩。") == ()
    assert chinese.problems("Two dogs play.", "狗在雪里玩雪里玩雪里玩") == ("repeats itself",)
    assert chinese.problems("Two dogs play.", "狗在雪里雪里玩") == ("doubles words",)
    assert chinese.problems("\ue000 dogs play.", "我们\ue000狗在狗在。") == ("doubles words",)  # after a slot
    assert chinese.problems("Two dogs play.", "我们玩玩，你好你好，狗在雪里玩") == ()  # as people say
    assert english.problems("狗玩玩雪", "The dogs play play.") == ()
    assert english.problems("我们狗在雪里玩。", "Our dogs play in the snow snow.") == ("doubles words",)
    assert chinese.problems("Two dogs play.", "Three big cats") == ("another script",)
    assert chinese.problems("Two dogs play.", "我们狗在雪里玩。" * 2 + "你好世界，" * 2) == ("too long",)
    assert english.problems("我们狗在雪里玩。", "Our dogs play in the snow together.") == ()
    assert english.problems("我们狗在雪里玩。", "我们狗在雪里玩。") == ("not translated",)
    assert english.problems("我们狗在雪里玩。" * 8, "Dogs.") == ("too short",)


NUMBERS = [
    (("zh", "en"), "3万5狗", "35,000 dogs", ()),
    (("de", "en"), "Er ist einundzwanzig.", "He is thirty.", ("numbers lost: einundzwanzig",)),
    (("de", "en"), "Er ist einundzwanzig.", "He is a twenty-one-year-old.", ()),
    (("de", "en"), "Am einundzwanzigsten Mai.", "On May 21st.", ()),
    (("de", "en"), "Am einundzwanzigsten Mai.", "On Maybe.", ("numbers lost: einundzwanzig",)),
    (("de", "en"), "Er ist achtunddreißig.", "He is eight-thirty.", ("numbers lost: achtunddreißig",)),
    (("de", "en"), "Dreiundfünfzig dogs", "thirty-five dogs", ("numbers lost: Dreiundfünfzig",)),
    (("de", "en"), "Neunzehnhundertvierundachtzig, zwei", "In nineteen eighty-four, two", ()),
    (("de", "en"), "Hundert dogs, tausend cats", "Many dogs, lots of cats", ()),
    (("de", "en"), "Dreißig Minuten, der dreißigste Mai", "Half an hour, May 30", ()),
    (("de", "en"), "siebenundzwanzig Millionen", "27 million", ()),
    (("de", "en"), "Zwei Millionen dreihunderttausend, eine Million Dollar", "Two million three hundred thousand", ()),
    (("de", "en"), "Von einer Million Dollar, eine Million", "A million dollars, a million", ()),
    (("en", "de"), "Half a million dogs, a million dollars", "Eine halbe Million Hunde, eine Million Dollar", ()),
    (("zh", "en"), "五十万狗", "Half a million dogs", ()),
    (("de", "en"), "Acht Milliarden Dogs", "Billion dogs", ("numbers lost: Acht Milliarden",)),
    (("de", "en"), "Vierzehn Milliarden Jahre", "Thirty billion years", ("numbers lost: Vierzehn Milliarden",)),
    (("en", "de"), "One and a half million dogs", "1,5 Millionen Hunde", ()),
    (("en", "de"), "Two million three hundred thousand dogs", "2.300.000 Hunde", ()),
    (("en", "zh"), "Thirty-five million dogs", "3500万狗", ()),
    (("en", "zh"), "One point three million dogs", "130万狗", ()),
    (("en", "de"), "One point five dogs, two point oh five", "Anderthalb Hunde, 2,05", ()),
    (("de", "en"), "Null Komma acht, drei Komma eins vier", "0.8, three point one four", ()),
    (("zh", "en"), "百分之三点五的狗，三十七点五", "3.5% of the dogs, 37.5", ()),
    (("zh", "en"), "百分之三点五的狗", "Three percent of the dogs", ("numbers lost: 百分之三点五",)),
    (("de", "en"), "Es wog drei Komma fünf.", "It weighed three.", ("numbers lost: drei Komma fünf",)),
    (("en", "zh"), "Thirty-five million dogs", "三千五百万狗", ()),
    (("en", "zh"), "Thirty-five million dogs", "3500狗", ("numbers lost: Thirty-five million",)),
    (("de", "en"), "Nach anderthalb Stunden", "An hour and a half later", ()),
    (("de", "en"), "Nach anderthalb Stunden", "After a half hours", ("numbers lost: anderthalb",)),
    (("de", "en"), "Fünfeinhalb Jahre.", "Five and thirty years.", ("numbers lost: Fünfeinhalb",)),
    (("de", "en"), "Es wog zweieinhalb.", "It had five and two.", ("numbers lost: zweieinhalb",)),
    (("en", "de"), "One and a half, two and a half dogs", "Eineinhalb, 2½ Hunde", ()),
    (("en", "de"), "Two and a half dogs", "Zwei Hunde", ("numbers lost: Two and a half",)),
    (("en", "zh"), "two and a half years", "两年半", ()),
    (("de", "fr"), "Er ist einundzwanzig.", "Il a vingt et un ans.", ()),  # whose words are not known
    (("en", "de"), "21 dogs", "Einundzwanzig Hunde", ()),
    (("en", "de"), "21 dogs", "Zwölf Hunde", ("numbers lost: 21",)),
    (("en", "de"), "Seventy thousand dogs", "70.000 Hunde", ()),
    (("en", "de"), "Dogs", "Einundzwanzig Hunde", ("numbers made up: Einundzwanzig",)),
    (("en", "zh"), "twenty-five dogs, two hundred and five", "二十五狗, 二百零五", ()),
    (("zh", "en"), "二十五狗，几十，二十几", "Fifty-two dogs", ("numbers lost: 二十五",)),
    (("de", "en"), "Um halb neun, Viertel nach 10.", "At 8:30 and a quarter past ten.", ()),
    (("de", "en"), "Es ist halb neun.", "It is 20:30, half past eight or half eight.", ()),
    (("de", "en"), "Es ist halb neun.", "It is half past nine.", ("numbers lost: halb neun",)),
    (("de", "en"), "Es ist halb neun.", "It is 2:30.", ("numbers lost: halb neun",)),
    (("de", "en"), "Es ist zehn vor drei.", "It is ten minutes ago.", ("numbers lost: zehn vor drei",)),
    (("de", "en"), "Es ist fünf nach halb 9.", "It is eight thirty-five.", ()),
    (("de", "en"), "Drei Viertel der dogs, halb so viele.", "Three quarters of the dogs, half as many.", ()),
    (("de", "fr"), "Es ist halb neun.", "Il est neuf heures.", ()),  # whose words are not known
    (("en", "de"), "It is ten past 9, or quarter to ten.", "Es ist 9 Uhr 10, oder drei viertel zehn.", ()),
    (("en", "de"), "It is 8:50.", "Es ist zehn vor neun.", ()),
    (("en", "de"), "It is 8:30.", "Es ist halb acht.", ("numbers lost: 8:30",)),
    (("en", "de"), "It is nine.", "Es ist halb neun.", ("numbers made up: halb neun",)),
    (("en", "zh"), "It is eight.", "八點半, 差一刻九点", ("numbers made up: 八點半",)),
    (("en", "zh"), "Half past two.", "2点30分", ()),
    (("en", "zh"), "Half past two.", "十四点半", ()),
    (("en", "zh"), "Half past two.", "14時30分", ()),
    (("en", "zh"), "Half past two.", "3点30分", ("numbers lost: Half past two",)),
    (("en", "de"), "Half past one, a quarter to two", "Ein Uhr dreißig, dreizehn Uhr fünfundvierzig", ()),
    (("de", "en"), "Halb eins, Viertel vor zwölf", "Half past midnight, a quarter to noon", ()),
    (("zh", "en"), "下午3点半我们玩。", "We play at 3:30 pm.", ()),
    (("zh", "en"), "我们三点半玩。", "We play at three.", ("numbers lost: 三点半",)),
    (("zh", "en"), "一千二百万狗", "12 million dogs", ()),
    (("zh", "en"), "一千二百万狗", "Twelve million dogs", ()),
    (("zh", "en"), "三千五百万狗", "35,000 dogs", ("numbers lost: 三千五百万",)),
    (("zh", "en"), "二零二三年", "In 2023", ()),
    (("zh", "en"), "二零二三年", "In 2013", ("numbers lost: 二零二三",)),
    (("zh", "en"), "百分之五狗，百分之百", "Five percent of dogs", ()),
    (("zh", "en"), "四个半世界, 一万块, 两万块", "A four-and-a-half world, ten grand, 20 grand", ()),
    (("en", "de"), "20 grandchildren, 30 grand pianos", "20 Hunde, 30 Hunde", ()),
    (("en", "de"), "20 thousand dogs", "20 grandsons", ("numbers lost: 20 thousand",)),
    (("zh", "en"), "两个半小时", "Two weeks", ("numbers lost: 两个半",)),
    (("zh", "en"), "2.5万亿狗", "2.5 trillion dogs", ()),
    (("zh", "de"), "2万亿狗", "2 Billionen Hunde", ()),
    (("zh", "en"), "2万亿狗", "2 billion dogs", ("numbers lost: 2万亿",)),
    (("en", "zh"), "80% and 40% of the dogs", "八成和四成狗", ()),
    (("en", "zh"), "80% of the dogs", "七成狗", ("numbers lost: 80",)),
    (("en", "de"), "We play in 2 weeks.", "Wir spielen in vierzehn Tagen.", ()),
    (("de", "en"), "3 Hunde und 1 Katze", "3 dogs and six cat", ("numbers lost: 1",)),
    (("de", "en"), "Zwei Hunde und 1 Katze", "Two dogs and cats", ()),
    (("en", "de"), "1 cat", "Katzen", ()),
    (("en", "zh"), "1 billion cats", "十亿猫", ()),
    (("en", "fr"), "1 cat", "deux chats", ()),
    (("de", "en"), "Wir spielen in 14 Tagen.", "We play in two weeks.", ()),
    (("en", "fr"), "50% of the dogs", "la moitié des dogs", ()),
    (("en", "cs"), "50% of the dogs", "polovina dogs", ()),
    (("zh", "en"), "6200万狗", "62 million dogs", ()),
    (("zh", "en"), "3月10日我们玩2次。", "We play twice on March 10.", ()),
    (("zh", "en"), "3万5狗玩。", "53,000 dogs play.", ("numbers lost: 3万5",)),
    (("zh", "en"), "我们玩2次。", "We play.", ("numbers lost: 2",)),
    (("en", "zh"), "25 dogs, 2 worlds", "二十五狗, 两世界", ()),
    (("en", "zh"), "12 dogs play.", "狗玩。", ("numbers lost: 12",)),
    (("en", "zh"), "2,000 dogs, 300 worlds", "2千狗, 3百世界", ()),
    (("zh", "en"), "2千狗", "2,000 dogs", ()),
    (("zh", "en"), "2千狗", "2.", ("numbers lost: 2千",)),
    (("zh", "en"), "我们有5百狗", "We 5.", ("numbers lost: 5百",)),
    (("zh", "en"), "5千米", "5 kilometers", ()),
    (("zh", "en"), "5千字节", "5 KB", ()),
    (("de", "en"), "3 Mill. Hunde", "3 million dogs", ()),
    (("en", "zh"), "1.5 million dogs", "1.5个狗", ("numbers lost: 1.5 million",)),
    (("en", "zh"), "1.5 million dogs", "150万狗", ()),
    (("en", "de"), "10⁶ dogs", "10 Hunde", ("numbers lost: 10⁶",)),
    (("en", "de"), "10⁶ dogs", "10⁶ Hunde", ()),
    (("en", "de"), "\ue000 or \ue001 million dogs", "\ue000 oder \ue001 Hunde", ("numbers lost: million",)),
    (("en", "de"), "\ue000 or \ue001 million dogs", "\ue000 oder \ue001 Mio. Hunde", ()),
    (("fr", "en"), "\ue000 ou \ue001 milliards", "\ue000 or \ue001", ("numbers lost: milliards",)),
    (("en", "zh"), "\ue000 millionaires", "\ue000位富翁", ()),
    (("zh", "en"), "\ue000百货公司", "\ue000 department stores", ()),
    (("it", "en"), "Nel \ue000 mio padre", "In \ue000 my father", ()),
    (("de", "en"), "\ue000 Tausendfüßler", "\ue000 centipedes", ()),
    (("de", "en"), "\ue000 TEUR", "\ue000 thousand euros", ()),
    (("en", "de"), "\ue000 or \ue001 tn", "\ue000 oder \ue001 Billionen", ()),
    (("en", "de"), "2.5 billion dogs", "2,5 Billionen Hunde", ("numbers lost: 2.5 billion",)),
    (("de", "en"), "$3 Mrd., 2 Billionen Hunde", "$3 bn, 2 trillion dogs", ()),
    (
        ("en", "fr"),
        "3 billion dogs, 3 million cats",
        "3 milliards de dogs, 3 billions de cats",
        ("numbers lost: 3 million",),
    ),
    (("en", "fr"), "2 trillion dogs, 3 thousand cats", "2 mille milliards de dogs, 3 mille cats", ()),
    (("en", "fr"), "$3bn", "3 millions de dollars", ("numbers lost: 3bn",)),
    (("en", "de"), "1 million dogs", "1 Hund", ("numbers lost: 1 million",)),
    (("en", "de"), "5 thousand and 2 million dogs", "5 Tsd. und 2.000.000 Hunde", ()),
    (("en", "de"), "0.5 million dogs, $3 million", "500.000 Hunde, 3.000.000,00 $", ()),
    (("en", "fr"), "5 million dogs", "5 millions de dogs", ()),
    (("en", "fr"), "2.5 million dogs", "2\u202f500\u202f000 dogs", ()),
    (("fr", "en"), "2 500 000 dogs", "2.5 million dogs", ()),
    (("fr", "en"), "2 500 000 dogs", "2.6 million dogs", ("numbers lost: 2 500 000",)),
    (("en", "zh"), "$1.5m, £3bn and 20k dogs", "150万美元，30亿英镑，2万只狗", ()),
    (("zh", "en"), "150万美元，30亿英镑，2万只狗", "$1.5m, £3bn and 20k dogs", ()),
    (("en", "zh"), "$1.5m for dogs", "15万美元买狗", ("numbers lost: 1.5",)),
    (("en", "zh"), "$1.5m for dogs", "1.5美元买狗", ("numbers lost: 1.5m",)),
    (("fr", "zh"), "3 milliards de chiens, 2 M€", "30亿狗, 200万欧元", ()),
    (("en", "es"), "5 million dogs", "5 millones de dogs", ()),  # whose words are not known here
    (("en", "zh"), "20% off, 15% off", "8折, 8.5折", ()),
    (("zh", "en"), "打8折", "20% off", ()),
    (("en", "zh"), "20% off", "7折", ("numbers lost: 20",)),
    (("en", "sv"), "in the 19th century", "på 1800-talet", ()),
    (("de", "en"), "Im 18. Jahrhundert", "In the 1700s", ()),
    (("de", "en"), "Im 18. Jahrhundert", "In the 1600s", ("numbers lost: 18",)),
    (("fi", "en"), "1800-luvulla", "in the nineteenth century", ()),
    (("en", "sv"), "in the 18th century", "på 1800-talet", ("numbers lost: 18",)),
    (("en", "zh"), "In 1998 and 2005, dogs play.", "一九九八年和二〇〇五年狗玩。", ()),
    (("en", "zh"), "In 1998, dogs play.", "一九八九年狗玩。", ("numbers lost: 1998",)),
    (("de", "en"), "Um 14.30 Uhr, am 25.8. abends", "At half past two, on August 25th", ()),
    (("en", "ru"), "2 dogs and 3 cats", "две dogs и 3 cats", ()),  # whose words are not known here
    (("en", "ru"), "2 dogs and 3 cats", "4 dogs и 3 cats", ("numbers lost: 2",)),
    (("und", "und"), "2 dogs", "11 dogs", ("numbers lost: 2",)),
    (("en", "de"), "The dogs play.", "35 Hunde spielen.", ("numbers made up: 35",)),
    (("en", "de"), "Twenty-five dogs play.", "25 Hunde spielen.", ()),
    (("cs", "de"), "Dvacet pět psů", "25 Hunde", ()),  # whose words are not known here
    (("en", "de"), "50% of the dogs play.", "Die Hälfte der Hunde spielt.", ()),
    (("en", "de"), "50 dogs play.", "Die Hälfte der Hunde spielt.", ("numbers lost: 50",)),
    (("en", "fr"), "a dog for 1,250.50 €", "un dog 1 250,50 €", ()),
    (("fr", "en"), "un dog 1 250,50 €", "a dog for 1,250.05 €", ("numbers lost: 250,50",)),
]


SAME_NUMBERS = [
    ("de-en", "06.05.1984", "May 6, 1984"),
    ("fr-en", "06/05/1984", "May 6, 1984"),
    ("en-zh", "2024-05-06", "2024年5月6日"),
    ("cs-en", "Narodil se 5. 6. 1990.", "He was born on June 5, 1990."),
    ("en-fr", "In the 1990s", "Dans les années 90"),
    ("en-it", "In the 1990s", "Negli anni '90"),
    ("en-cs", "In the 1990s", "V 90. letech"),
    ("ru-sv", "90-е годы", "90-talet"),
    ("zh-en", "20世纪90年代", "The 1990s"),
    ("en-fr", "In the 19th century", "Au XIXe siècle"),
    ("de-en", "Der 2. Weltkrieg", "World War II"),
    ("cs-en", "5 tisíc, 6 tis. a 2,5 milionu", "5,000, 6,000 and 2,500,000"),
    ("pl-en", "20 tys. osób, 3 mln złotych", "20,000 people, 3 million zlotys"),
    ("es-en", "2.000 millones de euros", "€2 billion"),
    ("it-en", "5mila cani", "5,000 dogs"),
    ("en-de", "The Lakers won 112-108 and 98-79.", "Die Lakers gewannen 112:108 und 98:79."),
    ("zh-en", "20多万人, 100余亿", "More than 200,000 people, more than 10 billion"),
    ("zh-en", "12.35亿美元", "$1.235 billion"),
    ("de-en", "1,375 Mio., 2.375 Mio.", "1,375,000, 2,375 million"),
    ("en-de", "$1,375 million", "1,375 Mrd. Dollar"),
    ("en-zh", "2-3 tablets, ages 5-12", "2至3片, 5岁至12岁"),
    ("en-de", "2-3 tablets, a 2-1 win", "Zwei bis drei Tabletten, ein 2:1-Sieg"),
    ("en-de", "The 9-11 attacks, a 7-11 store", "Die Anschläge vom 11. September, ein Seven-Eleven"),
    ("zh-en", "2,000多万元, 1.5多亿", "More than 20 million yuan, more than 150 million"),
    ("de-en", "Stand: 03.2024¹", "As of 03.2024¹"),
]
OTHER_NUMBERS = [
    ("en-de", "Take 2-3 tablets.", "Nehmen Sie 5-6 Tabletten."),
    ("fr-en", "Ils ont gagné 3-2.", "They won 3-5."),
    ("cs-en", "Vlak jede v 8:10.", "The train leaves at 8:50."),
    ("cs-en", "Teplota stoupla na 5,7.", "The temperature rose to 5."),
    ("de-en", "Bayern gewann 3:2.", "Bayern won 3-5."),
    ("en-de", "They won 112-108.", "Sie gewannen 112:109."),
    ("zh-en", "20多万人", "More than 300,000 people"),
    ("en-de", "$1.235 billion", "1,236 Mrd. Dollar"),
    ("en-de", "Give 4 mg IV.", "Geben Sie IV."),
    ("en-de", "Charles XII had 12 sons.", "Karl XII. hatte Söhne."),
    ("en-es", "Go to room 5.", "Ve a la habitación 7."),
    ("en-de", "We need 5. 1000 more are coming.", "Wir brauchen sie. 1000 mehr kommen."),
    ("zh-en", "1,200多万人", "More than 13 million people"),
    ("cs-en", "12. letadlo přistálo", "The 1912 aircraft landed"),
    ("en-de", "At 7:30, 125 people came.", "Um 7.30 Uhr kamen Leute mit 125,30 Euro."),
]


@pytest.mark.parametrize(("languages", "source", "translation"), SAME_NUMBERS)
def test_a_number_may_be_written_otherwise(languages: str, source: str, translation: str) -> None:
    pair = languages.split("-")
    assert lost_numbers(source, translation, pair) == made_up_numbers(source, translation, pair) == []
    assert lost_numbers(translation, source, pair[::-1]) == []


@pytest.mark.parametrize(("languages", "source", "translation"), OTHER_NUMBERS)
def test_another_number_is_noticed(languages: str, source: str, translation: str) -> None:
    assert lost_numbers(source, translation, languages.split("-"))


@pytest.mark.parametrize(("languages", "source", "translation", "problems"), NUMBERS)
def test_numbers_of_other_languages(
    tokenizer: Tokenizer, languages: tuple[str, str], source: str, translation: str, problems: tuple[str, ...]
) -> None:
    found = Guard(tokenizer, *languages).problems(source, translation)
    assert tuple(problem for problem in found if problem.startswith("numbers")) == problems


@pytest.mark.parametrize(
    ("source", "translation", "notes"),
    [
        ("My friend Kowalczyk lives here.", "Mein Freund lebt hier.", ("check: names lost: Kowalczyk",)),
        ("Anna Kowalczyk, Lech Zorti and Zorti", "Anna", ("check: names lost: Kowalczyk Lech Zorti",)),
        ("My friend Kowalczyk lives here.", "Mein Freund Kowalski lebt hier.", ()),
        ("I met Šū there.", "Ich traf Šū dort.", ()),
        ("Kowalczyk lives here.", "Er lebt hier.", ()),  # as any word at the start of a sentence
        ('He asks: "Where is it?"', "Er fragt: „Wo ist es?“", ()),
        ("I met KOWALCZYK at the Court.", "Ich traf ihn vor Gericht.", ()),
        ("Here is Kowalczyk 17.", "Hier ist 71.", ("check: numbers lost: 17", "check: names lost: Kowalczyk")),
    ],
)
def test_lost_names_are_noted_and_change_nothing(
    monkeypatch: pytest.MonkeyPatch, source: str, translation: str, notes: tuple[str, ...]
) -> None:
    characters = "".join(map(chr, range(33, 127))) + "äöüÄÖÜß„“"
    config = TokenizerConfig(vocab_size=400, joint=True, user_symbols=["court"])
    tokenizer = train_tokenizer([SentencePair(characters, "x")] * 10, config, "en", "de", adjust=True)
    assert Guard(tokenizer, "en", "de").lost_names(source, translation) == []  # the vocabulary is too small
    monkeypatch.setattr(lost_names, "FEWEST_TOKENS", 100)
    guard = Guard(tokenizer, "en", "de")
    checked = guard.checked(source, Translation(translation, 0.0, 0.0), nothing_missing)
    assert checked.notes == notes
    assert checked.text == translation
    term = Translation(translation, 0.0, 0.0, terms=(Term("Kowalczyk", "Mein Freund"),))
    assert not any("Kowalczyk" in note for note in guard.checked("friend Kowalczyk", term, nothing_missing).notes)


@pytest.mark.parametrize(("src_lang", "tgt_lang"), [("de", "en"), ("en", "zh"), ("en", "lv"), ("en", "und")])
def test_names_are_not_looked_for_where_others_have_capitals_or_names_change(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, src_lang: str, tgt_lang: str
) -> None:
    monkeypatch.setattr(lost_names, "FEWEST_TOKENS", 100)
    assert Guard(tokenizer, src_lang, tgt_lang).lost_names("My friend Kowalczyk", "x") == []


def test_a_model_with_slots_keeps_names_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_names, "FEWEST_TOKENS", 100)
    pairs = [SentencePair("".join(map(chr, range(33, 127))), "x")] * 10
    config = TokenizerConfig(vocab_size=400, joint=True, slots=True)
    guard = Guard(train_tokenizer(pairs, config, "en", "de", adjust=True), "en", "de")
    assert guard.lost_names("My friend Kowalczyk", "x") == []


def attempt(second: str, first: str = "", source: str = SOURCE) -> tuple[list[Translation], list[SearchOptions]]:
    """Guard a text whose two attempts are given, and one that is right; return its translations and the options."""
    pairs = [SentencePair(SOURCE, "Zwei Hunde 12 34.")] * 10
    guard = Guard(train_tokenizer(pairs, TokenizerConfig(vocab_size=300), "en", "de", adjust=True), "en", "de")
    used: list[SearchOptions] = []

    def search(options: SearchOptions) -> list[Translation]:
        used.append(options)
        return [Translation(second, -2.0, -2.0)]

    right = [Translation("Zwei Hunde", -1.0, -1.0)]
    options = SearchConfig().updated(n_best=2)
    assert guarded(guard, "Two dogs", right, options, search) == right
    assert not used
    doubtful = [Translation(first, -1.0, -1.0), Translation("Zwei", -1.5, -1.5)]
    return guarded(guard, source, doubtful, options, search), used


def test_a_second_attempt_replaces_a_rejected_translation() -> None:
    found, [options] = attempt("Zwei Hunde 12", first="Hunde Hunde Hunde", source="Two dogs 12")
    assert found == [Translation("Zwei Hunde 12", -2.0, -2.0)]
    assert (options.beam_size, options.no_repeat_ngram_size, options.max_length_factor) == (8, 2, 1.5)


def test_a_second_attempt_takes_what_has_the_fewest_problems(german: Guard) -> None:
    def search(options: SearchOptions) -> list[Translation]:
        assert options.n_best == options.beam_size
        return [Translation(text, -2.0, -2.0) for text in ("Hunde Hunde Hunde", "Hunde 12", "Zwei 12")]

    first = [Translation("Hunde Hunde", -1.0, -1.0)]
    found = guarded(german, "Two dogs 12", first, SearchConfig().updated(n_best=2), search)
    assert [each.text for each in found] == ["Hunde 12", "Zwei 12"]


def test_what_repeats_itself_as_its_source_does_is_noted_and_not_translated_again() -> None:
    found, options = attempt("", first="Hunde " * 11, source="dogs " * 10)
    assert not options
    assert (found[0].text, found[0].notes) == ("Hunde " * 11, ("check: repeats itself as its source does",))


def test_the_first_attempt_stays_with_notes_if_the_second_is_no_better() -> None:
    found, _ = attempt("Zwei 12", first="Hunde 12", source="Two dogs 12 56")
    assert [translation.text for translation in found] == ["Hunde 12", "Zwei"]
    assert [translation.notes for translation in found] == [
        ("check: numbers lost: 56",),
        ("check: numbers lost: 12 56",),
    ]


@pytest.mark.parametrize(
    ("source", "translation", "lost"),
    [
        ("Two dogs 12 413 4", "Hunde 12 341 4", "413"),
        ("It is 100 miles to Berlin.", "Es sind 160 Kilometer nach Berlin.", "100"),
        ("It was 90 degrees.", "Es waren 32 Grad Celsius.", "90"),
        ("He weighs 150 pounds.", "Er wiegt 68 Kilo.", "150"),
        ("It is 50 miles to Berlin.", "Es sind 50 Kilometer nach Berlin.", "50 miles"),
        ("Five miles, ten kilometers.", "Fünf Kilometer, zehn Meilen.", "Five miles, ten kilometers"),
    ],
)
def test_a_wrong_number_is_noted_and_stays(german: Guard, source: str, translation: str, lost: str) -> None:
    checked = german.checked(source, Translation(translation, 0.0, 0.0), nothing_missing)
    assert (checked.text, checked.notes) == (translation, (f"check: numbers lost: {lost}",))


@pytest.mark.parametrize(
    ("tgt_lang", "translation"),
    [
        ("de", "Es gibt 1.000.000.000 Hunde."),
        ("de", "Es gibt 10000000 Hunde."),
        ("de", "Ruf 5 5 5 1 an."),
        ("de", "Es gibt 1.000.000.000.000.000 Hunde."),
        ("zh", "1000000世界"),
    ],
)
def test_digits_of_a_number_are_no_loop(tokenizer: Tokenizer, tgt_lang: str, translation: str) -> None:
    checked = Guard(tokenizer, "da", tgt_lang).checked(
        "En million Hunde", Translation(translation, 0, 0), nothing_missing
    )
    assert (checked.text, checked.notes) == (translation, ())


@pytest.mark.parametrize(
    ("tgt_lang", "loop", "expected"),
    [
        ("de", "Zwei Hunde, Hunde Hunde spielen", "Zwei Hunde spielen"),
        ("de", "auf der Bank auf der Bank auf der Bank.", "auf der Bank."),
        ("de", "ein GOWWWWWWWW", "ein GOW"),
        ("pl", "0 0 0 0 0 0 0 0 0", "0"),
        ("pl", "12, 12, 12, 12, 12, 12", "12"),
        ("zh", "你好世界 世界世界。", "你好世界。"),
        ("zh", "在雪里玩，在雪里玩，在雪里玩，", "在雪里玩，"),
    ],
)
def test_a_loop_that_a_second_attempt_cannot_avoid_is_cut(
    tokenizer: Tokenizer, tgt_lang: str, loop: str, expected: str
) -> None:
    guard = Guard(tokenizer, "en", tgt_lang)
    assert "repeats itself" in guard.problems(SOURCE, loop)
    checked = guard.checked(SOURCE, Translation(loop, 0.0, 0.0), nothing_missing)
    assert (checked.text, checked.notes[0]) == (expected, "check: repetition removed")
    assert "repeats itself" not in guard.problems(SOURCE, expected)


def test_a_loop_with_a_slot_in_it_stays(german: Guard) -> None:
    text = "Er \ue000 sich in in \ue001 in."
    assert "repeats itself" in german.problems(SOURCE, text)
    checked = german.checked(SOURCE, Translation(text, 0.0, 0.0), nothing_missing)
    assert (checked.text, checked.notes[0]) == (text, "check: repeats itself")


@pytest.mark.parametrize(
    ("source", "terms", "translation", "expected", "notes"),
    [
        ("A man on route 66.", ["route 66|Straße 67"], "Ein Mann auf Straße 67.", None, ()),
        ("snow and men", ["snow|Schnee Schnee Schnee"], "Schnee Schnee Schnee und Männer", None, ()),
        ("route 66 and 77", ["route 66|Straße 67"], "Straße 67 und 78", None, ("numbers lost: 77",)),
        ("dog", ["dog|ein Hund mit einem sehr langen Namen"], "ein Hund mit einem sehr langen Namen", None, ()),
        ("snow", ["snow|Schnee"], "Schnee Schnee Schnee Schnee", "Schnee Schnee", ("repetition removed",)),
        ("dog", ["dog|Пёсик Барбос"], "Пёсик Барбос im Schnee", None, ()),
        ("dog", ["dog|Пёс"], "Пёс im Schneё", None, ("stray characters: ё",)),
        ("Snow in snow", ["snow|der Schnee", "snow|der Schnee"], "Der Schnee im der Schnee der Schnee", None, ()),
    ],
)
def test_terms_of_a_glossary_are_neither_problems_nor_repaired(
    german: Guard, source: str, terms: list[str], translation: str, expected: str | None, notes: tuple[str, ...]
) -> None:
    given = Translation(translation, 0.0, 0.0, terms=tuple(Term(*term.split("|")) for term in terms))
    checked = german.checked(source, given, nothing_missing)
    assert checked.text == (expected or translation)
    assert checked.notes == tuple(f"check: {note}" for note in notes)


def test_terms_that_a_repair_removes_are_noted(german: Guard) -> None:
    given = Translation("im im im Hund", 0.0, 0.0, terms=(Term("dog", "Hund"),))

    def missing(terms: Sequence[Term], text: str) -> list[str]:
        return [f"{term.tgt} not in {text}" for term in terms]

    assert german.checked(SOURCE, given, missing).notes == ("check: repetition removed", "Hund not in im Hund")
    assert german.checked(SOURCE, replace(given, text="Zwei Hunde im Schnee"), missing).notes == ()


def test_a_text_whose_translation_stays_empty_is_copied_with_a_note() -> None:
    found, [options] = attempt("", first=" ")
    assert [translation.text for translation in found] == [SOURCE, "Zwei"]
    assert found[0].notes == ("check: not translated",)
    assert options.min_length == 5


def test_a_second_attempt_keeps_a_minimum_length() -> None:
    options = SearchConfig().updated(min_length=30)
    again = stricter(options, "a b", ("too long",))
    assert (again.min_length, again.max_length_factor) == (30, options.max_length_factor)
    assert again.max_length_offset == options.max_length_offset


def test_a_second_attempt_keeps_the_options_of_samples_and_wide_beams() -> None:
    sampled = stricter(SearchConfig().updated(sample=True, n_best=3), "a b", ("repeats itself",))
    assert (sampled.beam_size, sampled.n_best, sampled.no_repeat_ngram_size) == (1, 3, 2)
    assert stricter(SearchConfig().updated(beam_size=12), "a b", ("too long",)).beam_size == 12
    assert stricter(SearchConfig().updated(no_repeat_ngram_size=1), "a", ("empty",)).no_repeat_ngram_size == 1


def test_the_summary_counts_lines_and_problems() -> None:
    tally = Tally()
    tally.add(1, Translation("", 0, 0, notes=("translated in 2 parts",)).flags)
    assert (tally.n_lines, tally.lines, str(tally)) == (0, "", "")
    tally.add(7, Translation("", 0, 0, notes=("check: numbers lost: 5", "check: too long")).flags)
    assert (tally.n_lines, tally.lines, str(tally)) == (1, "7", "numbers lost (1), too long (1)")
    for line in range(8, 1_008):
        tally.add(line, ["too long"])
    assert (tally.n_lines, tally.lines) == (1_001, "7, 8, 9, 10, 11, …")
    assert str(tally) == "too long (1,001), numbers lost (1)"


def test_commands_flag_lines_unless_told_not_to(trained: Project) -> None:
    model = trained.folder / "runs/config/model.safetensors"
    text = "the red house sees a small dog.\nthe 5678 house sees a small dog."
    command = ("translate", "--model", model, "--format", "json")
    result = trained.mtformer(*command, stdin=text)
    notes = [json.loads(line)["translations"][0]["notes"] for line in result.stdout.splitlines()]
    assert notes[0] == []
    assert "check: numbers lost: 5678" in notes[1]
    assert "check the translation of line 2: numbers lost: 5678" in result.stderr
    raw = trained.mtformer(*command, "--raw", stdin=text)
    assert [json.loads(line)["translations"][0]["notes"] for line in raw.stdout.splitlines()] == [[], []]
    assert "check" not in raw.stderr
    [[right], [wrong]] = Translator.load(model, "cpu").translate(text.split("\n"))
    assert (list(right.notes), list(wrong.notes)) == (notes[0], notes[1])
    assert Translator.load(model, "cpu", raw=True).translate(["the 5678 house"])[0][0].notes == ()

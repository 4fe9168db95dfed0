"""Numbers, amounts, dates and codes in texts: what gets one slot, and how another language writes it."""

import pytest

from mtformer.text import entities
from mtformer.text.lost_numbers import lost_numbers, lost_words
from mtformer.text.notation import written_for
from mtformer.text.slots import (
    SLOTS,
    Slotted,
    with_slots,
)


@pytest.mark.parametrize(
    ("number", "src_lang", "tgt_lang", "written"),
    [
        ("1,250.5", "en", "de", "1.250,5"),
        ("1.250,5", "de", "en", "1,250.5"),
        ("1,250,000", "en", "fr", "1\u202f250\u202f000"),
        ("12 500", "fr", "en", "12,500"),
        ("12\u00a0500,5", "cs", "de", "12.500,5"),
        ("3.5", "en", "cs", "3,5"),
        ("1,250.5", "en", "zh", "1,250.5"),
        ("3.5万", "zh", "en", "35,000"),
        ("2亿", "zh", "de", "200 Millionen"),
        ("2亿", "zh", "ja", "2亿"),
        ("3亿5000万", "zh", "en", "350 million"),
        ("1万2000", "zh", "en", "12,000"),
        ("5百万", "zh", "de", "5 Millionen"),
        ("1,250万", "zh", "en", "12.5 million"),
        ("１，２５０．５", "zh", "de", "1.250,5"),
        ("３５０", "zh", "en", "350"),
        ("1.5 million", "en", "de", "1,5 Millionen"),
        ("1.5m", "en", "de", "1,5 Millionen"),
        ("1.235 billion", "en", "de", "1,235 Milliarden"),
        ("1,375 Mrd.", "de", "zh", "1,375,000,000"),
        ("1,375 million", "en", "de", "1.375 Millionen"),
        ("20 tys.", "pl", "en", "20,000"),
        ("2 bn", "en", "de", "2 Milliarden"),
        ("2.5bn", "en", "ru", "2\u202f500\u202f000\u202f000"),
        ("10.5x15", "en", "de", "10,5x15"),
        ("2-3 Milliarden", "de", "en", "2-3 billion"),
        ("1 million", "en", "de", "1.000.000"),
        ("5 thousand", "en", "de", "5.000"),
        ("0.25 Billion", "en", "cs", "250\u202f000\u202f000"),
        ("2 milliards d’", "fr", "de", "2 Milliarden"),
        ("8-million", "en", "de", "8 Millionen"),
        ("2-3 millions", "fr", "zh", "200万-300万"),
        ("1.25 billion", "en", "zh", "12.5亿"),
        ("1 trillion", "en", "zh", "1万亿"),
        ("0.35 trillion", "en", "zh-TW", "3500億"),
        ("35 thousand", "en", "ja", "3.5万"),
        ("9 thousand", "en", "ja", "9,000"),
        ("1.2345 million", "en", "zh", "1,234,500"),
        ("1,000-2,000.5", "en", "de", "1.000-2.000,5"),
        ("１２：３０", "zh", "en", "12:30"),
        ("３５０", "zh", "ja", "３５０"),
        ("2021", "en", "de", "2021"),
        ("10:45", "en", "de", "10:45"),
        ("3/14", "en", "de", "3/14"),
        ("1.2.3", "en", "de", "1.2.3"),
        ("192.168.100.200", "de", "en", "192.168.100.200"),  # an address
        ("192.168.100", "de", "en", "192,168,100"),
        ("1.250", "und", "en", "1.250"),
        ("1万2千", "zh", "en", "12,000"),
        ("14.03.2021", "de", "en", "14.03.2021"),
        ("1,25", "en", "de", "1,25"),  # no number of English
    ],
)
def test_numbers_are_written_as_in_the_target_language(number: str, src_lang: str, tgt_lang: str, written: str) -> None:
    assert written_for(number, src_lang, tgt_lang) == written


DATES = [  # languages, a text, and what its slots stand for in the translation
    (
        "de-en",
        "Am 24. Dezember 2025 um 18:30, am 3. Mai und 1. MÄRZ.",
        ["24 December 2025", "18:30", "3 May", "1 March"],
    ),
    (
        "en-de",
        "On May 24, 2025, the 4th of July, 24 Dec. 2025 and until May 5",
        ["24. Mai 2025", "4. Juli", "24. Dezember 2025", "5. Mai"],
    ),
    ("en-de", "In May 5 people, on March 3.5 or 32 May, May 10:45", ["5", "3.5", "32", "10:45"]),
    ("en-de", "on december 24, 5 march and 5 july 2020", ["24. Dezember", "5", "5. Juli 2020"]),
    ("en-de", "iPhone 15 May Cost More, MODEL 10 MAY EXPLODE, on 5 May", ["15", "10", "5. Mai"]),
    ("en-fr", "1 May 2020, May 31st, Sept. 2, 2020", ["1er mai 2020", "31 mai", "2 septembre 2020"]),
    ("fr-en", "Le 1er mai 2020 et le 14 juillet.", ["1 May 2020", "14 July"]),
    ("zh-en", "我们2025年12月24日见，5月3号也行，12月见。", ["24 December 2025", "3 May"]),
    ("zh-en", "今年5月3号线开通，12月10号楼建成。", ["3", "10"]),  # line 3, building 10
    ("en-zh", "See you on 24 December 2025 or 5 May.", ["2025年12月24日", "5月5日"]),
    ("cs-es", "Přijdu 24. prosince 2025 v 18:00.", ["24 de diciembre de 2025", "18:00"]),
    ("es-cs", "El 3 de mayo de 2020.", ["3. května 2020"]),
    ("ru-de", "Он родился 5 мая 1980 года.", ["5. Mai 1980"]),
    (
        "de-en",
        "Version 1.24. Mai, 12-24. Mai, 30 Maikäfer und 2. Dez. 2020",
        ["1.24", "12–24 May", "30", "2 December 2020"],
    ),
    (
        "en-de",
        "On 5 May I paid, until 12 March John, by may 3; on 5 may may help, by 10 may be late, to march 5.",
        ["5. Mai", "12. März", "3. Mai", "5. Mai", "10", "5"],
    ),
    (
        "en-de",
        "Sale until 5 may, 6 march 2025, may 31st or march 2, 2020.",
        ["5. Mai", "6. März 2025", "31. Mai", "2. März 2020"],
    ),
    ("en-de", "On 5 Dec. we, by Oct 4 they and on 3 Sept.", ["5. Dezember", "4. Oktober", "3. September"]),
    ("de-en", "Am 5. Dez. und 3. Okt., der 3. Jan und am 7. Okt.", ["5 December", "3 October", "3rd", "7 October"]),
    ("en-de", "May 31, June 1 and July 2; in May 5, 6 or 7", ["31. Mai", "1. Juni", "2. Juli", "5", "6", "7"]),
    ("en-de", "until may 31ST, on June 1, July 2 or May 5 I ran", ["31. Mai", "1. Juni", "2. Juli", "5. Mai"]),
    (
        "en-de",
        "24-26 December 2024, 5 to 6 May, from 1st to 3rd May I; December 24 – 26, May 4–6, 2025, on May 5-7",
        ["24.–26. Dezember 2024", "5.–6. Mai", "1.–3. Mai", "24.–26. Dezember", "4.–6. Mai 2025", "5.–7. Mai"],
    ),
    (
        "de-en",
        "Vom 24. bis 26. Dezember, am 1./2. Mai, 24.-26. Dez. 2020 und 3. – 5. Juni",
        ["24–26 December", "1–2 May", "24–26 December 2020", "3–5 June"],
    ),
    ("zh-en", "12月24日至26日，2025年5月1-3日，5月1日到3号", ["24–26 December", "1–3 May 2025", "1–3 May"]),
    ("fr-cs", "Du 1er au 3 mai 2020, les 24-26 juillet", ["1.–3. května 2020", "24.–26. července"]),
    ("en-zh", "From 24 to 26 December 2020", ["2020年12月24–26日"]),
    (
        "en-de",
        "In May 2024, in may 2023, until Dec 2020, you may 2000 and mid-May 2020",
        ["Mai 2024", "Mai 2023", "Dezember 2020", "2000", "2020"],
    ),
    ("de-en", "Im Mai 2024 und Dezember 2020, Mai 20.", ["May 2024", "December 2020", "20"]),
    ("fr-cs", "En mai 2024", ["2024"]),  # which would have to decline
    ("cs-zh", "V květnu 2024, 5. května 2024", ["2024", "2024年5月5日"]),
    ("zh-en", "2024年5月和2024年5月8日，2024年5月份", ["May 2024", "8 May 2024", "May 2024"]),
    ("en-zh", "May 2023–June 2024, 24/7 May", ["2023年5月", "2024年6月", "24/7"]),
    ("en-tr", "On 3 May 2020", ["3", "2020"]),  # whose months are not known here
]


ORDINALS = [  # languages, a text, and what its slots stand for in the translation
    ("en-de", "The 1st man, the 22nd and the 103rd.", ["1.", "22.", "103."]),
    ("de-en", "Der 1. Mann und die 2. Frau, der 3. und 10. Mai", ["1st", "2nd", "3rd", "10 May"]),
    ("de-en", "Am 3. Er kam. Es waren 12. Dann ging er. Im 11. Stock, 19. Jahrhundert", ["3", "12", "11th", "19th"]),
    ("fr-en", "la 1re fois, le 2e jour, la 23ème, 5 er", ["1st", "2nd", "23rd", "5"]),
    ("en-fr", "the 1st and the 21st", ["21e"]),
    ("cs-de", "v 2. patře", ["2."]),
    ("es-en", "Hace 30º en el 4.º piso", ["30", "4"]),
    ("de-en", "Wir sehen uns am 5. Bitte komm. Ich war im 2. Weltkrieg", ["5", "2nd"]),
    ("en-zh", "the 2nd", ["2"]),
    ("en-de", "In the 1980s and the '90s, her 20s, for 30s.", ["1980er", "90er", "20er", "30"]),
    ("de-en", "die 80er, in den 1990ern, 60er-Jahre, 50er Packung", ["80s", "1990s", "60s", "50"]),
    ("en-fr", "the 1980s", ["1980"]),
]
SIGNS = [
    ("en-de", "(5), [3] and ($1.50), f(5), a[3] (see 5)", ["(5)", "[3]", "(1,50\N{NO-BREAK SPACE}$)", "5", "3", "5"]),
    ("en-de", "1 in 10,000, 1 of 2, a 1 man", ["1", "10.000", "1", "2"]),
    ("en-de", "A man pays $-12.50 or €-3.", ["-12,50\N{NO-BREAK SPACE}$", "-3\N{NO-BREAK SPACE}€"]),
    ("de-en", "Er zahlt €-3 und -€3.", ["€-3", "-€3"]),
    ("en-de", "It is ≈ 2.5 and ≠ 3, >= 5 and < 1,000 m, x = 5", ["≈ 2,5", "≠ 3", ">= 5", "< 1.000 m", "= 5"]),
    ("en-de", "> 5 m, 3 ± 0.5 kg", ["5 m", "3", "± 0,5 kg"]),
    ("zh-en", "最高-3.5°C，3月-5月", ["-3.5°C"]),
    ("en-de", "1:50,000 and 10,000:1", ["1:50.000", "10.000:1"]),
    ("de-en", "Die Runde war 1:43.210 Minuten lang.", ["1:43.210"]),
    ("fr-en", "8h et 0,5 h", ["8", "0.5 h"]),
    ("zh-en", "3元素和100元件", ["3", "100"]),
    ("en-de", "SEK 1 500 and 50%% of 2,000 kcal, 99¢, 5h", ["SEK 1.500", "50%%", "2.000 kcal", "99¢", "5h"]),
    ("de-en", "Am 3. 5. 2025", ["3. 5. 2025"]),
    ("en-de", "At 5 o'clock 2 dozen eggs, 5 feet 11 inches", ["5 Uhr", "2 Dutzend", "5", "11 Zoll"]),
    ("de-en", "Um 8 Uhr, 17 Uhr, 2 Zoll, 50 Cent, 3 Pfund", ["8 o'clock", "17:00", "2 inches", "50 cents", "3 pounds"]),
    ("en-de", "a dozen eggs on four feet at five o'clock for 1 pound", ["1 Pfund"]),
]
AMOUNTS = [  # languages, a text, and what its slots stand for in the translation
    ("en-de", "He has .5 kg, .75 or -.5, and not 3.5...5.", ["0,5 kg", "0,75", "-0,5", "3,5", "5"]),
    ("de-en", "25,50 und -,99 €, ab 9,-€, 3.500,- Euro, 25,– €", ["25.50", "€0.99", "€9", "3,500 euros", "€25"]),
    ("de-en", "12 500 €, 1 000 Hunde, 86 400 Sekunden", ["€12,500", "1,000", "86,400 seconds"]),
    ("en-de", "12 500 dogs, 12\u00a0500 dogs", ["12", "500", "12.500"]),
    ("en-de", "1.3bn phones, €5/kg, 5 mg/kg, 20 kPa", ["1,3 Milliarden", "5\u00a0€", "5 mg/kg", "20 kPa"]),
    ("de-en", "minus 20 Grad, minus 5,5 °C, 30 minus 20 ist 10", ["-20", "-5.5 °C", "30", "20", "10"]),
    ("zh-en", "零下20度，零下5℃", ["-20", "-5°C"]),
    ("de-en", "4,7 % von 12%, um 5\u00a0%", ["4.7%", "12%", "5%"]),
    ("en-fr", "4.7% and 12 %, ₩50,000", ["4,7\u00a0%", "12\u00a0%", "50\u202f000\u00a0₩"]),
    ("zh-en", "20多万人, 30万人", ["300,000"]),
    ("en-de", "1:43.21 and 1:03:30.5 at 9:30, John 3:16,17", ["1:43,21", "1:03:30,5", "9:30", "3:16"]),
    ("en-zh", "Minus 20 degrees Celsius, minus 5 °", ["-20摄氏度", "-5 °"]),
    ("en-de", "1.5m people, 20m users, a 1.5m wall", ["1,5 Millionen", "20 Millionen", "1,5m"]),
    ("de-en", "1.200 x 600 x 18 mm, 3 Tsd. Euro", ["1,200 x 600 x 18 mm", "3,000 euros"]),
    ("en-de", "+45 °C, ±2, ~500, <18 and 100+ men, 5 + 3", ["+45 °C", "±2", "~500", "<18", "100+", "5", "3"]),
    ("de-en", "Ruf 0171 1111.5 an", ["0171", "1111.5"]),
    ("en-de", "Rule 1: no. Gate 1, page 1 of 10, 1 dog and 1.", ["1", "1", "1", "10", "1"]),
    ("en-de", "The scores are 11, 12, 13.5, 14 and 20.", ["11, 12, 13,5, 14", "20"]),
    ("de-en", "3 × 4,99 €, 2 x 5 EUR, 3 × 4 m, 2x 30 $", ["3 ×", "€4.99", "2 x", "5 EUR", "3 × 4 m", "2x", "$30"]),
    ("de-en", "1½ Mio. Hunde, ½ Mrd. €, 2¾ Millionen, ⅓ Mio.", ["1½ million", "€½ billion", "2¾ million", "⅓"]),
    ("en-zh", "1½ million dogs, ½ billion, ⅓ million, 1 1/2 million", ["150万", "5亿", "⅓", "1 1/2"]),
    (
        "en-de",
        "He ran 100 m in 9.58s, 9.58 s or 0.5 h, not in the 1990s.",
        ["100 m", "9,58s", "9,58 s", "0,5 h", "1990er"],
    ),
    ("en-de", "EUR1,234.50, GBP1.5bn, SEK1,000 and _1,250.5", ["EUR1.234,50", "GBP1,5 Milliarden", "SEK1.000"]),
    ("zh-de", "2.5万亿美元，3萬億", ["2,5 Billionen Dollar", "3 Billionen"]),
    ("de-en", "2/1.234,5, x0,5 €", ["2", "1,234.5", "x0"]),
    ("fr-en", "500–1 000,50 €, p.1 234,5 €, 2 x 1 500 mm", ["500", "€1,000.50", "€1,234.5", "2 x", "1,500 mm"]),
    (
        "cs-en",
        "2 mld. eur, 2,5 mil. korun, 5 mil za hodinu, 5 mil.",
        ["2 billion euros", "2.5 million", "5 miles per hour", "5"],
    ),
]
CODES = (  # one slot each
    "(030) 123-4567|(030) 12345-0|030 12345-0|0171 1234567|0171/123 45 67|+49 (0)30 1234-5678|2.10.3-beta.1|10^6|1e-5|"
    "0x1F|3f2a9c1|foo_bar|VIII|2024-05-06T07:08:09Z|AA:BB:CC:11:22:33|550e8400-e29b-41d4-a716-446655440000|localhost:3000|"
    "06 12 34 56 78|+33 6 12 34 56 78|%1$s|221b|12a|48°51′30″ N|2° 17.5' W|#2025Goals|@anna|§ 8|§§ 8a|§ 8(2)(b)|"
    "Xy7$kL9!pQ|a=1&b=2|r4t!m#8_q|abc-DEF_123|My_Var2|user_2_Name|config.yaml|v2.3.1-beta|example.com:8080/a?b=1|"
    "example.org/a_(b)|https://example.org/a_(b).c|{price:.2f} €|{price} $|%d%%|%APPDATA%|__name__|./build/*.o|"
    "~/.bashrc|/usr/local/bin|src/main.rs|Ctrl+Alt+Del|Strg+C|--max-size=4|10.1000/182|arXiv:1706.03762v2|B-MW 1234|"
    "UTC+2|04-Jul-2025|+49 30 123456-0|A-12/b|Q3/2025|16GB/s|00:00:01,000|00:00:01.000"
).split("|")


CLOCKS = [  # languages, a text, and what its slots stand for in the translation
    ("en-zh", "At 10:45 pm, 12:05 A.M., 12 pm or 9PM", ["22:45", "0:05", "12:00", "21:00"]),
    ("en-en", "At 9 am", ["9 am"]),
    (
        "de-en",
        "Um halb neun, Viertel nach 10, fünf vor halb eins Uhr, drei viertel acht",
        ["8:30", "10:15", "12:25", "7:45"],
    ),
    ("de-de", "Um halb neun", ["halb neun"]),
    ("de-en", "Drei Viertel der Leute, halb so alt, halb 9,5, zehn vor allem, halb drei-jährig", ["9.5"]),
    ("en-de", "At half past 9:00, a quarter to ten or five minutes to one, not half ten", ["9:30", "9:45", "12:55"]),
    ("en-de", "From ten to nine, a quarter of nine, seven thirty, 12", ["12"]),
    ("zh-en", "下午3点半、十二點一刻、两点三十分、二点半", ["3:30", "12:15", "2:30", "2:30"]),
    ("en-de", "Ten minutes to one hour, a quarter to two of us, half past two years, half past one", ["1:30"]),
    ("de-en", "Zehn nach acht Stunden, fünf vor zwei Jahren, zehn vor drei viertel vier, halb acht", ["3:45", "7:30"]),
    ("zh-en", "一点半点，三点十五分之一，三点半之前", ["3:30"]),
    ("de-en", "Um halb ſieben, halb sıeben, HALB SİEBEN, Viertel nach 24, Viertel vor 1, 9", ["0:15", "12:45", "9"]),
    (
        "en-de",
        "From 7 to 9 pm, 7 or 8 pm, 5-6pm, 7:00–9:00 p.m.",
        "19:00 21:00 19:00 20:00 17:00–18:00 19:00–21:00".split(),
    ),
    (
        "en-zh",
        "10 am to 2 pm, 9-12 pm, 11 to 1 pm, 10AM - 2PM",
        "10:00 14:00 9:00–12:00 11:00 13:00 10:00–14:00".split(),
    ),
    (
        "en-de",
        "7, 8, and 9 pm, 11:30 to 1 am, 12 or 1 pm; 7–7 am",
        "19:00 20:00 21:00 23:30 1:00 12:00 13:00 19:00–7:00".split(),
    ),
    (
        "en-de",
        "Room 20 to 9 pm, 1.5 to 8 am, in 2024, 6 pm, Bus 7, 5 am",
        "20 21:00 1,5 8:00 2024 18:00 7 5:00".split(),
    ),
    (
        "de-en",
        "Um 17 Uhr, 8 Uhr 30, 8.05 UHR, 20.15h, 7.30–9.15 Uhr, 9–17 Uhr",
        "17:00 8:30 8:05 20:15 7:30–9:15 9:00–17:00".split(),
    ),
    ("de-en", "Von 9 bis 17 Uhr, 8 Uhr und 18 Uhr 15, 0 Uhr, 12:15 Uhr", "9:00 17:00 8:00 18:15 0:00 12:15".split()),
    ("de-en", "8-10 Uhr, um 8 Uhr 30 Leute, 9 Uhr 20 km, 5:15 h", ["8-10", "8", "30", "9", "20 km", "5:15"]),
    ("fr-cs", "À 18 h 30, de 18h30 à 20h15 ou 9h05-9h30", "18:30 18:30 20:15 9:05–9:30".split()),
]


UNITS = [  # languages, a text, what its slots stand for in the translation with units that are words, and one without
    ("en-de", "1,250.50 euros for 480 kilometers", ["1.250,50 Euro", "480 Kilometer"], "1.250,50 € für 480 Meilen"),
    (
        "en-de",
        "5 million dollars, -12 degrees Celsius",
        ["5 Millionen Dollar", "-12 Grad Celsius"],
        "5 Mio. Dollar, -12",
    ),
    ("en-de", "1 mile, 21 miles, 21 mile", ["1 Meile", "21 Meilen", "21"], "1 Meile, 21 Meile"),
    ("en-de", "5-10 meters, 5 meter-long", ["5-10 Meter", "5"], "5 Meter, 5"),
    ("de-en", "30 euro, 120 Stundenkilometern", ["30 euros", "120 kilometers per hour"], "30 euros, 120 kilometers"),
    ("de-en", "$5 Dollar, 5 Meter-Turm, 5 Kilometern", ["$5", "5", "5 kilometers"], "5 dollars, 5, 5 m"),
    ("de-en", "45 Min. backen, 2 Std., 30 Sek.", ["45 minutes", "2 hours", "30 seconds"], "45 billions, 2, 30"),
    ("en-de", "45 mins, 2 hrs", ["45 Minuten", "2 Stunden"], "45, 2"),
    ("fr-cs", "1,5 kilomètre, 20 pour cent, 8 heures", ["1,5", "20 %", "8"], "20"),
    ("en-zh", "3.5 million dollars, 1 meter, 20 percent", ["350万美元", "1米", "20%"], "350万美元, 1米, 20"),
    (
        "zh-en",
        "5公里，1米8，3万美元，20米饭，500克朗，25摄氏度",
        ["5 kilometers", "8", "30,000 dollars", "20", "500", "25 degrees Celsius"],
        "",
    ),
    ("cs-zh", "5 km, 5 kilometrů, 10 minut", ["5 km", "5公里", "10分钟"], "5公里, 10"),
    ("cs-en", "v 8 hodin, v roce 2010 jen 5 jenů, 1 jen", ["8", "2010", "5 yen", "1 yen"], "8, 2010, 5, 1 yen"),
    ("en-pl", "1 yen, 5 yen", ["1 jen", "5 jenów"], "5 jenów"),
    ("en-de", "at 1800 hours, 0730 hours, for 12 hours", ["1800", "0730", "12 Stunden"], "18:00, 7:30, 12"),
    ("da-ru", "5 kilometer", ["5"], "5"),
    ("de-en", "einundzwanzig Hunde, zwölf, hundert, Zweitausenddreihundert", ["21", "2300"], "twenty-one, 2,200"),
    (
        *("de-en", "fünf Kilometer, ein Liter, zehn Minuten, anderthalb Meter, eine Million Dollar, neun Prozent"),
        *(["5 kilometers", "1 liter", "10 minutes", "1.5 meters", "1,000,000 dollars", "9 percent"], "five miles, 9%"),
    ),
    (
        "de-en",
        "sechzig Meilen in der Stunde, zwei Kilo",
        ["60 miles per hour", "2 kilograms"],
        "60 kilometers, 2 kilos",
    ),
    (
        *("de-en", "eine Million zweihunderttausend Euro, eine halbe Million, ein paar hundert Euro, eine Million"),
        *(["1.2 million euros", "500,000"], "1 million euros, half a million"),
    ),
    ("en-de", "a few hundred euros, several thousand miles, 5 miles an hour", ["5 Meilen pro Stunde"], "5 Meilen"),
    (
        "de-en",
        "drei Komma fünf Prozent, zwanzig Komma drei Millionen, null Komma acht, zwei Komma fünfzehn, 5 Prozent",
        ["3.5 percent", "20.3 million", "0.8", "5 percent"],
        "3 percent, 20.3 million, 0.8, 5 percent",
    ),
    (
        "en-de",
        "twenty point two percent, one point five miles, two point oh five, at that point thirty men, two point ten",
        ["20,2 Prozent", "1,5 Meilen", "2,05", "30"],
        "20,2 Prozent, 1 Meile, 2,05, 30",
    ),
    (
        "zh-en",
        "一点五公里，两点五亿，三十七点五，百分之零点五，两个半球，十五公里",
        ["1.5 kilometers", "250 million", "37.5", "0.5 percent", "15 kilometers"],
        "1.5 kilometers, 250 million, 37, 0.5 percent, 15 kilometers",
    ),
    (
        "zh-en",
        "四点三五亿人，八点五，八点五分，十点一刻，一点一滴，一点一点地",
        ["435 million", "10:15"],
        "434 million, 10:15",
    ),
    (
        "zh-en",
        "三点五万亿，三点五英里，晚上八点五万人，下午三点五公里，八点五平台，两点三英雄",
        ["3.5 trillion", "3.5 miles"],
        "3.5 trillion, 3 miles",
    ),
    (
        "en-de",
        "At one point five people left, one point five percent, zero point zero zero zero zero five percent",
        ["1,5 Prozent", "0,00005 Prozent"],
        "1 Prozent, 0,00005 Prozent",
    ),
    ("de-en", "zehn bis zwanzig Kilometer, bis drei Liter", ["10–20 kilometers", "3 liters"], "10 to 20 miles, 3"),
    ("en-de", "ten to twenty miles, at that point thirty men", ["10–20 Meilen", "30"], "zehn bis zwanzig Kilometer"),
    (
        *("de-en", "minus zwanzig Grad, minus fünf Grad Celsius, fünfzig minus dreißig, minus 3 Grad Celsius"),
        *(
            ["-20", "-5 degrees Celsius", "50", "30", "-3 degrees Celsius"],
            "minus 5 degrees, 3 degrees Celsius",
        ),
    ),
    ("zh-en", "零下二十度，零下三摄氏度", ["-20", "-3 degrees Celsius"], "-20, 3 degrees Celsius"),
    ("zh-en", "第五十公里，两米八，五米半，十五到二十公里", ["50", "15–20 kilometers"], "15 to 20 kilometers"),
    ("de-en", "DREIẞIG, DREISSIG Liter, ſechzig Meilen, SİEBZİG Meilen", ["30", "30 liters", "70 miles"], "60 miles"),
    (
        "en-zh",
        "two kilometers, an hour, forty percent, 10 minutes",
        ["2公里", "40%", "10分钟"],
        "两英里，百分之四十，十分钟",
    ),
    (
        "zh-en",
        "五公里，两千克，第二 克，百分之五，十美金",
        ["5 kilometers", "5 percent", "10 dollars"],
        "five miles, 5%",
    ),
    (
        "de-en",
        "zweieinhalb Liter, Anderthalb, halb, zwölfeinhalb Millionen",
        ["2.5 liters", "1.5", "12.5 million"],
        "two, one",
    ),
    ("de-en", "acht Milliarden, eine Million, neunzig Tausend", ["8 billion", "90,000"], "8 million"),
    (
        "en-de",
        "two million three hundred thousand, one trillion",
        ["2,3 Millionen", "1.000.000.000.000"],
        "2 Millionen",
    ),
    ("en-zh", "thirty-five million", ["3500万"], "三百五十万"),
    ("en-de", "twenty and a half, one and a half-tones, half", ["20,5"], "zwanzig"),
    (
        "de-en",
        "ein fünfunddreißigjähriger, zum zwanzigsten, dreizehnmal, Zwanziger, Fünfzigstel",
        ["35", "20", "13"],
        "",
    ),
    ("en-de", "a twenty-one-year-old, thirty-first, forty-five-man", ["21"], "ein 12-jähriger"),
    ("en-de", "nineteen eighty-four, two hundred and five dogs", ["1984", "205"], "1984, 250"),
    (
        "en-zh",
        "thirty-eight dogs, a hundred, twenty-first, fifty million, a hundred and twenty",
        ["38", "5000万", "120"],
        "八狗三十",
    ),
    ("zh-en", "三千五百万，一亿零三十，三万五，两万亿，十万", ["35 million", "100,000,030", "100,000"], "3500, 100"),
    ("zh-en", "二〇二六年，一九九八年，五百二三", ["2026", "1998"], "2006"),
    (
        "zh-en",
        "两个半小时，两个半天，百分之三十，百分之五，三分之二",
        ["2.5 hours", "30 percent", "5 percent"],
        "2, 30",
    ),
    ("zh-en", "三百零五个，十三，十二，二十几，两千五百，三十点五", ["305", "13", "2500", "30.5"], "305, 13, 25"),
]


UNITS_ELSEWHERE = [  # languages, a text, and a translation with its amounts
    ("de-en", "20 Minuten zu Fuß, 24 Stunden", "A 20-minute walk, 24-hour"),
    ("en-de", "a 20 minutes walk", "ein 20-Minuten-Spaziergang"),
    ("de-en", "2 Liter, 20 Euro", "A 2-liter bottle, a 20-euro bill"),
    ("en-de", "10 dollars, 5 million dollars", "10 US-Dollar, 5 Mio. US$"),
    ("zh-en", "200万美元，5000美元，100日元", "2 million US dollars, USD 5,000, ¥100"),
    ("de-en", "15 Minuten, 30 Minuten, 1,5 Stunden", "A quarter of an hour, half an hour, an hour and a half"),
]


@pytest.mark.parametrize(("languages", "text", "translation"), UNITS_ELSEWHERE)
def test_a_unit_may_be_in_a_compound_or_a_sign(languages: str, text: str, translation: str) -> None:
    assert lost_words(text, translation, *languages.split("-")) == []
    assert lost_words(text, "9-mile", *languages.split("-"))


@pytest.mark.parametrize("translation", ["The headquarters is 45 hours away.", "45 seconds on behalf of"])
def test_another_unit_of_time_is_no_part_of_an_hour(translation: str) -> None:
    assert lost_words("Die Zentrale ist 45 Minuten entfernt.", translation, "de", "en") == ["45 Minuten"]


def test_a_number_of_thousands_of_digits_is_no_amount() -> None:
    found = with_slots(f"1{',000' * 1_500} million", "en", "de")
    assert found is not None
    assert found.text.endswith(" million")


@pytest.mark.parametrize(("languages", "text", "fillings", "translation"), UNITS)
def test_a_unit_that_is_a_word_is_written_in_the_target_language(
    languages: str, text: str, fillings: list[str], translation: str
) -> None:
    src, tgt = languages.split("-")
    found = with_slots(text, src, tgt, words=True)
    assert found is not None
    assert list(found.fillings.values()) == fillings
    assert lost_words(text, ", ".join(fillings), src, tgt) == []
    assert bool(lost_words(text, translation, src, tgt)) == (languages != "da-ru")


@pytest.mark.parametrize(("languages", "text", "fillings"), [*AMOUNTS, *ORDINALS, *SIGNS])
def test_an_amount_is_written_as_in_the_target_language(languages: str, text: str, fillings: list[str]) -> None:
    found = with_slots(text, *languages.split("-"), words=True)
    assert found is not None
    assert list(found.fillings.values()) == fillings


@pytest.mark.parametrize(
    ("languages", "text", "written"),
    [
        ("en-de", "Python 3.11 or CPython 3.12, OpenSSL 3.0.", "Python 3.11 or CPython 3.12, OpenSSL 3.0."),
        ("en-fr", "USB 3.2 for HTTP/1.1 and iOS 17.4", "USB 3.2 for HTTP/1.1 and iOS 17.4"),
        ("en-de", "See Section 3.2, or Figures 1.10, 1.12 and 2.1.", "See Section 3.2, or Figures 1.10, 1.12 and 2.1."),
        ("en-de", "Eqs. (3.2) and (3.4), Rule (2.5 m), Oslo (1.5)", "Eqs. (3.2) and (3.4), Rule (2,5 m), Oslo (1,5)"),
        ("en-cs", "in Ubuntu 22.04-24.04 and fig. 2.1", "in Ubuntu 22.04-24.04 and fig. 2.1"),
        ("zh-de", "第3.2节和图3.1、3.3", "第3.2节和图3.1、3.3"),
        ("en-de", "Only 3.5 of them, about 2.25", "Only 3,5 of them, about 2,25"),
        ("en-de", "In Berlin 3.5 million pay the USA 2.5 %.", "In Berlin 3,5 Millionen pay the USA 2,5 %."),
        ("en-de", "SEK 3.50, EUR 2.50 and NOK 1.5", "SEK 3,50, EUR 2,50 and NOK 1,5"),
        ("en-de", "It has pH 7.4 (95% CI 1.2-3.4).", "It has pH 7,4 (95% CI 1,2-3,4)."),
        ("en-de", "Ubuntu 20.04 OR 22.04, an SD 4.1 card", "Ubuntu 20.04 OR 22.04, an SD 4.1 card"),
        ("en-de", "On Monday 2.5 inches, Kernel 6.5", "On Monday 2,5 Zoll, Kernel 6.5"),
        ("en-de", "the Nokia 3.1 weighs 2.5 kg", "the Nokia 3.1 weighs 2,5 kg"),
        ("de-en", "Die Stadt Bonn hat 3.100 und Köln 1.250 davon", "Die Stadt Bonn hat 3,100 und Köln 1,250 davon"),
    ],
)
def test_numbers_of_versions_and_sections_keep_their_points(languages: str, text: str, written: str) -> None:
    assert entities.with_numbers_for(text, *languages.split("-")) == written


@pytest.mark.parametrize("code", CODES)
def test_a_code_has_one_slot(code: str) -> None:
    found = with_slots(f"Call {code}, please", "en", "de")
    assert found is not None
    assert list(found.fillings.values()) == [code]


@pytest.mark.parametrize(
    "text",
    [
        "Lehrer_in",
        "jede_r",
        "liebe student_innen",
        "World War II",
        "Nel XX secolo",
        "el siglo XXI",
        "po II wojnie",
        "a 5-millimeter gun",
        "I see V and X",
        "at 9a.m.",
        "le 24e, 5d, 80er and 3rd",
        "It is 37° 15 minutes later.",
        "C# and/or F#, #1, er/sie -- and",
    ],
)
def test_what_looks_like_a_code_is_none(text: str) -> None:
    found = with_slots(text, "de", "en")
    assert found is None or not found.names


@pytest.mark.parametrize(
    ("number", "written"), [("1", "1st"), ("22", "22nd"), ("13", "13th"), ("103", "103rd"), ("40", "40th")]
)
def test_the_ending_of_an_english_ordinal_number_suits_it(number: str, written: str) -> None:
    for ending in ("st", "nd", "rd", "th"):
        found = Slotted("", fillings={SLOTS[0]: number}).filled([f"the {SLOTS[0]}{ending} dog", f"{SLOTS[1]}thing"])
        assert found == [f"the {written} dog", "thing"]


@pytest.mark.parametrize("written", ["{0}", "{0}er", "{0}ern"])
def test_the_ending_of_a_decade_is_written_once(written: str) -> None:
    found = with_slots("In the 1980s", "en", "de")
    assert found is not None
    text = written.format(*found.fillings)
    assert found.fits(text)
    assert found.filled([text]) == [written.replace("{0}er", "1980er").replace("{0}", "1980er")]


@pytest.mark.parametrize(("languages", "text", "fillings"), [*DATES, *CLOCKS])
def test_a_date_or_a_time_of_day_is_written_as_in_the_target_language(
    languages: str, text: str, fillings: list[str]
) -> None:
    found = with_slots(text, *languages.split("-"))
    assert found is not None
    assert list(found.fillings.values()) == fillings
    translation = ", ".join(found.fillings.values())
    assert lost_numbers(text, translation, languages.split("-")) == []


def test_the_number_of_an_amount_is_written_as_in_the_target_language() -> None:
    found = with_slots("€1,250.50 for 1.5 km", "en", "nl")
    assert found is not None
    assert found.filled([found.text]) == ["€1.250,50 for 1,5 km"]


@pytest.mark.parametrize(
    ("languages", "text", "written"),
    [
        (
            "en-de",
            "£1,250.50, -$5, $ 5k, €3M and $5-$10",
            "1.250,50\u00a0£, -5\u00a0$, 5k\u00a0$, 3 Millionen\u00a0€ and $5-$10",
        ),
        ("en-de", "US$6, 7 US$ or C$ 8.50", "6\u00a0US$, 7 US$ or 8,50\u00a0C$"),
        ("en-de", "$100K, £2.5K and $1.2T", "100K\u00a0$, 2,5K\u00a0£ and 1,2T\u00a0$"),
        ("en-fr", "1.5 €, €2–3 and EUR 5", "1,5 €, 2–3\u00a0€ and EUR 5"),
        ("de-en", "1.250,5 €, −5€, 3 Mio. €, 5 % und €5", "€1,250.5, −€5, €3 million, 5% und €5"),
        ("fr-en", "5 M€, 3,5 k€ et 5\u00a0$", "5 M€, 3.5 k€ et $5"),
        *(("en-zh", "$5 is 5 €", "$5 is 5 €"), ("en-nl", "$5 is 5 €", "$5 is 5 €")),
    ],
)
def test_the_sign_of_a_currency_stands_where_the_target_language_has_it(
    languages: str, text: str, written: str
) -> None:
    found = with_slots(text, *languages.split("-"))
    assert found is not None
    assert found.filled([found.text]) == [written]

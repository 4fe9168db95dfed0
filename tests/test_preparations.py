"""What happens to texts before the model sees them, and that it is undone in their translations."""

import json
from functools import partial
from pathlib import Path

import pytest
from conftest import Project, sentence_pairs

from mtformer.config import TokenizerConfig
from mtformer.text.pairs import SentencePair
from mtformer.text.sentences import split_sentences
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.text.tokenizer.vocabulary import on_one_line
from mtformer.translate.casing import Casing
from mtformer.translate.characters import KnownCharacters
from mtformer.translate.preparation import (
    by_sentences,
    copy_unknown,
    single_marks,
    standard_preparations,
    without_entities,
)
from mtformer.translate.replacement import Preparation, prepared
from mtformer.translate.translation import Translation

ASCII = frozenset(map(chr, range(32, 127)))
COPY = partial(copy_unknown, can_write=ASCII.__contains__)
SUITE = [
    (row["category"], row["text"] * row.get("times", 1))
    for row in map(json.loads, (Path(__file__).parent / "nasty.jsonl").read_text(encoding="utf-8").splitlines())
]
CAPTIONS = """Two dogs play in the snow . | Zwei Hunde spielen im Schnee .
The two men wait for a train in the rain . | Die zwei Männer warten im Regen auf einen Zug .
A man plays with his dogs and the dog of a woman in Berlin . | Ein Mann spielt mit seinen Hunden in Berlin .
Men in the snow play with a dog . | Männer spielen im Schnee mit einem Hund .
In Berlin a woman waits , and I wait with her . | In Berlin wartet eine Frau , und ich warte mit ihr .
Dogs and men in Berlin . | Hunde und Männer in Berlin ."""


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A tokenizer that has each word of the captions as one token."""
    pairs = [SentencePair(*line.split(" | ")) for line in CAPTIONS.splitlines()] * 20
    config = TokenizerConfig(vocab_size=400, type="bpe", joint=False)
    return train_tokenizer(pairs, config, "en", "de", adjust=True)


def leaves(text: str, *preparations: Preparation) -> list[str]:
    return list(prepared(text, preparations).leaves())


def restored(text: str, *preparations: Preparation) -> Translation:
    """Translate with a model that repeats what it is given."""
    tree = prepared(text, preparations)
    [best] = tree.restored(iter([[Translation(leaf, -1.0, -2.0)] for leaf in tree.leaves()]))
    return best


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Two dogs play.| A man watches!| Why?| Nobody knows..."),
        ("en", "Dr. Smith and Mrs. J. F. Brown wave at e.g. trains.| Nobody waves back."),
        ("en", "The sign of E.S.E. Electronics is red.| It costs 3.50 euros, No. 7 costs 4.| 12 men wait."),
        ("en", 'He says "Stop. Go away." and leaves.| "Why?" she asks.| (He is tired.)| So am I.| Good.'),
        ("en", "A man... a dog! and a cat.| The end"),
        ("en", 'It is 6" long.| So it is.'),
        ("de", "Am 3. Mai kommt Dr. Meier, d.h. z.B. am Montag.| Er bringt ca. 10 Hunde mit.| Gut!"),
        ("de", "Er wohnt in der Hauptstr. 12b.| Ich kenne die Bahnhofstr.| Du auch?"),
        ("de", "Vom 24.-26. Dezember, 24./25. Dezember und 24.–26. Mai.| Gut!"),
        ("de", "Er hat 5 Std. Zeit und 3 Tsd. Euro, d. h. mind. 9 Bio. Euro seit dem 19. Jh. vor 30 Sek. Musik.| Gut."),
        ("es", "El Sr. Ruiz vive en EE. UU.| Y la Dra. Sol también."),
        ("it", "Il sig. Rossi e la dott.ssa Bruni parlano.| Poi ridono."),
        ("pt", "O Sr. Silva e a Profa. Reis falam.| Depois riem."),
        ("nl", "Dhr. Jansen en mevr. de Wit praten.| Dan lachen ze."),
        ("cs", "Mgr. Novák z ul. Nádražní čeká.| Potom jde."),
        ("pl", "Prof. Nowak ze szkoły im. Jana czeka.| Potem idzie."),
        ("fr", "M. Dupont arrive.| Il est content."),
        ("fr", "« Halte ! »| Il part.| « Oui ! »"),
        ("de", "Er geht.| »Halt!«| Sie ruft.| „Komm!“| »Ja!«"),
        ("zh", "我们去年买了钢琴。|她喜欢吗？|“喜欢！”|他说。"),
        ("zh", "真的吗？？|他说：“你好！”|（他走了。）|你看过《加油！》吗？|好。。。"),
        ("zh", "他说：“你好！”"),
        ("ja", "犬が走る。|猫が寝る！|本当？！|「はい！」"),
        ("ja", "「はい。」と彼は言った。|「そうか。」|彼は行った。"),
        ("hi", "वह आता है।| मैं जाता हूँ।"),
        ("en", "Two dogs play.A man watches example.org and 3.50."),
    ],
)
def test_sentences_end_where_the_bars_are(language: str, text: str) -> None:
    expected = [part.strip() for part in text.split("|")]
    assert split_sentences(text.replace("|", ""), language) == expected


def test_sentences_are_translated_one_by_one_and_joined_as_the_target_language_does() -> None:
    text = "Two dogs play. A man watches."
    assert leaves(text, partial(by_sentences, src_lang="en", tgt_lang="de")) == ["Two dogs play.", "A man watches."]
    best = restored(text, partial(by_sentences, src_lang="en", tgt_lang="de"))
    assert (best.text, best.score, best.log_prob) == (text, -2.0, -4.0)
    assert restored("一。二。", partial(by_sentences, src_lang="zh", tgt_lang="en")).text == "一。 二。"
    assert restored("One. Two.", partial(by_sentences, src_lang="en", tgt_lang="zh")).text == "One.Two."


def test_the_n_best_of_several_sentences_use_the_best_of_a_sentence_that_has_fewer() -> None:
    tree = prepared("A dog. 12. A cat.", [partial(by_sentences, src_lang="en", tgt_lang="de"), COPY])
    assert list(tree.leaves()) == ["A dog.", "A cat."]
    found = [[Translation(f"{text} {rank}", -rank, -rank) for rank in (1, 2)] for text in "AB"]
    assert [best.text for best in tree.restored(iter(found))] == ["A 1 12. B 1", "A 2 12. B 2"]


@pytest.mark.parametrize("text", ["12", "...", "-5 °", "😀 🎉", "2026-11-22 10:30", "«»"])
def test_texts_without_letters_are_copied_without_a_note(text: str) -> None:
    assert leaves(text, COPY) == []
    assert restored(text, COPY) == Translation(text, 0.0, 0.0)


def test_texts_of_which_no_letter_is_known_are_copied_with_a_note() -> None:
    best = restored("\x1b[31mВойна\x1b[0m 12\u2028!", COPY)
    assert (best.text, best.notes) == ("Война 12 !", ("check: not translated: the model knows none of its letters",))
    for text in ("", "  ", "a", "Война i mir"):
        assert leaves(text, COPY) == [text]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("The oﬃcer ﬁnds １２ “ｄｏｇｓ”…", 'The officer finds 12 "dogs"...'),
        ("It’s na\u0308ive – and ½ a caf\u00e9 №５", "It's naive - and 1/2 a cafe No5"),
        ("\ufeffA\u200b man\u00ad \x07runs.\x1b[0m", "A man  runs."),
        ("Wait！ Why？", "Wait! Why?"),
        ("T̶w̶o̶", "Two"),
        ("A dog 👨\u200d👩\u200d👧 ❤\ufe0f here", "A dog 👨\u200d👩\u200d👧 ❤\ufe0f here"),
    ],
)
def test_characters_without_a_token_become_forms_that_have_one(given: str, expected: str) -> None:
    assert leaves(given, KnownCharacters(ASCII)) == [expected]
    assert restored(given, KnownCharacters(ASCII)).notes == ()


def test_characters_that_have_a_token_stay_as_they_are() -> None:
    text = "“ｆｕｌｌ” ½"
    assert leaves(text, KnownCharacters(ASCII | set(text))) == [text]
    assert leaves("你好, 吗?", KnownCharacters(frozenset("你好，吗？ "))) == ["你好， 吗？"]


@pytest.mark.parametrize("known", [None, ASCII | {"\u00ad"}])
def test_soft_hyphens_are_dropped_though_they_have_a_token(known: frozenset[str] | None) -> None:
    assert leaves("a dan\u00addelion", KnownCharacters(known)) == ["a dandelion"]


def test_digits_that_are_raised_or_in_circles_never_join_others() -> None:
    best = restored("10⁶ m², H₂O, ①② or ⑩", KnownCharacters(ASCII))
    assert (best.text, best.notes) == ("10⁶ m2, H2O, ①② or ⑩", ("check: unknown characters: ⁶①②⑩",))


def test_letters_without_a_known_form_stay_with_a_note() -> None:
    best = restored("The sign says 出口出 नमस्ते", KnownCharacters(ASCII))
    assert best.text == "The sign says 出口出 नमस्ते"
    assert best.notes == ("check: unknown characters: 出口नमसत",)


@pytest.mark.parametrize(
    ("given", "leaf"),
    [
        ("TWO DOGS PLAY IN THE SNOW.", "Two dogs play in the snow."),
        ("A MAN WAITS IN BERLIN, AND I WAIT", "A man waits in Berlin, and I wait"),
        ('"DOGS AND MEN"', '"Dogs and men"'),
        ("THE DOGS OF THE U.S. PLAY", "The dogs of the U.S. play"),
        ("Two Dogs Play In The Snow.", "Two dogs play in the snow."),
        ("The Dogs And The Men Of Berlin", "The dogs and the men of Berlin"),
        ("The Dogs Of Benedict XVI Wait In Berlin", "The dogs of Benedict XVI wait in Berlin"),
        ("THE DOGS PLAY COVID-19 IN THE mp3 OF DOG.PDF", "The dogs play COVID-19 in the mp3 of DOG.PDF"),
    ],
)
def test_caps_and_titles_are_undone_for_the_model_and_redone(tokenizer: Tokenizer, given: str, leaf: str) -> None:
    casing = Casing(tokenizer, "en")
    assert leaves(given, casing) == [leaf]
    assert restored(given, casing).text == given


@pytest.mark.parametrize(
    "text",
    [
        *("Two dogs play in the snow.", "A man in Berlin", "two dogs", "A", "Berlin", "I", "A BMX in Berlin", "", "12"),
        *("King Henry VIII and Louis XIV wait", "pH 7.4, 0.9 % NaCl, 37 °C", "Dogs XVI 12, UUID 5 Berlin."),
        *("Wenceslaus Kowalczyk And Zorti Kowalczyk", "The EBITDA of dogs"),
    ],
)
def test_usual_casing_is_left_alone(tokenizer: Tokenizer, text: str) -> None:
    assert leaves(text, Casing(tokenizer, "en")) == [text]


@pytest.mark.parametrize(
    ("given", "leaf"),
    [
        ("A DOG and a man", "A dog and a man"),
        ("TWO dogs PLAY in the snow.", "Two dogs play in the snow."),
        ("A man waits in BERLIN, in the xYz", "A man waits in Berlin, in the xYz"),
        ("Two dogs PLAY in the US snow.", "Two dogs play in the US snow."),  # an abbreviation
    ],
)
def test_words_in_capitals_are_undone_for_the_model_and_stay_so(tokenizer: Tokenizer, given: str, leaf: str) -> None:
    casing = Casing(tokenizer, "en")
    assert leaves(given, casing) == [leaf]
    assert restored(given, casing).text == leaf


def test_notes_name_words_as_they_are_given(tokenizer: Tokenizer) -> None:
    tree = prepared("TOO LONG: THE DOG OF KOWALCZYK", [Casing(tokenizer, "en")])
    found = Translation("", notes=("check: too long", "check: names lost: Kowalczyk kowalczyk dog", "in 2 parts"))
    [best] = tree.restored(iter([[found]]))
    assert best.notes == ("check: too long", "check: names lost: Kowalczyk KOWALCZYK DOG", "in 2 parts")


@pytest.mark.parametrize(
    ("given", "leaf", "translation", "expected"),
    [
        ("Wow!!!!", "Wow!", "Toll!", "Toll!!!!"),
        ("Wow! he says, what??", "Wow! he says, what?", "Toll! Was? Was?", "Toll! Was?? Was?"),
        ("What?!?!", "What?", "Was?", "Was?!?!"),
        ("What!!", "What!", "Was???", "Was??"),
        ("哇！！！", "哇！", "Wow!", "Wow!!!"),
        ("What?", "What?", "Wa" + "?" * 60, "Wa?"),
        ("Wow!!!!", "Wow!", "Toll", "Toll"),
        ("Wow", "Wow", "Toll!", "Toll!"),
    ],
)
def test_models_read_one_mark_of_several(given: str, leaf: str, translation: str, expected: str) -> None:
    tree = prepared(given, [single_marks])
    assert list(tree.leaves()) == [leaf]
    [best] = tree.restored(iter([[Translation(translation)]]))
    assert best.text == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [("Tom & Jerry", "Tom & Jerry's & <"), ("Tom &amp; Jerry", "Tom &amp; Jerry&#39;s &AMP; &lt;")],
)
def test_entities_are_only_in_translations_of_texts_with_entities(given: str, expected: str) -> None:
    [best] = prepared(given, [without_entities]).restored(iter([[Translation("Tom &amp; Jerry&#39;s &AMP; &lt;")]]))
    assert best.text == expected


def test_scripts_without_case_are_left_alone(tokenizer: Tokenizer) -> None:
    assert leaves("我们去年买了钢琴", Casing(tokenizer, "zh")) == ["我们去年买了钢琴"]


def test_german_nouns_keep_their_capitals() -> None:
    pairs = [SentencePair(*line.split(" | ")) for line in CAPTIONS.splitlines()] * 20
    config = TokenizerConfig(vocab_size=400, type="bpe", joint=False)
    swapped = [SentencePair(pair.tgt, pair.src) for pair in pairs]
    casing = Casing(train_tokenizer(swapped, config, "de", "en", adjust=True), "de")
    assert leaves("ZWEI HUNDE SPIELEN IM SCHNEE.", casing) == ["Zwei Hunde spielen im Schnee."]
    assert leaves("Ein Mann spielt im Schnee", casing) == ["Ein Mann spielt im Schnee"]
    assert leaves("Spass im Spielen", casing) == ["Spass im Spielen"]  # no title
    assert leaves("Ein Mann Spielt Im Schnee", casing) == ["Ein Mann spielt im Schnee"]


def test_nothing_is_lost_between_preparing_and_restoring(tokenizer: Tokenizer) -> None:
    preparations = standard_preparations(tokenizer, "en", "de")
    for _, text in SUITE:
        best = restored(text, *preparations)
        assert "\n" not in best.text
        wanted, found = ("".join(on_one_line(t).casefold().split()) for t in (text, best.text))
        if (text.isascii() and text.isprintable()) or not any(map(str.isalpha, text)):
            assert found == wanted
        else:
            assert any(map(str.isalnum, found)) == any(map(str.isalnum, wanted))


def test_the_standard_preparations_leave_an_ordinary_text_to_the_model(tokenizer: Tokenizer) -> None:
    preparations = standard_preparations(tokenizer, "en", "de")
    for line in CAPTIONS.splitlines():
        src = line.split(" | ")[0]
        assert leaves(src, *preparations) == [src]
    assert leaves("TWO DOGS PLAY. 😀 12. Война!", *preparations) == ["Two dogs play."]
    assert restored("TWO DOGS PLAY. Война!", *preparations).notes == ("check: unknown characters: Война",)


def test_commands_and_the_api_prepare_texts_unless_told_not_to(trained: Project) -> None:
    model = trained.folder / "runs/config/model.safetensors"
    text = "THE RED HOUSE SEES A SMALL DOG. 😀\n12\n…\nПривет"
    prepared = trained.mtformer("translate", "--model", model, stdin=text)
    assert prepared.stdout.splitlines() == ["DAS ROTE HAUS SIEHT EIN KLEINER HUND. 😀", "12", "…", "Привет"]
    assert "check the translation of line 4: not translated: the model knows none of its letters" in prepared.stderr
    raw = trained.mtformer("translate", "--model", model, "--raw", stdin=text)
    assert len(raw.stdout.splitlines()) == 4
    assert "12" not in raw.stdout.splitlines()


def test_each_nasty_line_gives_one_line(trained: Project) -> None:
    texts = [text[:300] for _, text in SUITE if "\r" not in text]
    model = trained.folder / "runs/config/model.safetensors"
    result = trained.mtformer("translate", "--model", model, "--beam-size", "1", stdin="\n".join(texts) + "\n")
    assert result.status == 0
    assert len(result.stdout.split("\n")) == len(texts) + 1
    assert "Traceback" not in result.stderr


def test_words_that_the_training_text_lacks_are_noted(tokenizer: Tokenizer) -> None:
    words = ["two", "dogs", "play", "don", "t", "stop"]
    preparations = standard_preparations(tokenizer, "en", "de", words)
    assert restored("Two dogs play.", *preparations).notes == ()
    assert restored("Two spiders play. Dogs don't stop lions!", *preparations).notes == (
        "check: unknown: spiders",
        "check: unknown: lions",
    )
    assert restored("TWO SPIDERS PLAY.", *preparations).notes == ("check: unknown: SPIDERS",)
    assert leaves("Two spiders play.", *preparations) == ["Two spiders play."]


def test_units_and_names_that_slots_keep_are_no_unknown_words() -> None:
    pairs = [SentencePair(*pair) for pair in sentence_pairs(100)]
    settings = TokenizerConfig(type="char", vocab_size=500, slots=True)
    tokenizer = train_tokenizer(pairs, settings, "en", "de", adjust=True)
    preparations = standard_preparations(tokenizer, "en", "de", ["two", "dogs", "play", "for", "at"])
    text = "Two dogs play for 1.5 million euros at 10:45 pm, 5 km and €3. See a@b.com."
    assert restored(text, *preparations).notes == ("check: unknown: euros, and", "check: unknown: See")

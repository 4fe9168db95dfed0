"""Chinese: from meaning to characters. Time, place, verb, object; particles mark tense, negation and questions."""

from mtformer.phrasebook.lexicon import Name, Noun, Phrase, Verb
from mtformer.phrasebook.meaning import (
    Asked,
    Clause,
    Det,
    Home,
    Link,
    Meaning,
    Modal,
    Mood,
    NounPhrase,
    Pair,
    Phrasal,
    Place,
    Pronoun,
    Quality,
    Sentence,
    Tense,
)
from mtformer.phrasebook.numerals import form

PRONOUNS = dict(zip(Pronoun, "我 你 他 她 它 我们 他们 谁 什么".split(), strict=True))
_LINKS = {Link.AND: "，", Link.BUT: "，但是", Link.BECAUSE: "，因为", Link.THAT: "", Link.ASKING: ""}
_WHEN = "什么时候"
_FRONTED = {  # the second clause comes first: the conjunctions of both clauses
    Link.BECAUSE: ("因为", "所以"),
    Link.ALTHOUGH: ("虽然", "但是"),
    Link.IF: ("如果", ""),
}


def sentence(meaning: Meaning) -> str:
    """Express ``meaning`` in Chinese."""
    if isinstance(meaning, Phrase):
        return meaning.chinese
    if meaning.mood is Mood.ANSWER:
        return _short_answer(meaning.main)
    words = {None: "", True: "是的，", False: "不，"}[meaning.answer] + _words(meaning)
    return words + ("？" if meaning.is_question else "！" if meaning.mood is Mood.COMMAND else "。")


def _short_answer(clause: Clause) -> str:
    """Build 是的，我能。or 不，我不能。; for *I do*, nothing follows 是的 and 不."""
    if clause.verb:
        return "是的。" if not clause.negated else "没有。" if clause.tense is Tense.PAST else "不。"
    word = "能" if clause.modal else "会" if clause.tense is Tense.FUTURE else "是"
    return ("不，" if clause.negated else "是的，") + _phrase(clause.subject) + "不" * clause.negated + f"{word}。"


def _words(meaning: Sentence) -> str:
    main = meaning.main
    match meaning.mood:
        case Mood.COMMAND | Mood.REQUEST if main.verb:
            please, do_not = "请" * (meaning.mood is Mood.REQUEST), "别" * main.negated
            first = please + do_not + _doing(main, main.verb, main.verb.chinese)
        case Mood.EXISTENCE:
            has = "没有" if main.negated else "有"
            is_bare = main.negated or main.asked is not None
            what = _phrase(main.subject, indefinite_is_bare=is_bare)
            first = f"{_location(main.place)}{has}{what}{'吗' if main.asked else ''}"
        case Mood.ORDER:
            first = f"请给我{_phrase(main.object)}"
        case Mood.THANKS:
            assert isinstance(main.object, NounPhrase)
            first = f"谢谢你的{_noun_phrase(main.object, in_place=True)}"
        case _:
            first = _clause(main, then=meaning.link is Link.IF)
    if meaning.link is None or meaning.second is None:
        return first
    if meaning.second_first or meaning.link not in _LINKS:
        opening, turn = _FRONTED[meaning.link]
        return f"{opening}{_clause(meaning.second)}，{turn}{first}"
    second = _clause(meaning.second)
    if meaning.link is Link.ASKING and meaning.second.asked is Asked.TRUTH:
        second = _clause(meaning.second, whether=True)
    if main.asked is Asked.TRUTH:  # 你知道……吗
        return first.removesuffix("吗") + _LINKS[meaning.link] + second + "吗"
    return first + _LINKS[meaning.link] + second


def _clause(clause: Clause, *, then: bool = False, whether: bool = False) -> str:
    """Build any clause; ``then`` puts 就 before its predicate, ``whether`` makes it an embedded question."""
    subject = ("请问" if clause.polite else "") + _phrase(clause.subject)
    if clause.verb and clause.verb.aspect == "weather":
        subject = ""
    time = clause.time.chinese if clause.time else ""
    if clause.time and clause.time_first and not time.endswith("都"):
        before = time + subject
    else:
        before = subject + (_WHEN if clause.asked is Asked.TIME else time)
    if clause.asked is Asked.REASON:
        before += "为什么"
    if clause.quality:
        return before + _quality(clause, clause.quality, whether=whether)
    if clause.profession:
        return before + _profession(clause, clause.profession, whether=whether)
    if clause.verb is None:
        return before + _being(clause, whether=whether)
    asks_truth = clause.asked is Asked.TRUTH
    predicate = _predicate(clause, clause.verb, whether=whether)
    return before + ("就" if then else "") + predicate + ("吗" if asks_truth and not whether else "")


def _quality(clause: Clause, quality: Quality, *, whether: bool) -> str:
    if quality.years:
        years = form(quality.years, "zh", digits=quality.digits) + "岁"
        return years + ("了吗" if clause.asked is Asked.TRUTH else "")
    word = quality.adjective.chinese_predicate
    is_color = word.startswith("是")
    if clause.asked is Asked.TRUTH:
        if not whether:
            return f"{word}吗"
        return f"是不{word}" if is_color else f"{word}不{word}"
    if clause.negated:
        return f"不{word}"
    if is_color:
        return word
    return {"too": f"太{word}了", "very": f"非常{word}"}.get(quality.degree, f"很{word}")


def _profession(clause: Clause, noun: Noun, *, whether: bool) -> str:
    """Build the profession of the subject: 是学生, 不是学生, 是学生吗, 是不是学生."""
    if clause.asked is Asked.TRUTH:
        return f"是不是{noun.chinese}" if whether else f"是{noun.chinese}吗"
    return ("不是" if clause.negated else "是") + noun.chinese


def _being(clause: Clause, *, whether: bool) -> str:
    """Build the predicate of being at a place."""
    if clause.asked is Asked.PLACE:
        return "在哪里"
    place = f"在{_location(clause.place)}"
    if clause.asked is Asked.TRUTH:
        return f"在不{place}" if whether else f"{place}吗"
    return ("不" if clause.negated else "") + place


def _predicate(clause: Clause, verb: Verb, *, whether: bool) -> str:
    """Build negation, modal or aspect; then place, verb and object."""
    if clause.negated and verb.chinese_negative:
        return _doing(clause, verb, verb.chinese_negative)
    if clause.negated and clause.modal is Modal.CAN and verb.chinese_cannot:
        return _doing(clause, verb, verb.chinese_cannot)
    if clause.modal:
        return _polar(_modal(clause, verb), clause, whether=whether) + _doing(clause, verb, verb.chinese)
    match clause.tense:
        case Tense.FUTURE if clause.asked is Asked.TIME:
            return _doing(clause, verb, verb.chinese)
        case Tense.FUTURE:
            word = "要" if clause.asked is Asked.REASON and verb.aspect != "event" else "会"
            return _polar(word, clause, whether=whether) + _doing(clause, verb, verb.chinese)
        case Tense.PAST:
            return _past(clause, verb, whether=whether)
        case Tense.PERFECT:
            return _perfect(clause, verb, whether=whether)
        case Tense.PROGRESSIVE:
            return _progressive(clause, verb, whether=whether)
    before = "是不是" if whether else ""
    if clause.negated:
        before = "没" if verb.chinese.startswith("有") else "不"
    return before + _doing(clause, verb, verb.chinese)


def _past(clause: Clause, verb: Verb, *, whether: bool) -> str:
    """Build the past: 了, 没, 有没有; or 是…的 to ask where or when a known event happened."""
    bare = _doing(clause, verb, verb.chinese)
    if clause.negated:
        return f"没{bare}"
    if whether:
        return f"有没有{bare}"
    match clause.asked:
        case Asked.PLACE if verb.relation not in ("to", "onto"):
            return f"是{bare}的"
        case Asked.TRUTH | Asked.PLACE:
            return bare + ("了" if verb.chinese_past != verb.chinese else "")
        case Asked.TIME:
            return f"{bare}的"
        case Asked.REASON if verb.aspect in ("activity", "skill", "behavior"):
            return bare
    return _doing(clause, verb, verb.chinese_past)


def _perfect(clause: Clause, verb: Verb, *, whether: bool) -> str:
    """Build an event that has happened already, or not yet."""
    if clause.negated:
        return "还没" + _doing(clause, verb, verb.chinese)
    if clause.asked is Asked.TRUTH:
        return ("是不是已经" if whether else "") + _doing(clause, verb, verb.chinese) + "了"
    return "已经" + _doing(clause, verb, verb.chinese_past)


def _polar(word: str, clause: Clause, *, whether: bool) -> str:
    """Return a modal verb, its negation, or both for *whether*: 会, 不会, 会不会."""
    if whether:
        return f"是不是{word}" if len(word) > 1 else f"{word}不{word}"
    return f"不{word}" if clause.negated else word


def _modal(clause: Clause, verb: Verb) -> str:
    """Return the modal verb; *can* is 会 for a skill, 可以 for permission, 能 otherwise."""
    if clause.modal is Modal.CAN:
        if verb.aspect == "skill" and clause.place is None:
            return "会"
        return "可以" if verb.aspect == "act" and not clause.negated else "能"
    return "必须" if clause.modal is Modal.MUST else "想"


def _progressive(clause: Clause, verb: Verb, *, whether: bool) -> str:
    if verb.chinese_progressive or verb.aspect == "posture":
        if clause.negated or whether:
            return ("没" if clause.negated else "有没有") + _doing(clause, verb, verb.chinese)
        return _doing(clause, verb, verb.chinese_progressive or verb.chinese)
    if clause.negated:
        return "没在" + _doing(clause, verb, verb.chinese, without_at=True)
    if clause.asked is Asked.PLACE:
        return _doing(clause, verb, verb.chinese)
    marker = "是不是正在" if whether else ("在" if clause.asked is Asked.OBJECT else "正在")
    return marker + _doing(clause, verb, verb.chinese, without_at=True)


def _doing(clause: Clause, verb: Verb, pattern: str, *, without_at: bool = False) -> str:
    """Fill place, recipient and object into the verb's pattern; a place without a slot comes before the verb."""
    place = "哪里" if clause.asked is Asked.PLACE else _location(clause.place)
    if isinstance(clause.place, Place) and isinstance(clause.place.where, Home) and clause.place.goal:
        pattern = pattern.replace("去", "回")
    if "@" in pattern:
        pattern = pattern.replace("@", place if verb.relation in ("to", "from") else f"在{place}")
    elif place:
        pattern = (place if without_at else f"在{place}") + pattern
    pattern = pattern.replace("#", _phrase(clause.recipient))
    bare_object = clause.negated or clause.asked in (Asked.TRUTH, Asked.PLACE, Asked.TIME)
    obj = _phrase(clause.object, indefinite_is_bare=bare_object)
    return pattern.replace("~", obj) if "~" in pattern else pattern + obj


def _location(place: Place | None) -> str:
    if place is None:
        return ""
    match place.where:
        case Home():
            return "家" if place.goal else "家里"
        case Name(chinese=city):
            return city
        case NounPhrase() as phrase:
            return _noun_phrase(phrase, in_place=True) + (place.relation.chinese if place.relation else "")
        case venue:
            return venue.noun.chinese + ("" if place.goal and venue.chinese != "边" else venue.chinese)


def _phrase(phrase: Phrasal | None, *, indefinite_is_bare: bool = False) -> str:
    if phrase is None:
        return ""
    if isinstance(phrase, Pair):
        return f"{_noun_phrase(phrase.first)}和{_noun_phrase(phrase.second)}"
    return _noun_phrase(phrase, in_place=indefinite_is_bare and phrase.is_indefinite)


def _noun_phrase(phrase: NounPhrase, *, in_place: bool = False) -> str:
    """Build a noun phrase; ``in_place`` omits determiners that a place does not need: 桌子上, not 那张桌子上."""
    match phrase.head:
        case Pronoun.IT:
            return pronoun(phrase)
        case Pronoun():
            return PRONOUNS[phrase.head]
        case Name():
            return phrase.head.chinese
    noun = phrase.head
    is_person = bool({"person", "family"} & noun.kinds)
    words = (phrase.adjective.chinese if phrase.adjective else "") + noun.chinese
    gap = _relative(phrase)
    measure = "些" if phrase.plural else noun.measure
    if phrase.owner:
        owner = phrase.owner.chinese if isinstance(phrase.owner, Name) else PRONOUNS[phrase.owner]
        if "body" in noun.kinds:
            return f"自己的{words}"
        if phrase.adjective and phrase.adjective.chinese.endswith("的"):
            return f"{owner}那{measure}{words}"
        words += "们" if is_person and phrase.plural else ""
        return owner + ("" if "family" in noun.kinds and isinstance(phrase.owner, Pronoun) else "的") + words
    if phrase.count:
        return form(phrase.count, "zh", digits=phrase.digits) + noun.measure + words
    match phrase.det:
        case Det.A if not in_place:
            return f"一{noun.measure}{words}"
        case Det.THIS:
            return f"这{measure}{words}"
        case Det.WHICH:
            return f"哪{measure}{words}"
        case Det.HOW_MANY:
            return f"几{noun.measure}{words}"
        case Det.HOW_MUCH:
            return "多少钱"
        case Det.THE if gap:
            that = f"那{measure}"
            return f"{that}{gap}{words}" if phrase.relative_role == "subject" else f"{gap}{that}{words}"
        case Det.THE if not phrase.adjective and is_person and phrase.plural:
            return f"{words}们"
        case Det.THE if phrase.adjective or not (in_place or "known" in noun.kinds):
            return f"那{measure}{words}"
    return words


def pronoun(it: NounPhrase) -> str:
    """Return 它 for an animal or for anything not named yet, and the noun again for a thing."""
    if it.antecedent is None:
        return "它"
    return "它" if {"animal", "flyer"} & it.antecedent.kinds else it.antecedent.chinese


def _relative(phrase: NounPhrase) -> str:
    clause = phrase.relative
    if clause is None or clause.verb is None:
        return ""
    time = clause.time.chinese if clause.time else ""
    if phrase.relative_role == "subject":
        return time + _predicate(clause, clause.verb, whether=False) + "的"
    past = _doing(clause, clause.verb, clause.verb.chinese)
    return _phrase(clause.subject) + time + past + "的"

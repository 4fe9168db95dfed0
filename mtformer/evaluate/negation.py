"""Negation: pairs of sentences that differ in one *not*, and whether their translations differ in it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mtformer.text.languages import base_language

# What is in brackets makes a sentence negative.
_SENTENCES = {
    "en": """
        The dog is [not ]red.|She is [not ]here.|He is [not ]my brother.|I am [not ]tired.|The house is [not ]old.
        They are [not ]hungry.|We are [not ]at home.|The man is[n't] wearing a hat.|A boy is [not ]playing football.
        The woman is [not ]smiling.|The children are[n't] sleeping.|The door is [not ]open.|It is [not ]cold today.
        The book was[n't] expensive.|He was [not ]at school yesterday.|The people were [not ]happy.|I can[not] swim.
        She can['t] speak French.|You must [not ]open the window.|We will [not ]come tomorrow.|He would[n't] help me.
        I have [not ]seen the film.|She has[n't] read the book.|They have [not ]eaten the apples.|I [do not ]like dogs.
        We [don't ]know him.|You [do not ]need a car.|They [don't ]work on Sunday.|I [did not ]see the cat yesterday.
        The dogs [don't ]run in the snow.|I [do not ]believe you.|You should [not ]drink the water.
    """,
    "de": """
        Der Hund ist [nicht ]rot.|Sie ist [nicht ]hier.|Er ist [nicht ]mein Bruder.|Ich bin [nicht ]müde.
        Das Haus ist [nicht ]alt.|Sie sind [nicht ]hungrig.|Wir sind [nicht ]zu Hause.|Die Frau lächelt[ nicht].
        Der Mann trägt [k]einen Hut.|Die Kinder schlafen[ nicht].|Die Tür ist [nicht ]offen.|Heute ist es [nicht ]kalt.
        Das Buch war [nicht ]teuer.|Er war gestern [nicht ]in der Schule.|Die Leute waren [nicht ]glücklich.
        Ich kann [nicht ]schwimmen.|Du musst das Fenster [nicht ]öffnen.|Wir kommen morgen[ nicht].
        Er hilft mir[ nicht].|Ich habe den Film [nicht ]gesehen.|Sie hat das Buch [nicht ]gelesen.
        Ich mag Hunde[ nicht].|Wir kennen ihn[ nicht].|Du brauchst [k]ein Auto.
        Sie arbeiten am Sonntag[ nicht].|Ich glaube dir[ nicht].
        Ich habe die Katze gestern [nicht ]gesehen.|Die Hunde laufen [nicht ]im Schnee.|Wir haben [k]einen Hund.
        Du solltest das Wasser [nicht ]trinken.|Das ist [k]ein Problem.|Er spielt heute [nicht ]Fußball.
    """,
    "fr": """
        Le chien [n']est [pas ]rouge.|Elle [n']est [pas ]ici.|Il [n']est [pas ]mon frère.|Je [ne ]suis [pas ]fatigué.
        La maison [n']est [pas ]vieille.|Ils [n']ont [pas ]faim.|Nous [ne ]sommes [pas ]à la maison.
        Elle [ne ]sourit[ pas].
        Les enfants [ne ]dorment[ pas].|La porte [n']est [pas ]ouverte.|Le livre [n']était [pas ]cher.
        Je [ne ]sais [pas ]nager.|Nous [ne ]viendrons [pas ]demain.|J[e n]'ai [pas ]vu le film.
        Elle [n']a [pas ]lu le livre.|J[e n]'aime [pas ]les chiens.
        Nous [ne ]le connaissons[ pas].|Ils [ne ]travaillent [pas ]le dimanche.
        Je [ne ]te crois[ pas].|Il [ne ]joue [pas ]au football.
    """,
    "zh": """
        这只狗[不]是红色的。|她[不]在这里。|他[不]是我的兄弟。|我[不]累。|他们[不]饿。|我们[不]在家。|那个男人[没]戴帽子。
        孩子们[没]在睡觉。|门[没]开着。|今天[不]冷。|那本书[不]贵。|他昨天[不]在学校。|我[不]会游泳。|她[不]会说法语。
        我们明天[不]来。|我[没]看过那部电影。|她[没]读过这本书。|我[不]喜欢狗。|我们[不]认识他。|你[不]需要汽车。
        他们星期天[不]工作。|我[不]相信你。|我昨天[没]看到那只猫。|她[没]在笑。|他[不]踢足球。|我[不]吃薯片。|她[不]高兴。
        我[不]想看书。|他[没]买房子。|你[不]应该喝这水。
    """,
}
# Words that deny, and before them those that only look so.
_NEGATIONS = {
    "en": r"(?:\b(?:not|cannot|no|never|none|nobody|nothing|nowhere|neither|nor|no one)\b|n['’]t\b)",
    "de": r"\b(?:nicht|nichts|kein(?:e\w*)?|nie|niemals|niemand(?:e[mn])?|weder|nirgends|nirgendwo)\b",
    "fr": r"(?:\b(?:ne|pas|jamais|rien|aucune?|non)\b|\bn['’])",
    "es": r"\b(?:no|nunca|jamás|nada|nadie|ningún|ninguna|ninguno|tampoco|ni)\b",
    "cs": r"\b(?:ne(?!bo\b|be(?:\b|[sz]\w)|děl\w|ch(?:\b|a[lt]|á[mš]?\b|ej)|j\w|kdo|moc|ž\b)\w*"
    r"|nej(?:s(?:em|i|me|te|ou)|(?:d|ed)(?:u|eš|e|eme|ete|ou)|í(?:m|š|me|te)?)"
    r"|nikdy|nic|nikdo|nikde|žádn\w+|ani)\b",
    "zh": r"不(?!错|过|同|久|少|仅|但|管|论|断|如)|没|無|无(?!论)|未(?!来)|别(?!的|人|墅|处)",
}
_HARMLESS = {"zh": "差不多|对不起|特别|区别|分别|个别|级别|性别|告别|了不起"}


class Pair(NamedTuple):
    """Two sentences that differ in a negation."""

    positive: str
    negative: str


def negation_pairs(language: str) -> list[Pair]:
    """Return the pairs in a language; none if there are none."""
    texts = re.split(r"[|\n]\s*", _SENTENCES.get(base_language(language), "").strip())
    return [Pair(re.sub(r"\[.*?\]", "", text), re.sub(r"[\[\]]", "", text)) for text in texts if text]


def denies(text: str, language: str) -> bool | None:
    """Tell whether a text has a word that denies; None if such words of the language are not known."""
    pattern, harmless = _NEGATIONS.get(base_language(language)), _HARMLESS.get(base_language(language))
    if pattern is None:
        return None
    return re.search(pattern, re.sub(harmless, " ", text) if harmless else text, re.IGNORECASE) is not None


@dataclass(frozen=True)
class Flips:
    """Translations that say the opposite, as far as their words tell.

    Attributes:
        pairs: the pairs of sentences.
        lost: how many translations of the negative sentences deny nothing.
        added: how many translations of the positive ones deny something.
    """

    pairs: int
    lost: int
    added: int

    @property
    def share(self) -> float:
        """Of all translations, from 0 to 1."""
        return (self.lost + self.added) / (2 * self.pairs)

    def to_dict(self) -> dict[str, int]:
        """Return the object that ``--json`` prints."""
        return {"pairs": self.pairs, "lost": self.lost, "added": self.added}

    def __str__(self) -> str:
        counts = f"{self.lost} of {self.pairs} lost, {self.added} of {self.pairs} added"
        return f"negation  {self.share:.1%} of the translations flip: {counts}"


def count_flips(pairs: Sequence[Pair], translations: Sequence[Pair], tgt_lang: str) -> Flips:
    """Count flips in the translations of pairs into a language whose negations are known."""
    lost = sum(not denies(translation.negative, tgt_lang) for translation in translations)
    added = sum(bool(denies(translation.positive, tgt_lang)) for translation in translations)
    return Flips(len(pairs), lost, added)

"""The grammar of the phrasebook: what it says in three languages, sentence by sentence."""

import pytest
from phrasebook_forms import forms

from mtformer.phrasebook import chinese, english, german
from mtformer.phrasebook.lexicon import LEXICON, Name, Phrase, Time
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
    Place,
    Pronoun,
    Quality,
    Sentence,
    Tense,
)
from mtformer.phrasebook.numerals import MOST, spelled

NOUNS, VERBS, ADJECTIVES = LEXICON.nouns, LEXICON.verbs, LEXICON.adjectives
VENUES = LEXICON.venues
NAMES: dict[str, Name] = {name.id: name for name in LEXICON.names}
TIMES: dict[str, Time] = {time.id: time for group in LEXICON.times for time in group}
PHRASES: dict[str, Phrase] = {phrase.id: phrase for row in LEXICON.phrases for phrase in row}

ME, YOU, HE, SHE, WE, THEY, WHO, WHAT = (
    NounPhrase(getattr(Pronoun, name)) for name in ("I", "YOU", "HE", "SHE", "WE", "THEY", "WHO", "WHAT")
)
ANNA, PETER = NounPhrase(NAMES["Anna"]), NounPhrase(NAMES["Peter"])
PAST, FUTURE, PROGRESSIVE, PERFECT = Tense.PAST, Tense.FUTURE, Tense.PROGRESSIVE, Tense.PERFECT


def noun(name: str, det: Det = Det.NONE, adjective: str = "", **more: object) -> NounPhrase:
    described = ADJECTIVES[adjective] if adjective else None
    return NounPhrase(NOUNS[name], det, adjective=described, **more)  # type: ignore[arg-type]


def a(name: str, adjective: str = "") -> NounPhrase:
    return noun(name, Det.A, adjective)


def the(name: str, adjective: str = "", **more: object) -> NounPhrase:
    return noun(name, Det.THE, adjective, **more)


def some(name: str, adjective: str = "") -> NounPhrase:
    return noun(name, adjective=adjective, plural=NOUNS[name].number != "mass")


def do(subject: NounPhrase | Pair | None, verb: str, obj: NounPhrase | Pair | None = None, **more: object) -> Clause:
    time = more.pop("time", None)
    return Clause(subject, VERBS[verb], object=obj, time=TIMES[str(time)] if time else None, **more)  # type: ignore[arg-type]


def be(subject: NounPhrase, adjective: str, degree: str = "", **more: object) -> Clause:
    return Clause(subject, quality=Quality(ADJECTIVES[adjective], degree), **more)  # type: ignore[arg-type]


def is_a(subject: NounPhrase, profession: str, **more: object) -> Clause:
    return Clause(subject, profession=NOUNS[profession], **more)  # type: ignore[arg-type]


def at(name: str, *, goal: bool = False) -> Place:
    return Place(VENUES[name], goal=goal)


def near(relation: str, phrase: NounPhrase) -> Place:
    return Place(phrase, LEXICON.relations[relation])


def from_(name: str) -> Place:
    return Place(NAMES[name], LEXICON.relations["from"])


def ask(clause: Clause) -> Sentence:
    return Sentence(clause, Mood.QUESTION)


def it_was(antecedent: str, adjective: str) -> Clause:
    return be(NounPhrase(Pronoun.IT, antecedent=NOUNS[antecedent]), adjective, "too", tense=PAST)


STATEMENTS = [
    (do(ME, "eat.person", some("chip.snack"), tense=PAST), "I ate chips.", "Ich habe Chips gegessen.", "我吃了薯片。"),
    (
        do(ANNA, "read", a("book", "interesting"), tense=PROGRESSIVE),
        "Anna is reading an interesting book.",
        "Anna liest ein interessantes Buch.",
        "安娜正在看一本有趣的书。",
    ),
    (do(SHE, "live", place=Place(NAMES["Vienna"])), "She lives in Vienna.", "Sie wohnt in Wien.", "她住在维也纳。"),
    (
        do(THEY, "drink", some("coffee"), time="every day"),
        "They drink coffee every day.",
        "Sie trinken jeden Tag Kaffee.",
        "他们每天都喝咖啡。",
    ),
    (
        do(HE, "listen to", some("music"), time="often"),
        "He often listens to music.",
        "Er hört oft Musik.",
        "他经常听音乐。",
    ),
    (
        do(WE, "buy", a("car", "new"), tense=FUTURE, time="next year"),
        "We will buy a new car next year.",
        "Wir werden nächstes Jahr ein neues Auto kaufen.",
        "我们明年会买一辆新汽车。",
    ),
    (
        do(PETER, "read", the("book"), tense=PERFECT),
        "Peter has already read the book.",
        "Peter hat das Buch schon gelesen.",
        "彼得已经看了那本书。",
    ),
    (
        do(PETER, "read", the("book"), tense=PERFECT, negated=True),
        "Peter has not read the book yet.",
        "Peter hat das Buch noch nicht gelesen.",
        "彼得还没看那本书。",
    ),
    (do(ANNA, "swim", modal=Modal.CAN), "Anna can swim.", "Anna kann schwimmen.", "安娜会游泳。"),
    (
        do(ANNA, "open", the("window"), modal=Modal.CAN, negated=True),
        "Anna cannot open the window.",
        "Anna kann das Fenster nicht öffnen.",
        "安娜不能打开窗户。",
    ),
    (
        do(YOU, "work", modal=Modal.MUST, time="tomorrow"),
        "You must work tomorrow.",
        "Du musst morgen arbeiten.",
        "你明天必须工作。",
    ),
    (
        do(HE, "dance", modal=Modal.WANT, negated=True),
        "He does not want to dance.",
        "Er will nicht tanzen.",
        "他不想跳舞。",
    ),
]

NEGATION = [
    (
        do(ANNA, "buy", a("bicycle"), tense=PAST, negated=True),
        "Anna did not buy a bicycle.",
        "Anna hat kein Fahrrad gekauft.",
        "安娜没买自行车。",
    ),
    (do(ME, "like", some("cheese"), negated=True), "I do not like cheese.", "Ich mag keinen Käse.", "我不喜欢奶酪。"),
    (do(HE, "have", some("money"), negated=True), "He does not have money.", "Er hat kein Geld.", "他没有钱。"),
    (
        do(ANNA, "buy", the("bicycle"), tense=FUTURE, negated=True),
        "Anna will not buy the bicycle.",
        "Anna wird das Fahrrad nicht kaufen.",
        "安娜不会买那辆自行车。",
    ),
    (
        do(PETER, "wait for", ANNA, tense=PROGRESSIVE, negated=True),
        "Peter is not waiting for Anna.",
        "Peter wartet nicht auf Anna.",
        "彼得没在等安娜。",
    ),
    (
        do(SHE, "go", place=at("school", goal=True), tense=PAST, negated=True),
        "She did not go to school.",
        "Sie ist nicht in die Schule gegangen.",
        "她没去学校。",
    ),
    (be(the("dog"), "tired", negated=True), "The dog is not tired.", "Der Hund ist nicht müde.", "那只狗不累。"),
    (
        do(ANNA, "play.keys", noun("piano", Det.GENERIC), modal=Modal.CAN, negated=True),
        "Anna cannot play the piano.",
        "Anna kann nicht Klavier spielen.",
        "安娜不会弹钢琴。",
    ),
]

QUESTIONS = [
    (
        do(YOU, "see", the("dog"), tense=PAST, asked=Asked.TRUTH),
        "Did you see the dog?",
        "Hast du den Hund gesehen?",
        "你看见那只狗了吗？",
    ),
    (
        do(YOU, "like", some("tea"), asked=Asked.TRUTH),
        "Do you like tea?",
        "Magst du Tee?",
        "你喜欢茶吗？",
    ),
    (
        do(WHO, "open", the("door"), tense=PAST, asked=Asked.SUBJECT),
        "Who opened the door?",
        "Wer hat die Tür geöffnet?",
        "谁打开了门？",
    ),
    (do(SHE, "buy", WHAT, tense=PAST, asked=Asked.OBJECT), "What did she buy?", "Was hat sie gekauft?", "她买了什么？"),
    (
        do(YOU, "help", WHO, tense=PAST, asked=Asked.OBJECT),
        "Who did you help?",
        "Wem hast du geholfen?",
        "你帮助了谁？",
    ),
    (
        do(YOU, "wait for", WHO, tense=PROGRESSIVE, asked=Asked.OBJECT),
        "Who are you waiting for?",
        "Auf wen wartest du?",
        "你在等谁？",
    ),
    (
        do(ANNA, "read", noun("book", Det.WHICH), tense=PAST, asked=Asked.OBJECT),
        "Which book did Anna read?",
        "Welches Buch hat Anna gelesen?",
        "安娜看了哪本书？",
    ),
    (
        do(ANNA, "buy", noun("apple", Det.HOW_MANY, plural=True), tense=PAST, asked=Asked.OBJECT),
        "How many apples did Anna buy?",
        "Wie viele Äpfel hat Anna gekauft?",
        "安娜买了几个苹果？",
    ),
    (Clause(the("book"), asked=Asked.PLACE), "Where is the book?", "Wo ist das Buch?", "那本书在哪里？"),
    (do(PETER, "live", asked=Asked.PLACE), "Where does Peter live?", "Wo wohnt Peter?", "彼得住在哪里？"),
    (
        do(PETER, "go", tense=PAST, asked=Asked.PLACE),
        "Where did Peter go?",
        "Wohin ist Peter gegangen?",
        "彼得去哪里了？",
    ),
    (
        do(YOU, "buy", the("coat"), tense=PAST, asked=Asked.PLACE),
        "Where did you buy the coat?",
        "Wo hast du den Mantel gekauft?",
        "你是在哪里买那件大衣的？",
    ),
    (
        do(YOU, "visit.person", ANNA, tense=FUTURE, asked=Asked.TIME),
        "When will you visit Anna?",
        "Wann wirst du Anna besuchen?",
        "你什么时候看望安娜？",
    ),
    (
        do(HE, "laugh", tense=PROGRESSIVE, asked=Asked.REASON),
        "Why is he laughing?",
        "Warum lacht er?",
        "他为什么正在笑？",
    ),
    (
        be(the("house"), "expensive", asked=Asked.TRUTH),
        "Is the house expensive?",
        "Ist das Haus teuer?",
        "那栋房子贵吗？",
    ),
]

GERMAN_CASES = [
    (
        do(the("man", "old.person"), "give", a("apple", "red"), recipient=the("child"), tense=PAST),
        "The old man gave the child a red apple.",
        "Der alte Mann hat dem Kind einen roten Apfel gegeben.",
        "那个年老的男人给了那个孩子一个红色的苹果。",
    ),
    (
        do(ANNA, "thank", the("student"), tense=PAST),
        "Anna thanked the student.",
        "Anna hat dem Studenten gedankt.",
        "安娜感谢了那个学生。",
    ),
    (
        do(ME, "help", the("child", plural=True), tense=PAST, time="yesterday"),
        "I helped the children yesterday.",
        "Ich habe gestern den Kindern geholfen.",
        "我昨天帮助了孩子们。",
    ),
    (
        do(ANNA, "drink", some("milk", "fresh"), tense=PROGRESSIVE),
        "Anna is drinking fresh milk.",
        "Anna trinkt frische Milch.",
        "安娜正在喝新鲜的牛奶。",
    ),
    (
        do(ANNA, "buy", noun("banana", plural=True, count=2), tense=PAST),
        "Anna bought two bananas.",
        "Anna hat zwei Bananen gekauft.",
        "安娜买了两根香蕉。",
    ),
    (
        do(ANNA, "wash.clean", noun("jacket", adjective="blue", owner=NAMES["Max"]), tense=PAST),
        "Anna washed Max's blue jacket.",
        "Anna hat Max' blaue Jacke gewaschen.",
        "安娜洗了马克斯那件蓝色的夹克。",
    ),
    (
        do(ANNA, "climb", a("tower", "tall.height"), tense=PAST),
        "Anna climbed a tall tower.",
        "Anna ist auf einen hohen Turm geklettert.",
        "安娜爬上了一座高高的塔。",
    ),
    (
        do(SHE, "put.flat", the("book"), place=near("onto", the("table")), tense=PAST),
        "She put the book on the table.",
        "Sie hat das Buch auf den Tisch gelegt.",
        "她把那本书放在桌子上了。",
    ),
    (
        Clause(the("book"), place=near("on", the("table"))),
        "The book is on the table.",
        "Das Buch ist auf dem Tisch.",
        "那本书在桌子上。",
    ),
    (
        do(PETER, "go", place=at("station", goal=True), tense=PAST),
        "Peter went to the station.",
        "Peter ist zum Bahnhof gegangen.",
        "彼得去了火车站。",
    ),
    (
        do(PETER, "go", place=Place(Home(), goal=True), tense=PAST),
        "Peter went home.",
        "Peter ist nach Hause gegangen.",
        "彼得回了家。",
    ),
]

GERMAN_ORDER = [
    (
        do(ANNA, "buy", a("book"), tense=PAST, time="yesterday", time_first=True),
        "Yesterday Anna bought a book.",
        "Gestern hat Anna ein Buch gekauft.",
        "昨天安娜买了一本书。",
    ),
    (
        do(ANNA, "buy", a("book"), tense=PAST, time="yesterday"),
        "Anna bought a book yesterday.",
        "Anna hat gestern ein Buch gekauft.",
        "安娜昨天买了一本书。",
    ),
    (
        do(ANNA, "eat.person", some("pear"), tense=PAST, time="yesterday", place=at("garden")),
        "Anna ate pears in the garden yesterday.",
        "Anna hat gestern im Garten Birnen gegessen.",
        "安娜昨天在花园里吃了梨。",
    ),
    (
        do(PETER, "call", ANNA, time="every day"),
        "Peter calls Anna every day.",
        "Peter ruft Anna jeden Tag an.",
        "彼得每天都给安娜打电话。",
    ),
    (
        do(PETER, "pick up", SHE, tense=FUTURE, time="at eight o'clock"),
        "Peter will pick her up at eight o'clock.",
        "Peter wird sie um acht Uhr abholen.",
        "彼得八点会接她。",
    ),
    (
        do(HE, "show", the("picture"), recipient=ME, tense=PAST, time="last week"),
        "He showed me the picture last week.",
        "Er hat mir letzte Woche das Bild gezeigt.",
        "他上个星期给我看了那幅画。",
    ),
    (
        do(the("train"), "depart", tense=PAST, time="three hours ago"),
        "The train departed three hours ago.",
        "Der Zug ist vor drei Stunden abgefahren.",
        "那列火车三个小时前出发了。",
    ),
]

COMMANDS = [
    (
        Sentence(do(None, "close", the("window")), Mood.COMMAND),
        "Close the window!",
        "Mach das Fenster zu!",
        "关上窗户！",
    ),
    (
        Sentence(do(None, "read", the("letter.mail")), Mood.COMMAND),
        "Read the letter!",
        "Lies den Brief!",
        "看那封信！",
    ),
    (
        Sentence(do(None, "open", the("door")), Mood.REQUEST),
        "Please open the door.",
        "Bitte öffne die Tür.",
        "请打开门。",
    ),
    (
        Sentence(do(None, "wake up", negated=True), Mood.COMMAND),
        "Do not wake up!",
        "Wach nicht auf!",
        "别醒！",
    ),
    (
        Sentence(do(None, "stay", place=Place(Home())), Mood.REQUEST),
        "Please stay at home.",
        "Bitte bleib zu Hause.",
        "请待在家里。",
    ),
]

TWO_CLAUSES = [
    (
        Sentence(
            do(ANNA, "read", a("book"), tense=PROGRESSIVE), link=Link.AND, second=do(PETER, "sleep", tense=PROGRESSIVE)
        ),
        "Anna is reading a book and Peter is sleeping.",
        "Anna liest ein Buch und Peter schläft.",
        "安娜正在看一本书，彼得正在睡觉。",
    ),
    (
        Sentence(do(ANNA, "like", some("tea")), link=Link.BUT, second=do(PETER, "like", some("tea"), negated=True)),
        "Anna likes tea, but Peter does not like tea.",
        "Anna mag Tee, aber Peter mag keinen Tee.",
        "安娜喜欢茶，但是彼得不喜欢茶。",
    ),
    (
        Sentence(
            do(SHE, "go", place=at("school", goal=True), tense=PAST, negated=True),
            link=Link.BECAUSE,
            second=be(ANNA, "tired", tense=PAST),
            second_first=True,
        ),
        "Because Anna was tired, she did not go to school.",
        "Weil Anna müde war, ist sie nicht in die Schule gegangen.",
        "因为安娜很累，所以她没去学校。",
    ),
    (
        Sentence(
            do(HE, "work", tense=PAST), link=Link.ALTHOUGH, second=be(PETER, "hungry", tense=PAST), second_first=True
        ),
        "Although Peter was hungry, he worked.",
        "Obwohl Peter hungrig war, hat er gearbeitet.",
        "虽然彼得很饿，但是他工作了。",
    ),
    (
        Sentence(
            do(WE, "stay", place=Place(Home()), tense=FUTURE),
            link=Link.IF,
            second=do(NounPhrase(Pronoun.IT), "rain", time="tomorrow"),
            second_first=True,
        ),
        "If it rains tomorrow, we will stay at home.",
        "Wenn es morgen regnet, werden wir zu Hause bleiben.",
        "如果明天下雨，我们就会待在家里。",
    ),
    (
        Sentence(do(ANNA, "think"), link=Link.THAT, second=do(PETER, "call", WE, tense=PAST)),
        "Anna thinks that Peter called us.",
        "Anna glaubt, dass Peter uns angerufen hat.",
        "安娜觉得彼得给我们打了电话。",
    ),
    (
        Sentence(do(ANNA, "say"), link=Link.THAT, second=do(PETER, "close", the("door"), tense=PROGRESSIVE)),
        "Anna says that Peter is closing the door.",
        "Anna sagt, dass Peter die Tür zumacht.",
        "安娜说彼得正在关上门。",
    ),
    (
        Sentence(do(ME, "know.fact", negated=True), link=Link.ASKING, second=do(ANNA, "live", asked=Asked.PLACE)),
        "I do not know where Anna lives.",
        "Ich weiß nicht, wo Anna wohnt.",
        "我不知道安娜住在哪里。",
    ),
    (
        Sentence(
            do(YOU, "know.fact", asked=Asked.TRUTH),
            Mood.QUESTION,
            Link.ASKING,
            do(ANNA, "swim", modal=Modal.CAN, asked=Asked.TRUTH),
        ),
        "Do you know whether Anna can swim?",
        "Weißt du, ob Anna schwimmen kann?",
        "你知道安娜会不会游泳吗？",
    ),
    (
        do(
            the("woman", relative=do(the("woman"), "live", place=Place(NAMES["Berlin"])), relative_role="subject"),
            "buy",
            a("guitar"),
            tense=PAST,
        ),
        "The woman who lives in Berlin bought a guitar.",
        "Die Frau, die in Berlin wohnt, hat eine Gitarre gekauft.",
        "那个住在柏林的女人买了一把吉他。",
    ),
    (
        do(ME, "lose", the("watch", relative=do(ANNA, "buy", tense=PAST), relative_role="object"), tense=PAST),
        "I lost the watch that Anna bought.",
        "Ich habe die Uhr verloren, die Anna gekauft hat.",
        "我弄丢了安娜买的那块手表。",
    ),
]

NEIGHBOURS_DECIDE = [
    (
        do(the("engineer"), "design", some("chip.circuit"), tense=PROGRESSIVE),
        "The engineer is designing chips.",
        "Der Ingenieur entwirft Chips.",
        "工程师正在设计芯片。",
    ),
    (
        do(SHE, "bet", noun("chip.token", plural=True, count=3), tense=PAST),
        "She bet three chips.",
        "Sie hat drei Jetons gesetzt.",
        "她押了三个筹码。",
    ),
    (
        do(the("thief"), "rob", the("bank.money"), tense=PAST),
        "The thief robbed the bank.",
        "Der Dieb hat die Bank ausgeraubt.",
        "小偷抢劫了银行。",
    ),
    (
        do(the("ship"), "reach", the("bank.river"), tense=PAST),
        "The ship reached the bank.",
        "Das Schiff hat das Ufer erreicht.",
        "那艘轮船到达了河岸。",
    ),
    (
        do(the("boy"), "swing", the("bat.club"), tense=PROGRESSIVE),
        "The boy is swinging the bat.",
        "Der Junge schwingt den Schläger.",
        "那个男孩正在挥动那根球棒。",
    ),
    (
        do(the("bat.animal"), "hang", place=near("in", the("cave")), tense=PROGRESSIVE),
        "The bat is hanging in the cave.",
        "Die Fledermaus hängt in der Höhle.",
        "那只蝙蝠倒挂在山洞里。",
    ),
    (
        do(HE, "turn on", the("light.lamp"), tense=PAST),
        "He turned on the light.",
        "Er hat das Licht angemacht.",
        "他打开了灯。",
    ),
    (be(the("suitcase"), "light.weight"), "The suitcase is light.", "Der Koffer ist leicht.", "那个行李箱很轻。"),
    (be(the("kitchen"), "light.bright"), "The kitchen is light.", "Die Küche ist hell.", "那间厨房很明亮。"),
    (do(SHE, "run.business", a("hotel")), "She runs a hotel.", "Sie leitet ein Hotel.", "她经营一家酒店。"),
    (do(SHE, "run.jog", tense=PROGRESSIVE), "She is running.", "Sie läuft.", "她正在跑步。"),
    (
        do(the("engine"), "run.machine", tense=PROGRESSIVE),
        "The engine is running.",
        "Der Motor läuft.",
        "那台发动机正在运转。",
    ),
    (
        do(SHE, "wear.head", a("hat"), tense=PROGRESSIVE),
        "She is wearing a hat.",
        "Sie trägt einen Hut.",
        "她戴着一顶帽子。",
    ),
    (
        do(SHE, "wear.clothes", a("dress"), tense=PROGRESSIVE),
        "She is wearing a dress.",
        "Sie trägt ein Kleid.",
        "她穿着一条连衣裙。",
    ),
    (do(HE, "know.person", PETER), "He knows Peter.", "Er kennt Peter.", "他认识彼得。"),
]

ANIMAL = do(the("animal"), "cross", the("street"), tense=PAST, negated=True)
CASE = do(the("trophy"), "fit into", the("bag"), tense=PAST, negated=True)
IT = [
    (
        Sentence(ANIMAL, link=Link.BECAUSE, second=it_was("animal", "tired")),
        "The animal did not cross the street because it was too tired.",
        "Das Tier hat die Straße nicht überquert, weil es zu müde war.",
        "那只动物没穿过那条马路，因为它太累了。",
    ),
    (
        Sentence(ANIMAL, link=Link.BECAUSE, second=it_was("street", "wide")),
        "The animal did not cross the street because it was too wide.",
        "Das Tier hat die Straße nicht überquert, weil sie zu breit war.",
        "那只动物没穿过那条马路，因为马路太宽了。",
    ),
    (
        Sentence(CASE, link=Link.BECAUSE, second=it_was("trophy", "big")),
        "The trophy did not fit into the bag because it was too big.",
        "Der Pokal hat nicht in die Tasche gepasst, weil er zu groß war.",
        "那个奖杯放不进那个包，因为奖杯太大了。",
    ),
    (
        Sentence(CASE, link=Link.BECAUSE, second=it_was("bag", "small")),
        "The trophy did not fit into the bag because it was too small.",
        "Der Pokal hat nicht in die Tasche gepasst, weil sie zu klein war.",
        "那个奖杯放不进那个包，因为包太小了。",
    ),
]

PROFESSIONS = [
    (is_a(ME, "student"), "I am a student.", "Ich bin Student.", "我是学生。"),
    (is_a(SHE, "actress"), "She is an actress.", "Sie ist Schauspielerin.", "她是女演员。"),
    (is_a(THEY, "fisherman"), "They are fishermen.", "Sie sind Fischer.", "他们是渔夫。"),
    (
        is_a(PETER, "police officer", negated=True),
        "Peter is not a police officer.",
        "Peter ist kein Polizist.",
        "彼得不是警察。",
    ),
    (
        is_a(WE, "engineer", negated=True),
        "We are not engineers.",
        "Wir sind keine Ingenieure.",
        "我们不是工程师。",
    ),
    (ask(is_a(YOU, "student", asked=Asked.TRUTH)), "Are you a student?", "Bist du Student?", "你是学生吗？"),
    (
        Sentence(
            do(YOU, "know.fact", asked=Asked.TRUTH),
            Mood.QUESTION,
            Link.ASKING,
            is_a(ANNA, "nurse", asked=Asked.TRUTH),
        ),
        "Do you know whether Anna is a nurse?",
        "Weißt du, ob Anna Krankenschwester ist?",
        "你知道安娜是不是护士吗？",
    ),
]

OTHERS = [
    (do(ME, "love", some("cat")), "I love cats.", "Ich liebe Katzen.", "我爱猫。"),
    (be(the("pants"), "dirty"), "The pants are dirty.", "Die Hose ist schmutzig.", "那条裤子很脏。"),
    (
        Sentence(Clause(a("hotel"), place=at("village")), Mood.EXISTENCE),
        "There is a hotel in the village.",
        "Im Dorf gibt es ein Hotel.",
        "村子里有一家酒店。",
    ),
    (
        do(the("bear"), "climb", the("tree"), modal=Modal.CAN, negated=True),
        "The bear cannot climb the tree.",
        "Der Bär kann nicht auf den Baum klettern.",
        "那头熊爬不上那棵树。",
    ),
    (
        do(ANNA, "carry", the("table"), time="rarely"),
        "Anna rarely carries the table.",
        "Anna trägt den Tisch selten.",
        "安娜很少搬那张桌子。",
    ),
    (
        do(ANNA, "bring along", a("cake"), tense=PAST),
        "Anna brought a cake along.",
        "Anna hat einen Kuchen mitgebracht.",
        "安娜带来了一个蛋糕。",
    ),
    (
        do(SHE, "paint.nails", noun("nail.finger", plural=True, owner=Pronoun.SHE), tense=PROGRESSIVE),
        "She is painting her nails.",
        "Sie lackiert ihre Fingernägel.",
        "她正在涂自己的指甲。",
    ),
    (
        Sentence(Clause(a("cat", "black"), place=near("under", the("table"))), Mood.EXISTENCE),
        "There is a black cat under the table.",
        "Unter dem Tisch ist eine schwarze Katze.",
        "桌子下面有一只黑色的猫。",
    ),
    (PHRASES["Good morning!"], "Good morning!", "Guten Morgen!", "早上好！"),
    (
        do(Pair(ANNA, PETER), "buy", Pair(some("apple"), some("pear")), tense=PAST),
        "Anna and Peter bought apples and pears.",
        "Anna und Peter haben Äpfel und Birnen gekauft.",
        "安娜和彼得买了苹果和梨。",
    ),
]

OUR_PLACE = Clause(WE, place=Place(Home()))
PRESENT = [
    (
        do(ME, "eat.person", some("chip.snack"), negated=True),
        "I do not eat chips.",
        "Ich esse keine Chips.",
        "我不吃薯片。",
    ),
    (
        do(HE, "drink", some("coffee"), negated=True),
        "He does not drink coffee.",
        "Er trinkt keinen Kaffee.",
        "他不喝咖啡。",
    ),
    (
        do(ME, "drink", some("beer"), time="never"),
        "I never drink beer.",
        "Ich trinke nie Bier.",
        "我从不喝啤酒。",
    ),
    (
        ask(do(YOU, "play.keys", noun("guitar", Det.GENERIC), asked=Asked.TRUTH)),
        "Do you play the guitar?",
        "Spielst du Gitarre?",
        "你弹吉他吗？",
    ),
    (
        ask(do(YOU, "call", ME, tense=PAST, negated=True, asked=Asked.REASON)),
        "Why did you not call me?",
        "Warum hast du mich nicht angerufen?",
        "你为什么没给我打电话？",
    ),
    (
        do(HE, "speak", Pair(noun("English"), noun("Spanish"))),
        "He speaks English and Spanish.",
        "Er spricht Englisch und Spanisch.",
        "他会说英语和西班牙语。",
    ),
    (OUR_PLACE, "We are at home.", "Wir sind zu Hause.", "我们在家里。"),
]

ANSWERS = [
    (Sentence(is_a(HE, "teacher"), answer=True), "Yes, he is a teacher.", "Ja, er ist Lehrer.", "是的，他是老师。"),
    (
        Sentence(do(ME, "like", some("tea"), negated=True), answer=False),
        "No, I do not like tea.",
        "Nein, ich mag keinen Tee.",
        "不，我不喜欢茶。",
    ),
    (Sentence(do(ME, "do"), Mood.ANSWER, answer=True), "Yes, I do.", "Ja.", "是的。"),
    (Sentence(do(WE, "do", tense=PAST, negated=True), Mood.ANSWER, answer=False), "No, we did not.", "Nein.", "没有。"),
    (
        Sentence(Clause(SHE, modal=Modal.CAN, negated=True), Mood.ANSWER, answer=False),
        "No, she cannot.",
        "Nein, das kann sie nicht.",
        "不，她不能。",
    ),
    (Sentence(Clause(ME), Mood.ANSWER, answer=True), "Yes, I am.", "Ja, das bin ich.", "是的，我是。"),
]

POLITE = [
    (
        ask(do(YOU, "help", ME, modal=Modal.CAN, asked=Asked.TRUTH, polite=True)),
        "Can you help me, please?",
        "Kannst du mir bitte helfen?",
        "请问你能帮助我吗？",
    ),
    (
        ask(do(YOU, "open", the("window"), modal=Modal.CAN, asked=Asked.TRUTH, polite=True)),
        "Can you open the window, please?",
        "Kannst du bitte das Fenster öffnen?",
        "请问你可以打开窗户吗？",
    ),
    (
        Sentence(Clause(None, object=a("coffee")), Mood.ORDER),
        "A coffee, please.",
        "Einen Kaffee, bitte.",
        "请给我一杯咖啡。",
    ),
    (
        Sentence(Clause(None, object=noun("beer", plural=True, count=2)), Mood.ORDER),
        "Two beers, please.",
        "Zwei Bier, bitte.",
        "请给我两瓶啤酒。",
    ),
    (
        Sentence(Clause(None, object=the("flower", plural=True)), Mood.THANKS),
        "Thank you for the flowers.",
        "Danke für die Blumen.",
        "谢谢你的花。",
    ),
    (PHRASES["Thank you, Fatima!"], "Thank you, Fatima!", "Danke, Fatima!", "谢谢你，法蒂玛！"),
]

LANDS = [
    (do(ME, "come", place=from_("Japan")), "I come from Japan.", "Ich komme aus Japan.", "我来自日本。"),
    (
        do(SHE, "come", place=from_("Switzerland"), negated=True),
        "She does not come from Switzerland.",
        "Sie kommt nicht aus der Schweiz.",
        "她不是来自瑞士。",
    ),
    (
        do(WE, "travel", place=Place(NAMES["Turkey"], goal=True), tense=FUTURE),
        "We will travel to Turkey.",
        "Wir werden in die Türkei reisen.",
        "我们会去土耳其旅行。",
    ),
    (do(HE, "live", place=Place(NAMES["Turkey"])), "He lives in Turkey.", "Er wohnt in der Türkei.", "他住在土耳其。"),
    (ask(do(YOU, "come", asked=Asked.PLACE)), "Where do you come from?", "Woher kommst du?", "你来自哪里？"),
]

NUMBERS = [
    (
        do(WE, "sell", noun("ticket", plural=True, count=350), tense=PAST),
        "We sold three hundred and fifty tickets.",
        "Wir haben dreihundertfünfzig Fahrkarten verkauft.",
        "我们卖了三百五十张车票。",
    ),
    (
        do(ME, "need", noun("ticket", plural=True, count=2, digits=True)),
        "I need 2 tickets.",
        "Ich brauche 2 Fahrkarten.",
        "我需要2张车票。",
    ),
    (
        Clause(ME, quality=Quality(ADJECTIVES["old.person"], years=30, digits=True)),
        "I am 30 years old.",
        "Ich bin 30 Jahre alt.",
        "我30岁。",
    ),
    (
        do(the("book"), "cost", noun("euro", plural=True, count=20)),
        "The book costs twenty euros.",
        "Das Buch kostet zwanzig Euro.",
        "那本书要二十欧元。",
    ),
    (
        ask(do(the("book"), "cost", noun("euro", Det.HOW_MUCH), asked=Asked.OBJECT)),
        "How much does the book cost?",
        "Wie viel kostet das Buch?",
        "那本书要多少钱？",
    ),
    (
        Sentence(Clause(noun("plate", plural=True, count=12), place=near("on", the("table"))), Mood.EXISTENCE),
        "There are twelve plates on the table.",
        "Auf dem Tisch sind zwölf Teller.",
        "桌子上有十二个盘子。",
    ),
    (
        Sentence(Clause(noun("hotel"), place=at("village"), negated=True), Mood.EXISTENCE),
        "There is no hotel in the village.",
        "Im Dorf gibt es kein Hotel.",
        "村子里没有酒店。",
    ),
    (
        Sentence(Clause(a("hotel"), place=at("village"), asked=Asked.TRUTH), Mood.EXISTENCE),
        "Is there a hotel in the village?",
        "Gibt es im Dorf ein Hotel?",
        "村子里有酒店吗？",
    ),
]

ALL = [
    *STATEMENTS,
    *NEGATION,
    *((ask(clause), *texts) for clause, *texts in QUESTIONS),
    *GERMAN_CASES,
    *GERMAN_ORDER,
    *COMMANDS,
    *TWO_CLAUSES,
    *NEIGHBOURS_DECIDE,
    *IT,
    *PROFESSIONS,
    *PRESENT,
    *ANSWERS,
    *POLITE,
    *LANDS,
    *NUMBERS,
    *OTHERS,
]


@pytest.mark.parametrize(("meaning", "en", "de", "zh"), ALL)
def test_one_meaning_in_three_languages(meaning: Meaning | Clause, en: str, de: str, zh: str) -> None:
    said = Sentence(meaning) if isinstance(meaning, Clause) else meaning
    assert english.sentence(said) == en
    assert german.sentence(said) == de
    assert chinese.sentence(said) == zh


@pytest.mark.parametrize(
    ("number", "en", "de", "zh"),
    [
        (2, "two", "zwei", "两"),
        (12, "twelve", "zwölf", "十二"),
        (21, "twenty-one", "einundzwanzig", "二十一"),
        (100, "one hundred", "einhundert", "一百"),
        (101, "one hundred and one", "einhunderteins", "一百零一"),
        (110, "one hundred and ten", "einhundertzehn", "一百一十"),
        (202, "two hundred and two", "zweihundertzwei", "两百零二"),
        (216, "two hundred and sixteen", "zweihundertsechzehn", "两百一十六"),
        (999, "nine hundred and ninety-nine", "neunhundertneunundneunzig", "九百九十九"),
        (1000, "one thousand", "eintausend", "一千"),
    ],
)
def test_numbers_are_spelled_out(number: int, en: str, de: str, zh: str) -> None:
    assert [spelled(number, language) for language in ("en", "de", "zh")] == [en, de, zh]


def test_each_number_to_a_thousand_has_a_form_of_its_own() -> None:
    for language in ("en", "de", "zh"):
        assert len({spelled(number, language) for number in range(1, MOST + 1)}) == MOST


@pytest.mark.parametrize("language", ["en", "de", "zh"])
def test_each_name_has_a_form_of_its_own(language: str) -> None:
    assert len({form for name in LEXICON.names for form in forms(name, language)}) == len(LEXICON.names) > 180

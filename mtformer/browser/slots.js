"use strict";
// Slots: characters that stand for a number, a code or a name, which a translation keeps: mtformer/text/entities.py,
// names.py and slots.py.

const LONGEST_SHARING = 9; // characters: "2 until $"
const [NOON, DAY] = [12 * 60, 24 * 60]; // minutes
const BETWEEN_TIMES = /^ ?[\-–—] ?$/;
const ENGLISH = "en";
const CHINESE_LANGUAGES = ["zh", "yue"];
const WITH_MYRIADS = [...CHINESE_LANGUAGES, "ja"];
const WIDE_SIGNS = new Map([ // also units
  ...Array.from("０１２３４５６７８９，．：～％￥", (sign, i) => [sign, "0123456789,.:-%¥"[i]]),
  ["℃", "°C"],
  ["℉", "°F"],
]);
const MONTH = "月";
const UNDETERMINED = "und";
const LONGEST_OF_MONEY = 15; // characters: "$1,000.50bn-"
const LONGEST_MINUS = 7; // characters: " minus ", with the one before
const MOST_DIGITS_BEFORE_LARGE = 3; // before "million": 2010 is a year
const FEW_VALUES = ["2", "3", "4"];
const UNITS_OF_TIME = ["h", "min", "s"];
const [ORDINAL_SIGN, TO] = ["第", ["to", "bis", "到", "至"]]; // 第五公里 is the fifth kilometer; between two numbers in words
const ZEROS = 3; // that each of the words stands for more than the one before
const LONGEST_BEFORE_NUMBER = 5; // characters: " EUR ", " US$ "
const LONGEST_NAMED = 60; // characters
const SLOT = /[\ue000-\ue00f]/g;
const FIRST_OF_NAMES = "\ue00c";
const LETTERS = "A-Za-z\u00c0-\u024f\u0370-\u052f\u1e00-\u1fff"; // of languages that separate words
const NEAR = 20; // characters around a slot that tell whether it is glued
const FEWEST_SHARED_LETTERS = 3; // of a name and what it may have become
const CAPITALIZED_NOUNS = ["de", "lb"];
const LONGEST_BEFORE = 100; // characters before a word that tell a noun
const FEWEST_TOKENS_OF_RARE = 4; // of a word that training has hardly seen
const [FEWEST_SPELLED, MOST_LETTERS_A_TOKEN] = [3, 1.8]; // of a word that is spelled; a German compound has longer tokens

/** Puts slots into texts of one language that are translated into another; languages are as describe_texts has them. */
class SlotMaker {
  constructor(tokenizer, slots, src, tgt) {
    Object.assign(this, { tokenizer, slots, src, tgt });
  }

  /** A text with slots, with `words` also for units and numbers that are words; null if it has nothing that needs any. */
  make(text, words = false) {
    const free = Object.fromEntries(Object.entries(this.slots).map(([kind, slots]) => [kind, Array.from(slots)]));
    const entities = this.candidates(text, words).sort(inOrder); // of two that overlap, the first counts
    const [originals, fillings] = [new Map(), new Map()];
    let [slotted, place, isFull] = ["", 0, false];
    const names = [];
    for (const entity of entities) {
      const { start, text: written, kind, number = "" } = entity;
      if (start < place || !this.suits(entity)) continue;
      if (kind === "names") names.push(written);
      if (free[kind].length) {
        const slot = free[kind].shift();
        originals.set(slot, written);
        fillings.set(slot, this.written(entity));
        slotted += text.slice(place, start) + slot + (/['’]$/.test(number) ? " " : ""); // French "2 millions d'"
        place = start + written.length;
      } else if (written.search(SLOT) === 0) return null;
      else isFull = true;
    }
    return fillings.size ? new Slotted(slotted + text.slice(place), { originals, fillings, names, isFull }) : null;
  }

  /** Writes the numbers of a text as the target language does; all else stays as it is. */
  withNumbers(text) {
    let [changed, place] = ["", 0];
    for (const entity of this.entities(text)) {
      if (entity.start < place || !this.suits(entity)) continue;
      changed += text.slice(place, entity.start) + this.written(entity);
      place = entity.start + entity.text.length;
    }
    return changed + text.slice(place);
  }

  /** Whether the target language has the same unit, or month: see mtformer/text/entities.py. */
  suits({ text, number = "", date, unit }) {
    if (date) return this.tgt.dates !== null && (Boolean(date.day) || !this.tgt.dates.declines);
    if (unit) return unit in this.tgt.unit_words.written;
    return this.tgt.has_latin_units || !number || !LATIN_UNIT.test(text.replace(number, "").replace(MINUS, ""));
  }

  /** An entity as the target language writes it: 3.500 € for €3,500. */
  written({ text, number = "", date, clock, unit }) {
    if (date) return writeDate(date, this.tgt);
    if (clock && this.src.base === this.tgt.base) return text;
    if (clock) {
      const written = LONG.test(clock) ? inShort(clock, this.tgt) : clock;
      return unit ? written + writeUnit(unit, clock, this.tgt.unit_words) : written;
    }
    const inTarget = writtenFor(number, this.src, this.tgt);
    const before = text.slice(0, text.indexOf(number)).replace(MINUS, "-");
    if (unit) return before + inTarget + writeUnit(unit, number, this.tgt.unit_words);
    const written = text.replace(number, () => inTarget).replace(MINUS, "-");
    if (!number || WITH_MYRIADS.includes(this.tgt.base)) return written;
    const plain = inAscii(written).replace(new RegExp(DASH.source, "gu"), "");
    if (this.tgt.has_signs_behind) return plain.replace(IN_FRONT, "$<before>$<amount>\u00a0$<sign>");
    return this.tgt.base === ENGLISH ? plain.replace(BEHIND, "$<before>$<sign>$<amount>") : plain;
  }

  candidates(text, words) {
    const numbers = words ? findSpelledNumbers(text, this.src).map((number) => ({ ...number, ...ofWords(number, text) })) : [];
    const inWords = words ? [...spelledAmounts(text, this.src), ...numbers] : [];
    return [...this.entities(text).filter(({ unit }) => words || !unit), ...inWords, ...this.rareNames(text)];
  }

  /** Whether a translation lacks amounts of a text with units that are words, as 5 kilometers, or larger numbers in words. */
  losesWords(text, translation) {
    const spelled = findSpelledNumbers(text, this.src).map((number) => number.text);
    if (spelled.length && lostNumbers(text, translation, this.src, this.tgt).some((lost) => spelled.includes(lost))) return true;
    return lostAmounts(text, translation, this.src, this.tgt).length > 0;
  }

  /** The places, of characters, in a text of what slots are for. */
  places(text) {
    const spans = this.candidates(text, false).map(({ start, text: written }) => [start, start + written.length]);
    const inSpans = new Set(spans.flatMap(([start, end]) => Array.from({ length: end - start }, (_, i) => start + i)));
    let place = 0;
    const starts = Array.from(text, (character) => (place += character.length) - character.length);
    return new Set(starts.flatMap((start, i) => (inSpans.has(start) ? [i] : [])));
  }

  /** What a slot can stand for, in order, each { start, text, kind, number, date, clock, unit, value }; amounts first with their unit, then alone. */
  entities(text) {
    const dates = findDates(text, this.src).map(({ 0: written, index, groups }) => {
      const found = groups.month.toLowerCase().replace(/\.$/, "");
      const month = this.src.dates.months.findIndex((name) => name.toLowerCase().startsWith(found));
      return { start: index, text: written, kind: "many", date: { ...groups, month } };
    });
    const clocks = [...findClocks(text, this.src), ...findSpokenTimes(text, this.src)].map(({ value, ...found }) => {
      return { ...found, kind: "many", clock: value };
    });
    return [...dates, ...clocks, ...numbersAndCodes(text, this.src)].sort(inOrder);
  }

  /** Names that the model has to spell, not at the start of the text. */
  rareNames(text) {
    const hasNouns = CAPITALIZED_NOUNS.includes(this.src.base);
    const isName = ({ 0: word, index }) => {
      const n = this.tokenizer.countSrcTokens(word);
      const isSpelled = n >= FEWEST_SPELLED && word.length <= MOST_LETTERS_A_TOKEN * n;
      if (!hasNouns) return n >= FEWEST_TOKENS_OF_RARE || isSpelled;
      return isSpelled && !NOUN.test(word) && !isNounAfter(text.slice(Math.max(0, index - LONGEST_BEFORE), index));
    };
    const found = Array.from(text.matchAll(hasNouns ? CAPITALIZED_IN_GERMAN : CAPITALIZED)).flatMap(({ 0: group, index }) => {
      const words = Array.from(group.matchAll(NAME_WORD));
      for (const word of words) word.index += index;
      const later = words.filter(({ 0: word, index: at }) => at && /^\p{Lu}/u.test(word));
      const names = later.filter(isName);
      if (!names.length) return [];
      const start = hasNouns ? names[0].index : later[0].index;
      const { 0: last, index: lastStart } = later.at(-1);
      return [{ start, text: text.slice(start, lastStart + last.length), kind: "names" }];
    });
    const acronyms = Array.from(text.matchAll(ACRONYM)).filter(([word]) => this.isSpelledInAnyCase(word));
    return [...found, ...acronyms.map(({ 0: word, index }) => ({ start: index, text: word, kind: "names" }))];
  }

  /** Whether a word in capitals is an acronym, letter by letter: ONLY has fewer tokens in small letters. */
  isSpelledInAnyCase(word) {
    const count = (text) => this.tokenizer.countSrcTokens(text);
    const [small, capitalized] = [word.toLowerCase(), word[0] + word.slice(1).toLowerCase()];
    return count(word) >= word.length && Math.min(count(small), count(capitalized)) >= Math.max(2, word.length - 1);
  }
}

/** The names inside of sentences that the model has to spell and a translation lacks: mtformer/text/lost_names.py. */
function lostNames(source, translation, tokenizer) {
  const small = translation.toLowerCase();
  const isSpelled = (word) => tokenizer.countSrcTokens(word) >= FEWEST_TOKENS_OF_RARE;
  const isKept = (word) => small.includes(word) || Array.from(word).some((_, i) => {
    const letters = word.slice(i, i + FEWEST_SHARED_LETTERS);
    return letters.length === FEWEST_SHARED_LETTERS && small.includes(letters);
  });
  const names = [...new Set(source.match(INSIDE))];
  return names.filter((name) => isSpelled(name) && isSpelled(name.toLowerCase()) && !isKept(name.toLowerCase()));
}

function isNounAfter(before) {
  return DETERMINED.test(before.toLowerCase()) || GENITIVE.test(before);
}

function numbersAndCodes(text, language) {
  return Array.from(text.matchAll(FOUND)).flatMap(({ 0: written, index, groups }) => {
    const { short, number, plain, groups: grouped, range, fraction } = groups;
    if ((plain ?? range) !== undefined && text[index + written.length] === MONTH) return [];
    if (groups.unclear !== undefined || (short !== undefined && !CHINESE_LANGUAGES.includes(language.base))) return [];
    const areSeveral = grouped !== undefined && !isOneNumber(text, index, written, language);
    const singles = Array.from(areSeveral || range !== undefined ? written.matchAll(SINGLE) : []);
    const parts = singles.length ? singles.map(([single]) => single) : [written];
    const alone = singles.flatMap((single) => amounts(text, index + single.index, single[0], language));
    if (areSeveral) return alone;
    const withWord = [];
    const isApart = !SHARING.test(text.slice(Math.max(0, index - LONGEST_SHARING), index));
    const isMoney = OF_MONEY.test(text.slice(Math.max(0, index - LONGEST_OF_MONEY), index));
    const large = isApart && (plain ?? range ?? fraction) !== undefined && largeWord(language, isMoney);
    const word = large && matchAt(large, text, index + written.length);
    const values = word ? parts.map((part) => inFull(part, word)) : [null];
    if (!values.includes(null)) withWord.push(...amounts(text, index, written + word[0], language, values));
    const end = index + written.length;
    if (range !== undefined && PRICE.test(written + text.slice(end, end + LONGEST_BEFORE_NUMBER)))
      return [...withWord, ...alone];
    if ((short ?? number ?? plain ?? grouped ?? range) !== undefined)
      return [...withWord, ...amounts(text, index, written, language, parts.map(valueOf)), ...alone];
    if (fraction !== undefined) return [...withWord, ...amounts(text, index, written, language, [written])];
    if ((groups.code ?? groups.slot) !== undefined) return [{ start: index, text: written, kind: "names" }];
    return [{ start: index, text: written, kind: "many", number: written }];
  });
}

/** Whether 12 500 are no two numbers: by the language, the kind of space, or the unit or currency beside it. */
function isOneNumber(text, start, groups, language) {
  const end = start + groups.length;
  return (
    language.has_spaced_groups ||
    NO_PLAIN_SPACE.test(groups) ||
    BEFORE.test(text.slice(Math.max(0, start - LONGEST_BEFORE_NUMBER), start)) ||
    matchAt(AFTER, text, end) !== null ||
    unitWord(text, end, language) !== null
  );
}

/** A number of a text, and its sign, with its unit or currency, and alone unless it is a 1 before a noun. */
function amounts(text, start, number, language, values = [valueOf(number)]) {
  const kind = FEW_VALUES.includes(values.at(-1)) ? "few" : "many";
  const end = start + number.length;
  const [before] = BEFORE.exec(text.slice(Math.max(0, start - LONGEST_BEFORE_NUMBER), start)) ?? [""];
  const past = end + (matchAt(DASH, text, end) ?? [""])[0].length;
  const attached = matchAt(ATTACHED, text, end);
  const [found] = attached ?? (before ? null : matchAt(AFTER, text, past)) ?? [""];
  const word = before || found ? null : unitWord(text, past, language);
  const after = word ?? (language.false_units.includes(strip(found)) ? "" : found);
  const first = start - before.length;
  const sign = SIGN_BEFORE.test(text.slice(Math.max(0, first - 2), first)) ? text[first - 1] : minusBefore(text, start, end);
  const place = before ? start : start - sign.length;
  const isArticle = values.join() === "1" && !sign && matchAt(ALONE, text, end) === null;
  const isAmount = before || after || matchAt(largeWord(language, false), text, end) !== null;
  const keepsPoint = !isAmount && isNamed(text, place, number, language);
  const alone = isArticle ? [] : [{ start: place, text: text.slice(place, past), kind, number: keepsPoint ? "" : number }];
  if (!before && !after) return alone;
  const unit = word && language.unit_words.units[strip(word)];
  const value = `${sign.replace(/[−–]/, "-").replace(MINUS, "-")}${values.join("-")} ${unit ?? inAscii(strip(before) + strip(after))}`;
  const last = attached ? end + found.length : past + after.length;
  return [{ start: first - sign.length, text: text.slice(first - sign.length, last), kind, number, unit, value }, ...alone];
}

/** The word for a minus sign before the number of degrees at a place. */
function minusBefore(text, start, end) {
  const [minus] = MINUS_BEFORE.exec(text.slice(Math.max(0, start - LONGEST_MINUS), start)) ?? [""];
  return matchAt(DEGREES, text, end) ? minus : "";
}

/** Whether a number with a decimal point is that of a section or version. */
function isNamed(text, start, number, { numbers }) {
  if (!WHOLE_POINTED.test(number) || numbers.point !== ".") return false;
  return NAMED.test(text.slice(Math.max(0, start - LONGEST_NAMED), start));
}

function inOrder(a, b) {
  return a.start - b.start || b.text.length - a.text.length;
}

/** The times of day of a text in digits; two with a dash between them come once more together: mtformer/text/clocks.py. */
function findClocks(text, language) {
  const { clocks } = language;
  if (clocks) language.clock_patterns ??= { times: inJavaScript(clocks.times), time: inJavaScript(clocks.time) };
  const patterns = language.clock_patterns;
  return Array.from(clocks ? text.matchAll(patterns.times) : []).flatMap(({ 0: written, index }) => {
    const times = Array.from(written.matchAll(patterns.time));
    const found = on24Hours(times.map(({ groups }) => groups)).map((value, i) => {
      const { 0: time, index: start } = times[i];
      return { start, end: i + 1 < times.length ? start + time.length : written.length, value };
    });
    const together = found.slice(1).flatMap(({ start, end, value }, i) => {
      const first = found[i];
      const isRange = BETWEEN_TIMES.test(written.slice(first.end, start));
      return isRange ? [{ start: first.start, end, value: `${first.value}–${value}` }] : [];
    });
    return [...found, ...together].map(({ start, end, value }) => {
      return { start: index + start, text: written.slice(start, end), value };
    });
  });
}

/** The times that a text says in words, also what may be something else if `maybe`: mtformer/text/spoken_times.py. */
function findSpokenTimes(text, language, maybe = false) {
  const { spoken_times: words } = language;
  if (!words) return [];
  words.regExps ??= [words.certain, words.possible].map((pattern) => inJavaScript(pattern, "i"));
  return Array.from(text.matchAll(words.regExps[Number(maybe)])).flatMap(({ 0: written, index, groups }) => {
    const [hour, said] = [groups.hour ?? groups.said, groups.before ?? groups.after].map((word) => word.toLowerCase());
    const minutes = 60 * (words.hours[hour] ?? Number(hour)) + words.offsets[said.replace("點", "点").replace("時", "时")];
    const value = `${(Math.floor(minutes / 60) || NOON / 60) % HOURS}:${String(minutes % 60).padStart(2, "0")}`;
    return Number.isNaN(minutes) ? [] : [{ start: index, text: written, value }]; // ſ matches s
  });
}

/** Writes times that belong together; none if each may be in the morning or the evening, as in 8 bis 9 Uhr. */
function on24Hours(times) {
  const values = [];
  let isClear = false;
  for (const time of times.toReversed()) {
    const { hour, minutes, past, half } = time;
    let value = 60 * Number(hour) + Number(minutes ?? past ?? 0);
    isClear ||= (minutes ?? past ?? half) !== undefined || value < 60 || value > NOON;
    if (half) value = (value % NOON) + ("pP".includes(half) ? NOON : 0);
    else if ("half" in time) value = modulo(values.at(-1) - 1 - modulo(values.at(-1) - 1 - value, NOON), DAY); // 10 to 2 pm
    values.push(value);
  }
  const write = (value) => `${Math.floor(value / 60)}:${String(value % 60).padStart(2, "0")}`;
  return isClear ? values.reverse().map(write) : [];
}

function modulo(number, divisor) {
  return ((number % divisor) + divisor) % divisor;
}

/** The dates of a text, as matches with groups for the day, the month and the year. */
function findDates(text, { dates }) {
  if (!dates) return [];
  dates.regExps ??= dates.patterns.map((pattern) => inJavaScript(pattern));
  return dates.regExps.flatMap((pattern) => Array.from(text.matchAll(pattern)));
}

/** A pattern of Python that describe_texts has. */
function inJavaScript(pattern, flags = "") {
  return new RegExp(pattern.replaceAll("(?P<", "(?<"), `gu${flags}`);
}

/** Writes a date { year, month, day, last }, months from 0 on, in a language: mtformer/text/dates.py. */
function writeDate({ year, month, day, last }, { base, dates }) {
  const days = [day, last].filter((each) => each).map((each) => (base === "fr" && Number(each) === 1 ? "1er" : Number(each)));
  const parts = { year, month: dates.months[month], day: days.join(dates.written.includes("{day}.") ? ".–" : "–") };
  const inBrackets = /\[([^{]*\{([a-z]+)\}[^\]]*)\]/g;
  const form = dates.written.replace(inBrackets, (_, optional, part) => (parts[part] ? optional : ""));
  return form.replace(/\{([a-z]+)\}/g, (_, part) => parts[part]);
}

/** The amounts of a text whose units are words, as 5 kilometers, that its translation lacks: mtformer/text/spelled_amounts.py. */
function lostAmounts(text, translation, src, tgt) {
  const isExact = ({ clock, unit }) => clock !== "1" && !clock.includes("–") && !UNITS_OF_TIME.includes(unit); // unlike an hour
  const inWords = tgt.spelled_numbers ? spelledAmounts(text, src).filter(isExact) : [];
  const amounts = [...numbersAndCodes(text, src), ...inWords].filter(({ unit }) => unit && unit in tgt.unit_words.written);
  if (!amounts.length) return [];
  const valueOfAmount = ({ value = "" }) => value.replaceAll("½", `${POINT}5`);
  const there = new Set([...numbersAndCodes(translation, tgt), ...spelledAmounts(translation, tgt)].map(valueOfAmount));
  return amounts.filter((amount) => !there.has(valueOfAmount(amount))).map((amount) => amount.text);
}

/** What a number in words is in other languages: digits, with the minus sign of degrees. */
function ofWords({ start, end, text: written, value }, text) {
  const minus = minusBefore(text, start, end);
  const [clock, signed] = [value.replace(`${POINT}5`, "½"), value].map((digits) => (minus && "-") + digits);
  return { kind: "many", clock, start: start - minus.length, text: minus + written, value: signed };
}

/** The amounts of a text whose numbers are words, as five kilometers: mtformer/text/spelled_amounts.py. */
function spelledAmounts(text, language) {
  return findSpelledNumbers(text, language, true).flatMap((number, i, numbers) => {
    const word = unitWord(text, number.end, language);
    const unit = number.text.startsWith(PERCENT_OF) ? "%" : word && language.unit_words.units[strip(word)];
    if (!unit || text[number.start - 1] === ORDINAL_SIGN) return [];
    const kind = FEW_VALUES.includes(number.value) ? "few" : "many";
    const end = number.end + (word ?? "").length;
    const { start, clock, value: signed } = ofWords(number, text);
    const value = `${signed} ${unit}`;
    const amount = { start, text: text.slice(start, end), kind, clock, unit, value };
    const before = numbers[i - 1];
    if (!before || !TO.includes(strip(text.slice(before.end, number.start)).toLowerCase())) return [amount];
    const range = { text: text.slice(before.start, end), clock: `${ofWords(before, text).clock}–${clock}`, value: `${before.value}-${value}` };
    return [{ ...amount, ...range, start: before.start }, amount];
  });
}

/** The word of a unit, and the space before it, after a number that ends at a place: mtformer/text/unit_words.py. */
function unitWord(text, end, { unit_words: words }) {
  words.regExp ??= new RegExp(words.pattern, "uy");
  return matchAt(words.regExp, text, end)?.[0] ?? null;
}

function writeUnit(unit, number, { written, gap }) {
  return gap + written[unit][number === "1" ? 0 : 1];
}

function inAscii(text) {
  return text.replace(/[０-９，．：～％￥℃℉]/g, (sign) => WIDE_SIGNS.get(sign));
}

/** Writes a number with the separators of another language; what may be something else stays as it is. */
function writtenFor(given, srcLanguage, tgtLanguage) {
  const { base: srcBase, numbers: src } = srcLanguage;
  const { base, numbers: tgt } = tgtLanguage;
  let text = given;
  const word = largeWord(srcLanguage, true, "").exec(`${text} `);
  if (word) {
    const [number, plural] = [text.slice(0, word.index), tgtLanguage.large_words.plurals[zerosOf(word) / ZEROS - 2]];
    if (number !== "1" && plural) return `${writtenFor(number, srcLanguage, tgtLanguage)} ${plural}`;
    return withDecimals(number).replace(SINGLE, (single) => inDigits(inFull(single, word), tgt));
  }
  if (WHOLE_RANGE.test(text)) return text.replace(SINGLE, (number) => writtenFor(number, srcLanguage, tgtLanguage));
  if (!WITH_MYRIADS.includes(base)) {
    if (hasMyriads(text)) return inDigits(valueOfMyriads(text), tgt);
    text = inAscii(text);
  }
  text = text.replace(/^[\-–]?(?=[.,]\p{Nd})/u, "0"); // .5
  const thousands = `\\p{Nd}{1,3}(?:[${src.group} \\u00a0\\u2009\\u202f]\\p{Nd}{3})+`;
  const match = new RegExp(`^(?<whole>${thousands}|\\p{Nd}+)(?<decimals>[${src.point}]\\p{Nd}+)?$`, "u").exec(text);
  if (!match || srcBase === UNDETERMINED || IP_ADDRESS.test(text)) return text;
  const { whole, decimals = "" } = match.groups;
  return whole.replace(/[^\p{Nd}]/gu, tgt.group) + decimals.replace(src.point, tgt.point);
}

/** 35 million or 1.5 million for such numbers where the word has one form, and all digits of others. */
function inShort(value, { large_words: { plurals }, numbers }) {
  for (let i = plurals.length; i > 0; i--) {
    const [whole, decimals] = [value.slice(0, -ZEROS * (i + 1)), value.slice(-ZEROS * (i + 1)).replace(/0+$/, "")];
    if (whole && whole.length <= ZEROS && decimals.length <= 1 && whole + decimals !== "1")
      return `${whole}${decimals && numbers.point}${decimals} ${plurals[i - 1]}`;
  }
  return inDigits(value, numbers);
}

function inDigits(value, { group }) {
  return value.replace(/\B(?=(?:\d{3})+$)/g, group);
}

/** The pattern of a word such as "million" after a number, or after a slot for one. */
function largeWord({ large_words: { pattern, of_money: ofMoney } }, isMoney, flags = "y") {
  return new RegExp(`(?<=[\\p{Nd}¼-¾\\ue000-\\ue00f])(?:${(isMoney ? ofMoney : pattern) || "(?!)"})(?:(?<=['’])|(?![${WORD}]))`, `iu${flags}`);
}

/** The fractions of a million as decimals. */
function withDecimals(number) {
  return number.replace(/[¼½¾]/g, (sign) => ({ "¼": ".25", "½": ".5", "¾": ".75" }[sign]));
}

function zerosOf(word) {
  return ZEROS * word.findIndex((group, i) => i > 0 && group !== undefined);
}

/** The digits of 1.5 or 1½ million; null if the number is too long before such a word, as a year may be. */
function inFull(number, word) {
  const [[whole, ...decimals], zeros] = [valueOf(withDecimals(number)).split(POINT), zerosOf(word)];
  const part = decimals.join(POINT);
  if (whole.length > MOST_DIGITS_BEFORE_LARGE || part.length > zeros || decimals.length > 1) return null;
  return (whole + part.padEnd(zeros, "0")).replace(/^0+(?=.)/, "");
}

/** A text with slots: what each stands for in it, and in a translation. */
class Slotted {
  constructor(text, { originals = new Map(), fillings = new Map(), names = [], isFull = false } = {}) {
    Object.assign(this, { text, originals, fillings, names, isFull });
    // The text without slots, cut at each comma and semicolon that is outside of them.
    this.parts = text.split(COMMA).map((part) => part.replace(SLOT, (slot) => originals.get(slot) ?? slot));
  }

  /** What the slots stand for that a translation lacks. */
  lost(translation) {
    return Array.from(this.fillings).flatMap(([slot, filling]) => (translation.includes(slot) ? [] : [filling]));
  }

  /** Whether a translation has each slot, apart from other slots and digits: 99 and 02 would become 9902. */
  keeps(translation) {
    const once = this.once(translation);
    return Array.from(this.fillings.keys()).every((slot) => once.includes(slot)) && !this.isMerged(once);
  }

  /** Whether a translation keeps each slot, apart from letters: a name would become another one. */
  fits(translation) {
    return this.keeps(translation) && !this.isGlued(this.once(translation));
  }

  once(translation) {
    return filledTokens([translation], Array.from(this.fillings.keys(), (slot) => [slot, slot]))[0];
  }

  isMerged(text) {
    return Array.from(text.matchAll(MERGED)).some((match) => !this.text.includes(match[1]));
  }

  /** Whether a slot touches letters that it does not touch in the source, and that are no usual ending. */
  isGlued(text) {
    const inSource = (slot) => new RegExp(`${slot}(?:['’.\\-] ?)?[${LETTERS}]`, "u").test(this.text);
    const isAsInSource = (glued) =>
      this.text.includes(glued) ||
      (ENDING.test(glued) && this.takesEnding(glued[0])) ||
      (Array.from(glued.slice(1)).every(isAlphabetic) && inSource(glued[0]));
    return !Array.from(text.matchAll(GLUED), (match) => match[1]).every(isAsInSource);
  }

  /** Whether an ending may follow a slot, as in 3rd and Tom's; not in 3 kmth. */
  takesEnding(slot) {
    return slot >= FIRST_OF_NAMES || /\p{Nd}$/u.test(this.fillings.get(slot) ?? "");
  }

  /** Puts slots in place of what they stand for in a translation, or in the start of one. */
  emptied(translation) {
    const byLength = Array.from(this.fillings).sort(([, a], [, b]) => b.length - a.length);
    const put = (text, [slot, filling]) => {
      for (let start = text.indexOf(filling); start >= 0; start = text.indexOf(filling, start + filling.length)) {
        const [before, after] = [text.slice(0, start), text.slice(start + filling.length)];
        const near = before.slice(-2) + slot + after.slice(0, NEAR);
        if (!this.isMerged(near) && !this.isGlued(near)) return before + slot + after;
      }
      return text;
    };
    return byLength.reduce(put, translation);
  }

  /** A translation with a note on the codes and names that it lacks. */
  withLostNames({ text, notes }) {
    const lost = this.names.filter((name) => !text.includes(name));
    return { text, notes: lost.length ? [...notes, `${FLAG}${LOST_NAMES}${lost.join(" ")}`] : notes };
  }

  /** A translation with what its slots stand for. */
  restored({ text, notes }) {
    const isRepeated = (text.match(SLOT) ?? []).length > this.fillings.size;
    return { text: this.filled(text), notes: isRepeated ? [...notes, FLAG + REPEATED_SLOTS] : notes };
  }

  /** Puts back what the slots in a text stand for: each once, where it comes first. */
  filled(text) {
    return filledTokens([text], this.fillings)[0];
  }
}

/** Texts of tokens with what their slots stand for, each once. */
function filledTokens(tokens, fillings) {
  const left = new Map(fillings);
  const take = (...match) => {
    const [, space, slot] = match;
    const filling = left.get(slot);
    left.delete(slot);
    return filling === undefined ? droppedSlot(...match) : space + filling;
  };
  const ordinal = (_, slot, ending) => slot + ordinalEnding(left.get(slot) ?? "", ending);
  return tokens.map((token) => token.replace(ORDINAL_SLOT, ordinal).replace(SPACED_SLOT, take));
}

/** The ending of an English ordinal number that is right for it: 1th becomes 1st. */
function ordinalEnding(number, ending) {
  if (!/\p{Nd}$/u.test(number)) return ending;
  return number.at(-2) === "1" ? "th" : ({ 1: "st", 2: "nd", 3: "rd" }[number.at(-1)] ?? "th");
}

/** What is left of a slot, and of the mark and the space before it: see _dropped() of slots.py. */
function droppedSlot(spaced, before, slot, place, text) {
  const [mark, after] = [strip(before), text.slice(place + spaced.length)];
  if (new RegExp(`^[${WORD}]`, "u").test(after)) return before;
  return ENDS_A_PART.test(after || mark.replace(/^[.。]$/, "")) ? "" : mark;
}

/** A translation without the slots that its source lacks: nobody knows what they stand for. */
function withoutMadeUp(source, { text, notes }) {
  const known = text.replace(SPACED_SLOT, (...match) => (source.includes(match[2]) ? match[0] : droppedSlot(...match)));
  return known === text ? { text, notes } : { text: strip(known), notes: [...notes, FLAG + MADE_UP_SLOTS] };
}

/** Changes a text, but not the addresses, placeholders, currencies, names of files and other codes in it. */
function outsideCodes(change, text) {
  let [changed, place] = ["", 0];
  for (const { 0: code, index } of text.matchAll(WITH_CASING)) {
    changed += change(text.slice(place, index)) + code;
    place = index + code.length;
  }
  return changed + change(text.slice(place));
}

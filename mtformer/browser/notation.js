"use strict";
// How a language writes numbers, dates and units: mtformer/text/notation.py, dates.py and unit_words.py.

const CHINESE_LANGUAGES = ["zh", "yue"];
const WITH_MYRIADS = [...CHINESE_LANGUAGES, "ja"];
const WIDE_SIGNS = new Map([ // also units
  ...Array.from("０１２３４５６７８９，．：～％￥", (sign, i) => [sign, "0123456789,.:-%¥"[i]]),
  ["℃", "°C"],
  ["℉", "°F"],
]);
const UNDETERMINED = "und";
const MOST_DIGITS_BEFORE_LARGE = 3; // before "million": 2010 is a year
const ZEROS = 3; // that each of the words stands for more than the one before

/** Writes a number with the separators of another language; what may be something else stays as it is. */
function writtenFor(given, srcLanguage, tgtLanguage) {
  const { base: srcBase, numbers: src } = srcLanguage;
  const { base, numbers: tgt } = tgtLanguage;
  const inMyriads = WITH_MYRIADS.includes(base);
  let text = given;
  const word = largeWord(srcLanguage, true, "").exec(`${text} `);
  if (word) {
    const [number, large] = [text.slice(0, word.index), new Map(tgtLanguage.large_words.units).get(zerosOf(word))];
    if (number !== "1" && large && !inMyriads) return writtenFor(number, srcLanguage, tgtLanguage) + large;
    return withDecimals(number).replace(SINGLE, (single) => inShort(inFull(single, word, srcLanguage), tgtLanguage));
  }
  if (WHOLE_RANGE.test(text)) return text.replace(SINGLE, (number) => writtenFor(number, srcLanguage, tgtLanguage));
  if (!inMyriads) {
    if (hasMyriads(text)) return inShort(valueOfMyriads(text), tgtLanguage);
    text = inAscii(text);
  }
  text = text.replace(/^[\-–]?(?=[.,]\p{Nd})/u, "0"); // .5
  const group = `[${src.group} \\u00a0\\u2009\\u202f]`;
  const [thousands, rounded] = [`\\p{Nd}{1,3}(?:${group}\\p{Nd}{3})+`, `\\p{Nd}{1,3}(?:${group}\\p{Nd}{3})*${group}[05]00`];
  const match = new RegExp(`^(?<whole>${thousands}|1:${rounded}|${rounded}:1|(?:\\p{Nd}+:)*\\p{Nd}+)(?<decimals>[${src.point}]\\p{Nd}+)?$`, "u").exec(text);
  if (!match || srcBase === UNDETERMINED || IP_ADDRESS.test(text)) return text;
  const { whole, decimals = "" } = match.groups;
  return whole.replace(/[^\p{Nd}:]/gu, tgt.group) + decimals.replace(src.point, tgt.point);
}

/** 35 million or 3500万 for such numbers, where the word has one form, and all digits of others. */
function inShort(value, { base, large_words: { units }, numbers }) {
  const inMyriads = WITH_MYRIADS.includes(base);
  for (const [zeros, word] of units.toReversed()) {
    const [whole, decimals] = [value.slice(0, -zeros), value.slice(-zeros).replace(/0+$/, "")];
    const isOne = whole + decimals === "1"; // of which "million" has another form
    if (whole && whole.length <= (inMyriads ? 4 : 3) && decimals.length <= 1 && (inMyriads || !isOne))
      return whole + (decimals && numbers.point) + decimals + word;
  }
  return inDigits(value, numbers);
}

function inDigits(value, { group }) {
  return value.replace(/\B(?=(?:\d{3})+$)/g, group);
}

/** The value of a number before such a word, whose point may be followed by three digits: 1.235 billion. */
function beforeLarge(number, { numbers: { point } }) {
  const [whole, ...parts] = number.split(point);
  const isWhole = parts.length && whole.length <= MOST_DIGITS_BEFORE_LARGE;
  return isWhole && /^\p{Nd}{3}$/u.test(parts.join(point)) ? whole + POINT + parts[0] : valueOf(withDecimals(number));
}

/** The digits of 1.5 or 1½ million; null if the number is too long before such a word, as a year may be. */
function inFull(number, word, language) {
  const [[whole, ...decimals], zeros] = [beforeLarge(number, language).split(POINT), zerosOf(word)];
  const part = decimals.join(POINT);
  const isYear = /^\p{Nd}+$/u.test(number) && whole.length > MOST_DIGITS_BEFORE_LARGE; // unlike 1,375 million
  if (isYear || whole.length > MOST_DIGITS || part.length > zeros || decimals.length > 1) return null;
  return (whole + part.padEnd(zeros, "0")).replace(/^0+(?=.)/, "");
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

function inAscii(text) {
  return text.replace(/[０-９，．：～％￥℃℉]/g, (sign) => WIDE_SIGNS.get(sign));
}

/** Writes a date { year, month, day, last }, months from 0 on, in a language: mtformer/text/dates.py. */
function writeDate({ year, month, day, last }, { base, dates }) {
  const days = [day, last].filter((each) => each).map((each) => (base === "fr" && Number(each) === 1 ? "1er" : Number(each)));
  const parts = { year, month: dates.months[month], day: days.join(dates.written.includes("{day}.") ? ".–" : "–") };
  const inBrackets = /\[([^{]*\{([a-z]+)\}[^\]]*)\]/g;
  const form = dates.written.replace(inBrackets, (_, optional, part) => (parts[part] ? optional : ""));
  return form.replace(/\{([a-z]+)\}/g, (_, part) => parts[part]);
}

function writeUnit(unit, number, { written, gap }) {
  return gap + written[unit][number === "1" ? 0 : 1];
}

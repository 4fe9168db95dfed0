"use strict";
// Numbers in texts, and which of them a translation lacks, in digits and in words: mtformer/text/numbers.py,
// lost_numbers.py and number_words.py. Languages are as describe_texts describes them.

const PERCENT_OF = "百分之"; // what percents begin with in Chinese
const POINT = "·"; // between the parts of a value, whatever the text has there
const LARGEST_SPELLED_OUT = 12; // numbers up to it may become words

// Numbers of Chinese and Japanese in 万 and 亿
const MYRIAD_SIGNS = new Map(Object.entries({ 万: 10n ** 4n, 萬: 10n ** 4n, 亿: 10n ** 8n, 億: 10n ** 8n }));
const MULTIPLES = new Map(Object.entries({ "": 1n, 十: 10n, 百: 100n, 千: 1000n, 万: 10000n, 萬: 10000n }));

// Numbers that are written otherwise
const YEARS = [1100, 2099]; // nineteen eighty
const POWERS = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => 10 ** n);
const SCALES = { // zeros
  ...{ thousand: 3, grand: 3, tausend: 3, million: 6, mio: 6, milliard: 9, miliard: 9, mrd: 9 },
  ...{ billionen: 12, billion: 9, trillion: 12, 百: 2, 千: 3 },
  ...{ k: 3, tsd: 3, teur: 3, m: 6, mn: 6, mln: 6, mill: 6, b: 9, bn: 9, bln: 9, md: 9, mia: 9, tn: 12, trn: 12 },
};
const DISCOUNT = "折"; // 8折 is 20% off
const MINUTES = ["15", "30", "45", "90"]; // parts of an hour
const HALF = "50";
const HALVES_AND_QUARTERS = ["5", "50", "25", "75", "15", "30", "45"];
const [HOURS, LAST_MINUTE, DAYS, MONTHS] = [24, 59, 31, 12];
const ONES = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"];
const LONGEST_OF_DECADE = 10; // characters: "années '"
const MOST_DIGITS = 15; // of a number that is written otherwise
const MOST_MISSING = 40; // numbers that are looked for as words; text has fewer

/** The numbers of a text in order, as { start, end, text, value }; day, month and year of a date are three, 3万50 and 3-5万 none. */
function findNumbers(text) {
  return Array.from(text.matchAll(NUMBER)).flatMap(({ 0: written, index, groups }) => {
    if (groups.unclear !== undefined)
      return WHOLE_ABOUT_MYRIADS.test(written) ? [numberAt(index, written, valueOf(written.replace(ABOUT, "")))] : [];
    const parts = Array.from(written.matchAll(NUMBER_PARTS));
    const lengths = parts.map(([digits]) => countCharacters(digits)).sort((a, b) => a - b);
    const isDate = parts.length === 3 && ["1,4", "2,4"].includes(lengths.slice(1).join());
    if (!isDate || groups.myriads !== undefined) return [numberAt(index, written, valueOf(written))];
    return parts.map(({ 0: digits, index: place }) => numberAt(index + place, digits, String(Number(asciiDigits(digits)))));
  });
}

/** The numbers in words from 13 on, and those with a half or decimals, or with `small` all: mtformer/text/spelled_numbers.py. */
function findSpelledNumbers(text, { spelled_numbers: words }, small = false) {
  const lowered = text.replaceAll("İ", "I").toLowerCase(); // as long as the text
  if (!words || !(small || words.signs.some((sign) => lowered.includes(sign)))) return [];
  const { values, factors, points } = words;
  words.regExps ??= {
    number: inJavaScript(words.pattern),
    part: new RegExp([...Object.keys(values), ...Object.keys(factors), ...points].sort((a, b) => b.length - a.length).join("|"), "g"),
  };
  return Array.from(lowered.matchAll(words.regExps.number)).flatMap(({ 0: inSmallLetters, index }) => {
    const parts = inSmallLetters.match(words.regExps.part);
    const value = valueOfWords(parts, words);
    const isFactor = parts.at(-1) in factors && ["", "a ", "eine ", "einer "].includes(parts.slice(0, -1).join()); // a hundred
    const isClear = (value > LARGEST_SPELLED_OUT || !Number.isInteger(value)) && !isFactor;
    const written = text.slice(index, index + inSmallLetters.length);
    return isClear || small ? [numberAt(index, written, String(value).replace(".", POINT))] : [];
  });
}

/** The value of a number by the words that it is made of; nineteen, eighty and four make a year, and so do 二, 〇, 二 and 六. */
function valueOfWords(parts, { values, factors, points, group }) {
  let [total, section, last, before] = [0, 0, 0, null]; // the value of the word before, unless that multiplies
  let place = 0; // of the next decimal
  for (const part of parts) {
    const [factor, value] = [factors[part], values[part]];
    if (points.includes(part)) place = 0.1;
    else if (place && factor === undefined) [last, place] = [last + value * place, place / 10];
    else if (factor === undefined) {
      if (before !== null && Number.isInteger(value) && before < 10 === value < 10) last *= value >= 10 ? 100 : 10;
      [last, before] = [last + value, value];
    } else {
      [before, place] = [null, 0];
      if (factor >= group) [total, section, last] = [total + (section + last || 1) * factor, 0, 0];
      else [section, last] = [section + (last || 1) * factor, 0];
    }
  }
  return Number((total + section + last).toFixed(6)); // 4.35 * 10 ** 8 is no 434999999.99999994
}

/** The numbers of a text, in digits and in words, in order; none of the words of a time: eight thirty. */
function numbersOf(text, language) {
  const spelled = findSpelledNumbers(text, language);
  const times = spelled.length ? findSpokenTimes(text, language, true) : [];
  const isSaid = ({ start }) => times.some((time) => time.start <= start && start < time.start + time.text.length);
  return [...findNumbers(text), ...spelled.filter((number) => !isSaid(number))].sort((a, b) => a.start - b.start);
}

function numberAt(start, text, value) {
  return { start, end: start + text.length, text, value };
}

/** The value of a number: thousands are joined; other parts, such as hours and minutes, stay apart. */
function valueOf(number) {
  if (hasMyriads(number)) return valueOfMyriads(number);
  const [first, ...after] = (/^\p{Nd}/u.test(number) ? number : `0${number}`).split(/[:：]/);
  let [whole, ...following] = first.match(NUMBER_PARTS).map(asciiDigits);
  while (following.length && countCharacters(following[0]) === 3) whole += following.shift();
  return [whole, ...following, ...(after.join(":").match(NUMBER_PARTS) ?? []).map(asciiDigits)].join(POINT);
}

/** Whether a translation may spell a number out: a small integer. */
function mayBeAWord({ value }) {
  return value.length <= String(LARGEST_SPELLED_OUT).length && Number(value) <= LARGEST_SPELLED_OUT;
}

/**
 * The numbers of a source that a translation lacks. Small ones count as lost if the words of the target language are
 * known, or if the translation has another number instead; a 1 only if the translation spells out another number.
 */
function lostNumbers(source, translation, src, tgt) {
  const lost = missingNumbers(source, translation, src, tgt);
  const times = missingTimes(source, translation, src, tgt);
  const textsOf = (numbers) => [...numbers, ...times].sort((a, b) => a.start - b.start).map(({ text }) => text);
  if (!lost.some(mayBeAWord)) return textsOf(lost);
  const isSure =
    Object.keys(tgt.number_words.stems).length > 0 || missingNumbers(translation, source, tgt, src).length > 0;
  const countsOnes = isSure && spellsOutAnother(source, translation, src, tgt);
  const isCounted = countedIn(source, countsOnes);
  const isLost = (number) => !mayBeAWord(number) || (isSure && isCounted(number));
  return textsOf(lost.filter(isLost));
}

/** The times that a text says in words and its counterpart lacks; none if it may say them as well. */
function missingTimes(text, counterpart, language, counterpartLanguage) {
  const said = counterpartLanguage.spoken_times ? findSpokenTimes(text, language) : [];
  const there = said.length ? timesOf(counterpart, counterpartLanguage) : [];
  return said.filter(({ value }) => !there.includes(minutesOf(...value.split(":"))));
}

/** What may be a time of day in a text, as minutes since midnight or noon. */
function timesOf(text, language) {
  const said = findSpokenTimes(text, language, true).map(({ value }) => value.split(":"));
  const clocks = findClocks(text, language).flatMap(({ value }) => value.split("–").map((time) => time.split(":")));
  const numbers = findNumbers(text).map(({ value }) => value.split(POINT)).filter(isTime);
  return [...said, ...clocks, ...numbers].map((time) => minutesOf(...time));
}

function isTime(parts) {
  return parts.length === 2 && parts[1].length === 2 && parts[0] <= HOURS && parts[1] <= LAST_MINUTE;
}

/** The minutes of a time since midnight or noon. */
function minutesOf(hour, minute) {
  return (60 * Number(hour) + Number(minute)) % NOON;
}

/** The numbers of a translation that its source lacks; none where the words of its language are not known. */
function madeUpNumbers(source, translation, src, tgt) {
  return Object.keys(src.number_words.stems).length > 0 ? lostNumbers(translation, source, tgt, src) : [];
}

/** Whether a translation has a word for a number from 2 to 12 that its source lacks. */
function spellsOutAnother(source, translation, src, tgt) {
  if (!Object.keys(src.number_words.stems).length || LARGE.test(translation.toLowerCase())) return false; // 十亿 is a billion
  const [ofSrc, ofTgt] = [new NumberWords(src), new NumberWords(tgt)];
  const values = findNumbers(source).map(({ value }) => value);
  const isMadeUp = (n) =>
    ofTgt.mayBeIn(translation.toLowerCase(), n) && !values.includes(String(n)) && !ofSrc.mayBeIn(source.toLowerCase(), n);
  return Array.from({ length: LARGEST_SPELLED_OUT - 1 }, (_, place) => place + 2).some(isMadeUp);
}

/** Returns whether a small number of a text is more than an article, and no part of a date, a code or a fraction: 24/7. */
function countedIn(text, countsOnes) {
  const inRanges = new Set();
  for (const { 0: range, index } of text.matchAll(SMALL_RANGE))
    for (let place = index; place < index + range.length; place++) inRanges.add(place);
  const months = new Set(Array.from(text.matchAll(MONTH_IN_DIGITS), ({ index }) => index));
  return ({ start, end, text: written, value }) => {
    const isMany = Number(value) > 1 || countsOnes || !/^\p{Nd}+$/u.test(written); // as in 1 million
    const isApart = !ATTACHED_BEFORE.test(text.slice(Math.max(0, start - 2), start)) && matchAt(ATTACHED_AFTER, text, end) === null;
    return isMany && !months.has(start) && (isApart || inRanges.has(start));
  };
}

function matchAt(sticky, text, place) {
  sticky.lastIndex = place;
  return sticky.exec(text);
}

/** The words such as "million" after slots, as in 2 or 3 million. */
function scalesOfSlots(text, language) {
  const words = Array.from(text.matchAll(largeWord(language, false, "g")));
  return words
    .filter(({ index }) => /[\ue000-\ue00f]/.test(text[index - 1]))
    .map((word) => numberAt(word.index, word[0].replace(/^[\- \u00a0\u202f]|[\- \u00a0\u202f]$/g, ""), `1${"0".repeat(zerosOf(word))}`));
}

/** The numbers of a text that its counterpart lacks; the first of those that it has, but not as often. */
function missingNumbers(text, counterpart, language, counterpartLanguage) {
  const isKnown = Object.keys(counterpartLanguage.number_words.stems).length > 0;
  let numbers = isKnown ? numbersOf(text, language) : findNumbers(text);
  const scales = scalesOfSlots(text, language);
  if (!numbers.length && !scales.length) return [];
  const left = new Map(); // how often the counterpart has each value
  const values = numbersOf(counterpart, counterpartLanguage).map(({ value }) => value);
  for (const value of [...values, ...(counterpart.match(SPACED_NUMBER) ?? []).map(valueOf)])
    left.set(value, (left.get(value) ?? 0) + 1);
  const take = (value) => {
    const n = left.get(value) ?? 0;
    if (n) left.set(value, n - 1);
    return n > 0;
  };
  const ofScales = findNumbers(counterpart).map((number) => scaledValue(number, counterpart, counterpartLanguage));
  const inside = new Set(); // of numbers with spaces: where their parts may start
  for (const { 0: written, index } of text.matchAll(SPACED_NUMBER)) {
    if (!take(valueOf(written)) && !ofScales.includes(valueOf(written))) continue; // it is several numbers
    for (let place = index; place < index + written.length; place++) inside.add(place);
  }
  for (const { start, text: said } of findSpokenTimes(text, language)) // the 9 of "halb 9"
    for (let place = start; place < start + said.length; place++) inside.add(place);
  numbers = numbers.filter(({ start }) => !inside.has(start));
  const missing = numbers.toReversed().filter(({ value }) => !take(value)).reverse();
  if (missing.length > MOST_MISSING) return missing;
  const remaining = Array.from(left).flatMap(([value, n]) => (n ? [value] : []));
  const other = missing.length && new Counterpart(text, counterpart, remaining, language, counterpartLanguage);
  const lost = new Map(missing.filter((number) => !other.hasOtherwise(number)).map((number) => [number.start, number]));
  const inFull = new Set([...left.keys(), ...Array.from(left.keys(), withoutIdleZeros)]);
  const lacksScales = isKnown && !LARGE.test(counterpart.toLowerCase()); // 2千 is not 2
  for (const scale of lacksScales ? scales : []) lost.set(scale.start, scale);
  for (const number of lacksScales ? numbers : []) {
    const scale = matchAt(isOfMoney(text, number.start) ? ANY_SCALE : SCALE, text, number.end);
    const value = scale && scaledValue(number, text, language);
    if (value !== null && !inFull.has(value)) lost.set(number.start, numberAt(number.start, number.text + scale[0], number.value));
  }
  for (const number of withOtherZeros(numbers, text, counterpart, language, counterpartLanguage)) lost.set(number.start, number);
  return [...lost.values()].sort((a, b) => a.start - b.start);
}

/** The numbers before words such as "billion" that the counterpart has before others: German "Billionen". */
function withOtherZeros(numbers, text, counterpart, language, counterpartLanguage) {
  const there = findNumbers(counterpart).map((number) => [
    valueBeforeLarge(number, counterpartLanguage),
    zerosAfter(number, counterpart, counterpartLanguage).zeros,
  ]);
  return numbers.flatMap((number) => {
    const { zeros, word } = zerosAfter(number, text, language);
    const others = there.flatMap(([value, zeros]) => (value === valueBeforeLarge(number, language) ? [zeros] : []));
    const isOther = zeros && others.length && !others.includes(0) && !others.includes(zeros);
    return isOther ? [numberAt(number.start, number.text + word, number.value)] : [];
  });
}

/** The zeros that a word such as "million" after a number stands for, and the word; 0 without a clear one. */
function zerosAfter({ start, end }, text, language) {
  const word = matchAt(largeWord(language, isOfMoney(text, start)), text, end);
  const following = word && new RegExp(language.large_words.pattern, "iuy");
  const isClear = word && matchAt(following, text, end + word[0].length) === null; // not mille milliards
  return isClear ? { zeros: zerosOf(word), word: word[0] } : { zeros: 0, word: "" };
}

/**
 * Looks for the numbers of a text in a counterpart that writes them otherwise: as words, on a clock, in millions. What
 * may be the same is taken for the same.
 */
class Counterpart {
  constructor(text, counterpart, values, language, counterpartLanguage) {
    const words = new NumberWords(counterpartLanguage);
    Object.assign(this, { text, language, counterpart: counterpart.toLowerCase(), words });
    const ofText = numbersOf(text, language).map(({ value }) => value);
    this.hasOthers = findSpelledNumbers(counterpart, counterpartLanguage).some(({ value }) => !ofText.includes(value));
    const said = findSpokenTimes(counterpart, counterpartLanguage, true);
    this.timesSaid = said.map(({ value }) => minutesOf(...value.split(":")));
    this.hasDates = language.has_ordinals;
    this.hasClock = CLOCK.test(text) || CLOCK.test(counterpart);
    this.hasCenturies = CENTURY.test(text) || CENTURY.test(counterpart);
    const inFull = findNumbers(counterpart).map((number) => scaledValue(number, counterpart, counterpartLanguage));
    const ofDates = values.filter((value) => value.length === 2).map((value) => value.replace(/^0+/, "")); // 06/05/2024
    const own = romanNumbers(text);
    const ofNumerals = romanNumbers(counterpart).filter((value) => !own.includes(value));
    const others = [...inFull.filter((value) => value !== null), ...ofDates, ...ofNumerals];
    this.values = new Set([...values.map(withoutIdleZeros), ...others]);
    if (!this.hasClock && !(counterpartLanguage.has_ordinals && DAY_AND_MONTH.test(counterpart))) return;
    const parts = values.flatMap((value) => value.split(POINT).slice(0, 2)).filter((part) => part.length <= 2);
    const scores = findNumbers(counterpart).filter((number) => number.text.includes(":"));
    for (const part of [...parts, ...scores.flatMap(({ value }) => value.split(POINT))]) this.values.add(String(Number(part)));
  }

  /** Whether the counterpart has a number that it lacks as it is written. */
  hasOtherwise(number) {
    const { value, start, end } = number;
    const [whole, ...parts] = value.split(POINT);
    if (value.length > MOST_DIGITS || value.startsWith("00") || parts.length > 1) return false;
    if (this.values.has(withoutIdleZeros(value)) || this.values.has(scaledValue(number, this.text, this.language))) return true;
    const n = Number(whole);
    if (parts.length) return this.hasBoth(number, n, parts[0]);
    const isHalf = whole === HALF && matchAt(PERCENT, this.text, end) !== null;
    if ((isHalf || MINUTES.includes(whole)) && this.words.haveParts(this.counterpart)) return true; // half an hour
    const before = this.text.slice(Math.max(0, start - LONGEST_OF_DECADE), start);
    const isDecade = matchAt(DECADE, this.text, end) || DECADE_BEFORE.test(before);
    const ofDecade = isDecade ? [n >= 100 ? n % 100 : 1900 + n] : [];
    const decade = matchAt(DECADE_OF_CENTURY, this.text, end);
    const ofCentury = n >= 100 ? Math.floor(n / 100) + 1 : 100 * (n - 1) + Number(decade?.[1] ?? 0);
    const others = [...ofDecade, ...(decade || this.hasCenturies ? [ofCentury] : [])];
    return [...this.hours(n), ...others].some((number) => this.has(number));
  }

  /**
   * Whether the counterpart has both parts of a price, a time, a date or a decimal number. As two numbers in digits only
   * a time or a date is written, or what may be one: 312.25 is not 312 and 25.
   */
  hasBoth({ text: written, end }, whole, part) {
    if (whole > DAYS && this.values.has(String(whole)) && !written.includes(":")) return false; // unlike a score
    if (isTime([whole, part]) && this.timesSaid.includes(minutesOf(whole, part))) return true;
    const hours = this.hours(whole);
    if (hours.some((hour) => this.values.has(withoutIdleZeros(`${hour}${POINT}${part}`)))) return true;
    const mayHaveParts = HALVES_AND_QUARTERS.includes(part) && !this.timesSaid.length; // else they are those
    const hasParts = mayHaveParts && this.words.haveParts(this.counterpart);
    const next = hasParts ? hours.map((hour) => hour + 1) : []; // halb drei is 2:30
    if (![...hours, ...next].some((hour) => this.has(hour))) return false;
    if (/\p{L}/u.test(this.text[end - 1])) return AND_A_HALF.test(this.counterpart);
    const n = Number(part);
    const digits = Array.from(part.replace(/0+$/, ""), Number);
    if (hasParts || this.has(n) || digits.every((digit) => this.has(digit))) return true;
    return this.hasDates && n <= MONTHS && written.includes(".") && this.text.startsWith(".", end);
  }

  /** A number, and the same hour on a clock of 12 or 24 hours. */
  hours(number) {
    return this.hasClock && number <= HOURS ? [number, (number + 12) % 24, number % 12] : [number];
  }

  has(number) {
    if (this.values.has(String(number))) return true;
    const isAnother = this.hasOthers && number > LARGEST_SPELLED_OUT; // thirty-five, of which 53 has all the words
    return !isAnother && this.words.mayBeIn(this.counterpart, number);
  }
}

/** The values of Roman numerals, as in World War II. */
function romanNumbers(text) {
  return Array.from(text.matchAll(ROMAN), ([, tens, ones]) => String(10 * tens.length + ONES.indexOf(ones)));
}

/** A value without zeros that say nothing: 8·3 for 08:30, and 2 for 2.00; 007 is not 7. */
function withoutIdleZeros(value) {
  const place = value.indexOf(POINT);
  if (place < 0) return value;
  const [whole, part] = [value.slice(0, place).replace(/^0+/, "") || "0", value.slice(place + 1).replace(/0+$/, "")];
  return part ? whole + POINT + part : whole;
}

/** The value of a number with "million", m, 折 or the like after it; null if there is none. */
function scaledValue(number, text, language) {
  const { end } = number;
  const match = matchAt(ANY_SCALE, text, end);
  const word = match ? null : matchAt(largeWord(language, false), text, end);
  const [whole, ...parts] = valueBeforeLarge(number, language).split(POINT);
  const decimals = parts.join(POINT);
  if (text.startsWith(DISCOUNT, end) && (whole + decimals).length <= 2)
    return String(100 - Number((whole + decimals).padEnd(2, "0")));
  if (!match && !word) return null;
  const zeros = match ? SCALES[(match[1] ?? match[2]).toLowerCase()] : zerosOf(word);
  return decimals.length > zeros ? null : (whole + decimals.padEnd(zeros, "0")).replace(/^0+(?=.)/, "");
}

/** The value of a number before a word such as "million": see beforeLarge. */
function valueBeforeLarge({ text, value }, language) {
  return /^\p{Nd}/u.test(text) ? beforeLarge(text, language) : value;
}

/** The words for numbers of a language. */
class NumberWords {
  constructor({ number_words: { stems, parts }, has_spaces: hasSpaces }) {
    this.stems = new Map(Object.entries(stems).map(([value, stem]) => [Number(value), stem]));
    this.parts = parts && new RegExp(parts, "u");
    this.start = hasSpaces ? `(?<![${WORD}])` : "";
  }

  /** Whether a text, in small letters, has all words that a number is made of. */
  mayBeIn(text, number) {
    const start = number <= LARGEST_SPELLED_OUT ? this.start : ""; // German and Chinese write others together
    let readings = [this.madeOf(number)];
    if (!this.stems.has(0) && number > 20 && number < 100 && number % 10 && readings[0].length) {
      const [[ten, unit]] = readings; // thirty-eight, not eight-thirty
      readings = [[`(?:${ten})y?[ -]?(?:and )?(?:${unit})|(?:${unit})(?:en)?(?:und| and )(?:${ten})`]];
    }
    if (number >= YEARS[0] && number <= YEARS[1])
      readings.push([...this.madeOf(Math.floor(number / 100)), ...this.madeOf(number % 100)]);
    if (this.stems.has(0) && number > 9) // digit by digit: 一九九八
      readings.push([Array.from(String(number), (digit) => this.stems.get(Number(digit))).join("")]);
    if (this.stems.has(0) && number > 9 && number < 100 && number % 10 === 0)
      readings.push([`${this.stems.get(number / 10)}成`]); // 八成 is 80 %
    const isThere = (stem) => new RegExp(`${start}(?:${stem})`, "u").test(text);
    return readings.some((stems) => stems.length > 0 && stems.every(isThere));
  }

  /** Whether a text, in small letters, has a word for a half or a quarter. */
  haveParts(text) {
    return Boolean(this.parts) && this.parts.test(text);
  }

  /** The words that a number is made of: 325 of 3, 100, 20 and 5; none if there are none for it. */
  madeOf(number) {
    const madeOf = [];
    for (let left = number; left; ) {
      const base = Math.max(0, ...Array.from(this.stems.keys()).filter((value) => value <= left));
      if (!base) return [];
      const n = POWERS.includes(base) ? Math.floor(left / base) : 1;
      left = POWERS.includes(base) ? left % base : left - base;
      madeOf.push(...(n > 1 ? this.madeOf(n) : []), this.stems.get(base));
    }
    return madeOf;
  }
}

/** Whether a number is written with 万 or 亿. */
function hasMyriads(text) {
  return /[万萬亿億]/.test(text);
}

/** The value, in digits, of a number such as 3亿5000万, or 3万5; its decimal point is that of ASCII. */
function valueOfMyriads(text) {
  if (WHOLE_SHORT_MYRIADS.test(text)) {
    const [, whole, sign, last] = /^(\p{Nd}+)(.)(\p{Nd})$/u.exec(text);
    return ((BigInt(asciiDigits(whole + last)) * MYRIAD_SIGNS.get(sign)) / 10n).toString();
  }
  return Array.from(text.matchAll(IN_MYRIADS)).reduce((sum, part) => sum + inUnits(part), 0n).toString();
}

function inUnits({ groups: { whole, decimals = "", multiple, myriad } }) {
  const factor = MULTIPLES.get(multiple) * (MYRIAD_SIGNS.get(myriad) ?? 1n);
  return (BigInt(asciiDigits(whole.replaceAll(",", "") + decimals)) * factor) / 10n ** BigInt(countCharacters(decimals));
}

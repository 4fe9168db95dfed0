"use strict";
// Numbers, dates and codes in texts: mtformer/text/entities.py, beside_numbers.py and spelled_amounts.py.

const LONGEST_SHARING = 9; // characters: "2 until $"
const LONGEST_OF_MONEY = 15; // characters: "$1,000.50bn-"
const LONGEST_MINUS = 7; // characters: " minus ", with the one before
const LONGEST_BEFORE_NUMBER = 5; // characters: " EUR ", " US$ "
const LONGEST_SIGN = 5; // characters: " >= ", with the one before
const LONGEST_NAMED = 60; // characters
const [NOON, DAY] = [12 * 60, 24 * 60]; // minutes
const IS_WHOLE = /^\p{Nd}+$/u;
const BETWEEN_TIMES = /^ ?[\-–—] ?$/;
const OTHER_ELSEWHERE = ["月", "折"]; // 8折 is 20% off
const FEW_VALUES = ["2", "3", "4"];
const LOOSE_UNITS = ["clock", "doz"]; // mtformer/text/unit_words.py
const UNITS_OF_TIME = ["h", "min", "s"];
const PARTS_OF_HOURS = ["15", "30", "45", "90", "1.5", "1,5"]; // half an hour
const CURRENCIES = { US$: "$", USD: "$", EUR: "€", "¥": "JPY" };
const [ORDINAL_SIGN, TO] = ["第", ["to", "bis", "到", "至"]]; // 第五公里 is the fifth kilometer; between two numbers in words

/** Whether a currency stands before a number, or before the other number of a range. */
function isOfMoney(text, start) {
  return OF_MONEY.test(text.slice(Math.max(0, start - LONGEST_OF_MONEY), start));
}

function numbersAndCodes(text, language) {
  return Array.from(text.matchAll(FOUND)).flatMap(({ 0: written, index, groups }) => {
    const { short, number, plain, groups: grouped, range, fraction } = groups;
    if ((plain ?? range) !== undefined && OTHER_ELSEWHERE.includes(text[index + written.length])) return [];
    if (groups.unclear !== undefined || (short !== undefined && !CHINESE_LANGUAGES.includes(language.base))) return [];
    const areSeveral = grouped !== undefined && !isOneNumber(text, index, written, language);
    const singles = Array.from(areSeveral || range !== undefined ? written.matchAll(SINGLE) : []);
    const parts = singles.length ? singles.map(([single]) => single) : [written];
    const alone = singles.flatMap((single) => amounts(text, index + single.index, single[0], language));
    if (areSeveral) return alone;
    const withWord = [];
    const isApart = !SHARING.test(text.slice(Math.max(0, index - LONGEST_SHARING), index));
    const isMoney = isOfMoney(text, index);
    const large = isApart && (plain ?? range ?? fraction) !== undefined && largeWord(language, isMoney);
    const word = large && matchAt(large, text, index + written.length);
    const values = word ? parts.map((part) => inFull(part, word, language)) : [null];
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
  const money = BEFORE.exec(text.slice(Math.max(0, start - LONGEST_BEFORE_NUMBER), start));
  const [before, { currency, minus }] = [money?.[0] ?? "", money?.groups ?? { currency: "", minus: "" }];
  const past = end + (matchAt(DASH, text, end) ?? [""])[0].length;
  const attached = matchAt(ATTACHED, text, end);
  const [found] = attached ?? (before ? null : matchAt(AFTER, text, past)) ?? [""];
  const word = before || found ? null : unitWord(text, past, language);
  const after = word ?? (IS_WHOLE.test(number) && language.false_units.includes(strip(found)) ? "" : found);
  const first = start - before.length;
  const [operator] = SIGN_BEFORE.exec(text.slice(Math.max(0, first - LONGEST_SIGN), first)) ?? [""];
  const sign = operator || (minus ? "" : minusBefore(text, start, end));
  const place = before ? start : start - sign.length;
  const isArticle = values.join() === "1" && !sign && !minus && matchAt(ALONE, text, end) === null;
  const isAmount = before || after || matchAt(largeWord(language, false), text, end) !== null;
  const keepsPoint = !isAmount && isNamed(text, place, number, language);
  const alone = isArticle ? [] : [{ start: place, text: text.slice(place, past), kind, number: keepsPoint ? "" : number }];
  if (!before && !after) return alone;
  const unit = word && language.unit_words.units[strip(word)];
  const signs = strip(sign.replace(/[−–]/, "-").replace(MINUS, "-")) + (minus && "-");
  const value = `${signs}${values.join("-")} ${unit ?? inAscii(currency + strip(after))}`;
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
    const { half } = groups;
    const ofDay = half ? modulo(minutes, NOON) + ("pP".includes(half) ? NOON : 0) : minutes;
    const inHours = half ? Math.floor(ofDay / 60) : (Math.floor(minutes / 60) || NOON / 60) % HOURS;
    const value = `${inHours}:${String(ofDay % 60).padStart(2, "0")}`;
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

/** The ordinal numbers and the decades of a text: mtformer/text/ordinals.py. */
function findOrdinals(text, { ordinals }) {
  if (!ordinals) return [];
  ordinals.regExp ??= inJavaScript(ordinals.pattern);
  return Array.from(text.matchAll(ordinals.regExp), ({ 0: written, index, groups: { ordinal, other, clear, decade } }) => {
    return { start: index, text: written, kind: "many", number: ordinal ?? other ?? clear ?? decade, ordinal: { isDecade: decade !== undefined } };
  });
}

function writeOrdinal({ number, ordinal }, { ordinals }) {
  return number + (ordinal.isDecade ? ordinals.decade : ordinalEnding(number, ordinals));
}

/** The ending of an ordinal number: st for 1 and 21 in English. */
function ordinalEnding(number, { endings }) {
  return endings.find(([pattern]) => new RegExp(pattern, "u").test(number))[1];
}

/** The dates of a text, as matches with groups for the day, the month and the year. */
function findDates(text, { dates }) {
  if (!dates) return [];
  dates.regExps ??= dates.patterns.map((pattern) => inJavaScript(pattern));
  return dates.regExps.flatMap((pattern) => Array.from(text.matchAll(pattern)));
}

/** The month of a date, from 0 on. */
function monthOf({ groups }, { dates }) {
  const found = groups.month.toLowerCase().replace(/\.$/, "");
  return dates.months.findIndex((name) => name.toLowerCase().startsWith(found));
}

/** The dates in digits with a year: as written, the year, and the day and the month in numerical order. */
function datesInDigits(text) {
  return Array.from(text.matchAll(DATE_IN_DIGITS), ([date]) => {
    const parts = date.match(NUMBER_PARTS).map(asciiDigits);
    const year = parts.find((part) => part.length === 4);
    return { date, year, days: inNumericalOrder(parts.filter((part) => part !== year)) };
  });
}

/** The dates with the name of a month, a day and a year, like those in digits. */
function fullDates(text, language) {
  return findDates(text, language)
    .filter(({ groups: { year, day, last } }) => year && day && !last)
    .map((date) => ({ year: date.groups.year, days: inNumericalOrder([date.groups.day, monthOf(date, language) + 1]) }));
}

function inNumericalOrder(numbers) {
  return numbers.map(Number).sort((a, b) => a - b).join();
}

/** The dates of a text whose month its translation lacks, and those in digits that it has otherwise: mtformer/text/dates.py. */
function lostDates(text, translation, src, tgt) {
  const written = Array.from(translation.toLowerCase().normalize("NFKD")).filter((part) => !isCombining(part)).join("");
  const isLost = (date) => tgt.dates && !inJavaScript(tgt.dates.shown[monthOf(date, src)]).test(written);
  const there = [...datesInDigits(translation), ...fullDates(translation, tgt)];
  const inDigits = datesInDigits(text);
  const isOther = ({ year, days }) => {
    const [ofYear, own] = [there, inDigits].map((dates) => dates.filter((date) => date.year === year));
    return ofYear.length >= own.length && !ofYear.some((date) => date.days === days); // December 24 and 31, 2023 has only one
  };
  const others = inDigits.filter(isOther).map(({ date }) => date);
  const lost = [...new Set([...others, ...findDates(text, src).filter(isLost).map(([date]) => date)])];
  return lost.filter((date) => !lost.some((other) => other !== date && other.includes(date)));
}

/** A pattern of Python that describe_texts has. */
function inJavaScript(pattern, flags = "") {
  return new RegExp(pattern.replaceAll("(?P<", "(?<"), `gu${flags}`);
}

/** The amounts of a text whose units are words, as 5 kilometers, that its translation lacks: mtformer/text/spelled_amounts.py. */
function lostAmounts(text, translation, src, tgt, loose = true) {
  const isExact = ({ clock, unit }) => clock !== "1" && !clock.includes("–") && !UNITS_OF_TIME.includes(unit); // unlike an hour
  const inWords = tgt.spelled_numbers ? spelledAmounts(text, src).filter(isExact) : [];
  const amounts = [...numbersAndCodes(text, src), ...inWords].filter(
    ({ unit }) => unit && unit in tgt.unit_words.written && (loose || !LOOSE_UNITS.includes(unit)),
  );
  if (!amounts.length) return [];
  const apart = splitCompounds(translation, tgt);
  const there = new Set([...numbersAndCodes(apart, tgt), ...spelledAmounts(apart, tgt)].map(plainAmount));
  const hasParts = new NumberWords(tgt).haveParts(apart.toLowerCase());
  const mayBePart = ({ number, clock, unit }) => UNITS_OF_TIME.includes(unit) && PARTS_OF_HOURS.includes(number ?? clock);
  const numberOf = (value) => value.split(" ")[0];
  const numbers = new Set(Array.from(there, numberOf));
  const isPart = (amount) => hasParts && mayBePart(amount) && !numbers.has(numberOf(amount.value));
  const isLost = (amount) => !there.has(plainAmount(amount)) && !isPart(amount);
  return amounts.filter(isLost).map((amount) => amount.text);
}

/** The value of an amount, the same for all signs of a currency. */
function plainAmount({ value = "" }) {
  const [number, ...unit] = value.replaceAll("½", `${POINT}5`).split(" ");
  return `${number} ${CURRENCIES[unit.join(" ")] ?? unit.join(" ")}`;
}

/** Writes units in compounds as after numbers: 20 minutes for 20-minute. */
function splitCompounds(text, { unit_words: words }) {
  return text.replace(UNIT_IN_COMPOUND, (compound, word, hyphen) => {
    const unit = Object.hasOwn(words.units, word) ? words.units[word] : null;
    return unit && unit in words.written ? writeUnit(unit, "", words) + hyphen.replace("-", " ") : compound;
  });
}

/** The amounts of a text whose numbers are words, as five kilometers: mtformer/text/spelled_amounts.py. */
function spelledAmounts(text, language) {
  return findSpelledNumbers(text, language, true).flatMap((number, i, numbers) => {
    const word = unitWord(text, number.end, language);
    const unit = number.text.startsWith(PERCENT_OF) ? "%" : word && language.unit_words.units[strip(word)];
    if (!unit || LOOSE_UNITS.includes(unit) || text[number.start - 1] === ORDINAL_SIGN) return [];
    const kind = FEW_VALUES.includes(number.value) ? "few" : "many";
    const end = number.end + (word ?? "").length;
    const { start, value: signed } = ofWords(number, text);
    const amount = { start, text: text.slice(start, end), kind, clock: signed, unit, value: `${signed} ${unit}` };
    const before = numbers[i - 1];
    if (!before || !TO.includes(strip(text.slice(before.end, number.start)).toLowerCase())) return [amount];
    const range = { text: text.slice(before.start, end), clock: `${before.value}–${signed}`, value: `${before.value}-${amount.value}` };
    return [{ ...amount, ...range, start: before.start }, amount];
  });
}

/** What a number in words is in other languages: digits, with the minus sign of degrees. */
function ofWords({ start, end, text: written, value }, text) {
  const minus = minusBefore(text, start, end);
  const signed = (minus && "-") + value;
  return { kind: "many", clock: signed, start: start - minus.length, text: minus + written, value: signed };
}

/** The word of a unit, and the space before it, after a number that ends at a place: mtformer/text/unit_words.py. */
function unitWord(text, end, { unit_words: words }) {
  words.regExp ??= new RegExp(words.pattern, "uy");
  return matchAt(words.regExp, text, end)?.[0] ?? null;
}

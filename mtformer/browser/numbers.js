"use strict";
// Numbers in texts, and which of them a translation lacks: mtformer/text/numbers.py.

const POINT = "·"; // between the parts of a value, whatever the text has there
const LARGEST_SPELLED_OUT = 12; // numbers up to it may become words
const NUMBER = /\p{Nd}+(?:[.,:'’]\p{Nd}+)*/gu;
const SPACED_NUMBER = /(?<![\p{Nd}.,])\p{Nd}{1,3}(?:[ \u00a0\u202f]\p{Nd}{3})+(?![\p{Nd}.,])/gu; // or several numbers
const DECIMAL_DIGITS = /\p{Nd}+/gu;

// Numbers of Chinese and Japanese in 万 and 亿
const MYRIAD_SIGNS = new Map(Object.entries({ 万: 10n ** 4n, 萬: 10n ** 4n, 亿: 10n ** 8n, 億: 10n ** 8n }));
const MULTIPLES = new Map(Object.entries({ "": 1n, 十: 10n, 百: 100n, 千: 1000n }));
const MYRIAD = "(?:\\p{Nd}{1,3}(?:,\\p{Nd}{3}){1,4}|\\p{Nd}{1,15})(?:[.．]\\p{Nd}{1,15})?[十百千]?[万萬亿億]";
const MYRIADS_END = "(?![.,．]?\\p{Nd}|[十百千万萬亿億])";
const MYRIADS = `(?:${MYRIAD})+(?:\\p{Nd}{3,4}|(?:\\p{Nd}千)?(?:\\p{Nd}百)?(?:\\p{Nd}十)?)${MYRIADS_END}`;
const SHORT_MYRIADS = `\\p{Nd}{1,2}[万萬亿億]\\p{Nd}${MYRIADS_END}(?![\\-~～〜–、]\\p{Nd})`; // 3万5, which is 35,000 in Chinese
const UNCLEAR_MYRIADS = "\\p{Nd}[\\p{Nd}.,．十百千]{0,20}[万萬亿億][\\p{Nd}.,．十百千万萬亿億]*"; // tried after the others
const IN_MYRIADS = /(?<whole>[\p{Nd},]+)(?:\.(?<decimals>\p{Nd}+))?(?<multiple>[十百千]?)(?<myriad>[万萬亿億]?)/gu;

/** The numbers of a text in order, as { start, end, text, value }; day, month and year of a date are three. */
function findNumbers(text) {
  return Array.from(text.matchAll(NUMBER)).flatMap(({ 0: written, index }) => {
    const parts = Array.from(written.matchAll(DECIMAL_DIGITS));
    const lengths = parts.map(([digits]) => countCharacters(digits)).sort((a, b) => a - b);
    const isDate = parts.length === 3 && ["1,4", "2,4"].includes(lengths.slice(1).join());
    if (!isDate) return [numberAt(index, written, valueOf(parts.map(([digits]) => asciiDigits(digits))))];
    return parts.map(({ 0: digits, index: place }) => numberAt(index + place, digits, asciiDigits(digits)));
  });
}

function numberAt(start, text, value) {
  return { start, end: start + text.length, text, value };
}

/** Joins thousands; other parts, such as hours and minutes, stay apart. */
function valueOf([whole, ...following]) {
  while (following.length && countCharacters(following[0]) === 3) whole += following.shift();
  return [whole, ...following].join(POINT);
}

/** Whether a translation may spell a number out: a small integer. */
function mayBeAWord({ value }) {
  return value.length <= String(LARGEST_SPELLED_OUT).length && Number(value) <= LARGEST_SPELLED_OUT;
}

/** The numbers of a source that a translation lacks, unless it may spell them out. */
function lostNumbers(source, translation) {
  return missingNumbers(source, translation).filter((number) => !mayBeAWord(number)).map(({ text }) => text);
}

/**
 * Replaces the one number that is not in the source by the one that the translation lacks; null if there is none or a
 * second candidate, or if the two have different numbers of parts, so that one may be a price and the other a time.
 */
function withRightNumber(source, translation) {
  const [lost, wrong] = [missingNumbers(source, translation), missingNumbers(translation, source)];
  if (lost.length !== 1 || wrong.length !== 1 || mayBeAWord(lost[0])) return null;
  const [{ start, end, value }] = wrong;
  if (findNumbers(translation).filter((number) => number.value === value).length > 1) return null; // which is wrong?
  const written = writtenLike(wrong[0], lost[0]);
  return written === null ? null : translation.slice(0, start) + written + translation.slice(end);
}

/** Writes a number with the digits and separators of another; null if they have different numbers of parts. */
function writtenLike(model, number) {
  const countPoints = ({ value }) => value.split(POINT).length - 1;
  if (countPoints(number) !== countPoints(model)) return null;
  const isAscii = !/[^\x00-\x7f]/.test(model.text);
  const digits = number.text.match(DECIMAL_DIGITS).map((part) => (isAscii ? asciiDigits(part) : part));
  const separators = model.text.split(DECIMAL_DIGITS).slice(1, -1);
  if (separators.length === digits.length - 1) return digits.map((part, i) => part + (separators[i] ?? "")).join("");
  return countPoints(number) ? null : digits.join(""); // thousands need no separators
}

/** The numbers of a text that its counterpart lacks; the first of those that it has, but not as often. */
function missingNumbers(text, counterpart) {
  let numbers = findNumbers(text);
  if (!numbers.length) return [];
  const spaced = (written) => valueOf(written.match(DECIMAL_DIGITS));
  const left = new Map(); // how often the counterpart has each value
  const values = findNumbers(counterpart).map(({ value }) => value);
  for (const value of [...values, ...(counterpart.match(SPACED_NUMBER) ?? []).map(spaced)])
    left.set(value, (left.get(value) ?? 0) + 1);
  const take = (value) => {
    const n = left.get(value) ?? 0;
    if (n) left.set(value, n - 1);
    return n > 0;
  };
  for (const { 0: written, index } of text.matchAll(SPACED_NUMBER)) {
    if (!take(spaced(written))) continue; // it is several numbers
    numbers = numbers.filter(({ start }) => start < index || start >= index + written.length);
  }
  return numbers.reverse().filter(({ value }) => !take(value)).reverse();
}

/** Whether a number is written with 万 or 亿. */
function hasMyriads(text) {
  return /[万萬亿億]/.test(text);
}

/** The value, in digits, of a number such as 3亿5000万, or 3万5; its decimal point is that of ASCII. */
function valueOfMyriads(text) {
  if (new RegExp(`^${SHORT_MYRIADS}$`, "u").test(text)) {
    const [, whole, sign, last] = /^(\p{Nd}+)(.)(\p{Nd})$/u.exec(text);
    return ((BigInt(asciiDigits(whole + last)) * MYRIAD_SIGNS.get(sign)) / 10n).toString();
  }
  return Array.from(text.matchAll(IN_MYRIADS)).reduce((sum, part) => sum + inUnits(part), 0n).toString();
}

function inUnits({ groups: { whole, decimals = "", multiple, myriad } }) {
  const factor = MULTIPLES.get(multiple) * (MYRIAD_SIGNS.get(myriad) ?? 1n);
  return (BigInt(asciiDigits(whole.replaceAll(",", "") + decimals)) * factor) / 10n ** BigInt(countCharacters(decimals));
}

"use strict";
// Characters as Python's str and re classify them, which differs from JavaScript's \s, \w, \b and split.

// For character classes of regular expressions with the flag u.
const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"; // \s
const WORD = "\\p{L}\\p{N}_"; // \w
const LETTER = "\\p{L}\\p{Nl}\\p{No}"; // [^\W\d_]

const SPACES = new RegExp(`[${SPACE}]+`, "gu");
const SPACES_AT_ENDS = new RegExp(`^[${SPACE}]+|(?<![${SPACE}])[${SPACE}]+$`, "gu");
const TERMINAL_ESCAPES = /\x1b\[[0-9;]*[A-Za-z]/g; // colours
const CONTROL_CHARACTERS = /[\x00-\x1f\x7f-\x9f\u2028\u2029]+/g;

function isSpace(character) {
  return character !== "" && character.replace(SPACES, "") === "";
}

/** str.strip */
function strip(text) {
  return text.replace(SPACES_AT_ENDS, "");
}

/** str.split without a separator */
function splitAtSpaces(text) {
  return text.split(SPACES).filter((part) => part !== "");
}

/** str.isalpha of a character */
function isAlphabetic(character) {
  return /^\p{L}$/u.test(character);
}

/** str.isalnum of a character */
function isAlphanumeric(character) {
  return /^[\p{L}\p{N}]$/u.test(character);
}

/** str.isupper of a character */
function isCapital(character) {
  return /^\p{Uppercase}$/u.test(character);
}

/** str.isupper: some letters are capitals, and none is small. */
function isInCapitals(text) {
  return /\p{Uppercase}/u.test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text);
}

/** str.islower: some letters are small, and none is a capital. */
function isInSmallLetters(text) {
  return /\p{Lowercase}/u.test(text) && !/[\p{Uppercase}\p{Lt}]/u.test(text);
}

/** Decimal and raised digits as ASCII: in Unicode, the decimal ones of a script stand in a row, and 0 comes first. */
function asciiDigits(digits) {
  return Array.from(digits.normalize("NFKC"), (digit) => {
    let zero = digit.codePointAt(0);
    while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero--;
    return (digit.codePointAt(0) - zero) % 10;
  }).join("");
}

/** A text whose letters are equal to others where those of str.casefold are. */
function foldCase(text) {
  return text.replace(/[^ı]+/g, (part) => part.replaceAll("ẞ", "ss").toUpperCase().toLowerCase().replaceAll("ς", "σ"));
}

/** unicodedata.combining: whether a character without a decomposition moves to its order among combining marks. */
function isCombining(character) {
  const pairs = [`\u0345${character}`, `${character}\u0334`]; // those with the last place and the first
  return pairs.some((pair) => pair.normalize("NFD") !== pair);
}

/** The number of code points, which is what Python counts. */
function countCharacters(text) {
  let n = 0;
  for (const _ of text) n++;
  return n;
}

/** The character that starts at a place of a text, which may take two code units; "" at its end. */
function characterAt(text, place) {
  return place < text.length ? String.fromCodePoint(text.codePointAt(place)) : "";
}

/** A space for each run of control characters, line breaks among them, and no colours. */
function onOneLine(text) {
  return text.replace(TERMINAL_ESCAPES, "").replace(CONTROL_CHARACTERS, " ");
}

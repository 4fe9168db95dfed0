"use strict";
// What separates the texts of a line and stays as it is: mtformer/text/marks.py. Here emoji do, too.

const LINE_END = /(\r?\n)/;

/** The places of texts, each [start, end], in one of several lines; a line without marks and long words is one. */
function textPlaces(text, language) {
  let start = 0;
  return text.split(LINE_END).flatMap((part, i) => {
    const places = i % 2 ? [] : placesInLine(part, language);
    const moved = places.map((place) => place.map((end) => start + end));
    start += part.length;
    return moved;
  });
}

function placesInLine(given, language) {
  const spacesFor = (run) => " ".repeat(run.length);
  const line = given.replace(TERMINAL_ESCAPES, spacesFor).replace(CONTROL_CHARACTERS, spacesFor);
  const marks = separators(line, language);
  const ends = [...marks.map(([start]) => start), line.length];
  const stretches = [0, ...marks.map(([, end]) => end)].flatMap((start, i) => dividedByLongWords(line, start, ends[i]));
  if (stretches.length === 1) return [[0, line.length]];
  const places = stretches.map(([from, to]) => {
    const text = strip(line.slice(from, to));
    const start = line.indexOf(text, from);
    return [start, start + text.length];
  });
  return places.filter(([start, end]) => Array.from(line.slice(start, end)).some(isAlphanumeric));
}

/** The places of what is too long for a word in a stretch of a line, and of what is before, between and after. */
function dividedByLongWords(line, start, end) {
  const found = [...line.slice(start, end).matchAll(LONG_WORD)];
  const words = found.filter(([word]) => Array.from(word).some(isAlphanumeric));
  const divisions = [start, ...words.flatMap(({ 0: word, index }) => [start + index, start + index + word.length]), end];
  return divisions.slice(1).map((to, i) => [divisions[i], to]);
}

/** The places of the signs that a line starts with, of emphasis, of the bars of a table's row, and of emoji, in order. */
function separators(line, language) {
  const start = startOf(line, language)?.[0].length ?? 0;
  const places = [...(start ? [[0, start]] : []), ...emphasisAt(start, line)];
  const others = [...(TABLE_ROW.test(line) ? line.matchAll(BAR) : []), ...line.matchAll(EMOJI)];
  places.push(...others.map(({ 0: mark, index }) => [index, index + mark.length]));
  places.sort(([a], [b]) => a - b);
  return places.filter(([from], i) => !i || from >= places[i - 1][1]); // ▪ is also an emoji
}

/** The places of the two marks of emphasis on all of a line from a place on, or on what the line is about. */
function emphasisAt(place, line) {
  const found = matchAt(EMPHASIZED, line, place);
  if (!found) return [];
  const { indent, mark, inside } = found.groups;
  const start = place + indent.length;
  const end = start + mark.length + inside.length;
  return [[start, start + mark.length], [end, place + found[0].length]];
}

/** The signs that a line starts with; where ordinal numbers have a full stop, not that of "3. Mai" or "3. und 4. Klasse". */
function startOf(line, language) {
  const start = LINE_START.exec(line);
  const isOrdinal = () => !isItem(line, start[0].length) || findDates(line, language).some(({ index }) => !strip(line.slice(0, index)));
  return start && language.has_ordinals && isOrdinal() ? LINE_START_WITH_ORDINALS.exec(line) : start;
}

function isItem(line, end) {
  return !isInSmallLetters(line.charAt(end)) || SENTENCE_OR_HEADING.test(line);
}

/** What is not translated of a text, on one line where it was on one. */
function keptOf(text) {
  return text.split(LINE_END).map((part, i) => (i % 2 ? part : onOneLine(part))).join("");
}

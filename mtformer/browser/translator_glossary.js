"use strict";
// A glossary: terms and how they are to be translated. The search has no constraints: it is forced to begin a sentence
// as before, up to the word that comes from a term, and to go on with the translation of the term.

const MISSED = "check: term not used: ";
const JOINING = /(?![\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}])[\p{L}\p{M}\p{N}]/u; // letters within a word

/**
 * A glossary: on each line a term, a tab or an equals sign, and its translation. Returns the terms, [{ src, tgt }], and
 * the numbers of the lines that are neither such a line nor blank nor a comment.
 */
function parseGlossary(text) {
  const terms = [];
  const badLines = [];
  text.split(/\r?\n/).forEach((line, i) => {
    if (line.startsWith("#") || !line.trim()) return;
    const cells = /^([^\t]*)\t([^\t]*)$/.exec(line) ?? /^([^=\t]*)=([^\t]*)$/.exec(line) ?? [];
    const [, src, tgt] = cells.map((cell) => cell.trim().normalize());
    if (src && tgt) terms.push({ src, tgt });
    else badLines.push(i + 1);
  });
  return { terms, badLines };
}

/** Where a term stands in a text as whole words, as { start, end }. One in small letters is found in any case. */
function termSpans(text, { src }) {
  const escaped = src.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  const matches = [...text.matchAll(new RegExp(escaped, src === src.toLowerCase() ? "giu" : "gu"))];
  const joins = (at) => JOINING.test(text[at - 1] ?? "") && JOINING.test(text[at] ?? "");
  const spans = matches.map(({ 0: found, index }) => ({ start: index, end: index + found.length }));
  return spans.filter(({ start, end }) => !joins(start) && !joins(end));
}

/** Where terms stand in a text, as a Map; no two of them overlap, and longer ones come first. */
function spansOfTerms(text, terms) {
  const found = new Map();
  const isFree = (span) => ![...found.values()].flat().some(({ start, end }) => start < span.end && span.start < end);
  for (const term of terms.toSorted((a, b) => b.src.length - a.src.length))
    found.set(term, termSpans(text, term).filter(isFree));
  return found;
}

/** The place in a translation of the first word that comes from one of these spans of the source; -1 if none does. */
function placeOf(spans, { start: from, tgtStart = 0, sources, words }) {
  const overlaps = ({ start, end }) => spans.some((span) => start - from < span.end && span.start < end - from);
  const comesFrom = (n) => words.filter((word) => word.sources.slice(0, n).some((i) => overlaps(sources[i])));
  const [word] = [...comesFrom(1), ...comesFrom(Infinity)];
  return word ? word.start - tgtStart : -1;
}

/**
 * A segment with the terms of a glossary, from left to right, as { segment, missed }: `segment` is undefined if nothing
 * has changed, and `missed` are terms that could not be used. `begin` translates a text so that it begins in some way.
 */
async function withTerms(given, terms, begin) {
  const spansOf = spansOfTerms(given.src, terms);
  let left = terms.filter((term) => spansOf.get(term).length);
  let [segment, missed] = [given, []];
  while (left.length) {
    left = left.filter(({ tgt }) => !segment.tgt.includes(tgt));
    const placed = left.map((term) => ({ term, place: placeOf(spansOf.get(term), segment) }));
    const [next] = placed.sort((a, b) => a.place - b.place);
    if (!next) break;
    left = left.filter((term) => term !== next.term);
    const start = segment.tgt.slice(0, Math.max(0, next.place)) + next.term.tgt;
    const found = next.place < 0 ? null : await begin(given.src, start);
    if (found?.tgt.startsWith(start)) segment = found;
    else missed.push(next.term.src);
  }
  return { segment: segment === given ? undefined : segment, missed };
}

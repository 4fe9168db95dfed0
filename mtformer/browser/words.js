"use strict";
// Which words of a translation come from which of its source: mtformer/text/words.py, mtformer/translate/alignment.py.

// Han characters and their punctuation, full-width forms, kana and Thai: each is a word.
const CHARACTER_WORDS =
  "\\u0e00-\\u0e7f\\u3000-\\u30ff\\u31f0-\\u31ff\\u3400-\\u4dbf\\u4e00-\\u9fff" +
  "\\uf900-\\ufaff\\uff00-\\uffef\\u{20000}-\\u{3ffff}";
const WORD_SPANS = new RegExp(`[${CHARACTER_WORDS}]|[^${SPACE}${CHARACTER_WORDS}]+`, "gu");
const LEAST_SHARE = 0.5; // of the attention to the first source word of a word, for it to have another

/** Where the words of a text stand, as { start, end }: what spaces separate, and each Chinese character. */
function wordSpans(text) {
  const matches = Array.from(text.matchAll(WORD_SPANS)).filter(([word]) => !isSpace(word));
  return matches.map(({ 0: word, index }) => ({ start: index, end: index + word.length }));
}

/**
 * Where tokens stand in a text, as { start, end, isMark }, without the spaces before them. Tokens of another number of
 * letters, as when the text was changed on its way to the model, stand in proportion.
 */
function tokenSpans(text, tokens) {
  const places = []; // of the letters: all characters but spaces
  for (let i = 0; i < text.length; i++) if (!isSpace(text[i])) places.push(i);
  const shown = lettersOf(tokens);
  const scale = places.length / (shown.join("").length || 1);
  let n = 0;
  return shown.map((letters) => {
    const first = Math.round(n * scale);
    const last = Math.round((n += letters.length) * scale) - 1;
    const [start, end] = last < first ? [0, 0] : [places[first], places[last] + 1];
    return { start, end, isMark: !hasLetters(text.slice(start, end)) };
  });
}

/** What tokens spell, without spaces; of those that spell a character in bytes, the last one has it. */
function lettersOf(tokens) {
  let bytes = [];
  return tokens.map((token, i) => {
    const isByte = /^<0x[0-9A-F]{2}>$/.test(token);
    if (!isByte) return token.replaceAll("▁", "");
    bytes.push(parseInt(token.slice(3, 5), 16));
    if (CONTINUATION_BYTE.test(tokens[i + 1] ?? "")) return "";
    const spelled = decodeBytes(bytes);
    bytes = [];
    return spelled;
  });
}

/** Tokens with what their slots stand for, without spaces in it. */
function shownTokens(tokens, fillings) {
  return fillings ? filledTokens(tokens, fillings).map((token) => token.replace(SPACES, "")) : tokens;
}

function hasLetters(text) {
  return Array.from(text).some(isAlphanumeric);
}

/**
 * The words of a segment that text.js has made: { sources, words }, with places in the whole texts.
 *
 * `sources`: { start, end, continues } of each word of the source; `words`: { start, end, continues, confidence, sources }
 * of each of the translation, with the mean probability of its tokens, and which source words they attend to, most
 * first. A word continues the one before if a token spans both, as one may span several Chinese characters.
 */
function wordsOf({ src, tgt, start, tgtStart, parts }, { src: srcVocabulary, tgt: tgtVocabulary }) {
  const sources = wordSpans(src);
  const read = ({ request, slotted }) => shownTokens(srcVocabulary.tokens(request.ids.slice(request.nPrefix, -1)), slotted?.originals);
  const srcTokens = parts.flatMap(read);
  const tgtTokens = parts.flatMap(({ ids, slotted }) => shownTokens(tgtVocabulary.tokens(ids), slotted?.fillings));
  const [srcSpans, tgtSpans] = [tokenSpans(src, srcTokens), tokenSpans(tgt, tgtTokens)];
  const [withMarks, withoutMarks] = [true, false].map((all) => sources.map((word) => members(word, srcSpans, all)));
  const weights = sourceAttention(parts, srcTokens.length); // (T, S)
  const logProbs = parts.flatMap((part) => part.logProbs.slice(0, -1));
  const words = wordSpans(tgt).map((word, i) => {
    const isMark = !hasLetters(tgt.slice(word.start, word.end));
    const tokens = members(word, tgtSpans, isMark);
    const share = (columns) => sumOf(tokens, (t) => sumOf(columns, (s) => weights[t][s]));
    const shares = (isMark ? withMarks : withoutMarks).map(share);
    const confidence = tokens.length ? sumOf(tokens, (t) => Math.exp(logProbs[t])) / tokens.length : 1;
    const linked = parts.length ? mostOf(shares) : src === tgt ? [i] : [];
    return { ...wordInText(word, tgtSpans, tgtStart), confidence, sources: linked };
  });
  return { sources: sources.map((word) => wordInText(word, srcSpans, start)), words };
}

/** A word of a segment in the whole text. */
function wordInText(word, tokens, offset) {
  const continues = tokens.some(({ start, end }) => start < word.start && word.start < end);
  return { start: word.start + offset, end: word.end + offset, continues };
}

/** The numbers of the tokens in a word, with those of the punctuation that is attached to it or without. */
function members(word, spans, hasMarks) {
  const isIn = ({ start, end, isMark }) => start < word.end && word.start < end && (hasMarks || !isMark);
  return spans.flatMap((span, i) => (isIn(span) ? [i] : []));
}

/** The attention (T, S) of all tokens of a segment's parts to its source tokens, without prefixes and EOS. */
function sourceAttention(parts, nTokens) {
  let first = 0;
  return parts.flatMap(({ request, alignment, ids }) => {
    const { nPrefix } = request;
    const n = request.ids.length - nPrefix - 1;
    const rows = alignment.slice(0, ids.length).map((weights) => {
      const row = new Float32Array(nTokens);
      row.set(weights.subarray(nPrefix, nPrefix + n), first);
      return row;
    });
    first += n;
    return rows;
  });
}

function sumOf(items, value) {
  return items.reduce((sum, item) => sum + value(item), 0);
}

/** The places of the largest numbers, the largest first. */
function mostOf(shares) {
  const largest = Math.max(0, ...shares);
  const places = shares.map((_, i) => i).filter((i) => largest > 0 && shares[i] >= LEAST_SHARE * largest);
  return places.sort((a, b) => shares[b] - shares[a]);
}

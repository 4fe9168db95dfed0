"use strict";
// Text to token ids and back, as SentencePiece does it, for what mtformer/browser/tokenizer.py describes.

// Kinds of tokens, in the file of a SentencePiece model.
const KIND = { normal: "1", unknown: "2", control: "3", userDefined: "4", unused: "5", byte: "6" };
const UNKNOWN_PENALTY = 10; // below the least probable token, for a character that has none
const SYMBOL_BONUS = 0.1; // for each byte of a user's symbol but the first

const utf8 = new TextEncoder();

/** A text in a Unicode form with single spaces, or with "identity" as it is, but on one line. */
function normalizeText(text, form) {
  if (form === "identity") return onOneLine(text);
  return splitAtSpaces(text.normalize(form.toUpperCase())).join(" ");
}

/** The tokens of a language. `specialIds` are those of the tokenizer. */
class Vocabulary {
  constructor(description, specialIds) {
    Object.assign(this, { specialIds, type: description.type, form: description.form });
    this.description = description;
    const { tokens, kinds } = description;
    const bytes = Uint8Array.from(atob(description.scores), (character) => character.charCodeAt(0));
    this.scores = new Float32Array(bytes.buffer); // both are little-endian
    this.ids = new Map(tokens.map((token, id) => [token, id]));
    const all = tokens.map((_, id) => id);
    const ofKind = (...wanted) => all.filter((id) => wanted.includes(kinds[id]));
    this.inText = mapOf(ofKind(KIND.normal, KIND.userDefined, KIND.unused), tokens);
    this.symbols = mapOf(ofKind(KIND.userDefined), tokens);
    this.rules = longest(new Map(Object.entries(description.rules)));
    const scores = ofKind(KIND.normal).map((id) => this.scores[id]);
    this.least = scores.reduce((least, score) => Math.min(least, score), Infinity);
    this.nKnown = description.n_known ?? tokens.length; // the Transformer may know the first of the tokens only
    const unused = description.n_known === null ? [] : ofKind(KIND.unused).filter((id) => id < this.nKnown);
    this.unused = mapOf(unused, tokens);
    this.textless = new Set(Object.values(specialIds));
  }

  /** The tokens that ids stand for. */
  tokens(ids) {
    return ids.map((id) => this.description.tokens[id]);
  }

  /** The tokens that the model knows. */
  get known() {
    return this.description.tokens.slice(0, this.nKnown);
  }

  /** The characters that have tokens, others being spelled in bytes; null if all are. */
  get characters() {
    if (this.type === "byte") return null;
    const single = this.known.filter((token) => token.length < 3 && countCharacters(token) === 1);
    return new Set(single.map((token) => token.replace("▁", " ")));
  }

  /** Turns a text into ids, ended by EOS. */
  encode(text) {
    const escaped = this.escape(normalizeText(text.toWellFormed(), this.form));
    const parts = this.spell(this.segment(escaped));
    return [...parts.map(([token, id]) => this.knownId(token, id)), this.specialIds.eos];
  }

  /** Applies the model's own rules, removes spaces where it does, and writes the others as ▁. */
  escape(text) {
    if (!text) return "";
    const removes = this.description.removes_extra_spaces;
    let escaped = this.description.adds_dummy_prefix ? "▁" : "";
    let followsSpace = removes;
    for (let place = 0; place < text.length; ) {
      const [length, replacement] = this.replacement(text, place);
      const kept = followsSpace ? replacement.replace(/^ +/, "") : replacement;
      if (kept) followsSpace = removes && kept.endsWith(" ");
      escaped += kept.replaceAll(" ", "▁");
      place += length;
    }
    let end = escaped.length;
    while (removes && escaped[end - 1] === "▁") end--;
    return escaped.slice(0, end);
  }

  /** What stands at a place of a text, as its length and what replaces it: a user's symbol, a rule, or a character. */
  replacement(text, place) {
    const symbol = longestAt(this.symbols, text, place);
    if (symbol) return [symbol.length, symbol];
    const found = longestAt(this.rules, text, place);
    if (found) return [found.length, this.rules.get(found)];
    const character = characterAt(text, place);
    return [character.length, character];
  }

  /** Splits an escaped text into [token, id] pairs; the id of a character without a token is that of <unk>. */
  segment(text) {
    if (this.type === "unigram") return this.segmentByProbability(text);
    if (this.type === "bpe") return this.segmentByMerges(text);
    return this.charactersOf(text).map(({ token }) => [token, this.idOf(token)]);
  }

  idOf(token) {
    const id = this.ids.get(token);
    return id === undefined || this.isUnused(id) ? this.specialIds.unk : id;
  }

  isUnused(id) {
    return this.description.kinds[id] === KIND.unused;
  }

  /** The characters of a text, in which the symbols of a user are whole and never merged. */
  charactersOf(text) {
    const parts = [];
    for (let place = 0; place < text.length; place += parts.at(-1).token.length) {
      const symbol = longestAt(this.symbols, text, place);
      parts.push({ token: symbol || characterAt(text, place), isSymbol: symbol !== "" });
    }
    return parts;
  }

  /** The most probable segmentation (Kudo 2018), rounded as SentencePiece does, of equal ones the same. */
  segmentByProbability(text) {
    const best = new Float32Array(text.length + 1); // of the segmentations that end before each code unit
    const starts = new Int32Array(text.length + 1).fill(-1); // of their last tokens
    const offer = (start, end, score) => {
      if (starts[end] >= 0 && !(score > best[end])) return;
      best[end] = score;
      starts[end] = start;
    };
    for (let start = 0, width; start < text.length; start += width) {
      width = characterAt(text, start).length;
      const last = Math.min(text.length, start + this.inText.longest);
      let isKnown = false;
      for (let end = start + width; end <= last; end++) {
        const score = this.scoreOf(text.slice(start, end));
        if (score === null) continue;
        offer(start, end, Math.fround(best[start] + score));
        isKnown ||= end === start + width;
      }
      if (!isKnown) offer(start, start + width, Math.fround(best[start] + Math.fround(this.least - UNKNOWN_PENALTY)));
    }
    const parts = [];
    for (let end = text.length; end > 0; end = starts[end]) {
      const token = text.slice(starts[end], end);
      parts.push([token, this.scoreOf(token) === null ? this.specialIds.unk : this.inText.get(token)]);
    }
    return parts.reverse();
  }

  /** The log probability of a token, or the bonus of a user's symbol; null if it is none. */
  scoreOf(token) {
    const id = this.inText.get(token);
    if (id === undefined || this.isUnused(id)) return null;
    return this.symbols.has(token) ? Math.fround(SYMBOL_BONUS * (utf8.encode(token).length - 1)) : this.scores[id];
  }

  /** Merges neighbours, the best first, of equal ones the leftmost (Sennrich et al. 2016). */
  segmentByMerges(text) {
    const parts = this.charactersOf(text);
    const origins = new Map(); // of merged tokens that are unused: what they were merged of
    const heap = new Heap((a, b) => a.score > b.score || (a.score === b.score && a.left < b.left));
    const propose = (left, right) => {
      if (left < 0 || right >= parts.length || parts[left].isSymbol || parts[right].isSymbol) return;
      const token = parts[left].token + parts[right].token;
      const id = this.inText.get(token);
      if (id === undefined) return;
      heap.push({ left, right, score: this.scores[id], length: token.length });
      if (this.isUnused(id)) origins.set(token, [parts[left].token, parts[right].token]);
    };
    parts.forEach((part, i) => Object.assign(part, { before: i - 1, after: i + 1 }));
    for (let i = 1; i < parts.length; i++) propose(i - 1, i);
    for (let merge; (merge = heap.pop()); ) {
      const [left, right] = [parts[merge.left], parts[merge.right]];
      if (!left.token || !right.token || left.token.length + right.token.length !== merge.length) continue; // outdated
      left.token += right.token;
      right.token = "";
      left.after = right.after;
      if (left.after < parts.length) parts[left.after].before = merge.left;
      propose(left.before, merge.left);
      propose(merge.left, left.after);
    }
    const split = (token) => {
      const parts = origins.get(token);
      return parts ? parts.flatMap(split) : [[token, this.idOf(token)]];
    };
    return parts.filter(({ token }) => token).flatMap(({ token }) => split(token));
  }

  /** Spells unknown characters in bytes if the model does; else it takes those in a row for one token. */
  spell(parts) {
    const { unk } = this.specialIds;
    if (this.description.spells_in_bytes)
      return parts.flatMap(([token, id]) => (id === unk ? this.bytesOf(token) : [[token, id]]));
    const merged = [];
    for (const [token, id] of parts) {
      if (id === unk && merged.at(-1)?.[1] === unk) merged.at(-1)[0] += token;
      else merged.push([token, id]);
    }
    return merged;
  }

  bytesOf(text) {
    return Array.from(utf8.encode(text), (byte) => {
      const token = `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
      return [token, this.idOf(token)];
    });
  }

  /** The id of the Transformer, which may lack some of SentencePiece's tokens, and have others. */
  knownId(token, id) {
    const { unk } = this.specialIds;
    return id < this.nKnown && id !== unk ? id : (this.unused.get(token) ?? unk);
  }

  /** Turns ids into text on a single line; special ids are skipped. */
  decode(ids) {
    let text = "";
    let bytes = [];
    let isAtStart = true; // where the space that stands before every text may follow
    let hadSpace = false;
    const addBytes = () => {
      text += decodeBytes(bytes);
      bytes = [];
    };
    for (const id of ids.filter((id) => !this.textless.has(id))) {
      const token = this.description.tokens[id];
      if (this.description.kinds[id] === KIND.byte) {
        bytes.push(parseInt(token.slice(3, 5), 16));
        continue;
      }
      addBytes();
      if (hadSpace || text) isAtStart = false;
      const { shown, hasSpace } = this.shown(id, token, isAtStart);
      hadSpace = hasSpace;
      text += shown;
    }
    addBytes();
    return onOneLine(text);
  }

  /** The text of a token that is no byte, and whether it began with the one space that is no part of the text. */
  shown(id, token, isAtStart) {
    const { kinds, adds_dummy_prefix: adds, removes_extra_spaces: removes } = this.description;
    if (kinds[id] === KIND.control) return { shown: "", hasSpace: false };
    const hasSpace = isAtStart && (adds || removes) && token.startsWith("▁");
    return { shown: token.slice(hasSpace ? 1 : 0).replaceAll("▁", " "), hasSpace: hasSpace && !removes };
  }
}

/** Texts of two languages to token ids and back. The ids of prefixes are those of a direction, not of a tokenizer. */
class Tokenizer {
  constructor({ special_ids: specialIds, context_end: contextEnd, vocabularies: [src, tgt] }) {
    Object.assign(this, { specialIds, contextEnd }); // the id after the previous sentence, if the model reads that
    this.src = new Vocabulary(src, specialIds);
    this.tgt = tgt ? new Vocabulary(tgt, specialIds) : this.src;
  }

  /** How many tokens a source text has, without prefix and EOS. */
  countSrcTokens(text) {
    return this.src.encode(text).length - 1;
  }
}

/** A queue of what `isBefore(a, b)` orders. */
class Heap {
  constructor(isBefore) {
    this.isBefore = isBefore;
    this.items = [];
  }

  push(item) {
    const { items, isBefore } = this;
    let place = items.length;
    for (let parent; place > 0 && isBefore(item, items[(parent = (place - 1) >> 1)]); place = parent)
      items[place] = items[parent];
    items[place] = item;
  }

  /** Removes the first item and returns it; undefined if there is none. */
  pop() {
    const { items, isBefore } = this;
    const first = items[0];
    const item = items.pop();
    if (items.length === 0) return first;
    let place = 0;
    for (let child; (child = 2 * place + 1) < items.length; place = child) {
      if (child + 1 < items.length && isBefore(items[child + 1], items[child])) child++;
      if (!isBefore(items[child], item)) break;
      items[place] = items[child];
    }
    items[place] = item;
    return first;
  }
}

/** The ids of tokens by their text, with the length of the longest. */
function mapOf(ids, tokens) {
  return longest(new Map(ids.map((id) => [tokens[id], id])));
}

/** Gives a map by texts the length of the longest, in code units. */
function longest(map) {
  map.longest = 0;
  for (const key of map.keys()) map.longest = Math.max(map.longest, key.length);
  return map;
}

/** The longest key of a map that stands at a place of a text; "" if there is none. */
function longestAt(map, text, place) {
  for (let length = Math.min(map.longest, text.length - place); length > 0; length--) {
    const key = text.slice(place, place + length);
    if (map.has(key)) return key;
  }
  return "";
}

/** The text that bytes spell, with U+FFFD for each that is no part of a character. TextDecoder has one for several. */
function decodeBytes(bytes) {
  let text = "";
  for (let place = 0, n; place < bytes.length; place += n) {
    const first = bytes[place];
    n = 1 + (first >= 0xc0) + (first >= 0xe0) + (first >= 0xf0);
    try {
      const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
      text += decoder.decode(Uint8Array.from(bytes.slice(place, place + n)));
    } catch {
      text += "\ufffd";
      n = 1;
    }
  }
  return text;
}

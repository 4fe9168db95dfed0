"use strict";
// Slots: characters that stand for a number, a code or a name, which a translation keeps: mtformer/text/slots.py and
// names.py.

const [ENGLISH, FRENCH] = ["en", "fr"];
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
        const [before, after] = bracketsAround(text, entity, place);
        originals.set(slot, before + written + after);
        fillings.set(slot, before + this.written(entity) + after);
        slotted += text.slice(place, start - before.length) + slot + (/['’]$/.test(number) ? " " : ""); // "2 millions d'"
        place = start + written.length + after.length;
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
  suits({ text, number = "", date, ordinal, unit }) {
    if (date) return this.tgt.dates !== null && (Boolean(date.day) || !this.tgt.dates.declines);
    const { ordinals } = this.tgt;
    if (ordinal) return ordinals !== null && (ordinal.isDecade ? ordinals.decade !== null : !ordinals.gendered.includes(number));
    if (unit) return unit in this.tgt.unit_words.written;
    return this.tgt.has_latin_units || !number || !LATIN_UNIT.test(text.replace(number, "").replace(MINUS, ""));
  }

  /** An entity as the target language writes it: 3.500 € for €3,500. */
  written({ text, number = "", date, ordinal, clock, unit }) {
    if (date) return writeDate(date, this.tgt);
    if (ordinal) return writeOrdinal({ number, ordinal }, this.tgt);
    if (clock && this.src.base === this.tgt.base) return text;
    if (clock) {
      const written = LONG.test(clock) ? inShort(clock, this.tgt) : clock.replaceAll(POINT, this.tgt.numbers.point);
      return unit ? written + writeUnit(unit, clock, this.tgt.unit_words) : written;
    }
    const inTarget = writtenFor(number, this.src, this.tgt);
    const before = text.slice(0, text.indexOf(number)).replace(MINUS, "-");
    if (unit) return before + inTarget + writeUnit(unit, number, this.tgt.unit_words);
    const written = text.replace(number, () => inTarget).replace(MINUS, "-");
    if (!number || WITH_MYRIADS.includes(this.tgt.base)) return written;
    let plain = inAscii(written).replace(new RegExp(DASH.source, "gu"), "");
    if ([ENGLISH, FRENCH].includes(this.tgt.base)) plain = plain.replace(BEFORE_PERCENT, this.tgt.base === ENGLISH ? "" : "\u00a0");
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

  /** What a slot can stand for, in order, each { start, text, kind, number, date, ordinal, clock, unit, value }; amounts first with their unit, then alone. */
  entities(text) {
    const dates = findDates(text, this.src).map((found) => {
      const date = { ...found.groups, month: monthOf(found, this.src) };
      return { start: found.index, text: found[0], kind: "many", date };
    });
    const clocks = [...findClocks(text, this.src), ...findSpokenTimes(text, this.src)].map(({ value, ...found }) => {
      return { ...found, kind: "many", clock: value };
    });
    return [...dates, ...clocks, ...findOrdinals(text, this.src), ...numbersAndCodes(text, this.src)].sort(inOrder);
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

/** The brackets around an entity that contain nothing else, and begin neither before a place nor a call. */
function bracketsAround(text, { start, text: written }, place) {
  const [before, after] = [text.slice(Math.max(place, start - 1), start), text[start + written.length] ?? ""];
  const isCall = isAlphanumeric(text[start - 2] ?? " ");
  return ["()", "[]"].includes(before + after) && !isCall ? [before, after] : ["", ""];
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
    return slot >= FIRST_OF_NAMES || TAKES_ENDING.test(this.fillings.get(slot) ?? "");
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
    if (filling === undefined) return droppedSlot(...match);
    const [place, token] = match.slice(3);
    return space + (token[place + match[0].length] === "." ? filling.replace(/\.$/, "") : filling); // one full stop of two
  };
  const ordinal = (_, slot, ending) => slot + englishEnding(left.get(slot) ?? "", ending);
  return tokens.map((token) => token.replace(ORDINAL_SLOT, ordinal).replace(SPACED_SLOT, take));
}

/** The ending that is right for a number: 1th becomes 1st; none if it has one, as 1990er. */
function englishEnding(number, ending) {
  const isDigit = /\p{Nd}$/u.test(number);
  if (!TAKES_ENDING.test(number) || (isDigit && ending === "er")) return ending;
  if (!isDigit) return "";
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

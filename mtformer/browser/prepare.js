"use strict";
// What happens to a text before the model sees it, and is undone in its translation: change.py, preparation.py,
// characters.py and casing.py of mtformer/translate, and mtformer/text/sentences.py. A preparation takes a text and
// returns { parts, restore(translations) }, or null if it changes nothing. A translation is { text, notes }.

const FLAG = "check: "; // starts the notes of translations that may be wrong

// What looks or means the same, for what Unicode's compatibility mapping (NFKC) leaves as it is.
const ALIKE = new Map([
  ...Array.from("‘’‚‛′ʼ`´", (quote) => [quote, "'"]),
  ...Array.from("“”„‟″«»", (quote) => [quote, '"']),
  ...Array.from("‐‑‒–—―−", (dash) => [dash, "-"]),
  ...Object.entries({ "…": "...", "⁄": "/", ẞ: "ß", ß: "ss", "，": ",", "、": ",", "。": "." }),
  ...Object.entries({ ",": "，", ".": "。", "?": "？", "!": "！" }),
]);
// Without digits, as those of WH660; the U.S. are one.
const CASED_WORD = new RegExp(
  `(?:[${LETTER}]\\.){2,}|(?<![${LETTER}\\p{Nd}])[${LETTER}]+(?:['’][${LETTER}]+)*(?![${LETTER}\\p{Nd}])`,
  "gu",
);
const FIRST_LETTER = `(?<![^${SPACE}])[^${WORD}${SPACE}]*[${LETTER}]`; // of a word, with the quotes before it
const MOSTLY = 0.8; // the share of capitals in ALL CAPS: a word of several may be an iPhone
const FEWEST_TITLE_WORDS = 3;
const FEWEST_LETTERS_A_TOKEN = 2.5; // of a word that the model knows, unlike an acronym in small letters
const LONGEST_SMALL_WORD = 3; // letters: titles leave longer words capitalized; a German sentence of nouns has others
const TWINS = 0.01; // the share of words in both forms in a vocabulary of sentences that start with a capital

const MARKS_IN_A_ROW = /[!?！？]+/g;
const CHARACTER_OF = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&#39;": "'" };
const ENTITY = new RegExp(Object.keys(CHARACTER_OF).join("|"), "gi");

/**
 * Returns the preparations of a direction in order, for its tokenizer, the characters of its source, the maker of slots
 * or null, its languages as describe_texts has them, and the words that the model knows, or none.
 */
function preparationsOf(tokenizer, characters, slotMaker, src, tgt, words) {
  const casing = new Casing(tokenizer, src.base);
  return [
    copyLongWord, // first, so that copies are exact
    (text) => copyUnknown(text, characters, slotMaker, true),
    (text) => characters.prepare(text),
    (text) => splitSentencesOf(text, src, tgt),
    (text) => copyUnknown(text, characters, slotMaker, Boolean(slotMaker)),
    ...(words.length ? [noteUnknownWords(new Set(words), slotMaker)] : []),
    singleMarks,
    withoutEntities,
    (text) => casing.prepare(text),
  ];
}

/** Applies preparations in order, each to the parts that those before it have made: { text, parts, restore }. */
function prepareText(text, preparations) {
  for (const [place, prepare] of preparations.entries()) {
    const change = prepare(text);
    if (!change) continue;
    const parts = change.parts.map((part) => prepareText(part, preparations.slice(place + 1)));
    return { text, parts, restore: change.restore };
  }
  return { text, parts: [], restore: null };
}

/** The texts that the model translates, in order. */
function leavesOf(prepared) {
  return prepared.restore ? prepared.parts.flatMap(leavesOf) : [prepared.text];
}

/** Takes the translations of the leaves from an array, in order, and returns that of the text. */
function restoreText(prepared, translations) {
  if (!prepared.restore) return translations.shift();
  return prepared.restore(prepared.parts.map((part) => restoreText(part, translations)));
}

/** Joins translations, those without text left out. */
function joinTranslations(parts, joiner, notes = []) {
  const texts = parts.map(({ text }) => text).filter((text) => text);
  return { text: texts.join(joiner), notes: [...new Set([...notes, ...parts.flatMap((part) => part.notes)])] };
}

/** Copies what is too long for a word, which stands alone; see placesInLine(). */
function copyLongWord(text) {
  if (text.match(LONG_WORD)?.[0] !== text || !Array.from(text).some(isAlphanumeric)) return null;
  return { parts: [], restore: () => ({ text, notes: [`${FLAG}copied what is too long for a word`] }) };
}

/** Copies texts without letters, with the numbers of the target language, and texts of which the model knows no letter. */
function copyUnknown(given, characters, slotMaker, addsNote) {
  const text = onOneLine(given);
  const letters = Array.from(text).filter(isAlphabetic);
  if (!strip(text) || letters.some((letter) => characters.canWrite(letter))) return null;
  const notes = letters.length && addsNote ? [`${FLAG}not translated: the model knows none of its letters`] : [];
  const copy = letters.length || !slotMaker ? text : slotMaker.withNumbers(text);
  return { parts: [], restore: () => ({ text: copy, notes }) };
}

/** Returns a preparation that notes the words that are new to a model; the text stays as it is. */
function noteUnknownWords(known, slotMaker) {
  return (text) => {
    const kept = slotMaker ? slotMaker.places(text) : new Set();
    const others = Array.from(text, (character, i) => (kept.has(i) ? " " : character)).join("");
    const words = others.match(new RegExp(`[${LETTER}]+(?:['’][${LETTER}]+)*`, "gu")) ?? []; // also didn't
    const isKnown = (word) => word.split(/['’]/).every((part) => known.has(part.toLowerCase()));
    const unknown = [...new Set(words)].filter((word) => !isKnown(word));
    if (!unknown.length) return null;
    const note = `${FLAG}unknown: ${unknown.join(", ")}`;
    return { parts: [text], restore: ([part]) => ({ ...part, notes: [...part.notes, note] }) };
  };
}

/** Replaces characters that the model does not know: ligatures, full-width forms, curly quotes, accents. */
class KnownCharacters {
  /** `kept` returns the places in a text, of characters, of what slots will stand for: it stays, and is noted later. */
  constructor(vocabulary, kept = null) {
    this.known = vocabulary.characters;
    this.composes = vocabulary.form !== "identity";
    this.kept = kept;
  }

  prepare(text) {
    if (this.knows(text)) return null;
    const composed = Array.from(onOneLine(text).normalize("NFC"));
    const known = this.forms(composed).join("");
    const isUnknown = (character) => !this.kept && isAlphanumeric(character) && !this.canWrite(character);
    const unknown = [...new Set(Array.from(known).filter(isUnknown))];
    if (known === text && !unknown.length) return null;
    const notes = unknown.length ? [`${FLAG}unknown characters: ${unknown.join("")}`] : [];
    return { parts: [known], restore: ([part]) => ({ ...part, notes: [...part.notes, ...notes] }) };
  }

  /** The known forms of the characters of a text. */
  forms(characters) {
    const kept = this.kept ? this.kept(characters.join("")) : new Set();
    return characters.map((each, i) => (kept.has(i) ? each : this.formOf(characters[i - 1] ?? " ", each)));
  }

  /** A function from places in the prepared text to those in the text that they come from. */
  origins(text) {
    const prepared = this.prepare(text)?.parts[0] ?? text;
    if (prepared === text) return (place) => place;
    const [characters, indices] = [[], []];
    for (const { 0: cluster, index } of text.matchAll(/\x1b\[[0-9;]*[A-Za-z]|[^]\p{M}*/gu)) {
      for (const character of onOneLine(cluster).normalize("NFC")) {
        characters.push(character);
        indices.push(index);
      }
    }
    const places = this.forms(characters).flatMap((form, i) => Array(form.length).fill(indices[i]));
    const isExact = places.length === prepared.length; // else characters were composed across clusters
    return (place) => isExact ? (places[place] ?? text.length) : Math.round((place * text.length) / prepared.length);
  }

  /** Whether the model knows a form of a character, or its small letter. */
  canWrite(character) {
    return this.knows(this.formOf(" ", character)) || this.knows(character.toLowerCase());
  }

  knows(text) {
    if (text.includes("\u00ad")) return false; // a soft hyphen tears words apart
    if (!this.known) return !/\p{Cc}/u.test(text);
    for (const character of text) if (!this.known.has(character)) return false;
    return true;
  }

  /** The known form of a character that follows another. */
  formOf(before, character) {
    if (this.knows(character) || (isSymbol(character) && isSymbol(before))) return character; // a joiner in an emoji
    if (isSpace(character)) return " ";
    if (/[\p{Cf}\p{Cc}]/u.test(character) || (/[\p{Mn}\p{Me}]/u.test(character) && this.knows(before))) return "";
    const compatible = character.normalize("NFKC");
    if (/\p{No}/u.test(character) && /^\p{Nd}+$/u.test(compatible) && !isAlphabetic(before)) return character; // 10⁶ is not 106
    const bare = Array.from(character.normalize("NFKD")).filter((part) => !isCombining(part));
    const alike = Array.from(compatible, (part) => ALIKE.get(part) ?? part);
    const apart = this.composes ? "" : character.normalize("NFD");
    return [apart, compatible, alike.join(""), bare.join("")].find((form) => form && this.knows(form)) ?? character;
  }
}

/** Whether a character is an emoji, another symbol, or a part of an emoji. */
function isSymbol(character) {
  return /^[\u200d\ufe0e\ufe0f\p{So}\p{Sk}]$/u.test(character);
}

/** Splits a line of several sentences, and joins their translations. */
function splitSentencesOf(text, src, tgt) {
  const parts = splitSentences(text, src);
  const joiner = tgt.has_spaces ? " " : "";
  return parts.length > 1 ? { parts, restore: (translations) => joinTranslations(translations, joiner) } : null;
}

/**
 * Splits a text into its sentences, with the spaces between them left out.
 *
 * A sentence ends at a full stop, question or exclamation mark, with the quotes and brackets that close after it,
 * before a space and anything but a small letter; in Chinese and Japanese no space is needed. `language` is one that
 * describe_texts describes.
 */
function splitSentences(text, language) {
  const starts = [0, ...sentenceStarts(text, language), text.length];
  return starts.slice(1).map((end, i) => strip(text.slice(starts[i], end))).filter((part) => part);
}

/** The places where sentences but the first start. */
function sentenceStarts(text, language) {
  const countQuotes = (part) => part.split('"').length - 1;
  const nQuotes = countQuotes(text);
  const starts = [];
  let nBefore = 0;
  let counted = 0;
  for (const match of text.matchAll(SENTENCE_END)) {
    const end = match.index + match[0].length;
    nBefore += countQuotes(text.slice(counted, end));
    counted = end;
    const next = characterAt(text, end);
    if (isInSmallLetters(next) || ",;:)".includes(next) || (nQuotes % 2 === 0 && nBefore % 2)) continue;
    if (next === "と" && "」』".includes(text[end - 1])) continue; // the sentence goes on, as in 「はい。」と言った。
    const isFullStop = match.groups.mark === ".";
    if (!isFullStop || !hasOwnStop(wordBefore(text, match.index), next, language)) starts.push(end);
  }
  return starts;
}

function wordBefore(text, end) {
  return text.slice(text.lastIndexOf(" ", end) + 1, end).replace(/^[("'“‘„«[]+/, "");
}

/** Whether a full stop belongs to the word before it: an abbreviation, an initial or an ordinal number. */
function hasOwnStop(word, next, { abbreviations, base, has_ordinals: hasOrdinals }) {
  return (
    abbreviations.includes(word.toLowerCase()) ||
    (INITIALS.test(word) && word !== "I") ||
    (hasOrdinals && ORDINAL.test(word)) ||
    (base === "de" && word.toLowerCase().endsWith("str") && /\p{Nd}/u.test(next)) // Hauptstr. 12
  );
}

/** Writes !!!! and ??? as one mark, since models repeat them without end, and as many in the translation. */
function singleMarks(text) {
  const ofText = text.match(MARKS_IN_A_ROW);
  if (!ofText) return null;
  const restored = (translation) => {
    const left = [...ofText];
    const asMany = ([mark], marks) => (marks.includes(mark) ? marks : mark.repeat(marks.length));
    return translation.replace(MARKS_IN_A_ROW, (found) => asMany(found, left.shift() ?? "!"));
  };
  const single = text.replace(MARKS_IN_A_ROW, (marks) => [...marks].sort().at(-1));
  return { parts: [single], restore: ([part]) => ({ ...part, text: restored(part.text) }) };
}

/** Writes &amp; in the translation of a text without entities as &: a model may have learned it from web pages. */
function withoutEntities(text) {
  if (text.search(ENTITY) >= 0) return null;
  const restored = (translation) => translation.replace(ENTITY, (entity) => CHARACTER_OF[entity.toLowerCase()]);
  return { parts: [text], restore: ([part]) => ({ ...part, text: restored(part.text) }) };
}

/**
 * Translates texts in ALL CAPS and in Title Case, and WORDS in capitals, as if they were written as usual: each word as
 * the tokenizer knows it best.
 */
class Casing {
  constructor(tokenizer, language) {
    this.tokenizer = tokenizer;
    this.language = language;
  }

  prepare(text) {
    if (Array.from(text).filter(isCapital).length < 2) return null;
    const restore = this.restorer(text);
    const usual = this.trueCased(text, (word) => this.formIn(word, restore));
    const fewestSaved = restore === inCapitals ? 0 : 1;
    if (usual === text || this.count(text) - this.count(usual) < fewestSaved) return null;
    const [words, asGiven] = [usual, text].map((each) => each.match(CASED_WORD) ?? []);
    const given = new Map(words.map((word, i) => [word, asGiven[i]]));
    const restored = (part) => (restore ? outsideCodes(restore, part.text) : part.text);
    const notes = (part) => part.notes.map((note) => withWords(note, given));
    return { parts: [usual], restore: ([part]) => ({ ...part, text: restored(part), notes: notes(part) }) };
  }

  count(text) {
    return this.tokenizer.countSrcTokens(text);
  }

  /** The function that gives a translation the capitals of a text; null if it has the usual ones. */
  restorer(text) {
    const characters = Array.from(text);
    const nUpper = characters.filter(isCapital).length;
    const nCased = nUpper + characters.filter((character) => /^\p{Lowercase}$/u.test(character)).length;
    if (nUpper >= (text.includes(" ") ? MOSTLY : 1) * nCased) return inCapitals;
    const isPlain = (word) => isInSmallLetters(word) || isInSmallLetters(word.slice(characterAt(word, 0).length));
    const words = (text.match(CASED_WORD) ?? []).filter(isPlain); // no acronyms
    if (words.length < FEWEST_TITLE_WORDS) return null;
    const isCapitalized = (word) => isCapital(characterAt(word, 0));
    const long = words.filter((word) => this.language === "de" || countCharacters(word) > LONGEST_SMALL_WORD);
    const capitalized = words.slice(1).filter(isCapitalized);
    if (!long.every(isCapitalized) || 2 * capitalized.length < words.length - 1) return null;
    const nSmall = capitalized.filter((word) => this.count(word.toLowerCase()) === 1).length; // words that are not names
    return 2 * nSmall >= capitalized.length ? inTitleCase : null;
  }

  /** Writes the words of a text in their usual forms, and starts it as the model knows sentences. */
  trueCased(text, usualForm) {
    const usual = outsideCodes((part) => part.replace(CASED_WORD, usualForm), text);
    const first = usual !== text && this.startsWithCapital && new RegExp(FIRST_LETTER, "u").exec(usual);
    if (!first) return usual;
    const end = first.index + first[0].length;
    return usual.slice(0, end).toUpperCase() + usual.slice(end);
  }

  /** Whether sentences start with a capital, so that the vocabulary has words in both forms. */
  get startsWithCapital() {
    const vocabulary = new Set(this.tokenizer.src.known);
    const words = [...vocabulary].filter((token) => /^▁\p{L}+$/u.test(token)).map((token) => token.slice(1));
    const isTwin = (word) => isCapital(characterAt(word, 0)) && vocabulary.has(`▁${word.toLowerCase()}`);
    const answer = words.filter(isTwin).length > TWINS * words.length;
    Object.defineProperty(this, "startsWithCapital", { value: answer }); // computed once
    return answer;
  }

  /** A word as the model reads it in a text whose capitals `restore` makes: acronyms as they are, but for ALL CAPS. */
  formIn(word, restore) {
    const isTitled = countCharacters(word) === 1 || isInSmallLetters(word.slice(characterAt(word, 0).length));
    return restore === inCapitals || (restore === inTitleCase && isTitled) ? this.usual(word) : this.undone(word);
  }

  /** A word in capitals in its usual casing if the model knows it so; others as they are. */
  undone(word) {
    if (countCharacters(word) < 3 || !isInCapitals(word)) return word; // as US and LA
    const usual = this.usual(word);
    const nTokens = this.count(usual);
    return nTokens < this.count(word) && countCharacters(word) >= FEWEST_LETTERS_A_TOKEN * nTokens ? usual : word;
  }

  /** A word in the casing that takes the fewest tokens; initials stay. */
  usual(word) {
    if (isInSmallLetters(word) || word.includes(".")) return word;
    const small = word.toLowerCase();
    const first = characterAt(small, 0);
    const capitalized = first.toUpperCase() + small.slice(first.length);
    if (this.language === "en" && /^i(['’].*)?$/.test(small)) return capitalized; // the pronoun
    const [nSmall, nCapitalized, nGiven] = [small, capitalized, word].map((form) => this.count(form));
    const isNoun = this.language === "de" && nCapitalized > 1; // likely, as rare words mostly are
    if (nGiven < Math.min(nSmall, nCapitalized)) return word;
    return nCapitalized < nSmall || (isNoun && nCapitalized === nSmall) ? capitalized : small;
  }
}

/** Writes the words that a note names, as in "check: names lost: Uuid", as they are given. */
function withWords(note, given) {
  const [flag, problem, ...named] = note.split(": ");
  if (!named.length) return note;
  return `${flag}: ${problem}: ${named.join(": ").replace(CASED_WORD, (word) => given.get(word) ?? word)}`;
}

function inCapitals(text) {
  return text.toUpperCase();
}

function inTitleCase(text) {
  return text.replace(new RegExp(FIRST_LETTER, "gu"), (first) => first.toUpperCase());
}

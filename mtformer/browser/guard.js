"use strict";
// Problems of a translation, seen from the two texts alone, and repairs without the model: mtformer/translate/guard.py
// and mtformer/text/repetition.py.

const LOOP = "repeats itself";
const REPEATED_SLOTS = "repeated numbers or names removed";
const MADE_UP_SLOTS = "made-up numbers or names removed";
const ADDED_SLOTS = "numbers or names put back: ";
const LOST_NUMBERS = "numbers lost: ";
const LOST_NAMES = "names lost: "; // and codes, where slots cannot keep them
const DOUBLED = "doubles words";
const EMPTY = "empty";
const SHORT = "too short";
const REPEATED_SOURCE = "repeats itself as its source does";
const REPEATED_MORE = "repeats itself more than its source does";
const SOURCE_REPEATS = [REPEATED_SOURCE, REPEATED_MORE];

const MOST_PHRASE_WORDS = 8;
const FEWEST_REPEATS = 3; // of a phrase in a row that are a loop
const MOST_TIMES_AS_OFTEN = 2; // as in its source may a phrase be repeated: a word may become two
const FEWEST_DOUBTFUL_REPEATS = 10; // in a source, which is hardly text
const MOST_LETTERS_DOUBLED = 3; // of other languages
const LOOPING_WORD = 8; // characters, from which on a word may repeat a part of itself
const WORDS = new RegExp(`[${WORD}]+`, "gu");
const [LONGEST, SHORTEST, SLACK] = [3, 0.25, 20]; // of the length of a translation over that of its source
const DENSITY = 3; // characters of a spaced language that say as much as one of Chinese or Japanese
const FEWEST_COPIED_WORDS = 4;

/** Finds problems of translations. The languages are as describe_texts describes them. */
class Guard {
  constructor(tokenizer, src, tgt, findsNames) {
    Object.assign(this, { tokenizer, src, tgt, findsNames });
    this.expected = tokenizer.tgt.characters;
    const density = (language) => (language.has_spaces ? 1 : DENSITY);
    this.ratio = density(src) / density(tgt);
    this.slack = SLACK / density(tgt);
    this.otherWords = tgt.letters && new RegExp(`(?:(?![${tgt.letters}])[${LETTER}])+`, "gu");
  }

  /** The problems of a translation; none if all seems right. */
  problems(source, translation) {
    if (!strip(translation)) return strip(source) ? [EMPTY] : [];
    return [
      this.loop(source, translation),
      this.wrongLength(countCharacters(source), countCharacters(translation)),
      translation === source && this.isProse(source) && this.src.base !== this.tgt.base && "not translated",
      this.wrongNumbers(source, translation),
      found("stray characters: ", this.strayCharacters(source, translation)),
      this.isOtherScript(source, translation) && "another script",
    ].filter((problem) => problem);
  }

  wrongNumbers(source, translation) {
    const lost = found(LOST_NUMBERS, lostNumbers(source, translation, this.src, this.tgt).join(" "));
    return lost || found("numbers made up: ", madeUpNumbers(source, translation, this.src, this.tgt).join(" "));
  }

  /** Repairs a translation as far as that is possible without the model, and notes the problems that are left. */
  checked(source, translation) {
    let problems = this.problems(source, translation.text);
    const { text, repairs } = problems.length
      ? this.repaired(source, translation.text, problems)
      : { text: translation.text, repairs: [] };
    if (repairs.length) problems = [...repairs, ...this.problems(source, text)];
    const names = this.findsNames ? lostNames(source, text, this.tokenizer) : [];
    if (names.length) problems.push(LOST_NAMES + names.join(" "));
    if (!problems.some((problem) => problem.startsWith(LOST_NUMBERS))) {
      const texts = [source, text, this.src, this.tgt];
      const amounts = [...lostAmounts(...texts, false), ...lostDates(...texts)]; // another search would not recover them
      if (amounts.length) problems.push(LOST_NUMBERS + amounts.join(", "));
    }
    if (!problems.length) return translation;
    return { text, notes: [...new Set([...translation.notes, ...problems.map((problem) => FLAG + problem)])] };
  }

  repaired(source, translation, problems) {
    if (problems.includes(EMPTY)) return { text: onOneLine(source), repairs: ["not translated"] };
    if (!problems.includes(LOOP)) return { text: translation, repairs: [] };
    const once = (loop, phrase) => (hasLetter(phrase) ? phrase : loop);
    const wordOnce = (loop, phrase) => (loop.split(phrase).length > 2 * FEWEST_REPEATS ? phrase : once(loop, phrase));
    const text = this.tgt.has_spaces
      ? translation.replace(LOOPS_OF_WORDS, wordOnce)
      : translation.replace(LOOPS_OF_CHARACTERS, once);
    const repaired = text.replace(LOOP_IN_WORD, once);
    const slots = Array.from(translation.matchAll(SLOT), ([slot]) => slot);
    if (!slots.every((slot) => repaired.includes(slot))) return { text: translation, repairs: [] }; // no repair may lose a number
    return { text: repaired, repairs: ["repetition removed"] };
  }

  /** The problem of a translation that repeats itself; null if it may, as its source does. */
  loop(source, translation) {
    const n = countRepeats(translation, this.tgt.has_spaces);
    if (n < FEWEST_REPEATS) return this.doublesWords(source, translation) ? DOUBLED : null;
    const nInSource = countRepeats(source, this.src.has_spaces);
    if (nInSource < FEWEST_REPEATS || n > MOST_TIMES_AS_OFTEN * nInSource) return LOOP;
    if (nInSource >= FEWEST_DOUBTFUL_REPEATS) return REPEATED_SOURCE;
    return n > nInSource ? REPEATED_MORE : null;
  }

  /** Whether a translation has a phrase twice in a row that no grammar wants so, and its source has none like it. */
  doublesWords(source, translation) {
    const wordsOf = this.tgt.has_spaces ? DOUBLED_WORDS : DOUBLED_CHARACTERS;
    const isDoubled = ({ 0: both, 1: phrase, groups }) =>
      this.tgt.has_spaces ? both === "Sie Sie" || !this.mayBeDoubled(phrase) : groups.before || groups.after;
    const doubled = Array.from(translation.matchAll(wordsOf)).filter(isDoubled);
    const inSource = Array.from(source.matchAll(this.src.has_spaces ? DOUBLED_WORDS : DOUBLED_ONES));
    if (!this.src.has_spaces || !this.tgt.has_spaces) return doubled.length > 0 && !inSource.length;
    const sizeOf = ([, phrase]) => phrase.match(WORDS).length;
    const isLike = (n, size) => size <= MOST_TIMES_AS_OFTEN * n && n <= MOST_TIMES_AS_OFTEN * size;
    return doubled.some((phrase) => !inSource.some((other) => isLike(sizeOf(phrase), sizeOf(other))));
  }

  mayBeDoubled(phrase) {
    const word = phrase.toLowerCase();
    const known = this.tgt.may_double;
    return known ? known.includes(word) : countCharacters(word) <= MOST_LETTERS_DOUBLED;
  }

  wrongLength(nSource, nTranslation) {
    const expected = this.ratio * nSource;
    if (nTranslation > LONGEST * expected + this.slack) return "too long";
    return nTranslation + this.slack < SHORTEST * expected ? SHORT : null;
  }

  /** Whether a text has more words than names. */
  isProse(text) {
    if (!this.src.has_spaces) return countCharacters(text) >= Math.floor((DENSITY * FEWEST_COPIED_WORDS) / 2);
    const isPlain = (word) => /^\p{L}+$/u.test(word) && isInSmallLetters(word);
    return splitAtSpaces(text).filter(isPlain).length >= FEWEST_COPIED_WORDS;
  }

  /** The characters of a translation that neither the model nor its source has, in order of their code points. */
  strayCharacters(source, translation) {
    if (!this.expected) return "";
    const inSource = new Set(source);
    const isStray = (character) => !isSpace(character) && !this.expected.has(character) && !inSource.has(character);
    const stray = [...new Set(translation)].filter(isStray);
    return stray.sort((a, b) => a.codePointAt(0) - b.codePointAt(0)).join("");
  }

  /** Whether most letters are of another script than the target language's, and not from the source. */
  isOtherScript(source, translation) {
    if (!this.otherWords) return false;
    const words = (translation.match(this.otherWords) ?? []).filter((word) => !source.includes(word));
    const nLetters = Array.from(translation).filter(isAlphabetic).length;
    return words.length > 0 && 2 * countCharacters(words.join("")) > nLetters;
  }
}

function found(problem, what) {
  return what && problem + what;
}

/** Whether a phrase has a letter: the zeros of 1,000,000,000 are no loop, see mtformer/text/repetition.py. */
function hasLetter(phrase) {
  return Array.from(phrase).some(isAlphabetic);
}

/** How often a phrase occurs in a row at most, or a part of a long word if that is four times; half, without letters. */
function countRepeats(text, hasSpaces) {
  const words = foldCase(text).match(WORDS) ?? [];
  const units = hasSpaces ? words : Array.from(words.join(""));
  let most = 1;
  for (let size = 1; size <= MOST_PHRASE_WORDS && countRepeatedPairs(units); size++) {
    let run = 0;
    for (let i = size; i < units.length; i++) {
      run = units[i] === units[i - size] ? run + 1 : 0;
      let n = 1 + Math.floor(run / size);
      if (n > most && !units.slice(i + 1 - size, i + 1).some(hasLetter)) n = hasSpaces ? Math.floor(n / 2) : 1;
      most = Math.max(most, n);
    }
  }
  if (!hasSpaces || !words.length) return most;
  return splitAtSpaces(text).reduce((n, word) => Math.max(n, countRepeatsInWord(word)), most);
}

/** How often a part of a long word, which has a letter, occurs in a row if that is four times. */
function countRepeatsInWord(word) {
  const characters = Array.from(word);
  if (characters.length < LOOPING_WORD || countRepeatedPairs(characters) < 2) return 1;
  const loops = Array.from(word.matchAll(LOOP_IN_WORD)).filter(([, part]) => hasLetter(part));
  return loops.reduce((most, [loop, part]) => Math.max(most, Math.floor(loop.length / part.length)), 1);
}

/** How many pairs of neighbours have occurred before: none in most sentences, which need no closer look. */
function countRepeatedPairs(units) {
  const pairs = new Set(units.slice(1).map((unit, i) => JSON.stringify([units[i], unit])));
  return Math.max(0, units.length - 1 - pairs.size);
}

"use strict";
// The way of a text through the model: mtformer/translate/planner.py and sentence.py, without terms and most markup.

const FULL_WIDTH_ENDS = ["。", "！", "？", "；"]; // no space follows them
const CONTINUATION_BYTE = /^<0x[89AB][0-9A-F]>$/; // of a character that is spelled as several bytes
const SENTENCE_ENDS = [...".!?;", ...Array.from(".!?;", (end) => `<0x${hexOf(end)}>`), ...FULL_WIDTH_ENDS];
const PART_END = /[.,;。，；、]+$/; // of what stands between commas

/**
 * Plans translations in one direction of a model.
 *
 * `description` is what describe_texts in Python returns, and `direction` one of its directions.
 */
class TextPlanner {
  constructor(description, direction = description.directions[0]) {
    const { tokenizer, max_length: maxLength, search, languages, known_words: words, slots } = description;
    const [src, tgt] = [languages[direction.src_lang], languages[direction.tgt_lang]];
    Object.assign(this, { direction, maxLength, search, src, tgt });
    this.tokenizer = new Tokenizer(tokenizer);
    this.joiner = tgt.has_spaces ? " " : "";
    this.guard = new Guard(this.tokenizer, src, tgt, direction.finds_lost_names);
    this.slotMaker = slots && new SlotMaker(this.tokenizer, slots, src, tgt);
    this.characters = new KnownCharacters(this.tokenizer.src, slots ? (text) => this.slotMaker.places(text) : null);
    this.preparations = preparationsOf(this.tokenizer, this.characters, this.slotMaker, src, tgt, words);
  }

  /**
   * Plans the translation of a text, line by line, without the marks in it. Returns
   *   requests: what to search for, each { ids, nPrefix, limit, forced }: the ids of the source, how many stand before
   *     its text, the most tokens of a translation, and the ids that it is forced to start with; none if all of the text is copied;
   *   finish(hypotheses): takes the ids that were found for each request, as { ids } without EOS, and returns the
   *     translation as { text, notes, segments }. Notes that start with FLAG are about problems that it may have.
   *     Segments are the sentences, each { src, tgt, start, end, tgtStart, tgtEnd, notes, parts }: both texts, where
   *     they stand in the whole ones, and the hypotheses of its parts, with the request that each answers.
   *   leaves: the texts that the model translates, each { text, requests }, in the order of the requests. One with slots
   *     has `slotted`, until dropSlots() takes them out, or divide() makes leaves of its `parts`.
   */
  plan(text) {
    const wellFormed = text.toWellFormed();
    const places = textPlaces(wellFormed, this.src);
    const plans = places.map(([start, end]) => this.planUnmarked(wellFormed.slice(start, end)));
    const finish = (hypotheses) => {
      const left = [...hypotheses];
      const translated = plans.map((plan) => plan.finish(left.splice(0, requestsOf(plan.leaves).length)));
      const segments = [];
      let [whole, done] = ["", 0];
      translated.forEach((part, i) => {
        const [start, end] = places[i];
        whole += keptOf(wellFormed.slice(done, start));
        segments.push(...part.segments.map((segment) => moved(segment, start, whole.length)));
        whole += part.text;
        done = end;
      });
      return { text: whole + keptOf(wellFormed.slice(done)), notes: joinTranslations(translated, "").notes, segments };
    };
    const leaves = plans.flatMap((plan) => plan.leaves);
    return { requests: requestsOf(leaves), leaves, finish };
  }

  /** Plans the translation of a line without marks, or of a text between them, as plan() does that of a text. */
  planUnmarked(line) {
    const prepared = prepareText(line, this.preparations);
    let before = "";
    const units = unitsOf(prepared).map((unit) => ({
      unit,
      leaves: leavesOf(unit).map((text) => {
        const leaf = this.leaf(text, before);
        before = text;
        return leaf;
      }),
    }));
    const finish = (hypotheses) => {
      const left = [...hypotheses];
      const ofUnits = units.map(({ unit, leaves }) => {
        const found = leaves.map(({ requests }) => left.splice(0, requests.length));
        const ofLeaves = leaves.map((leaf, i) => this.translation(leaf, found[i]));
        const parts = leaves.flatMap((leaf, i) => {
          const asked = leavesIn(leaf).flatMap(({ requests, slotted }) => requests.map((request) => ({ request, slotted })));
          return asked.map((each, j) => ({ ...each, ...found[i][j] }));
        });
        return { ofLeaves, parts, translation: restoreText(unit, [...ofLeaves]) };
      });
      const { text, notes } = restoreText(prepared, ofUnits.flatMap(({ ofLeaves }) => ofLeaves));
      const segments = this.segments(line, prepared, ofUnits);
      const ofSegments = segments.flatMap((segment) => segment.notes);
      segments[0].notes = [...notes.filter((note) => !ofSegments.includes(note)), ...segments[0].notes]; // on the line
      return { text, notes, segments };
    };
    const leaves = units.flatMap((each) => each.leaves);
    return { requests: requestsOf(leaves), leaves, finish };
  }

  /** The sentences of a line and their translations; see plan(). */
  segments(line, prepared, ofUnits) {
    const units = unitsOf(prepared);
    if (units[0] === prepared) {
      const [{ translation, parts }] = ofUnits;
      return [segmentOf(line, [0, line.length], translation, 0, parts)];
    }
    const origins = this.characters.origins(line);
    let [place, tgtStart] = [0, 0];
    return units.map((unit, i) => {
      const { translation, parts } = ofUnits[i];
      const start = splitOf(prepared).text.indexOf(unit.text, place);
      place = start + unit.text.length;
      const segment = segmentOf(line, [origins(start), origins(place)], translation, tgtStart, parts);
      if (translation.text) tgtStart = segment.tgtEnd + this.joiner.length;
      return segment;
    });
  }

  /** A text that needs no more preparation, after another one, as a leaf of plan(), with slots if the model knows any. */
  leaf(plain, before = "") {
    return this.leafWith(this.slotMaker?.make(plain) ?? null, { plain, context: this.context(before, plain) });
  }

  leafWith(slotted, { plain, context }) {
    if (slotted && !Array.from(slotted.text).some(isAlphabetic)) // there is nothing to translate beside the codes
      return copyLeaf(onOneLine(this.slotMaker.withNumbers(plain)));
    const read = this.read(slotted?.text ?? plain, context);
    if (slotted) slotted.text = read.text;
    return { plain, context, slotted, dropped: null, parts: null, ...read };
  }

  /** The ids of the text before, which the model reads first if it has learned to, and if both fit. */
  context(before, text) {
    const { tokenizer, direction, maxLength } = this;
    const body = (each) => tokenizer.src.encode(each).slice(0, -1);
    if (tokenizer.contextEnd === null || !strip(before)) return [];
    const context = [...body(before), tokenizer.contextEnd];
    const fits = context.length + direction.src_prefix.length + body(text).length + 1 <= maxLength;
    return fits ? context : [];
  }

  /** The last sentence of a text, and the ids before it. For a model that reads sentences alone, a text is one sentence. */
  lastSentence(text) {
    const sentences = this.tokenizer.contextEnd === null ? [text] : splitSentences(text, this.src);
    const [before, sentence] = ["", "", ...sentences].slice(-2);
    return { sentence, context: this.context(before, sentence) };
  }

  /** What the model reads for a text: no characters that it does not know, and that no slot stands for. */
  read(given, context) {
    const change = this.slotMaker ? new KnownCharacters(this.tokenizer.src).prepare(given) : null;
    const text = change ? change.parts[0] : given;
    return { text, change, notes: [], requests: this.requests(text, context) };
  }

  /** Whether the translation of a leaf lacks a slot, given the hypotheses for its parts. */
  losesSlots(leaf, hypotheses) {
    return leaf.slotted !== null && !leaf.slotted.fits(this.checked(leaf, hypotheses).text);
  }

  /** Whether the translation of a leaf has each slot, though letters may touch it. */
  keepsSlots(leaf, hypotheses) {
    return leaf.slotted.keeps(this.checked(leaf, hypotheses).text);
  }

  /** Whether the translation of a leaf lacks units or larger numbers that are words. */
  losesWords(leaf, hypotheses) {
    return Boolean(this.slotMaker?.losesWords(leaf.plain, this.translation(leaf, hypotheses).text));
  }

  /** Puts larger numbers, and units with their numbers, that are words into slots. */
  slotWords(leaf) {
    Object.assign(leaf, this.leafWith(this.slotMaker.make(leaf.plain, true), leaf));
  }

  /** Notes what the translation of a leaf lacks, or all if it has them beside other signs: it will be added. */
  noteAdded(leaf, hypotheses) {
    const lost = leaf.slotted.lost(this.checked(leaf, hypotheses).text);
    const added = lost.length ? lost : Array.from(leaf.slotted.fillings.values());
    leaf.notes.push(FLAG + ADDED_SLOTS + added.join(", "));
  }

  /** Whether a leaf is a list of more numbers than there are slots, and its translation lacks any. */
  overflows(leaf, hypotheses) {
    const { slotted, plain } = leaf;
    if (!slotted?.isFull || slotted.parts.length < 2) return false;
    const { text } = this.checked(leaf, hypotheses);
    const whole = slotted.filled(text);
    const isLost = (name) => !whole.includes(name);
    return !slotted.fits(text) || slotted.names.some(isLost) || lostNumbers(plain, whole, this.src, this.tgt).length > 0;
  }

  /** Makes leaves of what stands between the commas of a leaf with slots; whether there are any. */
  divide(leaf) {
    const { parts } = leaf.slotted;
    if (parts.length < 2) return false;
    const leafOfPart = (part) =>
      Array.from(part).some(isAlphanumeric) ? this.leafWith(this.slotMaker.make(part), { ...leaf, plain: part }) : copyLeaf(part);
    Object.assign(leaf, { slotted: null, parts: parts.map(leafOfPart) });
    return true;
  }

  /** The ids of the slots of a leaf, that of a space, and whether there is one before each slot. */
  slotIds({ slotted }) {
    const { ids } = this.tokenizer.tgt;
    return [Array.from(slotted.fillings.keys(), (slot) => ids.get(slot)), ids.get("▁"), this.joiner !== ""];
  }

  /** Lets the model translate a leaf without slots. */
  dropSlots(leaf) {
    Object.assign(leaf, { slotted: null, dropped: leaf.slotted, ...this.read(leaf.plain, leaf.context) });
  }

  /** The requests for a text that needs no more preparation, one for each part if it is too long. */
  requests(text, context) {
    const prefix = [...context, ...this.direction.src_prefix];
    const body = this.tokenizer.src.encode(text).slice(0, -1);
    if (!body.length) return [];
    const { eos } = this.tokenizer.specialIds;
    const room = this.maxLength - prefix.length - 1;
    const sizes = body.length > room ? cutTokens(this.tokenizer.src.tokens(body), room) : [body.length];
    return sizes.map((size) => {
      const ids = [...prefix, ...body.splice(0, size), eos];
      const limit = Math.floor(this.search.max_length_factor * ids.length) + this.search.max_length_offset;
      return { ids, nPrefix: prefix.length, limit, forced: this.direction.tgt_prefix };
    });
  }

  /** The translation of a text from the hypotheses for its parts. */
  translation(leaf, hypotheses) {
    if (leaf.copy) return leaf.copy;
    if (leaf.parts) return this.joinedParts(leaf.parts, [...hypotheses]);
    const checked = this.checked(leaf, hypotheses);
    if (leaf.slotted) return leaf.slotted.withLostNames(leaf.slotted.restored(checked));
    return leaf.dropped ? leaf.dropped.withLostNames(checked) : checked;
  }

  /** The translation of a leaf that was divided, from the hypotheses for its parts, in order. */
  joinedParts(parts, left) {
    const translated = parts.map((part) => this.translation(part, left.splice(0, part.requests.length)));
    const withoutEnd = (text) => text.replace(PART_END, "") || text;
    const ended = translated.map(({ text, notes }, i) => ({ text: i + 1 < parts.length ? withoutEnd(text) : text, notes }));
    return joinTranslations(ended, this.joiner ? ", " : "，", [`translated in ${parts.length} parts`]);
  }

  checked(leaf, hypotheses) {
    const checked = this.guard.checked(leaf.text, this.unchecked(leaf, hypotheses));
    return leaf.change ? leaf.change.restore([checked]) : checked;
  }

  unchecked({ text, requests, notes }, hypotheses) {
    const parts = hypotheses.map(({ ids }) => ({ text: this.tokenizer.tgt.decode(ids), notes: [] }));
    const ofParts = requests.length > 1 ? [`translated in ${requests.length} parts`] : [];
    const joined = joinTranslations(parts, this.joiner, ofParts);
    const known = this.slotMaker ? withoutMadeUp(text, joined) : joined;
    return { text: known.text, notes: [...known.notes, ...notes] };
  }

  /** The problems of the translation of a text, given the hypotheses for its parts. */
  problems(leaf, hypotheses) {
    return this.guard.problems(leaf.text, this.unchecked(leaf, hypotheses).text);
  }

  /** The requests of a text for a second search: with less repetition, and a length close to that of the source. */
  stricter({ text, requests }, problems) {
    const { max_length_factor: factor, max_length_offset: offset } = this.search;
    const isShort = problems.includes(EMPTY) || problems.includes(SHORT);
    const strictness = {
      repetitionPenalty: 1.1,
      ngramSize: problems.includes(LOOP) ? 2 : 3,
      minLength: Math.max(1, isShort ? Math.floor(splitAtSpaces(text).length / 2) : 1),
    };
    const limitOf = ({ ids }) => Math.floor(Math.min(factor, 1.5) * ids.length) + Math.min(offset, 10);
    return requests.map((request) => ({ ...request, limit: limitOf(request), strictness }));
  }
}

/** A leaf that needs no model. */
function copyLeaf(text) {
  return { slotted: null, parts: null, copy: { text, notes: [] }, requests: [] };
}

/** The leaves that a leaf was divided into, or itself. */
function leavesIn(leaf) {
  return leaf.parts ? leaf.parts.flatMap(leavesIn) : [leaf];
}

function requestsOf(leaves) {
  return leaves.flatMap(({ requests }) => requests);
}

/** The text of a prepared line that is split into sentences, with its parts; else its last one. */
function splitOf(prepared) {
  return prepared.parts.length === 1 ? splitOf(prepared.parts[0]) : prepared;
}

/** The sentences of a prepared line; if it has one only, the line. */
function unitsOf(prepared) {
  const { parts } = splitOf(prepared);
  return parts.length ? parts : [prepared];
}

/** A segment of a line from one place to another, without the spaces around it. */
function segmentOf(line, [from, to], { text, notes }, tgtStart, parts) {
  const src = strip(line.slice(from, to));
  const start = from + Math.max(0, line.slice(from, to).indexOf(src));
  return { src, tgt: text, start, end: start + src.length, tgtStart, tgtEnd: tgtStart + text.length, notes, parts };
}

/** A segment of a line at its places in the whole text, given those of the line. */
function moved(segment, start, tgtStart) {
  const places = { start: segment.start + start, end: segment.end + start };
  return { ...segment, ...places, tgtStart: segment.tgtStart + tgtStart, tgtEnd: segment.tgtEnd + tgtStart };
}

function hexOf(character) {
  return character.codePointAt(0).toString(16).toUpperCase();
}

/** Cuts tokens into parts of at most `most` each; returns how many each part has. */
function cutTokens(tokens, most) {
  const sizes = [];
  let start = 0;
  while (tokens.length - start > most) {
    const least = start + Math.min(Math.floor((most + 1) / 2), most - 1);
    const places = Array.from({ length: start + most - least }, (_, i) => start + most - i);
    sizes.push(bestPlace(tokens, places) - start);
    start += sizes.at(-1);
  }
  return [...sizes, tokens.length - start];
}

/** The first of the places that follows a sentence, else a word, else a character, else the first at all. */
function bestPlace(tokens, places) {
  const follows = (i, ends) => ends.some((end) => tokens[i - 1].endsWith(end));
  const startsWord = places.filter((i) => tokens[i].startsWith("▁") || follows(i, FULL_WIDTH_ENDS));
  const sentenceEnd = startsWord.find((i) => follows(i, SENTENCE_ENDS));
  return sentenceEnd ?? startsWord[0] ?? places.find((i) => !CONTINUATION_BYTE.test(tokens[i])) ?? places[0];
}

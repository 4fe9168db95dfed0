"use strict";
// The way of a text through the model: mtformer/translate/planner.py, without markup, terms and second searches.

const FULL_WIDTH_ENDS = ["。", "！", "？", "；"]; // no space follows them
const CONTINUATION_BYTE = /^<0x[89AB][0-9A-F]>$/; // of a character that is spelled as several bytes
const SENTENCE_ENDS = [...".!?;", ...Array.from(".!?;", (end) => `<0x${hexOf(end)}>`), ...FULL_WIDTH_ENDS];

/**
 * Plans translations in one direction of a model.
 *
 * `description` is what describe_texts in Python returns, and `direction` one of its directions.
 */
class TextPlanner {
  constructor(description, direction = description.directions[0]) {
    const { tokenizer, max_length: maxLength, search, languages } = description;
    const [src, tgt] = [languages[direction.src_lang], languages[direction.tgt_lang]];
    Object.assign(this, { direction, maxLength, search });
    this.tokenizer = new Tokenizer(tokenizer);
    this.joiner = tgt.has_spaces ? " " : "";
    this.preparations = preparationsOf(this.tokenizer, src, tgt);
    this.guard = new Guard(this.tokenizer, src, tgt);
  }

  /**
   * Plans the translation of a text, line by line. Returns
   *   requests: what to search for, each { ids, limit, forced }: the ids of the source, the most tokens of a translation,
   *     and the ids that it is forced to start with; none if all of the text is copied;
   *   finish(hypotheses): takes the ids that were found for each request, as { ids } without EOS, and returns the
   *     translation as { text, notes }. Notes that start with FLAG are about problems that it may have.
   */
  plan(text) {
    const wellFormed = text.toWellFormed();
    const lines = wellFormed.split(/\r?\n/);
    const ends = [...(wellFormed.match(/\r?\n/g) ?? []), ""];
    const prepared = lines.map((line) => prepareText(line, this.preparations));
    const leaves = prepared.flatMap(leavesOf).map((leaf) => ({ text: leaf, requests: this.requests(leaf) }));
    const finish = (hypotheses) => {
      const left = [...hypotheses];
      const ofLeaves = leaves.map((leaf) => this.translation(leaf, left.splice(0, leaf.requests.length)));
      const ofLines = prepared.map((line) => restoreText(line, ofLeaves));
      const { notes } = joinTranslations(ofLines, "");
      return { text: ofLines.map((line, i) => line.text + ends[i]).join(""), notes };
    };
    return { requests: leaves.flatMap(({ requests }) => requests), finish };
  }

  /** The requests for a text that needs no more preparation, one for each part if it is too long. */
  requests(text) {
    const prefix = this.direction.src_prefix;
    const body = this.tokenizer.src.encode(text).slice(0, -1);
    if (!body.length) return [];
    const { eos } = this.tokenizer.specialIds;
    const room = this.maxLength - prefix.length - 1;
    const sizes = body.length > room ? cutTokens(this.tokenizer.src.tokens(body), room) : [body.length];
    return sizes.map((size) => {
      const ids = [...prefix, ...body.splice(0, size), eos];
      const limit = Math.floor(this.search.max_length_factor * ids.length) + this.search.max_length_offset;
      return { ids, limit, forced: this.direction.tgt_prefix };
    });
  }

  /** The translation of a text from the hypotheses for its parts. */
  translation({ text, requests }, hypotheses) {
    const parts = hypotheses.map(({ ids }) => ({ text: this.tokenizer.tgt.decode(ids), notes: [] }));
    const notes = requests.length > 1 ? [`translated in ${requests.length} parts`] : [];
    return this.guard.checked(text, joinTranslations(parts, this.joiner, notes));
  }
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

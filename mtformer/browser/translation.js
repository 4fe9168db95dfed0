"use strict";
// Texts to translations with a model: what the worker does, as generators that yield while they compute.

const MOST_REMEMBERED = 2_000; // hypotheses
const WIDEST_BEAM = 16; // of a second search
const MOST_INSERTED = 4; // tokens: a sentence that lacks more becomes another one
const MOST_ADDED = 8; // tokens that a translation may grow by with each
const INSERTION_BEAM = 2;
const MOST_TRIED = 1_024; // tokens of all prefixes of a translation, roughly: of a long one, few are

/** A model that translates texts. */
class TextTranslator {
  constructor({ texts, ...header }, kernels) {
    Object.assign(this, { texts, header, model: new Transformer(header, kernels), remembered: new Map() });
    this.planners = new Map(); // by direction
    this.lengthPenalty = lengthPenaltyOf(texts.search);
  }

  /** Plans translations in a direction; languages that are not given are any. */
  plannerOf({ from, to }) {
    const fits = ({ src_lang: src, tgt_lang: tgt }) => (from ?? src) === src && (to ?? tgt) === tgt;
    const direction = this.texts.directions.find(fits);
    if (!direction) throw new Error(`the model does not translate from ${from ?? "any language"} to ${to ?? "any"}`);
    if (!this.planners.has(direction)) this.planners.set(direction, new TextPlanner(this.texts, direction));
    return this.planners.get(direction);
  }

  /** Translates a text: { text, notes, segments }. Yields { done, of, tokens }. */
  *translate(text, { from, to, beam }) {
    const planner = this.plannerOf({ from, to });
    const plan = planner.plan(text);
    const hypotheses = [];
    for (const leaf of plan.leaves) {
      const found = [];
      for (const ids of this.translateLeaf(leaf, planner, beam, found))
        yield { done: hypotheses.length, of: plan.requests.length, tokens: ids.length };
      hypotheses.push(...found);
    }
    return this.finished(plan, hypotheses, planner);
  }

  /** Adds to `found` the hypotheses for a text. Units and larger numbers that are words get slots if they are lost. */
  *translateLeaf(leaf, planner, beam, found) {
    yield* this.translateSlotted(leaf, planner, beam, found);
    if (leaf.copy || !planner.losesWords(leaf, found)) return;
    planner.slotWords(leaf);
    found.length = 0;
    yield* this.translateSlotted(leaf, planner, beam, found);
  }

  /**
   * Adds to `found` the hypotheses for a text with slots for its numbers. What gets lost is inserted, but not in parts; if
   * that fails, or if there are too few slots, what stands between commas is translated alone.
   */
  *translateSlotted(leaf, planner, beam, found) {
    yield* this.searchStrictly(leaf, planner, beam, found);
    if (!planner.overflows(leaf, found)) {
      if (!planner.losesSlots(leaf, found)) return;
      planner.noteAdded(leaf, found);
      if (leaf.requests.length === 1) {
        const fits = (hypothesis) => leaf.slotted.fits(planner.unchecked(leaf, [hypothesis]).text);
        found.splice(0, found.length, yield* this.insert(leaf.requests[0], ...planner.slotIds(leaf), fits));
        if (planner.keepsSlots(leaf, found)) return;
      }
    }
    found.length = 0;
    if (planner.divide(leaf)) yield* this.translateParts(leaf, planner, beam, found);
    else {
      planner.dropSlots(leaf);
      yield* this.searchStrictly(leaf, planner, beam, found);
    }
  }

  *translateParts(leaf, planner, beam, found) {
    for (const part of leaf.parts) {
      const ofPart = [];
      yield* this.translateLeaf(part, planner, beam, ofPart);
      found.push(...ofPart);
    }
    leaf.requests = requestsOf(leaf.parts);
  }

  /** A hypothesis that has the ids `needed`: mtformer/translate/insertion.py. */
  *insert(request, needed, space, hasSpaces, fits) {
    const count = ({ ids }) => needed.filter((id) => ids.includes(id)).length;
    const found = [];
    yield* this.search(request, INSERTION_BEAM, found);
    let [best] = found;
    for (let round = 0; round < MOST_INSERTED; round++) {
      const nMissing = needed.length - count(best);
      if (!nMissing || nMissing > MOST_INSERTED) break;
      const missing = needed.find((id) => !best.ids.includes(id));
      const limit = Math.min(request.limit, best.ids.length + MOST_ADDED);
      const attempts = [];
      for (const place of placesToTry(best.ids.length, needed.indexOf(missing), needed.length)) {
        const start = best.ids.slice(0, place);
        if ((hasSpaces || !place) && start.at(-1) !== space) start.push(space);
        yield* this.search({ ...request, limit, prefix: [...start, missing] }, INSERTION_BEAM, attempts);
      }
      const [counts, fitting] = [new Map(), new Map()];
      for (const each of attempts) {
        counts.set(each, count(each));
        fitting.set(each, Number(fits(each)));
      }
      const gain = (a, b) => counts.get(b) - counts.get(a) || fitting.get(b) - fitting.get(a) || b.score - a.score;
      best = attempts.reduce((a, b) => (gain(a, b) > 0 ? b : a));
    }
    return best;
  }

  /**
   * Adds to `found` the hypotheses for a text; if they have problems, those with the fewest of all that a second, stricter
   * search finds.
   */
  *searchStrictly(leaf, planner, beam = this.texts.search.beam_size, found) {
    for (const request of leaf.requests) yield* this.search(request, beam, found);
    const problems = leaf.requests.length ? planner.problems(leaf, found) : [];
    if (!problems.some((problem) => !SOURCE_REPEATS.includes(problem))) return;
    const second = []; // of each request, best first
    const width = 2 * beam <= WIDEST_BEAM ? 2 * beam : beam;
    for (const request of planner.stricter(leaf, problems)) second.push(yield* this.searchAll(request, width, width));
    let least = problems.length;
    for (let rank = 0; rank < Math.max(...second.map((each) => each.length)); rank++) {
      const chosen = second.map((each) => each[Math.min(rank, each.length - 1)]);
      const count = planner.problems(leaf, chosen).length;
      if (count < least) found.splice(0, found.length, ...chosen);
      least = Math.min(least, count);
    }
  }

  /** Adds to `found` the best hypothesis for a request. */
  *search(request, beam, found) {
    found.push((yield* this.searchAll(request, beam, 1))[0]);
  }

  /** The `nBest` best hypotheses for a request, those of the last time if there were some. */
  *searchAll(request, beam = this.texts.search.beam_size, nBest) {
    const { ids, limit, forced, prefix, strictness } = request;
    const key = JSON.stringify([ids, limit, forced, prefix, strictness, beam, nBest]);
    const { remembered, lengthPenalty } = this;
    if (!remembered.has(key)) {
      const decoder = this.model.start(ids);
      remembered.set(key, yield* searchTranslations(decoder, { ...request, beamSize: beam, nBest, lengthPenalty }));
      if (remembered.size > MOST_REMEMBERED) remembered.delete(remembered.keys().next().value);
    }
    return remembered.get(key);
  }

  /** The translation of a plan, with the words of its segments. */
  finished(plan, hypotheses, { tokenizer }) {
    const { text, notes, segments } = plan.finish(hypotheses);
    const withWords = segments.map(({ parts, ...segment }) => {
      return { ...segment, ...wordsOf({ ...segment, parts }, tokenizer) };
    });
    return { text, notes, segments: withWords };
  }

  /**
   * Other translations of a sentence that start like its translation, up to where a word begins: different words there,
   * each { word, probability, text, score, segment }, best first. The probability is that of the word's first token.
   */
  *alternatives(src, prefix, { from, to, count = 5 }) {
    const planner = this.plannerOf({ from, to });
    const plan = planner.planUnmarked(src);
    if (plan.requests.length !== 1) return [];
    const [request] = plan.requests;
    const leaf = leafOf(plan);
    const start = strip(prefix);
    const ids = yield* this.idsOf(start, request, leaf, planner);
    const alternatives = new Map(); // by word
    for (const { id, probability } of this.nextWords(request, ids, planner, 2 * count)) {
      const hypotheses = [];
      yield* this.search({ ...request, prefix: [...ids, id] }, 1, hypotheses);
      if (planner.losesSlots(leaf, hypotheses)) continue;
      const { text, segments } = this.finished(plan, hypotheses, planner);
      const word = wordSpans(text).find((span) => span.start >= start.length);
      const shown = word ? text.slice(word.start, word.end) : "";
      const found = { word: shown, probability, text, score: hypotheses[0].score };
      if (word && text.startsWith(start) && !(alternatives.get(found.word)?.score >= found.score))
        alternatives.set(found.word, { ...found, segment: segments[0] });
    }
    return [...alternatives.values()].sort((a, b) => b.score - a.score).slice(0, count);
  }

  /** The best translation of a sentence that begins with `start`, as a segment; null if there is none. */
  *begin(src, start, { from, to }) {
    const planner = this.plannerOf({ from, to });
    const plan = planner.planUnmarked(src);
    if (plan.requests.length !== 1) return null;
    const leaf = leafOf(plan);
    const found = [];
    yield* this.search({ ...leaf.requests[0], prefix: startIds(start, leaf, planner) }, undefined, found);
    if (planner.losesSlots(leaf, found)) {
      planner.dropSlots(leaf);
      if (leaf.requests.length !== 1) return null;
      found.length = 0;
      yield* this.search({ ...leaf.requests[0], prefix: startIds(start, leaf, planner) }, undefined, found);
    }
    return this.finished(plan, found, planner).segments[0];
  }

  /** The ids of the start of a translation: those that the search has found, if it is the best's. */
  *idsOf(start, request, leaf, planner) {
    const found = [];
    yield* this.search(request, undefined, found);
    const [{ ids }] = found;
    const shown = (text) => (leaf.slotted ? leaf.slotted.filled(text) : text);
    const n = ids.findIndex((_, i) => shown(planner.tokenizer.tgt.decode(ids.slice(0, i))) === start);
    return n < 0 ? startIds(start, leaf, planner) : ids.slice(0, n);
  }

  /** The likeliest tokens after some that begin a word, each { id, probability }. */
  nextWords(request, ids, { tokenizer: { tgt }, joiner }, count) {
    const decoder = this.model.start(request.ids);
    const read = [tgt.specialIds.start, ...request.forced, ...ids];
    const logits = read.map((id) => decoder.step([id])).at(-1);
    const textless = new Set(Object.values(tgt.specialIds));
    const begins = (id) => !joiner || !ids.length || tgt.tokens([id])[0].startsWith("▁");
    const order = Array.from(logits, (_, id) => id).filter((id) => !textless.has(id) && begins(id));
    const best = order.sort((a, b) => logits[b] - logits[a]).slice(0, count);
    const total = logSumExp(logits);
    return best.map((id) => ({ id, probability: Math.exp(logits[id] - total) }));
  }
}

/** The one leaf of a plan with a request. */
function leafOf(plan) {
  return plan.leaves.find(({ requests }) => requests.length);
}

/** The ids that a translation of a leaf starts with, given the text. */
function startIds(start, { slotted }, { tokenizer: { tgt } }) {
  return tgt.encode(slotted ? slotted.emptied(start) : start).slice(0, -1);
}

/** The positions in a translation to try the needed token of this index at, of so many that are needed. */
function placesToTry(nTokens, index, nNeeded) {
  const nPlaces = Math.min(nTokens + 1, Math.max(1, Math.floor(MOST_TRIED / Math.max(1, nTokens))));
  const middle = Math.floor(((2 * index + 1) * nTokens) / (2 * nNeeded));
  const start = Math.min(Math.max(0, middle - Math.floor(nPlaces / 2)), nTokens + 1 - nPlaces);
  return Array.from({ length: nPlaces }, (_, i) => start + i);
}

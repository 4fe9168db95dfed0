"use strict";
// Greedy and beam search for one sentence: mtformer/search/. The order of hypotheses and the end of a search are those
// of Python, whose numbers between operations are in float32.
// A hypothesis is { ids, logProbs, score, alignment }: the tokens without EOS, the log probability of each and
// of EOS, and how much each token attends to those of the source.

const PREDICTS_NAN = "the model predicts NaN instead of probabilities: its weights are damaged; use another";
const NO_HYPOTHESIS = "the search found no translation: the model gives every possible one probability 0";

/**
 * Searches for translations with a decoder at its start; returns at most `nBest` hypotheses, best first.
 *
 * `limit`: the most tokens, EOS not counted; `forced`: ids that are read first and left out of the result; `prefix`:
 * the tokens that translations start with. A generator, which yields the tokens found so far, so that one can stop it.
 */
function* searchTranslations(decoder, { limit, forced = [], prefix = [], beamSize = 1, nBest = 1, lengthPenalty }) {
  const { special_ids: specialIds } = decoder.model.architecture;
  const rules = { specialIds, prefix, limit: Math.max(limit, prefix.length) };
  const finished = new FinishedHypotheses(nBest, lengthPenalty);
  const longest = lengthPenalty(rules.limit + 1);
  let beams = [{ ids: [], logProbs: [], total: 0, parent: 0 }];
  let read = [specialIds.start, ...forced];
  for (let t = 0; beams.length; t++) {
    const tokens = t ? beams.map(({ ids }) => ids.at(-1)) : [read.at(-1)];
    for (const id of t ? [] : read.slice(0, -1)) decoder.step([id]);
    const logits = decoder.step(tokens, beams.map(({ parent }) => parent));
    const candidates = likeliest(logits, beams, allowedTokens(rules, t), beamSize === 1 ? 1 : 2 * beamSize);
    const next = candidates.map(({ total, parent, id, logProb }) => {
      const { ids, logProbs } = beams[parent];
      return { ids: [...ids, id], logProbs: [...logProbs, logProb], total, parent };
    });
    const isEnd = ({ ids }) => ids.at(-1) === specialIds.eos;
    for (const beam of next.filter(isEnd)) finished.add(beam, () => decoder.alignment(beam.parent, t + 1));
    beams = next.filter((beam) => !isEnd(beam)).slice(0, beamSize);
    // What a beam leads to is not likelier than the beam and not longer than the limit.
    if (beams.length && !(beams[0].total > Math.fround(finished.threshold * longest))) break;
    if (beams.length) yield beams[0].ids;
  }
  if (!finished.best.length) throw new Error(NO_HYPOTHESIS);
  return finished.best;
}

/** The `nBest` best hypotheses; `threshold` is the score that another one must exceed. */
class FinishedHypotheses {
  constructor(nBest, lengthPenalty) {
    Object.assign(this, { nBest, lengthPenalty, best: [], threshold: -Infinity });
  }

  /** Adds a beam that has ended, if it is among the best. */
  add({ ids, logProbs, total }, alignmentOf) {
    const penalty = this.lengthPenalty(ids.length);
    if (!(Math.fround(total / penalty) > this.threshold)) return;
    const score = logProbs.reduce((sum, logProb) => sum + logProb, 0) / penalty;
    this.best.push({ ids: ids.slice(0, -1), logProbs, score, alignment: alignmentOf() });
    this.best.sort((a, b) => b.score - a.score || compareIds(a.ids, b.ids));
    this.best.splice(this.nBest);
    if (this.best.length === this.nBest) this.threshold = Math.fround(this.best.at(-1).score);
  }
}

/** ((offset + length) / (offset + 1))^alpha (Wu et al. 2016, equation 14), of a length that counts EOS. */
function lengthPenaltyOf({ length_penalty: alpha, length_penalty_offset: offset }) {
  return (length) => ((offset + length) / (offset + 1)) ** alpha;
}

function compareIds(a, b) {
  const i = a.findIndex((id, place) => id !== b[place]);
  return i < 0 ? a.length - b.length : a[i] - (b[i] ?? -1);
}

/** The ids that may follow t tokens: the only one, or null for all but `never`. */
function allowedTokens({ specialIds: { pad, unk, bos, eos, start }, prefix, limit }, t) {
  const never = new Set([pad, unk, bos, start].filter((id) => id !== eos));
  if (t < prefix.length) return { only: prefix[t], never };
  return { only: t >= limit ? eos : null, never };
}

/** The `count` likeliest continuations of beams, best first, as { total, parent, id, logProb }; from logits (K, V). */
function likeliest(logits, beams, { only, never }, count) {
  const size = logits.length / beams.length;
  const best = [];
  let least = -Infinity; // what a total must exceed
  const offer = (parent, id, logProb) => {
    const total = Math.fround(beams[parent].total + logProb);
    if (!(total > least) || never.has(id)) return;
    let place = best.length;
    while (place > 0 && total > best[place - 1].total) place--;
    best.splice(place, 0, { total, parent, id, logProb });
    if (best.length > count) best.pop();
    if (best.length === count) least = best[count - 1].total;
  };
  for (let parent = 0; parent < beams.length; parent++) {
    const row = logits.subarray(parent * size, (parent + 1) * size);
    const logSum = logSumExp(row);
    if (Number.isNaN(logSum)) throw new Error(PREDICTS_NAN);
    const difference = beams[parent].total - logSum;
    const [first, end] = only === null ? [0, size] : [only, only + 1];
    for (let id = first; id < end; id++)
      if (row[id] + difference > least - 1e-3) offer(parent, id, Math.fround(row[id] - logSum)); // few, before rounding
  }
  return best;
}

function logSumExp(values) {
  let largest = -Infinity;
  for (let i = 0; i < values.length; i++) if (values[i] > largest) largest = values[i];
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += Math.exp(values[i] - largest);
  return largest + Math.log(sum);
}

"use strict";
// Greedy and beam search for one sentence: mtformer/search/. The order of hypotheses and the end of a search are those
// of Python, whose numbers between operations are in float32.
// A hypothesis is { ids, logProbs, score, alignment }: the tokens without EOS, the log probability of each and
// of EOS, and how much each token attends to those of the source.

const PREDICTS_NAN = "the model predicts NaN instead of probabilities: its weights are damaged; use another";
const N_OBSERVED = 10; // candidates of a step of greedy search that an observer hears of
const NO_HYPOTHESIS = "the search found no translation: the model gives every possible one probability 0";

/**
 * Searches for translations with a decoder at its start; returns at most `nBest` hypotheses, best first.
 *
 * `limit`: the most tokens, EOS not counted; `forced`: ids that are read first and left out of the result; `prefix`:
 * the tokens that translations start with; `strictness`: see withRules(); `observe` hears at each step of the candidates,
 * of those that have ended, and of the next beams. A generator, which yields the tokens found so far, so that one can
 * stop it.
 */
function* searchTranslations(
  decoder,
  { limit, forced = [], prefix = [], beamSize = 1, nBest = 1, lengthPenalty, strictness = null, observe = null },
) {
  const { special_ids: specialIds } = decoder.model.architecture;
  const rules = { specialIds, prefix, limit: Math.max(limit, prefix.length), strictness };
  const finished = new FinishedHypotheses({ nBest, beamSize, lengthPenalty, limit: rules.limit });
  let beams = [{ ids: [], logProbs: [], total: 0, parent: 0 }];
  const read = [specialIds.start, ...forced];
  for (const id of read.slice(0, -1)) decoder.step([id]);
  for (let t = 0; beams.length; t++) {
    const tokens = t ? beams.map(({ ids }) => ids.at(-1)) : [read.at(-1)];
    const logits = decoder.step(tokens, beams.map(({ parent }) => parent));
    const nCandidates = beamSize > 1 ? 2 * beamSize : observe ? N_OBSERVED : 1;
    const candidates = likeliest(logits, beams, allowedTokens(rules, t), nCandidates);
    const next = candidates.slice(0, beamSize > 1 ? nCandidates : 1).map(({ total, parent, id, logProb }) => {
      const { ids, logProbs } = beams[parent];
      return { ids: [...ids, id], logProbs: [...logProbs, logProb], total, parent };
    });
    const isEnd = ({ ids }) => ids.at(-1) === specialIds.eos;
    const ended = next.slice(0, beamSize).filter(isEnd);
    for (const beam of ended)
      finished.add(beam, strictness !== null, () => decoder.alignment(beam.parent, t + 1));
    beams = next.filter((beam) => !isEnd(beam)).slice(0, beamSize);
    observe?.({ candidates, ended, beams });
    if (beams.length && !(beams[0].total > finished.least(t + 1))) break;
    if (beams.length) yield beams[0].ids;
  }
  if (!finished.best.length) throw new Error(NO_HYPOTHESIS);
  return finished.best.slice(0, nBest);
}

/** The `beamSize` best hypotheses. */
class FinishedHypotheses {
  constructor({ nBest, beamSize, lengthPenalty, limit }) {
    Object.assign(this, { nBest, beamSize, lengthPenalty, ofLongest: lengthPenalty(limit + 1), best: [] });
  }

  /** The score of the hypothesis with a number, from 1; -Infinity while there are fewer. */
  score(number) {
    return this.best.length < number ? -Infinity : Math.fround(this.best[number - 1].score);
  }

  /** The log probability that a beam of `length` tokens must exceed for the search to go on; see beam.py. */
  least(length) {
    const [last, worst] = [this.score(this.nBest), this.score(this.beamSize)];
    const product = (a, b) => Math.fround(a * Math.fround(b));
    return Math.max(product(last, this.ofLongest), product(worst, this.lengthPenalty(length)));
  }

  /** Adds a beam that has ended, if it is among the best. */
  add({ ids, logProbs, total }, isPenalized, alignmentOf) {
    const penalty = this.lengthPenalty(ids.length);
    if (!(Math.fround(total / penalty) > this.score(this.beamSize))) return;
    const logProb = isPenalized ? total : logProbs.reduce((sum, each) => sum + each, 0);
    const score = logProb / penalty;
    this.best.push({ ids: ids.slice(0, -1), logProbs, score, alignment: alignmentOf() });
    this.best.sort((a, b) => b.score - a.score || compareIds(a.ids, b.ids));
    this.best.splice(this.beamSize);
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
function allowedTokens({ specialIds: { pad, unk, bos, eos, start }, prefix, limit, strictness }, t) {
  const never = new Set([pad, unk, bos, start].filter((id) => id !== eos));
  const only = t < prefix.length ? prefix[t] : t >= limit ? eos : null;
  return { only, never, eos, strictness };
}

/**
 * Log probabilities (V,) to choose by: of tokens that the ids before have, those are multiplied by `repetitionPenalty`
 * (Keskar et al. 2019); those that repeat `ngramSize` ids, and EOS before `minLength` ids, are forbidden, unless that
 * leaves no token. Without strictness they are those of the model.
 */
function withRules(logProbs, ids, { never, only, eos, strictness }) {
  if (!strictness) return logProbs;
  const { repetitionPenalty, ngramSize, minLength } = strictness;
  let chosen = logProbs.slice();
  for (const id of new Set(ids)) chosen[id] *= repetitionPenalty;
  const forbidden = [repeatedBy(ids, ngramSize), ids.length < minLength ? [eos] : []];
  for (const some of forbidden.filter(({ length }) => length && only === null)) {
    const left = chosen.slice();
    for (const id of some) left[id] = -Infinity;
    if (left.some((logProb, id) => logProb > -Infinity && !never.has(id))) chosen = left;
  }
  return chosen;
}

/** The ids that would repeat a sequence of `size` of the ids before (Paulus et al. 2018, section 2.5). */
function repeatedBy(ids, size) {
  const last = ids.slice(ids.length - size + 1);
  const starts = ids.length < size ? [] : ids.slice(0, ids.length - size + 1).map((_, i) => i);
  return starts.filter((i) => last.every((id, j) => ids[i + j] === id)).map((i) => ids[i + size - 1]);
}

/** The `count` likeliest continuations of beams, best first, as { total, parent, id, logProb }; from logits (K, V). */
function likeliest(logits, beams, allowed, count) {
  const { only, never } = allowed;
  const size = logits.length / beams.length;
  const best = [];
  let least = -Infinity; // what a total must exceed
  const offer = (parent, id, chosenBy, logProb) => {
    const total = Math.fround(beams[parent].total + chosenBy);
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
    for (let id = 0; id < size; id++) row[id] -= logSum;
    const chosen = withRules(row, beams[parent].ids, allowed);
    const { total } = beams[parent];
    const [first, end] = only === null ? [0, size] : [only, only + 1];
    for (let id = first; id < end; id++) // few are offered; the others need no rounding
      if (chosen[id] + total > least - 1e-3) offer(parent, id, chosen[id], row[id]);
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

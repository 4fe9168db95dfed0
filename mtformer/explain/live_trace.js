"use strict";
// The trace of one translation, in the page's worker: what mtformer/explain/record.py records, field by field.

const MOST_TOKENS = 256; // of a side: what a person can look at
const N_CANDIDATES = 10;
const HESITATION = 1.0; // nats: with a smaller margin, the second-best token gets an "instead"

TASKS.explain = (translator, { lesson, request }) => {
  translator.explainer ??= new LiveExplainer(translator, lesson);
  return translator.explainer.trace(request);
};

/** A translator's model and search, as parts that can be watched. `lesson` is what mtformer/explain/live.py describes. */
class LiveExplainer {
  constructor(translator, { prefixes, formula }) {
    const { header, model, texts } = translator;
    const planner = translator.plannerOf({});
    const { tokenizer, slotMaker } = planner;
    Object.assign(this, { texts, prefixes, formula, planner, tokenizer, slotMaker });
    this.model = new LiveTransformer(header, model.kernels);
    this.specialIds = header.architecture.special_ids;
  }

  /**
   * Translates a sentence, the last one of a text, and records how; or returns { problem, … } if it has no tokens or too
   * many.
   *
   * `search`: { beam_size, length_penalty }; `prefix`: ids that the translation begins with; `nPadding`: how many ids of
   * padding follow the source; `switches`: what differs from ALL_ON. A generator, which yields while it computes.
   */
  *trace({ text, search, prefix = [], nPadding = 0, switches = {} }) {
    const { sentence: plain, context } = this.planner.lastSentence(text);
    this.slotted = this.slotMaker?.make(plain) ?? new Slotted(plain);
    const ids = this.tokenizer.src.encode(this.slotted.text);
    if (ids.length === 1) return { problem: "empty" };
    const src = [...context, ...this.prefixes.src, ...ids];
    const most = Math.min(this.texts.max_length, MOST_TOKENS);
    if (src.length + nPadding > most) return { problem: "long", n: src.length + nPadding, most };
    this.model.switches = { ...ALL_ON, ...switches };
    const { pad, eos, start } = this.specialIds;
    const sentence = { src: [...src, ...Array(nPadding).fill(pad)], nPadding, limit: this.limitOf(src.length) };
    const tree = new TreeRecorder(this, search);
    const [best] = yield* this.search(sentence, prefix, search, (step) => tree.add(step));
    const recorder = new BlockRecorder(this.model, this.prefixes.tgt.length, this.formula);
    const logits = recorder.record(sentence.src, nPadding, [start, ...this.prefixes.tgt, ...best.ids]);
    yield best.ids;
    const seen = this.model.switches.causal ? logits : yield* this.seenLogits(sentence, best.ids);
    const steps = this.steps(seen, [...best.ids, eos], prefix.length);
    yield* this.addAlternatives(steps, sentence, best.ids, search);
    const [bos, ...tokens] = this.targetTokens([start, ...best.ids, eos]);
    const logProb = best.logProbs.reduce((sum, each) => sum + each, 0);
    return {
      source: { text, tokens: this.tokensOf(this.tokenizer.src, sentence.src, this.slotted.originals) },
      target: { text: this.decode(best.ids), tokens, log_prob: logProb, score: best.score },
      bos,
      attention: ["encoder", "decoder", "cross"].flatMap((kind) => recorder.attentions.filter((one) => one.kind === kind)),
      tree: tree.finish(best.ids),
      steps,
      matrices: [...recorder.blocks, ...this.logitBlocks(logits, steps)],
      why_not: [],
    };
  }

  /** The logits (T, V) that the search saw, which without the causal mask are those of each prefix by itself. */
  *seenLogits({ src, nPadding }, ids) {
    const read = [this.specialIds.start, ...this.prefixes.tgt];
    const decoder = this.model.start(src, nPadding);
    let rows = null;
    for (let n = 0; n <= ids.length; n++) {
      const logits = decoder.readAll([...read, ...ids.slice(0, n)]);
      const row = logits.subarray(-logits.length / (read.length + n));
      rows ??= new Float32Array((ids.length + 1) * row.length);
      rows.set(row, n * row.length);
      yield ids;
    }
    return rows;
  }

  limitOf(n) {
    const { max_length_factor: factor, max_length_offset: offset } = this.texts.search;
    return Math.floor(factor * n) + offset;
  }

  /** Searches for the best translations that begin with `prefix`. */
  search({ src, nPadding, limit }, prefix, { beam_size: beamSize, length_penalty: alpha }, observe = null) {
    const lengthPenalty = lengthPenaltyOf({ ...this.texts.search, length_penalty: alpha });
    const options = { limit, forced: this.prefixes.tgt, prefix, beamSize, lengthPenalty, observe };
    return searchTranslations(this.model.start(src, nPadding), options);
  }

  /** The tokens of ids. A slot is spelled as what it stands for, as in ⟨4711⟩. */
  tokensOf(vocabulary, ids, meanings) {
    const { pad, unk, bos, eos } = this.specialIds;
    const texts = vocabulary.tokens(ids).map((token) => token.replace(SLOT, (slot) => `⟨${meanings.get(slot) ?? "?"}⟩`));
    const characters = charactersOf(texts);
    return ids.map((id, i) => {
      const kind = [pad, unk, bos, eos].includes(id) ? "special" : byteOf(texts[i]) === null ? "word" : "byte";
      return { text: texts[i], id, kind, character: characters[i] };
    });
  }

  targetTokens(ids) {
    return this.tokensOf(this.tokenizer.tgt, ids, this.slotted.fillings);
  }

  decode(ids) {
    return strip(this.slotted.filled(this.tokenizer.tgt.decode(ids)));
  }

  /** Describes each step by the model's distribution over the next token. */
  steps(logits, chosen, nForced) {
    const size = logits.length / chosen.length;
    const { pad, unk, bos, eos, start } = this.specialIds;
    const never = [pad, unk, bos, start].filter((id) => id !== eos);
    return chosen.map((token, i) => {
      const row = heated(logits.slice(i * size, (i + 1) * size), this.model.switches);
      const total = logSumExp(row);
      const logProbs = row.map((logit) => logit - total);
      const entropy = logProbs.reduce((sum, each) => sum - (each > -Infinity ? Math.exp(each) * each : 0), 0) / Math.LN2;
      for (const id of never) logProbs[id] = -Infinity;
      const likeliestIds = topOf(logProbs, N_CANDIDATES);
      const ids = likeliestIds.includes(token) ? likeliestIds : [...likeliestIds.slice(0, -1), token];
      const candidates = ids.map((id) => ({
        token: this.targetTokens([id])[0],
        log_prob: logProbs[id],
        probability: Math.exp(logProbs[id]),
        rank: 1 + countAbove(logProbs, logProbs[id]),
        forced: id === token && i < nForced,
      }));
      const margin = logProbs[token] - logProbs[ids.find((id) => id !== token)];
      const input = Array.from({ length: i + 1 }, (_, place) => place);
      return { number: i + 1, candidates, chosen: ids.indexOf(token), entropy_bits: entropy, margin, instead: null, input };
    });
  }

  /** Adds to the steps where the model hesitates what it would have said with the best other token. */
  *addAlternatives(steps, sentence, ids, search) {
    for (const step of steps.filter(({ margin }) => margin < HESITATION)) {
      const other = step.candidates.find((_, place) => place !== step.chosen).token.id;
      const prefix = [...ids.slice(0, step.number - 1), other];
      if (other === this.specialIds.eos) step.instead = this.decode(prefix);
      else {
        const [found] = yield* this.search(sentence, prefix, { ...search, beam_size: 1 });
        step.instead = this.decode(found.ids);
      }
    }
  }

  /** Logits and probabilities of each step's candidates. */
  logitBlocks(logits, steps) {
    const { architecture, switches } = this.model;
    const size = logits.length / steps.length;
    const shape = [steps.length, steps[0].candidates.length];
    const all = steps.flatMap(({ candidates }, i) => candidates.map(({ token }) => logits[i * size + token.id]));
    const totals = steps.map((_, i) => logSumExp(heated(logits.slice(i * size, (i + 1) * size), switches)));
    const probabilities = all.map((logit, i) => Math.exp(logit / switches.temperature - totals[Math.floor(i / shape[1])]));
    const softmax = switches.temperature === 1 ? "softmax of each row" : "softmax of each row / temperature";
    const place = { stack: "output", side: "target", layer: null, sublayer: null, rows: "target", columns: "candidates" };
    const block = (name, formula, values) => ({
      ...place,
      name,
      formula,
      shape: [steps.length, size],
      values: { shape, values: Float32Array.from(values) },
    });
    return [
      block("logits", `decoder output·W_out${architecture.output_bias ? " + b" : ""}`, all),
      block("probabilities", softmax, probabilities),
    ];
  }
}

/** The search as a tree of candidates; see trace.py for what nodes are. */
class TreeRecorder {
  constructor(explainer, { length_penalty: alpha }) {
    const { texts, specialIds } = explainer;
    Object.assign(this, { explainer, beams: [0], step: 0 });
    this.penalty = lengthPenaltyOf({ ...texts.search, length_penalty: alpha });
    const start = { id: 0, parent: null, step: 0, token: explainer.targetTokens([specialIds.start])[0], log_prob: 0, total: 0 };
    this.nodes = [{ ...start, rank: 1, fate: "stopped", score: null }];
  }

  /** Adds the candidates of one step. */
  add({ candidates, ended, beams }) {
    this.step++;
    for (const beam of this.beams) this.nodes[beam].fate = "expanded";
    const keyOf = (parent, id) => `${parent} ${id}`;
    const added = new Map();
    candidates.forEach(({ total, parent, id, logProb }, place) => {
      const node = { id: this.nodes.length, parent: this.beams[parent], step: this.step, token: this.explainer.targetTokens([id])[0] };
      this.nodes.push({ ...node, log_prob: logProb, total, rank: place + 1, fate: "pruned", score: null });
      added.set(keyOf(parent, id), this.nodes.at(-1));
    });
    const nodeOf = ({ parent, ids }) => added.get(keyOf(parent, ids.at(-1)));
    for (const beam of ended) {
      const logProb = beam.logProbs.reduce((sum, each) => sum + each, 0);
      Object.assign(nodeOf(beam), { fate: "finished", score: logProb / this.penalty(beam.ids.length) });
    }
    for (const beam of beams) nodeOf(beam).fate = "stopped";
    this.beams = beams.map((beam) => nodeOf(beam).id);
  }

  /** The tree; the search has returned the translation `best`. */
  finish(best) {
    const { nodes } = this;
    const ended = nodes.filter(({ fate }) => fate === "finished").sort((a, b) => b.score - a.score);
    const finished = ended.map((node, i) => {
      const path = this.pathTo(node);
      const ids = path.map(({ token }) => token.id).slice(0, -1);
      return {
        node: node.id,
        rank: i + 1,
        text: this.explainer.decode(ids),
        length: path.length,
        log_prob: path.reduce((sum, { log_prob: each }) => sum + each, 0),
        penalty: this.penalty(path.length),
        score: node.score,
        returned: String(ids) === String(best),
      };
    });
    return { nodes, finished };
  }

  pathTo(node) {
    return node.parent === null ? [] : [...this.pathTo(this.nodes[node.parent]), node];
  }
}

/** The byte that a token stands for; null if it stands for none. */
function byteOf(token) {
  const match = /^<0x([0-9A-F]{2})>$/.exec(token);
  return match ? parseInt(match[1], 16) : null;
}

/** For each token that is a byte the character that it is a part of; null for others, and where bytes are not UTF-8. */
function charactersOf(texts) {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const bytes = texts.map(byteOf);
  const characters = texts.map(() => null);
  for (let start = 0, n; start < texts.length; start += n) {
    n = 1;
    for (let length = 1; length <= 4 && characters[start] === null; length++) {
      const some = bytes.slice(start, start + length);
      if (some.includes(null) || some.length < length) break;
      try {
        characters.fill(decoder.decode(Uint8Array.from(some)), start, start + length);
        n = length;
      } catch {} // they are a part of a longer character, or none
    }
  }
  return characters;
}

/** The places of the `count` largest numbers, the largest first. */
function topOf(values, count) {
  const best = [];
  values.forEach((value, id) => {
    if (best.length === count && !(value > values[best.at(-1)])) return;
    let place = best.length;
    while (place > 0 && value > values[best[place - 1]]) place--;
    best.splice(place, 0, id);
    best.splice(count);
  });
  return best;
}

function countAbove(values, least) {
  let n = 0;
  for (let i = 0; i < values.length; i++) n += values[i] > least;
  return n;
}

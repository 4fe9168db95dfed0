"use strict";
// Every matrix of a forward pass, in the page's worker: what mtformer/explain/matrices.py records of torch.
// An array is { shape, values }; its rows or columns that stand for forced tokens of the target are left out.

/** Listens to a LiveTransformer that reads one sentence. `nForced` ids at the start of the target are left out. */
class BlockRecorder {
  constructor(model, nForced, formula) {
    Object.assign(this, { model, nForced, formula, blocks: [], attentions: [], place: null, heads: null });
  }

  /** Runs a model with this recorder; returns the logits (T, V). */
  record(src, nPadding, tgtIn) {
    const { model } = this;
    model.recorder = this;
    try {
      const logits = model.start(src, nPadding).readAll(tgtIn);
      return logits.subarray((logits.length / tgtIn.length) * this.nForced);
    } finally {
      model.recorder = null;
    }
  }

  enter(stack, side, layer = null, sublayer = null) {
    this.place = { stack, side, layer, sublayer };
  }

  /** Adds values of shape (…, rows, columns); `rows` and `columns` say what those stand for. */
  add(name, formula, values, { shape = null, rows = this.place.side, columns = "features" } = {}) {
    const whole = shape ?? [values.length / this.model.d, this.model.d];
    const cut = this.withoutForced(values, whole, rows, columns);
    this.blocks.push({ ...this.place, name, formula, shape: cut.shape, rows, columns, values: cut });
    return cut;
  }

  withoutForced(values, shape, rows, columns) {
    const [nRows, nColumns] = shape.slice(-2);
    const [firstRow, firstColumn] = [rows, columns].map((side) => (side === "target" ? this.nForced : 0));
    if (!firstRow && !firstColumn) return { shape, values: Float32Array.from(values) };
    const kept = values.filter((_, i) => {
      const [row, column] = [Math.floor(i / nColumns) % nRows, i % nColumns];
      return row >= firstRow && column >= firstColumn;
    });
    return { shape: [...shape.slice(0, -2), nRows - firstRow, nColumns - firstColumn], values: kept };
  }

  // ---- What the model tells

  enterEmbedding(stack) {
    this.enter("embedding", stack === "encoder" ? "source" : "target");
  }

  embeddings(scaled) {
    const root = Math.sqrt(this.model.d);
    this.add("embeddings", "E[ids]", scaled.map((value) => value / root));
    this.add("scaled embeddings", "E[ids]·√d_model", scaled);
  }

  positions(added) {
    const { positions } = this.model.architecture;
    this.hasPositions = positions === "learned" || positions in SINUSOIDS;
    if (this.hasPositions) this.add("positions", "PE[0 … n−1]", added);
  }

  embedded(x, stack) {
    const isNormalized = this.model.norms[`${stack}_input_norm`].weight !== null;
    const formula = `E[ids]·√d_model + PE${isNormalized ? ", LayerNorm" : ""}`;
    if (this.model.switches.positions && this.hasPositions) this.add("x", formula, x);
  }

  stackOutput(stack, y, { weight }) {
    if (!weight) return;
    this.enter(stack, stack === "encoder" ? "source" : "target", null, "norm");
    this.add(`${stack} output`, "LayerNorm of the last layer", y);
  }

  /** Records a sub-layer with the normalization before or after it, and the residual sum. */
  residual({ stack, layer, sublayer }, x, compute, apply) {
    const isFirst = this.model.architecture.norm === "pre";
    this.enter(stack, stack === "encoder" ? "source" : "target", layer, sublayer);
    this.calls = [];
    let sum = null;
    const y = compute((input) => {
      if (isFirst) this.add("norm", "LayerNorm of x", input);
      const output = apply(input);
      const read = isFirst ? "norm" : "x";
      if (sublayer === "feed_forward") this.feedForward(read, output);
      else this.attention(read, output);
      sum = output.map((value, i) => value + x[i]);
      return output;
    });
    this.add("residual", isFirst ? "x + Sublayer(Norm(x))" : "x + Sublayer(x)", sum);
    if (!isFirst) this.add("norm", "LayerNorm of the residual sum", y);
    return y;
  }

  attends(kind, layer, call) {
    this.calls.push({ kind, layer, ...call, weights: [] });
  }

  weighs(head, seen, weights) {
    this.calls.at(-1).weights[head] = { seen, weights: weights.slice() };
  }

  activated(wide, active, n) {
    Object.assign(this, { wide, active, nRows: n });
  }

  // ---- The parts of a sub-layer

  feedForward(read, output) {
    const { wide, active, nRows } = this;
    const shape = [nRows, active.length / nRows];
    this.add("linear1", `${read}·W1 + b1`, wide, { shape });
    this.add("activation", this.formula.replace("{}", "linear1"), active, { shape });
    this.add("linear2", "activation·W2 + b2", output);
  }

  attention(read, output) {
    const [{ kind, layer, kv, out }] = this.calls;
    const { stack, sublayer, keys } = ATTENTIONS[kind];
    const [nHeads, nQueries, nKeys] = [this.model.architecture.n_heads, this.calls.length, this.keyRows(kind).length];
    const width = this.model.d / nHeads;
    const ofKeys = { shape: [nHeads, nQueries, nKeys], columns: keys };
    const headsOf = (n, at) => byHead(nHeads, n, width, at);
    const row = (j) => this.keyRows(kind)[j] * kv.stride + kv.offset;
    const q = headsOf(nQueries, (t, i) => this.calls[t].query[i]);
    const k = headsOf(nKeys, (j, i) => kv.data[row(j) + i]);
    const v = headsOf(nKeys, (j, i) => kv.data[row(j) + this.model.d + i]);
    const isRotary = this.model.switches.positions && this.model.architecture.positions === "rotary";
    const rotated = isRotary && kind !== "cross" ? ", rotated by position" : "";
    const keysRead = kind === "cross" ? "memory" : read;
    this.add("Q", `${read}·W^Q + b${rotated}`, q, { shape: [nHeads, nQueries, width] });
    this.add("K", `${keysRead}·W^K + b${rotated}`, k, { shape: [nHeads, nKeys, width], rows: keys });
    this.add("V", `${keysRead}·W^V + b`, v, { shape: [nHeads, nKeys, width], rows: keys });
    this.scores(productsOf(q, k, ofKeys.shape, width), width, kind, ofKeys);
    const weights = this.add("weights", "softmax of each row", this.weightsOf(ofKeys.shape), ofKeys);
    const heads = headsOf(nQueries, (t, i) => out[t * this.model.d + i]);
    this.add("heads", "weights·V", heads, { shape: [nHeads, nQueries, width] });
    this.add("concatenation", "heads side by side", out);
    this.add("output", "concatenation·W^O + b", output);
    this.attentions.push({ kind, layer, name: `${stack}_layers.${layer - 1}.${sublayer}`, weights });
  }

  /** The rows that some query of an attention sees or a mask hides: all of the sentence. */
  keyRows(kind) {
    const { rows } = this.calls.at(-1);
    return kind === "decoder" ? this.calls.map((_, i) => i) : rows;
  }

  /** Adds the scores of an attention before its softmax. */
  scores(products, width, kind, ofKeys) {
    const { scale, causal } = this.model.switches;
    this.add("scores", "Q·Kᵀ", products, ofKeys);
    const scores = scale ? products.map((value) => value / Math.sqrt(width)) : products;
    if (scale) this.add("scaled scores", "Q·Kᵀ / √d_head", scores, ofKeys);
    const [, nQueries, nKeys] = ofKeys.shape;
    const isPadded = kind !== "decoder" && this.model.nSource < nKeys;
    if (!isPadded && !(kind === "decoder" && causal)) return;
    const mayAttend = (t, j) => (isPadded ? j < this.model.nSource : j <= t);
    const mask = Float32Array.from({ length: nQueries * nKeys }, (_, i) => Number(mayAttend(Math.floor(i / nKeys), i % nKeys)));
    const formula = isPadded ? "1 = may attend: to all but padding" : "1 = may attend: position t to positions ≤ t";
    this.add("mask", formula, mask, { ...ofKeys, shape: [nQueries, nKeys] });
    const masked = scores.map((value, i) => (mask[i % mask.length] ? value : -Infinity));
    this.add("masked scores", "−∞ where the mask is 0", masked, ofKeys);
  }

  /** The weights (H, T, S) that queries gave to keys; 0 where they saw none. */
  weightsOf([nHeads, nQueries, nKeys]) {
    const all = new Float32Array(nHeads * nQueries * nKeys);
    this.calls.forEach(({ weights }, t) =>
      weights.forEach(({ seen, weights: own }, head) =>
        seen.forEach((j, i) => {
          all[(head * nQueries + t) * nKeys + j] = own[i];
        }),
      ),
    );
    return all;
  }
}

/** Splits rows of H heads side by side into (H, n, width); `at(row, i)` is a number of the rows. */
function byHead(nHeads, n, width, at) {
  const values = new Float32Array(nHeads * n * width);
  for (let head = 0, place = 0; head < nHeads; head++)
    for (let row = 0; row < n; row++)
      for (let i = 0; i < width; i++) values[place++] = at(row, head * width + i);
  return values;
}

/** Q·Kᵀ of each head, (H, T, S), for q (H, T, width) and k (H, S, width). */
function productsOf(q, k, [nHeads, nQueries, nKeys], width) {
  const products = new Float32Array(nHeads * nQueries * nKeys);
  for (let head = 0, place = 0; head < nHeads; head++)
    for (let t = 0; t < nQueries; t++)
      for (let j = 0; j < nKeys; j++) {
        let sum = 0;
        for (let i = 0; i < width; i++) sum += q[(head * nQueries + t) * width + i] * k[(head * nKeys + j) * width + i];
        products[place++] = sum;
      }
  return products;
}

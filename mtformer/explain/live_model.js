"use strict";
// The model of a lesson, in the page's worker: parts of it can be switched off, and a recorder watches it compute.
// Shapes as in model.js; T rows of the target.

// Nothing is switched off. Layers are named as in "encoder.1", heads as in "cross.2.4", from 1.
const ALL_ON = { layers: [], heads: [], causal: true, padding: true, positions: true, scale: true, temperature: 1 };

// Of each attention: the stack, the sub-layer, and whose tokens its keys are.
const ATTENTIONS = {
  encoder: { stack: "encoder", sublayer: "self_attention", keys: "source" },
  decoder: { stack: "decoder", sublayer: "self_attention", keys: "target" },
  cross: { stack: "decoder", sublayer: "cross_attention", keys: "source" },
};

/** A Transformer whose parts can be switched off. `recorder` hears what is computed; null costs nothing. */
class LiveTransformer extends Transformer {
  constructor(header, kernels) {
    super(header, kernels);
    Object.assign(this, { recorder: null, switches: ALL_ON, nSource: 0, place: null });
    this.places = new Map(); // of sub-layers in the model, by the normalization that each has of its own
    const number = (stack, layers, names) =>
      layers.forEach(({ norms }, i) =>
        names.forEach((sublayer, j) => this.places.set(norms[j], { stack, layer: i + 1, sublayer })),
      );
    number("encoder", this.encoderLayers, ["self_attention", "feed_forward"]);
    number("decoder", this.decoderLayers, ["self_attention", "cross_attention", "feed_forward"]);
  }

  /** Starts a decoder. The last `nPadding` ids are padding, which attention sees where its mask is switched off. */
  start(ids, nPadding = 0) {
    this.nSource = this.switches.padding ? ids.length - nPadding : ids.length;
    return new LiveDecoder(this, this.encode(ids), ids.length);
  }

  embed(ids, positions, embedding, stack) {
    this.recorder?.enterEmbedding(stack);
    const x = super.embed(ids, positions, embedding, stack);
    this.recorder?.embedded(x, stack);
    return x;
  }

  addPositions(x, positions, stack) {
    this.recorder?.embeddings(x);
    if (!this.switches.positions) return;
    if (this.recorder) {
      const added = new Float32Array(x.length);
      super.addPositions(added, positions, stack);
      this.recorder.positions(added);
    }
    super.addPositions(x, positions, stack);
  }

  rotate(x, start, position) {
    if (this.switches.positions) super.rotate(x, start, position);
  }

  normalize(x, norm) {
    const y = super.normalize(x, norm);
    if (norm === this.norms.encoder_norm) this.recorder?.stackOutput("encoder", y, norm);
    if (norm === this.norms.decoder_norm) this.recorder?.stackOutput("decoder", y, norm);
    return y;
  }

  residual(x, norm, sublayer) {
    const place = this.places.get(norm);
    if (this.switches.layers.includes(`${place.stack}.${place.layer}`)) return x;
    this.place = place;
    if (!this.recorder) return super.residual(x, norm, sublayer);
    return this.recorder.residual(place, x, (observed) => super.residual(x, norm, observed), sublayer);
  }

  activate(wide, n) {
    const active = super.activate(wide, n);
    this.recorder?.activated(wide, active, n);
    return active;
  }

  attend(q, qStart, kv, rows, out, outStart, observe = null) {
    const { d, switches, recorder } = this;
    const { stack, sublayer, layer } = this.place;
    const kind = sublayer === "cross_attention" ? "cross" : stack;
    const width = d / this.architecture.n_heads;
    const isMasked = ATTENTIONS[kind].keys === "source" && rows.length > this.nSource;
    const seen = isMasked ? rows.slice(0, this.nSource) : rows;
    const query = q.slice(qStart, qStart + d);
    recorder?.attends(kind, layer, { query, kv, rows, out });
    if (!switches.scale) for (let i = 0; i < d; i++) query[i] *= Math.sqrt(width); // which attention divides by
    super.attend(query, 0, kv, seen, out, outStart, (head, weights) => {
      recorder?.weighs(head, seen, weights);
      if (!isMasked) observe?.(head, weights);
    });
    for (const head of switches.heads) {
      const [offKind, offLayer, number] = head.split(".");
      if (offKind !== kind || Number(offLayer) !== layer) continue;
      out.fill(0, outStart + (number - 1) * width, outStart + number * width);
    }
  }
}

/** A decoder that can do without the causal mask, and reads a whole translation at once. */
class LiveDecoder extends Decoder {
  constructor(...given) {
    super(...given);
    this.texts = [[]]; // of each beam, the ids that it has read
  }

  step(tokens, parents = [0]) {
    const { switches } = this.model;
    if (switches.causal) return heated(super.step(tokens, parents), switches);
    this.texts = parents.map((parent, i) => [...this.texts[parent], tokens[i]]);
    const last = this.texts.map((ids) => {
      const logits = this.readAll(ids);
      return logits.slice(-logits.length / ids.length);
    });
    const logits = new Float32Array(last.length * last[0].length);
    last.forEach((row, i) => logits.set(row, i * row.length));
    return heated(logits, switches);
  }

  /** Reads ids from the start on, all at once; returns the logits (T, V). */
  readAll(ids) {
    const places = ids.map((_, i) => i);
    this.nSlots = 0;
    this.slots = places.map((i) => (this.model.switches.causal ? places.slice(0, i + 1) : places));
    return this.read(ids, places);
  }

  /** Nothing asks which words belong together. */
  alignment() {
    return [];
  }
}

/** Logits over the temperature, in place. */
function heated(logits, { temperature }) {
  if (temperature !== 1) for (let i = 0; i < logits.length; i++) logits[i] /= temperature;
  return logits;
}

"use strict";
// Step-by-step decoding with a key/value cache: mtformer/model/inference.py. Shapes as in model.js.

/**
 * K unfinished translations of a source.
 *
 * Their keys and values stay in the slots where they were written, K in each step; each beam knows which are its own.
 */
class Decoder {
  constructor(model, memory, n) {
    Object.assign(this, { model, length: 0, slots: [[]], nSlots: 0 });
    const { d, kernels, decoderLayers } = model;
    this.positions = Array.from({ length: n }, (_, row) => row); // of the source
    const cache = (data) => ({ data, stride: 2 * d, offset: 0 }); // rows of keys and values, (…, 2D)
    this.memory = decoderLayers.map(({ crossAttention }) => cache(kernels.product(crossAttention.kv, memory, n)));
    this.prefixes = decoderLayers.map(() => cache(new Float32Array(32 * 2 * d)));
    // Of each slot: the weights (S,) of the heads that align the token which the step predicts, and the one it reads.
    this.attention = [];
  }

  /**
   * Reads the tokens chosen last, of K beams that continue the beams `parents` of the step before.
   * Returns the logits (K, V) of the next tokens.
   */
  step(tokens, parents = [0]) {
    this.slots = parents.map((parent, i) => [...this.slots[parent], this.nSlots + i]);
    const position = this.length++;
    return this.read(tokens, tokens.map(() => position));
  }

  /** Reads K tokens at some positions, each of which sees its own slots; returns the logits (K, V). */
  read(tokens, positions) {
    const { model } = this;
    const k = tokens.length;
    const zeros = () => new Float32Array(this.positions.length);
    for (let i = 0; i < k; i++) this.attention.push({ predicting: zeros(), reading: zeros() });
    let x = model.embed(tokens, positions, model.tgtEmbedding, "decoder");
    model.decoderLayers.forEach((layer, i) => {
      x = model.residual(x, layer.norms[0], (y) => this.attendToPrefixes(y, positions, i));
      x = model.residual(x, layer.norms[1], (y) => this.attendToMemory(y, k, i));
      x = model.residual(x, layer.norms[2], (y) => model.feedForward(y, k, layer));
    });
    this.nSlots += k;
    return model.kernels.product(model.output, model.normalize(x, model.norms.decoder_norm), k);
  }

  /**
   * How much the last `n` tokens of beam `beam` attend to the source, (S,) for each; rows sum to 1. The last of them is
   * predicted by the last step, so that it has not been read.
   */
  alignment(beam, n) {
    const slots = this.slots[beam].slice(-n).map((slot) => this.attention[slot]);
    const scale = 1 / this.model.alignmentHeads.length;
    return slots.map(({ predicting }, t) => {
      const reading = slots[t + 1]?.reading;
      return predicting.map((weight, j) => (weight + (reading ? reading[j] : 0)) * scale);
    });
  }

  /** Lets rows (K, D) at some positions attend to their prefixes and themselves in layer i. */
  attendToPrefixes(x, positions, i) {
    const { d, kernels, decoderLayers } = this.model;
    const k = positions.length;
    const { qkv: projection, out } = decoderLayers[i].selfAttention;
    const qkv = kernels.product(projection, x, k); // (K, 3D)
    const cache = this.prefixes[i];
    const end = (this.nSlots + k) * 2 * d;
    if (end > cache.data.length) {
      const grown = new Float32Array(2 * end);
      grown.set(cache.data);
      cache.data = grown;
    }
    const heads = new Float32Array(k * d);
    for (let row = 0; row < k; row++) {
      for (const part of [0, 1]) this.model.rotate(qkv, (3 * row + part) * d, positions[row]);
      cache.data.set(qkv.subarray(row * 3 * d + d, (row + 1) * 3 * d), (this.nSlots + row) * 2 * d);
    }
    for (let row = 0; row < k; row++)
      this.model.attend(qkv, row * 3 * d, cache, this.slots[row], heads, row * d);
    return kernels.product(out, heads, k);
  }

  /** Lets rows (K, D) attend to the memory in layer i. */
  attendToMemory(x, k, i) {
    const { d, kernels, decoderLayers, alignmentHeads } = this.model;
    const { q: projection, out } = decoderLayers[i].crossAttention;
    const q = kernels.product(projection, x, k); // (K, D)
    const aligning = alignmentHeads.filter(({ layer }) => layer === i);
    const heads = new Float32Array(k * d);
    for (let row = 0; row < k; row++) {
      const sums = this.attention[this.nSlots + row];
      const observe = (number, weights) => {
        for (const { reading } of aligning.filter(({ head }) => head === number))
          addTo(reading ? sums.reading : sums.predicting, weights);
      };
      this.model.attend(q, row * d, this.memory[i], this.positions, heads, row * d, observe);
    }
    return kernels.product(out, heads, k);
  }
}

/** Adds the numbers of an array to those of another. */
function addTo(sums, values) {
  for (let i = 0; i < sums.length; i++) sums[i] += values[i];
}

const TOLERANCE = 1e-3; // of a logit, or of its size if that is larger

/** Compares logits with those that torch has computed: how many sentences agree, of how many, the worst difference. */
function testModel(model, golden) {
  let [passed, worst] = [0, 0];
  for (const { src, tgt_in: tgtIn, logits: expected } of golden) {
    const decoder = model.start(src);
    const logits = tgtIn.map((id) => decoder.step([id])).at(-1);
    const differences = expected.map((logit, id) => Math.abs(logits[id] - logit) / Math.max(1, Math.abs(logit)));
    const largest = differences.every(Number.isFinite) ? Math.max(...differences) : Infinity;
    passed += largest < TOLERANCE;
    worst = Math.max(worst, largest);
  }
  return { passed, of: golden.length, worst };
}

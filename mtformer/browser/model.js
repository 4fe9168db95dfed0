"use strict";
// The Transformer (Vaswani et al. 2017), one sentence at a time: mtformer/model/. Arrays have one row after the other.
// Shapes: S source length, K beams, D d_model, H heads, Dh = D / H, F d_ff, V vocabulary.

const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => 0.5 * x * (1 + erf(x * Math.SQRT1_2)), // Hendrycks and Gimpel 2016
  silu: (x) => x / (1 + Math.exp(-x)), // Elfwing et al. 2017
};

const LAYER_NORM_EPS = 1e-5; // torch's default

// PE(position, i), of D numbers (section 3.5 of the paper); Tensor2Tensor has all sines before all cosines.
const SINUSOIDS = {
  sinusoidal: (position, i, d) => wave(i % 2, position * 10_000 ** (-(i - (i % 2)) / d)),
  marian: (position, i, d) => wave(i >= d / 2, position * 10_000 ** (-(i % (d / 2)) / (d / 2 - 1))),
  fairseq: (position, i, d) => SINUSOIDS.marian(position + 2, i, d),
};

function wave(isCosine, angle) {
  return isCosine ? Math.cos(angle) : Math.sin(angle);
}

/** The error function, to 1.5e-7 (Abramowitz and Stegun 1964, 7.1.26). */
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const sum = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return Math.sign(x) * (1 - sum * Math.exp(-x * x));
}

/** Builds the model of a header, which computes with `kernels`. */
class Transformer {
  constructor({ architecture, activation, alignment_heads: heads }, kernels) {
    Object.assign(this, { architecture, kernels, activation: ACTIVATIONS[activation] });
    this.d = architecture.d_model;
    const { tensors } = kernels;
    this.tgtEmbedding = tensors.matrix("tgt_embedding.weight");
    const src = "src_embedding.weight";
    this.srcEmbedding = tensors.has(src) ? tensors.matrix(src) : this.tgtEmbedding;
    this.output = tensors.has("output.weight")
      ? tensors.linear("output")
      : { ...this.tgtEmbedding, bias: tensors.vector("output.bias") };
    const layers = (stack, n) => Array.from({ length: n }, (_, i) => this.layer(`${stack}_layers.${i}`));
    this.encoderLayers = layers("encoder", architecture.n_encoder_layers);
    this.decoderLayers = layers("decoder", architecture.n_decoder_layers);
    const norms = ["encoder_norm", "decoder_norm", "encoder_input_norm", "decoder_input_norm"];
    this.norms = Object.fromEntries(norms.map((name) => [name, this.norm(name)]));
    this.alignmentHeads = heads;
  }

  /** The weights of a layer by what they are for. */
  layer(name) {
    const { tensors } = this.kernels;
    const attention = (part) => ({
      qkv: tensors.linear(`${part}.qkv_proj`),
      q: tensors.linear(`${part}.qkv_proj`, 0, this.d),
      kv: tensors.linear(`${part}.qkv_proj`, this.d, 2 * this.d),
      out: tensors.linear(`${part}.out_proj`),
    });
    const cross = `${name}.cross_attention`; // of the decoder only
    return {
      selfAttention: attention(`${name}.self_attention`),
      crossAttention: tensors.has(`${cross}.out_proj.weight`) ? attention(cross) : null,
      linear1: tensors.linear(`${name}.feed_forward.linear1`),
      linear2: tensors.linear(`${name}.feed_forward.linear2`),
      norms: [0, 1, 2].map((i) => this.norm(`${name}.residuals.${i}.norm`)),
    };
  }

  norm(name) {
    const { tensors } = this.kernels;
    return { weight: tensors.vector(`${name}.weight`), bias: tensors.vector(`${name}.bias`) };
  }

  /** Turns ids at some positions into the input of a stack: √D · E + PE (sections 3.4 and 3.5). */
  embed(ids, positions, embedding, stack) {
    const { d } = this;
    const x = new Float32Array(ids.length * d);
    ids.forEach((id, row) => {
      const [place, scale] = [id * embedding.stride, Math.sqrt(d) * (embedding.scales ? embedding.scales[id] : 1)];
      for (let i = 0; i < d; i++) x[row * d + i] = embedding.rows[place + i] * scale;
    });
    this.addPositions(x, positions, stack);
    return this.normalize(x, this.norms[`${stack}_input_norm`]);
  }

  /** Adds to each row of x the encoding of its position. */
  addPositions(x, positions, stack) {
    const { d, architecture } = this;
    const { tensors } = this.kernels;
    if (architecture.positions === "learned") {
      const { rows, stride, nOut } = tensors.matrix(`${stack === "encoder" ? "src" : "tgt"}_positions.weight`);
      positions.forEach((position, row) => {
        const place = Math.min(position, nOut - 1) * stride; // later ones share the last vector
        for (let i = 0; i < d; i++) x[row * d + i] += rows[place + i];
      });
    } else if (architecture.positions in SINUSOIDS) {
      const sinusoid = SINUSOIDS[architecture.positions];
      positions.forEach((position, row) => {
        for (let i = 0; i < d; i++) x[row * d + i] += sinusoid(position, i, d);
      });
    }
  }

  /** LayerNorm (Ba et al. 2016) of rows, in place; without weights nothing. */
  normalize(x, { weight, bias }) {
    if (!weight) return x;
    const { d } = this;
    for (let start = 0; start < x.length; start += d) {
      let [mean, squares] = [0, 0];
      for (let i = 0; i < d; i++) mean += x[start + i] / d;
      for (let i = 0; i < d; i++) squares += (x[start + i] - mean) ** 2;
      const factor = 1 / Math.sqrt(squares / d + LAYER_NORM_EPS);
      for (let i = 0; i < d; i++) x[start + i] = (x[start + i] - mean) * factor * weight[i] + bias[i];
    }
    return x;
  }

  /** x + sublayer(norm(x)), or norm(x + sublayer(x)) in models with post-norm, as the paper has it (section 3.1). */
  residual(x, norm, sublayer) {
    const isFirst = this.architecture.norm === "pre";
    const y = sublayer(isFirst ? this.normalize(x.slice(), norm) : x);
    for (let i = 0; i < x.length; i++) y[i] += x[i];
    return isFirst ? y : this.normalize(y, norm);
  }

  /** act(x·W1ᵀ + b1)·W2ᵀ + b2 (equation 2) of n rows. */
  feedForward(x, n, { linear1, linear2 }) {
    return this.kernels.product(linear2, this.activate(this.kernels.product(linear1, x, n), n), n);
  }

  /** act(wide) of n rows. */
  activate(wide, n) {
    return wide.map(this.activation);
  }

  /** Rotates queries or keys, the heads in x from `start` on, by their position (Su et al. 2021, equation 34). */
  rotate(x, start, position) {
    if (this.architecture.positions !== "rotary") return;
    const { d } = this;
    const width = d / this.architecture.n_heads;
    const half = width / 2;
    for (let i = 0; i < half; i++) {
      const angle = position * 10_000 ** (-i / half);
      const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
      for (let place = start + i; place < start + d; place += width) {
        const [a, b] = [x[place], x[place + half]];
        x[place] = a * cos - b * sin;
        x[place + half] = a * sin + b * cos;
      }
    }
  }

  /**
   * Attention of a query to some rows: softmax(q·kᵀ/√Dh)·v for each head (equation 1).
   *
   * `q` and `out` (D,): arrays, and where the row starts. `kv`: { data, stride, offset }; a row's key is at its offset,
   * its value D behind. Calls `observe(head, weights)` if there is one.
   */
  attend(q, qStart, kv, rows, out, outStart, observe = null) {
    const { d } = this;
    const width = d / this.architecture.n_heads;
    const weights = new Float32Array(rows.length);
    for (let head = 0; head < this.architecture.n_heads; head++) {
      const shift = kv.offset + head * width;
      let largest = -Infinity;
      for (let j = 0; j < rows.length; j++) {
        const place = rows[j] * kv.stride + shift;
        let score = 0;
        for (let i = 0; i < width; i++) score += q[qStart + head * width + i] * kv.data[place + i];
        weights[j] = score / Math.sqrt(width);
        largest = Math.max(largest, weights[j]);
      }
      let sum = 0;
      for (let j = 0; j < rows.length; j++) sum += weights[j] = Math.exp(weights[j] - largest);
      for (let j = 0; j < rows.length; j++) {
        const weight = (weights[j] /= sum);
        const place = rows[j] * kv.stride + shift + d;
        for (let i = 0; i < width; i++) out[outStart + head * width + i] += weight * kv.data[place + i];
      }
      observe?.(head, weights);
    }
  }

  /** Turns S source ids into the memory (S, D). */
  encode(ids) {
    const [{ d, kernels }, n] = [this, ids.length];
    const rows = ids.map((_, row) => row);
    let x = this.embed(ids, rows, this.srcEmbedding, "encoder");
    for (const layer of this.encoderLayers) {
      x = this.residual(x, layer.norms[0], (y) => {
        const data = kernels.product(layer.selfAttention.qkv, y, n); // (S, 3D)
        for (const row of rows) for (const part of [0, 1]) this.rotate(data, (3 * row + part) * d, row);
        const heads = new Float32Array(n * d);
        const kv = { data, stride: 3 * d, offset: d };
        for (const row of rows) this.attend(data, 3 * row * d, kv, rows, heads, row * d);
        return kernels.product(layer.selfAttention.out, heads, n);
      });
      x = this.residual(x, layer.norms[1], (y) => this.feedForward(y, n, layer));
    }
    return this.normalize(x, this.norms.encoder_norm);
  }

  /** Encodes a source and returns a decoder at its start. */
  start(ids) {
    return new Decoder(this, this.encode(ids), ids.length);
  }
}

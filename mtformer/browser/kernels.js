"use strict";
// Where the weights are, and the products with them. Shapes: n rows of the input, each nIn wide; nOut outputs.

const ROW_MULTIPLE = 8; // rows of matrices are padded with zeros to a multiple of it

/** The tensors that mtformer/browser/pack.py packed, as views of their bytes. */
class Tensors {
  constructor(descriptions, buffer, start = 0) {
    Object.assign(this, { descriptions, buffer, start });
  }

  has(name) {
    return name in this.descriptions;
  }

  /** A vector; null if the model has none of this name. */
  vector(name) {
    if (!this.has(name)) return null;
    const { offset, shape } = this.descriptions[name];
    return new Float32Array(this.buffer, this.start + offset, shape[0]);
  }

  /** A matrix W (nOut, nIn): its rows, `stride` numbers apart; the scale of each, or null if they have none. */
  matrix(name) {
    const { offset, shape, type } = this.descriptions[name];
    const [nOut, nIn] = shape;
    const stride = Math.ceil(nIn / ROW_MULTIPLE) * ROW_MULTIPLE;
    const [size, place] = [nOut * stride, this.start + offset];
    if (type === "float32") return { rows: new Float32Array(this.buffer, place, size), scales: null, nOut, nIn, stride };
    const scales = new Float32Array(this.buffer, place + Math.ceil(size / 16) * 16, nOut);
    return { rows: new Int8Array(this.buffer, place, size), scales, nOut, nIn, stride };
  }

  /** A linear layer, x·Wᵀ + b, or the part of it with the outputs from `first` on. */
  linear(name, first = 0, nOut = null) {
    const [whole, bias] = [this.matrix(`${name}.weight`), this.vector(`${name}.bias`)];
    const n = nOut ?? whole.nOut;
    const part = (array) => array && array.subarray(first, first + n);
    const rows = whole.rows.subarray(first * whole.stride, (first + n) * whole.stride);
    return { ...whole, nOut: n, rows, scales: part(whole.scales), bias: part(bias) };
  }
}

/** Products in JavaScript, for browsers without WebAssembly's vectors. */
class PlainKernels {
  constructor(descriptions, data) {
    this.name = "javascript";
    this.tensors = new Tensors(descriptions, data);
  }

  /** Maps x (n, nIn) to y (n, nOut): y = (x·Wᵀ) ⊗ scales + b. */
  product({ rows, scales, bias, nOut, nIn, stride }, x, n) {
    const y = new Float32Array(n * nOut);
    for (let o = 0; o < nOut; o++) {
      const [start, scale, b] = [o * stride, scales ? scales[o] : 1, bias ? bias[o] : 0];
      for (let i = 0; i < n; i++) {
        let sum = 0;
        for (let j = 0, place = i * nIn; j < nIn; j++) sum += x[place + j] * rows[start + j];
        y[i * nOut + o] = sum * scale + b;
      }
    }
    return y;
  }
}

/** Returns the kernels that compute the fastest here. */
async function makeKernels(descriptions, data) {
  return new PlainKernels(descriptions, data);
}

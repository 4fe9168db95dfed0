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
    const { buffer } = this;
    if (type === "float32") return { rows: new Float32Array(buffer, place, size), scales: null, nOut, nIn, stride };
    const scales = new Float32Array(buffer, place + Math.ceil(size / 16) * 16, nOut);
    return { rows: new Int8Array(buffer, place, size), scales, nOut, nIn, stride };
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

const BLOCK_ROWS = 16; // of inputs that are multiplied at once
const LARGEST_INT16 = 2 ** 15 - 1;

/** Products with WebAssembly's vectors (kernels.wat), in whose memory the weights are, and behind them a block. */
class VectorKernels {
  constructor(descriptions, data, module) {
    this.name = "wasm";
    const sizes = Object.values(descriptions).map(({ shape }) => shape.at(-1) + shape[0]); // of an input and an output
    const blockBytes = 4 * BLOCK_ROWS * (Math.max(...sizes) + 2 * ROW_MULTIPLE);
    const nPages = Math.ceil((data.byteLength + 16 + 2 * blockBytes) / 2 ** 16);
    const memory = new WebAssembly.Memory({ initial: nPages });
    new Uint8Array(memory.buffer).set(new Uint8Array(data));
    this.tensors = new Tensors(descriptions, memory.buffer);
    [this.x, this.y] = [0, 1].map((i) => Math.ceil(data.byteLength / 16 + 1) * 16 + i * blockBytes);
    this.functions = new WebAssembly.Instance(module, { page: { memory } }).exports;
  }

  /** Maps x (n, nIn) to y (n, nOut): y = (x·Wᵀ) ⊗ scales + b. */
  product(linear, x, n) {
    const y = new Float32Array(n * linear.nOut);
    for (let row = 0; row < n; row += BLOCK_ROWS) this.multiply(linear, x, y, row, Math.min(BLOCK_ROWS, n - row));
    return y;
  }

  /** Computes n rows of y from the rows of x, both from row `first` on. */
  multiply({ rows, scales, bias, nOut, nIn, stride }, x, y, first, n) {
    const { buffer } = rows;
    const scalesOfX = scales
      ? quantizeRows(x, first, n, nIn, new Int16Array(buffer, this.x, n * stride))
      : copyRows(x, first, n, nIn, new Float32Array(buffer, this.x, n * stride));
    this.functions[scales ? "int8" : "float32"](rows.byteOffset, nOut, stride, this.x, n, this.y);
    const width = Math.ceil(nOut / 4) * 4;
    const products = new Float32Array(buffer, this.y, n * width);
    for (let i = 0; i < n; i++)
      for (let o = 0, place = (first + i) * nOut; o < nOut; o++)
        y[place + o] = products[i * width + o] * (scales ? scales[o] * scalesOfX[i] : 1) + (bias ? bias[o] : 0);
  }
}

/**
 * Writes rows of x as 16-bit integers, the largest such that the sums of their products with 8-bit integers have 32
 * bits; returns the scales of the rows.
 */
function quantizeRows(x, first, n, width, block) {
  const stride = block.length / n;
  const most = Math.min(LARGEST_INT16, Math.floor(2 ** 31 / (127 * (stride / 4))) - 1); // a sum of a quarter of them
  return Array.from({ length: n }, (_, i) => {
    const start = (first + i) * width;
    let largest = 1e-12;
    for (let j = 0; j < width; j++) largest = Math.max(largest, Math.abs(x[start + j]));
    const factor = most / largest;
    for (let j = 0; j < width; j++) block[i * stride + j] = Math.round(x[start + j] * factor);
    return 1 / factor;
  });
}

function copyRows(x, first, n, width, block) {
  const stride = block.length / n;
  block.fill(0);
  for (let i = 0; i < n; i++) block.set(x.subarray((first + i) * width, (first + i + 1) * width), i * stride);
}

/** Returns the kernels that compute the fastest here. */
async function makeKernels(descriptions, data) {
  let module;
  try {
    module = await WebAssembly.compile(Uint8Array.from(atob(KERNELS_WASM), (character) => character.charCodeAt(0)));
  } catch {
    return new PlainKernels(descriptions, data); // this browser has no WebAssembly, or none with vectors
  }
  return new VectorKernels(descriptions, data, module);
}

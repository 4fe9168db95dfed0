"use strict";
// Numbers as they were packed, and tokens as they are shown.

/**
 * Unpacks an array once, when it is first needed, unless the model in the page has just computed its values. Returns
 * { shape, heads, rows, columns, at(head, row, column) }; a vector is one column of numbers.
 */
function unpack(packed) {
  packed.matrix ??= packed.values
    ? Promise.resolve(matrixOf(packed.values, packed.shape))
    : inflate(packed.data).then((planes) => matrixOf(valuesOf(planes, packed.unit), packed.shape));
  return packed.matrix;
}

async function inflate(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function valuesOf(planes, unit) {
  const n = planes.length / 4; // the lowest bytes of all numbers come first, then the next ones
  return Float64Array.from({ length: n }, (_, i) => {
    const count = planes[i] | (planes[n + i] << 8) | (planes[2 * n + i] << 16) | (planes[3 * n + i] << 24);
    return count === -(2 ** 31) ? -Infinity : count * unit;
  });
}

function matrixOf(values, shape) {
  const whole = shape.length === 1 ? [...shape, 1] : shape;
  const [rows, columns] = whole.slice(-2);
  const heads = whole.length === 3 ? whole[0] : 1;
  return {
    shape,
    heads,
    rows,
    columns,
    values,
    at: (head, row, column) => values[(head * rows + row) * columns + column],
  };
}

/** Returns the matrix of one head, or the mean over all heads where `head` is "mean". */
function headOf(matrix, head) {
  const { heads, rows, columns } = matrix;
  if (head !== "mean") return { rows, columns, at: (row, column) => matrix.at(heads === 1 ? 0 : head, row, column) };
  const mean = Float64Array.from({ length: rows * columns }, (_, i) => {
    let sum = 0;
    for (let h = 0; h < heads; h++) sum += matrix.values[h * rows * columns + i];
    return sum / heads;
  });
  return { rows, columns, at: (row, column) => mean[row * columns + column] };
}

function headTitle(layer, head) {
  return head === "mean"
    ? say("Layer {layer}, mean of the heads", { layer })
    : say("Layer {layer}, head {head}", { layer, head: head + 1 });
}

// ---- Tokens

/** The tokens that the decoder reads: the translation shifted right by one, starting with <s>. */
function decoderInput(trace) {
  return [trace.bos, ...trace.target.tokens.slice(0, -1)];
}

/** The tokens that the rows and columns of a matrix stand for: "source" or "target" positions. */
function tokensOf(trace, side) {
  if (side === "source") return trace.source.tokens;
  return side === "target" ? decoderInput(trace) : null;
}

/** A token as plain text, for labels: without the mark of a word's start, a byte with the character it is part of. */
function tokenText(token) {
  if (token.character) return say("{byte} of {character}", { byte: token.text, character: token.character });
  return startsWord(token) ? token.text.slice(1) : token.text;
}

function startsWord(token) {
  return token.kind === "word" && token.text.startsWith("▁") && token.text.length > 1;
}

/** A token where it stands in a picture. */
function tokenLabel(token) {
  return el("span", { class: `token ${token.kind}`, lang: "" }, tokenText(token));
}

/** A token as a node. The mark of a word's start is dimmed, so that the eye finds the letters. */
function tokenNode(token, attributes = {}) {
  const starts = startsWord(token);
  return el(
    "span",
    { ...attributes, class: `token ${token.kind} ${attributes.class ?? ""}`.trim(), lang: "" },
    starts ? el("span", { class: "start" }, "▁") : null,
    starts ? token.text.slice(1) : token.text,
    token.character
      ? el("span", { class: "character", title: say("the character that the bytes spell") }, token.character)
      : null,
  );
}

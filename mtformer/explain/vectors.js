"use strict";
// How the vector of a word moves from layer to layer of the encoder, alone and beside the same word in another sentence.

async function vectorsSection(trace, pair) {
  const levels = await levelsOf(trace);
  if (!levels.length) return [];
  const other = pair && { trace: pair[1], levels: await levelsOf(pair[1]) };
  const { tokens } = trace.source;
  const places = tokens.map((_, place) => place).filter((place) => tokens[place].kind !== "special");
  const stage = el("div", {});
  const show = (place) => {
    look({ token: place });
    stage.replaceChildren(...vectorPath(trace, levels, other, place));
  };
  const first = places.includes(view.token) ? view.token : firstFollowed(tokens, places, levels, other);
  const names = places.map((place) => [place, foreign(tokenText(tokens[place]))]);
  stage.replaceChildren(...vectorPath(trace, levels, other, first));
  const intro = say(
    "A word enters the encoder with the same vector in every sentence. Layer by layer it takes in its neighbours, and moves away from where it was: the cosine says how far the direction has turned (1: not at all, 0: to a right angle).",
  );
  const hint =
    !other &&
    el("p", { class: "muted" }, lesson ? say("Type a second sentence with the same word to see the two part ways.") : say("With --compare, a second sentence is shown beside it."));
  return [el("p", {}, intro), choice(say("Token"), names, first, show), hint, stage];
}

/** The states of the source's vectors on their way: [{ name, matrix }]; none if the page has left out columns. */
async function levelsOf(trace) {
  const blocks = new Map(); // the last matrix of each part
  for (const block of trace.matrices.filter(({ side, rows, columns }) => side === "source" && rows === "source" && columns === "features")) {
    if (block.stack === "embedding" && block.name === "embeddings") blocks.set(say("embeddings"), block);
    if (block.stack === "embedding" && block.name === "x") blocks.set(say("with positions"), block);
    if (block.layer !== null) blocks.set(say("Layer {layer}", { layer: block.layer }), block);
    if (block.sublayer === "norm") blocks.set(say("encoder output"), block);
  }
  const levels = await Promise.all([...blocks].map(async ([name, { values, shape }]) => ({ name, matrix: await unpack(values), shape })));
  return levels.every(({ matrix, shape }) => matrix.columns === shape.at(-1)) ? levels : [];
}

/** The token to follow at first: of those in both sentences the one that ends the farthest apart, or else the last. */
function firstFollowed(tokens, places, levels, other) {
  const isWord = (place) => /[\p{L}\p{N}]/u.test(tokens[place].text);
  const shared = other ? places.filter((place) => isWord(place) && counterpart(tokens[place], other) >= 0) : [];
  const apart = (place) => {
    const [ours, theirs] = [levels.at(-1).matrix, other.levels.at(-1).matrix];
    return cosine(unitRow(ours, place), unitRow(theirs, counterpart(tokens[place], other)));
  };
  if (shared.length) return shared.reduce((best, place) => (apart(place) < apart(best) ? place : best));
  return places.filter(isWord).at(-1) ?? places[0];
}

function counterpart(token, { trace }) {
  return trace.source.tokens.findIndex(({ id }) => id === token.id);
}

/** The cosines of a token's vector at each level, and pictures of the vectors. */
function vectorPath(trace, levels, other, place) {
  const token = trace.source.tokens[place];
  const twin = other ? counterpart(token, other) : -1;
  const own = levels.map(({ matrix }) => unitRow(matrix, place));
  const theirs = twin >= 0 ? other.levels.map(({ matrix }) => unitRow(matrix, twin)) : null;
  const byName = new Map(theirs?.map((vector, i) => [other.levels[i].name, vector]));
  const rows = levels.map(({ name }, i) => ({ name, turned: cosine(own[0], own[i]), apart: byName.has(name) ? cosine(own[i], byName.get(name)) : null }));
  const label = tokenText(token);
  const picture = (title, vectors, names) =>
    el("div", {}, el("h4", {}, title), matrixPicture({ matrix: stacked(vectors), name: title, rowNames: names }).node);
  const names = levels.map(({ name }) => name);
  const missing = other && twin < 0 && el("p", {}, say("The other sentence does not have the token “{token}”.", { token: label }));
  return [
    missing,
    cosineTable(rows, theirs !== null),
    el(
      "div",
      { class: theirs ? "pair" : "" },
      picture(theirs ? say("“{token}” in the first sentence", { token: label }) : say("“{token}”, at length 1", { token: label }), own, names),
      theirs && picture(say("“{token}” in the second sentence", { token: label }), theirs, other.levels.map(({ name }) => name)),
    ),
  ].filter(Boolean);
}

function cosineTable(rows, isPair) {
  const bar = (value) =>
    el("td", {}, value === null ? "" : el("div", { class: "bar" }, el("span", { class: "fill", "--part": Math.max(0, value) }), number(value, 2)));
  return table(
    { class: "cosines" },
    [
      el("th", {}, say("after")),
      el("th", {}, say("cosine to its embedding")),
      isPair && el("th", {}, say("cosine to itself in the other sentence")),
    ],
    rows.map(({ name, turned, apart }) => el("tr", {}, el("th", { scope: "row" }, name), bar(turned), isPair && bar(apart))),
  );
}

/** A row of a matrix as a vector of length 1. */
function unitRow({ columns, at }, row) {
  const vector = Float64Array.from({ length: columns }, (_, column) => at(0, row, column));
  const length = Math.hypot(...vector) || 1;
  return vector.map((value) => value / length);
}

function cosine(a, b) {
  return a.reduce((sum, value, i) => sum + value * b[i], 0);
}

function stacked(vectors) {
  return { rows: vectors.length, columns: vectors[0].length, at: (row, column) => vectors[row][column] };
}

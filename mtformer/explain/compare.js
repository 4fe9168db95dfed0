"use strict";
// Two sentences side by side: what changes in tokens, translation and attention; mtformer/explain/explanation.py.

async function comparePart(traces) {
  const changes = await changesOf(traces);
  const sentence = (side, which) => {
    const [start, end] = which === 0 ? [1, 2] : [3, 4];
    return el(
      "div",
      { class: "strip" },
      changes[side].flatMap((change) =>
        traces[which][side].tokens
          .slice(change[start], change[end])
          .map((token) =>
            el(
              "span",
              { class: `chip ${change[0] === "equal" ? "" : which === 0 ? "removed" : "added"}` },
              tokenNode(token),
            ),
          ),
      ),
    );
  };
  const stage = el("div", {});
  const show = async (change) => stage.replaceChildren(...(await changedHead(traces, changes, change)));
  const { first } = pageData;
  const isFirst = (change) => ["kind", "layer", "head"].every((key) => first[key] === null || first[key] === change[key]);
  const chosen = changes.attention.find(isFirst) ?? changes.attention[0];
  const most = pageData.left_out.heads || !chosen ? [] : [...new Set([chosen, ...changes.attention])].slice(0, 8);
  most.sort((a, b) => b.difference - a.difference);
  if (most.length) await show(chosen);
  return [
    el("h3", {}, say("Two sentences side by side")),
    el(
      "p",
      {},
      say(
        "What differs is coloured. Below are the heads whose attention changed most, by the mean difference of their weights over the tokens that are equal or replaced one by one. In the third picture, of the equal tokens, blue is more attention in the second sentence, orange less.",
      ),
    ),
    el(
      "div",
      { class: "pair" },
      [0, 1].map((which) =>
        el(
          "div",
          {},
          el("h4", {}, which === 0 ? say("First sentence") : say("Second sentence")),
          sentence("source", which),
          el("div", { class: "becomes", "aria-label": say("becomes") }, "↓"),
          sentence("target", which),
        ),
      ),
    ),
    most.length > 0 &&
      choice(
        say("Attention that changed most"),
        most.map((change) => [
          change,
          say("{kind} layer {layer}, head {head}: {difference}", {
            kind: ATTENTION[change.kind][0],
            layer: change.layer,
            head: change.head,
            difference: number(change.difference, 3),
          }),
        ]),
        chosen,
        show,
      ),
    stage,
  ];
}

/** A head in both sentences, and the difference where they share tokens. */
async function changedHead(traces, changes, { kind, layer, head }) {
  const matrices = await Promise.all(
    traces.map(async (trace) => {
      const { weights } = trace.attention.find((one) => one.kind === kind && one.layer === layer);
      return headOf(await unpack(weights), head - 1);
    }),
  );
  const axes = traces.map((trace) => axesOf(trace, kind));
  const rows = sharedPlaces(changes, kind === "encoder" ? "source" : "target");
  const columns = sharedPlaces(changes, kind === "decoder" ? "target" : "source");
  const [first, second] = matrices;
  const difference = {
    rows: rows.length,
    columns: columns.length,
    at: (row, column) => second.at(rows[row][1], columns[column][1]) - first.at(rows[row][0], columns[column][0]),
  };
  const names = (tokens, places) => (places ? places.map(([place]) => tokens[place]) : tokens).map(tokenText);
  const shown = (title, matrix, { queries, keys }, shared, most) =>
    el(
      "div",
      {},
      el("h4", {}, title),
      matrixPicture({
        matrix,
        name: title,
        most,
        rowNames: names(queries, shared && rows),
        columnNames: names(keys, shared && columns),
      }).node,
    );
  return [
    el(
      "div",
      { class: "triple" },
      shown(say("First sentence"), first, axes[0], false, 1),
      shown(say("Second sentence"), second, axes[1], false, 1),
      shown(say("Second − first"), difference, axes[0], true, largest(difference)),
    ),
  ];
}

/** Pairs of places, in the first and the second sentence, of the tokens that both share. */
function sharedPlaces(changes, side) {
  const equal = changes[side].filter(([change]) => change === "equal");
  const pairs = equal.flatMap(([, start, end, other]) =>
    Array.from({ length: end - start }, (_, i) => [start + i, other + i]),
  );
  if (side === "source") return pairs;
  const last = Math.max(...changes.target.map(([, , end]) => end)) - 1; // </s>, which the decoder does not read
  return [[0, 0], ...pairs.filter(([place]) => place < last).map((places) => places.map((place) => place + 1))]; // after <s>
}

/** The differences between two traces: operations on tokens, and how much each head's weights differ, the most first. */
async function changesOf([a, b]) {
  const source = operations(a.source.tokens, b.source.tokens);
  const input = operations(decoderInput(a), decoderInput(b));
  const attention = [];
  for (const { kind, layer, weights } of a.attention) {
    const theirs = b.attention.find((one) => one.kind === kind && one.layer === layer);
    const [ours, other] = [await unpack(weights), await unpack(theirs.weights)];
    const rows = alignedPlaces(kind === "encoder" ? source : input);
    const columns = alignedPlaces(kind === "decoder" ? input : source);
    const differenceOf = (head) => {
      let sum = 0;
      for (const [rowA, rowB] of rows)
        for (const [columnA, columnB] of columns) sum += Math.abs(ours.at(head, rowA, columnA) - other.at(head, rowB, columnB));
      return sum / (rows.length * columns.length || 1);
    };
    for (let head = 0; head < ours.heads; head++) attention.push({ kind, layer, head: head + 1, difference: differenceOf(head) });
  }
  attention.sort((one, another) => another.difference - one.difference);
  return { source, target: operations(a.target.tokens, b.target.tokens), attention };
}

/** Pairs of places of tokens that are equal, or replaced one by one. */
function alignedPlaces(changes) {
  return changes
    .filter(([, a0, a1, b0, b1]) => a1 - a0 === b1 - b0)
    .flatMap(([, a0, a1, b0]) => Array.from({ length: a1 - a0 }, (_, i) => [a0 + i, b0 + i]));
}

/** How one list of tokens becomes another, as Python's SequenceMatcher.get_opcodes() says it. */
function operations(a, b) {
  const changes = [];
  let [i, j] = [0, 0];
  for (const { start, other, size } of [...matchingBlocks(a, b, [0, a.length], [0, b.length]), { start: a.length, other: b.length, size: 0 }]) {
    const name = i < start && j < other ? "replace" : i < start ? "delete" : j < other ? "insert" : null;
    if (name) changes.push([name, i, start, j, other]);
    [i, j] = [start + size, other + size];
    if (size) changes.push(["equal", start, i, other, j]);
  }
  return changes;
}

/** The longest part that two lists share, the first of equal ones, and those before it and after it. */
function matchingBlocks(a, b, [a0, a1], [b0, b1]) {
  let best = { start: a0, other: b0, size: 0 };
  for (let start = a0; start < a1; start++)
    for (let other = b0; other < b1; other++) {
      let size = 0;
      while (start + size < a1 && other + size < b1 && a[start + size].id === b[other + size].id) size++;
      if (size > best.size) best = { start, other, size };
    }
  if (!best.size) return [];
  const { start, other, size } = best;
  const before = matchingBlocks(a, b, [a0, start], [b0, other]);
  return [...before, best, ...matchingBlocks(a, b, [start + size, a1], [other + size, b1])];
}

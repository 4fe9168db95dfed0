"use strict";
// Section 5: every matrix of the model as it was computed for this sentence, in order.

const SUBLAYERS = {
  self_attention: say("Self-attention (section 3.2)"),
  cross_attention: say("Cross-attention: queries from the decoder, keys and values from the encoder (section 3.2.3)"),
  feed_forward: say("Feed-forward: each position by itself (equation 2)"),
};
const MOST_TABLE = { rows: 40, columns: 20 }; // larger matrices are pictures, until the reader asks for numbers
const MOST_HALF_WIDTH = 64; // columns of a picture that shares its row with another one

function matricesSection(trace, leftOut) {
  if (leftOut.matrices) {
    return [
      el(
        "p",
        {},
        say(
          "The matrices of this sentence would make the page larger than 2 MB. Take a shorter sentence, or --format json.",
        ),
      ),
    ];
  }
  const groups = grouped(trace.matrices, groupTitle);
  const panels = groups.map(({ key, blocks }) => layerPanel(trace, key, blocks));
  const intro = el(
    "p",
    {},
    say(
      "This is the model, to be read from the bottom up like the paper's figure 1. Open a part of it to follow your sentence through: each matrix with its formula and shape. Rows are tokens; columns are features or tokens. Blue is positive, orange negative, grey masked; the strongest colour is the largest number of a matrix. Point at a cell for its number, or focus a picture and use the arrow keys.",
    ),
  );
  return [el("div", { class: "columns" }, intro, modelMap(groups, panels)), panels];
}

/** Groups of neighbouring blocks with the same key. */
function grouped(blocks, keyOf) {
  const groups = [];
  for (const block of blocks) {
    const key = keyOf(block);
    if (groups.at(-1)?.key !== key) groups.push({ key, blocks: [] });
    groups.at(-1).blocks.push(block);
  }
  return groups;
}

function groupTitle({ stack, side, layer }) {
  if (stack === "embedding") return side === "source" ? say("Source embedding") : say("Target embedding");
  if (stack === "output") return say("Output");
  if (layer === null) return stack === "encoder" ? say("Encoder output") : say("Decoder output");
  return stack === "encoder" ? say("Encoder layer {layer}", { layer }) : say("Decoder layer {layer}", { layer });
}

// ---- The model as a map: two stacks, whose parts open the panels below

function modelMap(groups, panels) {
  const open = (panel) => {
    panel.open = true;
    panel.scrollIntoView();
    panel.querySelector("summary").focus({ preventScroll: true });
  };
  const stack = (side, name) =>
    el(
      "div",
      { class: "stack", role: "group", "aria-label": name },
      groups.map(
        ({ key, blocks }, index) =>
          blocks[0].side === side &&
          el(
            "button",
            { class: `map-part ${blocks[0].stack}`, onclick: () => open(panels[index]) },
            el("span", {}, key),
            el("span", { class: "small muted" }, mapHint(blocks)),
          ),
      ),
    );
  return el(
    "div",
    { class: "map" },
    stack("source", say("Encoder")),
    el(
      "div",
      { class: "memory" },
      el("span", { class: "small" }, say("keys and values of every cross-attention")),
      el("span", { "aria-hidden": "true" }, "→"),
    ),
    stack("target", say("Decoder")),
  );
}

function mapHint(blocks) {
  const names = {
    self_attention: say("self-attention"),
    cross_attention: say("cross-attention"),
    feed_forward: say("feed-forward"),
  };
  const parts = [...new Set(blocks.map((block) => names[block.sublayer]).filter(Boolean))];
  if (parts.length) return parts.join(" → ");
  if (blocks[0].stack !== "embedding") return say(blocks.at(-1).formula);
  return blocks.some((block) => block.name === "positions") ? say("vectors and positions") : say("vectors");
}

// ---- Layers, sub-layers, matrices

function layerPanel(trace, title, blocks) {
  const body = el("div", {});
  // Filled when it is first opened: a page may have hundreds of matrices.
  const panel = el(
    "details",
    {
      class: "layer",
      open: view.open.has(title), // when another sentence comes
      ontoggle: () => {
        view.open[panel.open ? "add" : "delete"](title);
        if (panel.open && !body.firstChild) body.append(...layerBody(trace, blocks));
      },
    },
    el(
      "summary",
      {},
      title,
      " ",
      el(
        "span",
        { class: "muted small" },
        blocks.length === 1 ? say("1 matrix") : say("{n} matrices", { n: blocks.length }),
      ),
    ),
    body,
  );
  return panel;
}

function layerBody(trace, blocks) {
  return grouped(blocks, ({ sublayer }) => sublayer).map((group) => sublayerBody(trace, group.blocks));
}

/** The matrices of a sub-layer; those with heads all show the head that is chosen here. */
function sublayerBody(trace, blocks) {
  const heads = Math.max(...blocks.map(nHeads));
  const cards = blocks.map((block) => matrixCard(trace, block));
  const choose =
    heads > 1 &&
    choice(
      say("Head"),
      [...Array(heads).keys()].map((head) => [head, head + 1]),
      0,
      (head) => cards.forEach((card) => card.showHead(head)),
    );
  const title = SUBLAYERS[blocks[0].sublayer];
  return el(
    "section",
    { class: "sublayer" },
    title && el("h4", {}, title),
    choose,
    el(
      "div",
      { class: "cards" },
      cards.map((card) => card.node),
    ),
  );
}

function nHeads(block) {
  return block.shape.length === 3 ? block.shape[0] : 1;
}

function matrixCard(trace, block) {
  const body = el("div", {});
  const toggle = el("button", {
    class: "toggle small",
    onclick: () => {
      asTable = !asTable;
      draw();
    },
  });
  const node = el(
    "div",
    { class: "card", role: "group", "aria-label": say(block.name) },
    el(
      "div",
      { class: "card-head" },
      el(
        "div",
        { class: "card-title" },
        el("h5", {}, say(block.name)),
        formulaNode(say(block.formula)),
        el("span", { class: "shape" }, shapeInWords(block)),
      ),
      block.columns !== "candidates" && toggle,
    ),
    body,
  );
  let head = 0;
  let asTable = null; // by size, until the reader chooses

  const draw = async () => {
    const whole = await unpack(block.values);
    const matrix = headOf(whole, nHeads(block) > 1 ? head : 0);
    const small = matrix.columns <= MOST_TABLE.columns && matrix.rows <= MOST_TABLE.rows && block.name !== "mask";
    asTable ??= small || block.columns === "candidates";
    toggle.textContent = asTable ? say("Picture") : say("Numbers");
    node.classList.toggle("whole-width", matrix.columns > (asTable ? 8 : MOST_HALF_WIDTH));
    const nColumns = block.shape.at(-1);
    const left =
      block.columns === "features" &&
      nColumns > matrix.columns &&
      el(
        "p",
        { class: "muted small" },
        say("The first {kept} of {n} columns: the others would make the page too large.", {
          kept: matrix.columns,
          n: nColumns,
        }),
      );
    body.replaceChildren(...[(asTable ? numbersTable : picture)(trace, block, matrix, head), left].filter(Boolean));
  };
  draw();
  return {
    node,
    showHead: (chosen) => {
      head = chosen;
      if (nHeads(block) > 1) draw();
    },
  };
}

/** As in "4 × 14 × 32 (H × S × d_head)". */
function shapeInWords({ shape, rows, columns }) {
  const { d_model: dModel } = pageData.model;
  const letter = { source: "S", target: "T" };
  const last =
    columns === "features"
      ? shape.length === 3
        ? "d_head"
        : shape.at(-1) === dModel
          ? "d_model"
          : "d_ff"
      : (letter[columns] ?? "V");
  const letters = [...(shape.length === 3 ? ["H"] : []), letter[rows], last].join(" × ");
  return [`${shape.join(" × ")} (`, formulaNode(letters), ")"];
}

function nameOf(block, head) {
  const name = say(block.name);
  return nHeads(block) > 1 ? say("{name}, head {head}", { name, head: head + 1 }) : name;
}

function picture(trace, block, matrix, head) {
  const columns = tokensOf(trace, block.columns);
  const isMask = block.name === "mask";
  const shown = isMask ? { ...matrix, at: (row, column) => (matrix.at(row, column) ? 1 : -Infinity) } : matrix;
  return matrixPicture({
    matrix: shown,
    name: nameOf(block, head),
    rowNames: tokensOf(trace, block.rows).map(tokenText),
    columnNames: columns?.map(tokenText),
    ...(isMask ? { most: 3, inWords: (value) => (value === -Infinity ? say("masked") : say("may attend")) } : {}),
  }).node;
}

function numbersTable(trace, block, matrix, head) {
  const columns = tokensOf(trace, block.columns)?.map(tokenText);
  const most = largest(matrix);
  const cell = (row, column) => {
    const value = matrix.at(row, column);
    const sign = value === -Infinity ? "masked" : value < 0 ? "negative" : "";
    const candidate =
      block.columns === "candidates" &&
      el("span", { class: "candidate" }, tokenNode(trace.steps[row].candidates[column].token));
    return el(
      "td",
      { class: `number ${sign}`, "--weight": clamp(Math.abs(value) / most, 0, 1) },
      candidate,
      number(value),
    );
  };
  const indices = (n) => [...Array(n).keys()];
  const columnName = (i) => (block.columns === "candidates" ? say("candidate {n}", { n: i + 1 }) : columns ? columns[i] : i + 1);
  return el(
    "div",
    { class: "scroll", tabindex: 0, role: "group", "aria-label": nameOf(block, head) },
    table(
      { class: "numbers" },
      [
        el("td", {}),
        indices(matrix.columns).map((i) => el("th", { class: "number", scope: "col", lang: "" }, columnName(i))),
      ],
      tokensOf(trace, block.rows).map((token, row) =>
        el(
          "tr",
          {},
          el("th", { scope: "row", lang: "" }, tokenText(token)),
          indices(matrix.columns).map((column) => cell(row, column)),
        ),
      ),
    ),
  );
}

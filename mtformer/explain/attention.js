"use strict";
// Section 2: which token attends to which, as lines between two columns of tokens and as heat maps.

const ATTENTION = {
  encoder: [say("Encoder"), say("Each source token looks at all source tokens, itself included.")],
  decoder: [
    say("Decoder"),
    say("Each token that the decoder has read looks at itself and those before it: later ones are masked."),
  ],
  cross: [
    say("Cross"),
    say("Each token that the decoder has read looks at the source, to choose the token that comes after it."),
  ],
};

async function attentionSection(trace) {
  const [caption, grid, stage] = [el("p", { class: "muted" }), el("div", {}), el("div", {})];
  const kinds = Object.keys(ATTENTION).filter((kind) => trace.attention.some((one) => one.kind === kind));
  const show = async (kind) => {
    const arrow = kind !== "encoder" && el("span", { class: "next-hint" }, " ", say("→ shows the token that comes next."));
    const shown = await attentionOf(trace, kind);
    const sees = kind === "decoder" && isSwitchedOff("causal") ? say("Each token that the decoder has read looks at all of them, later ones too: the causal mask is switched off.") : ATTENTION[kind][1];
    caption.replaceChildren(sees, arrow || "");
    grid.replaceChildren(shown.grid);
    stage.replaceChildren(shown.stage);
  };
  if (!kinds.length) return [el("p", {}, say("All layers are switched off: nothing attends to anything."))];
  const first = kinds.includes(view.kind) ? view.kind : kinds[0];
  await show(first);
  const intro = el(
    "div",
    {},
    el(
      "p",
      {},
      say(
        "{formula} (equation 1): each token compares its query with the keys, softmax turns the scores into these weights, which sum to 1, and the token averages the values with them. Heads learn to look for different things: compare them, and notice which tokens point at each other. Point at a token or a cell, or use Tab and the arrow keys.",
        { formula: formulaNode("Attention(Q, K, V) = softmax(QKᵀ / √d_k)·V") },
      ),
    ),
    pageData.left_out.heads &&
      el("p", {}, say("The weights of every head would make the page larger than 2 MB: it has their mean only.")),
    choice(
      say("Attention"),
      kinds.map((kind) => [kind, ATTENTION[kind][0]]),
      first,
      (kind) => {
        look({ kind, pinned: null });
        show(kind);
      },
    ),
    caption,
  );
  return [el("div", { class: "columns" }, intro, grid), stage];
}

/** The tokens that the rows and the columns of one kind of attention stand for. */
function axesOf(trace, kind) {
  return {
    queries: kind === "encoder" ? trace.source.tokens : decoderInput(trace),
    keys: kind === "decoder" ? decoderInput(trace) : trace.source.tokens,
  };
}

/** The pictures of one kind of attention: all layers and heads small, the chosen ones large. */
async function attentionOf(trace, kind) {
  const attentions = trace.attention.filter((one) => one.kind === kind);
  const layers = await Promise.all(attentions.map(async (one) => ({ ...one, matrix: await unpack(one.weights) })));
  const predicted = kind === "encoder" ? null : trace.target.tokens;
  const [grid, stage] = [el("div", {}), el("div", {})];
  const show = () => {
    const heads = shownHeads(layers).map(([layer, head]) => ({
      title: headTitle(layer, head),
      matrix: headOf(layers.find((one) => one.layer === layer).matrix, head),
      control: lesson?.headButton(kind, layer, head),
    }));
    stage.replaceChildren(attentionStage(heads, { ...axesOf(trace, kind), predicted }));
  };
  const showGrid = () => {
    grid.replaceChildren(headGrid(layers, show), overlaySwitch(layers, showGrid));
    show();
  };
  showGrid();
  return { grid, stage };
}

/** The heads that the reader has chosen, as far as these layers have them; else the one that the command asked for. */
function shownHeads(layers) {
  const has = ([layer, head]) =>
    layers.some((one) => one.layer === layer && (head === "mean" || head < one.matrix.heads) && one.matrix.heads > 1);
  const chosen = view.heads.filter(has);
  if (chosen.length) return view.overlay ? chosen : chosen.slice(-1);
  const { layer, head } = pageData.first;
  const first = layers.find((one) => one.layer === layer) ?? layers.at(-1);
  return [[first.layer, head === null || first.matrix.heads === 1 ? "mean" : head - 1]];
}

/** Shows several heads at once, each in a colour of its own, or one. */
function overlaySwitch(layers, onChange) {
  if (layers[0].matrix.heads === 1) return "";
  const toggle = () => {
    const [layer, head] = shownHeads(layers)[0];
    const heads = input.checked && head === "mean" ? [0, 1].map((each) => [layer, each]) : shownHeads(layers);
    look({ overlay: input.checked, heads });
    onChange();
  };
  const input = el("input", { type: "checkbox", checked: view.overlay, onchange: toggle });
  return el("label", { class: "check" }, input, " ", say("Several heads at once, each in its colour"));
}

/** Small multiples: a row of heads for each layer, and their mean. */
function headGrid(layers, onChange) {
  const heads = layers[0].matrix.heads === 1 ? ["mean"] : ["mean", ...Array(layers[0].matrix.heads).keys()];
  const options = layers.flatMap((one) => heads.map((head) => ({ one, head, value: [one.layer, head] })));
  const group = `heads-${++nChoices}`;
  const isSame = (a, b) => String(a) === String(b);
  const choose = (input, value) => {
    const others = view.overlay ? shownHeads(layers).filter((each) => !isSame(each, value)) : [];
    if (!input.checked && !others.length) input.checked = true; // one is always shown
    look({ heads: (input.checked ? [...others, value] : others).slice(-HEAD_COLORS.length) });
    onChange();
    sync();
  };
  const cells = options.map(({ one, head, value }) => {
    const title = headTitle(one.layer, head);
    const isOff = lesson?.isHeadOff(one.kind, one.layer, head) ?? false;
    const name = isOff ? say("{title}, switched off", { title }) : title;
    const type = view.overlay ? "checkbox" : "radio";
    const input = el("input", { type, name: group, "aria-label": name, onchange: () => choose(input, value) });
    const caption = el("span", { class: "caption" }, head === "mean" ? say("mean") : head + 1);
    return { input, value, node: el("label", { title: name, class: isOff ? "off" : null }, input, thumbnail(headOf(one.matrix, head)), caption) };
  });
  const sync = () => {
    const shown = shownHeads(layers);
    for (const { input, value, node } of cells) {
      const place = shown.findIndex((each) => isSame(each, value));
      input.checked = place >= 0;
      node.style.setProperty("--ink", view.overlay && place >= 0 ? `var(${HEAD_COLORS[place]})` : "var(--accent)");
    }
  };
  sync();
  moveInGrid(cells.map(({ input }) => input), heads.length);
  const rows = layers.map((one, i) => [
    el("span", { class: "layer-name" }, say("Layer {layer}", { layer: one.layer })),
    cells.slice(i * heads.length, (i + 1) * heads.length).map(({ node }) => node),
  ]);
  return el(
    "fieldset",
    { class: "head-grid scroll" },
    el("legend", {}, say("Layer and head")),
    el("div", { class: "heads", "--heads": heads.length }, rows),
  );
}

/** Lets the arrow keys move up and down between rows; left and right are the browser's own between radio buttons. */
function moveInGrid(inputs, width) {
  inputs.forEach((input, index) =>
    input.addEventListener("keydown", (event) => {
      const sideways = input.type === "checkbox" ? { ArrowLeft: -1, ArrowRight: 1 } : {};
      const step = { ArrowUp: -width, ArrowDown: width, ...sideways }[event.key];
      if (!step || !inputs[index + step]) return;
      event.preventDefault();
      inputs[index + step].focus();
      if (input.type === "radio") inputs[index + step].click();
    }),
  );
}

/** Heads as lines, and their heat maps beside them; each marks what the other selects. */
function attentionStage(heads, tokens) {
  const heats = [];
  const lines = new AttentionLines(heads, tokens, ({ query, key }) => heats.forEach((heat) => heat.mark(query, key)));
  for (const { title, matrix } of heads) {
    const heat = matrixPicture({
      matrix,
      name: say("Attention weights of {title}", { title }),
      most: 1,
      rowNames: tokens.queries.map(tokenText),
      columnNames: tokens.keys.map(tokenText),
      onCell: (row, column) => lines.show(row === null ? null : { query: row, key: column }),
    });
    heats.push(heat);
  }
  lines.show(null);
  const named = (heat, i) =>
    heads.length === 1
      ? heat.node
      : el("div", {}, el("h4", {}, el("span", { class: "dot", "--ink": lines.colorOf(i) }), heads[i].title), heat.node);
  return el(
    "div",
    { class: `stage ${tokens.queries.length > 24 ? "long" : ""} ${heads.length > 1 ? "overlay" : ""}` },
    lines.node,
    el("div", { class: "heat" }, heats.map(named)),
  );
}

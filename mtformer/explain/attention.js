"use strict";
// Section 2: which token attends to which, as lines between two columns of tokens and as heat maps.

const VISIBLE = 0.005; // smaller weights round to 0.00

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
  const [caption, grid, view] = [el("p", { class: "muted" }), el("div", {}), el("div", {})];
  const kinds = Object.keys(ATTENTION).filter((kind) => trace.attention.some((one) => one.kind === kind));
  const show = async (kind) => {
    const arrow = kind !== "encoder" && el("span", { class: "next-hint" }, " ", say("→ shows that token."));
    const shown = await attentionOf(trace, kind);
    caption.replaceChildren(ATTENTION[kind][1], arrow || "");
    grid.replaceChildren(shown.grid);
    view.replaceChildren(shown.stage);
  };
  const first = pageData.first.kind ?? kinds[0];
  await show(first);
  const intro = el(
    "div",
    {},
    el(
      "p",
      {},
      say(
        "{formula} (equation 1): each token asks with its query, and takes from the other tokens in proportion to these weights, which sum to 1. Every head has learned to look for something else: compare them, and notice which tokens point at each other. Point at a token or a cell, or use Tab and the arrow keys.",
        { formula: formulaNode("Attention(Q, K, V) = softmax(QKᵀ / √d_k)·V") },
      ),
    ),
    pageData.left_out.heads &&
      el("p", {}, say("The weights of every head would make the page larger than 2 MB: it has their mean only.")),
    choice(
      say("Attention"),
      kinds.map((kind) => [kind, ATTENTION[kind][0]]),
      first,
      show,
    ),
    caption,
  );
  return [el("div", { class: "columns" }, intro, grid), view];
}

/** The tokens that the rows and the columns of one kind of attention stand for. */
function axesOf(trace, kind) {
  return {
    queries: kind === "encoder" ? trace.source.tokens : decoderInput(trace),
    keys: kind === "decoder" ? decoderInput(trace) : trace.source.tokens,
  };
}

/** The pictures of one kind of attention: all layers and heads small, the chosen one large. */
async function attentionOf(trace, kind) {
  const layers = trace.attention.filter((one) => one.kind === kind);
  const weights = await Promise.all(layers.map((one) => unpack(one.weights)));
  const { queries, keys } = axesOf(trace, kind);
  const predicted = kind === "encoder" ? null : trace.target.tokens;
  const stage = el("div", {});
  const pinned = { selection: null }; // the selected token stays when another head is chosen, to compare heads
  const show = ([layer, head]) => {
    const title = headTitle(layers[layer].layer, head);
    stage.replaceChildren(attentionStage(headOf(weights[layer], head), title, { queries, keys, predicted, pinned }));
  };
  const first = firstShown(weights);
  show(first);
  return { grid: headGrid(layers, weights, first, show), stage };
}

/** The place of the layer and the head that the command asked for, or else the mean of the last layer. */
function firstShown(weights) {
  const { layer, head } = pageData.first;
  const place = layer !== null && layer <= weights.length ? layer - 1 : weights.length - 1;
  return [place, head === null || weights[place].heads === 1 ? "mean" : head - 1];
}

/** Small multiples: a row of heads for each layer, and their mean. */
function headGrid(layers, weights, [chosenLayer, chosenHead], onChange) {
  const heads = weights[0].heads === 1 ? ["mean"] : ["mean", ...Array(weights[0].heads).keys()];
  const options = layers.flatMap((one, layer) =>
    heads.map((head) => {
      const picture = [
        thumbnail(headOf(weights[layer], head)),
        el("span", { class: "caption" }, head === "mean" ? say("mean") : head + 1),
      ];
      return {
        value: [layer, head],
        name: headTitle(one.layer, head),
        picture,
        chosen: layer === chosenLayer && head === chosenHead,
      };
    }),
  );
  const group = `heads-${++nChoices}`;
  const cells = options.map((option) => {
    const input = el("input", {
      type: "radio",
      name: group,
      "aria-label": option.name,
      checked: option.chosen,
      onchange: () => onChange(option.value),
    });
    return el("label", { title: option.name }, input, option.picture);
  });
  const inputs = cells.map((cell) => cell.querySelector("input"));
  inputs.forEach((input, index) =>
    input.addEventListener("keydown", (event) => {
      const step = { ArrowUp: -heads.length, ArrowDown: heads.length }[event.key]; // left and right are the browser's own
      if (!step || !inputs[index + step]) return;
      event.preventDefault();
      inputs[index + step].focus();
      inputs[index + step].click();
    }),
  );
  const rows = layers.map((one, layer) => [
    el("span", { class: "layer-name" }, say("Layer {layer}", { layer: one.layer })),
    cells.slice(layer * heads.length, (layer + 1) * heads.length),
  ]);
  return el(
    "fieldset",
    { class: "head-grid scroll" },
    el("legend", {}, say("Layer and head")),
    el("div", { class: "heads", "--heads": heads.length }, rows),
  );
}

/** One head: lines between queries and keys, and its heat map beside them; each marks what the other selects. */
function attentionStage(weights, title, tokens) {
  const lines = attentionLines(weights, title, tokens, ({ query, key }) => heat.mark(query, key));
  const heat = matrixPicture({
    matrix: weights,
    name: say("Attention weights of {title}", { title }),
    most: 1,
    rowNames: tokens.queries.map(tokenText),
    columnNames: tokens.keys.map(tokenText),
    onCell: (row, column) => lines.show(row === null ? null : { query: row, key: column }),
  });
  lines.show(null);
  return el(
    "div",
    { class: `stage ${tokens.queries.length > 24 ? "long" : ""}` },
    lines.node,
    el("div", { class: "heat" }, heat.node),
  );
}

/** `onShow` hears which query and which key are marked; undefined is none. */
function attentionLines(weights, title, { queries, keys, predicted, pinned }, onShow) {
  const readout = el("output", { class: "readout" });
  const height = Math.max(queries.length, keys.length);
  const faint = Math.max(VISIBLE, keys.length / 6000); // long sentences would have ten thousands of lines
  const paths = [];
  for (let query = 0; query < weights.rows; query++) {
    for (let key = 0; key < weights.columns; key++) {
      const weight = weights.at(query, key);
      if (weight < faint) continue;
      const node = svg("path", {
        d: `M0,${query + 0.5} C45,${query + 0.5} 55,${key + 0.5} 100,${key + 0.5}`,
        "stroke-width": 0.5 + 7 * weight,
        "stroke-opacity": 0.06 + 0.94 * weight,
        "vector-effect": "non-scaling-stroke",
      });
      paths.push({ query, key, node });
    }
  }
  const button = (token, side, index, next) => {
    const weight = el("span", { class: "weight" });
    const parts = [tokenLabel(token), next ? el("span", { class: "next", lang: "" }, `→ ${tokenText(next)}`) : null];
    const node = el(
      "button",
      { class: `end ${side}`, "aria-pressed": String(pinned.selection?.[side] === index) },
      side === "query" ? [weight, parts] : [parts, weight],
    );
    return { node, weight, token, index };
  };
  const ends = {
    query: queries.map((token, index) => button(token, "query", index, predicted?.[index])),
    key: keys.map((token, index) => button(token, "key", index)),
  };

  // `chosen` has a query, a key or both; null shows what is pinned, or every line.
  const show = (chosen) => {
    const selection = chosen ?? pinned.selection;
    const { query, key } = selection ?? {};
    for (const path of paths) {
      const visible = (query === undefined || path.query === query) && (key === undefined || path.key === key);
      path.node.classList.toggle("faded", !visible);
    }
    const mark = (side, weightOf, selected) =>
      ends[side].forEach((end) => {
        const weight = weightOf(end.index);
        end.node.style.setProperty("--weight", weight ?? 0);
        end.node.classList.toggle("selected", end.index === selected);
        end.weight.textContent = weight === null || weight < VISIBLE ? "" : number(weight, 2);
      });
    mark("key", (k) => (query === undefined || (key !== undefined && k !== key) ? null : weights.at(query, k)), key);
    mark("query", (q) => (key === undefined || query !== undefined ? null : weights.at(q, key)), query);
    readout.textContent = selection
      ? inWords(query, key)
      : say(
          "Point at a token on the left to see where it looks, on the right to see who looks at it; select it to keep it.",
        );
    onShow({ query, key });
  };
  const inWords = (query, key) => {
    if (query !== undefined && key !== undefined) {
      return say("“{query}” gives “{key}” {weight} of its attention.", {
        query: tokenText(queries[query]),
        key: tokenText(keys[key]),
        weight: number(weights.at(query, key)),
      });
    }
    const [from, to] = query !== undefined ? [queries[query], keys] : [keys[key], queries];
    const all = to.map((token, i) => [token, query !== undefined ? weights.at(query, i) : weights.at(i, key)]);
    const strongest = all
      .sort((a, b) => b[1] - a[1])
      .slice(0, 3)
      .filter(([, weight]) => weight >= VISIBLE);
    const values = {
      token: tokenText(from),
      others: strongest.map(([token, weight]) => `“${tokenText(token)}” (${number(weight, 2)})`).join(say(", ")),
    };
    if (query !== undefined) return say("“{token}” looks at {others}.", values);
    if (!strongest.length) return say("Nothing looks at “{token}”.", values);
    return say("“{token}” is looked at by {others}.", values);
  };

  for (const side of ["query", "key"]) {
    ends[side].forEach((end) => {
      const selection = { [side]: end.index };
      const pin = () => {
        const again = pinned.selection?.[side] === end.index; // selected a second time, a token is released
        pinned.selection = again ? null : selection;
        for (const other of [...ends.query, ...ends.key])
          other.node.setAttribute("aria-pressed", other === end && !again);
        show(selection);
      };
      end.node.addEventListener("pointerenter", () => show(selection));
      end.node.addEventListener("pointerleave", () => show(null));
      end.node.addEventListener("focus", () => show(selection));
      end.node.addEventListener("blur", () => show(null));
      end.node.addEventListener("click", pin);
    });
    rove(
      ends[side].map((end) => end.node),
      { ArrowUp: -1, ArrowDown: 1 },
    );
  }
  const across = (event) => {
    const side = { ArrowLeft: "query", ArrowRight: "key" }[event.key];
    if (!side) return;
    event.preventDefault();
    const index = Number(event.target.closest(".end").dataset.index);
    ends[side][clamp(index, 0, ends[side].length - 1)].node.focus();
  };
  for (const end of [...ends.query, ...ends.key]) end.node.dataset.index = end.index;
  const node = el(
    "div",
    {},
    el("div", { class: "stage-head" }, el("h3", {}, title), readout),
    el(
      "div",
      {
        class: "lines",
        role: "group",
        "aria-label": say("Lines of {title}: up and down move between tokens, left and right between the columns", {
          title,
        }),
        onkeydown: across,
      },
      el(
        "div",
        { class: "ends" },
        ends.query.map((end) => end.node),
      ),
      svg(
        "svg",
        {
          class: "wires",
          viewBox: `0 0 100 ${height}`,
          preserveAspectRatio: "none",
          "--n": height,
          "aria-hidden": "true",
        },
        paths.map((path) => path.node),
      ),
      el(
        "div",
        { class: "ends" },
        ends.key.map((end) => end.node),
      ),
    ),
  );
  return { node, show };
}

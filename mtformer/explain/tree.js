"use strict";
// Section 4: the search, with the beams that it dropped.

const COLUMN = 104; // pixels from step to step
const ROW = 42; // from candidate to candidate
const MOST_FINISHED = 8; // rows of the table, until the reader asks for all
const BOX = { width: 84, height: 36 };

// What may become of a candidate: for the legend, and in words.
const FATES = {
  expanded: [say("kept and continued"), say("It was kept and continued.")],
  finished: [say("finished"), say("It ended the sentence.")],
  pruned: [say("pruned"), say("It was pruned: others were likelier.")],
  stopped: [
    say("still open at the end"),
    say("It was still open when the search ended, because others scored better."),
  ],
};

function treeSection(trace, search) {
  const nodes = new Map(trace.tree.nodes.map((node) => [node.id, node]));
  const detail = el("div", { class: "detail", "aria-live": "polite" });
  const greedy = search.beam_size === 1;
  return [
    el(
      "p",
      {},
      greedy
        ? say(
            "Greedy search takes the likeliest token at each step. The dashed ones below it were likely too and are not followed.",
          )
        : say(
            "Each column is a step. Beam search keeps the {beams} likeliest beginnings and drops the others (dashed). A number is the log probability of the whole beginning: it only falls. The thick path won.",
            { beams: search.beam_size },
          ),
    ),
    el(
      "div",
      { class: "legend" },
      Object.keys(FATES)
        .filter((fate) => trace.tree.nodes.some((node) => node.fate === fate))
        .map((fate) => el("span", { class: `swatch ${fate}` }, FATES[fate][0])),
    ),
    treePicture(trace, nodes, detail),
    detail,
    el("h3", {}, say("How the finished translations were ranked")),
    el(
      "p",
      {},
      say(
        "Longer translations have lower probability. So the score divides the log probability by the length penalty {formula} with α = {alpha} (after Wu et al. 2016, equation 14).",
        { formula: penaltyFormula(say("length"), "α"), alpha: String(search.length_penalty) },
      ),
    ),
    finishedTable(trace, search),
  ];
}

function pathTo(node, nodes) {
  const path = [];
  for (let at = node; at; at = nodes.get(at.parent)) path.unshift(at);
  return path;
}

function treePicture(trace, nodes, detail) {
  const place = layOut(trace.tree.nodes);
  const returned = trace.tree.finished.find((finished) => finished.returned);
  const winners = new Set(pathTo(nodes.get(returned.node), nodes).map((node) => node.id));
  const shapes = new Map();
  const edges = new Map();
  for (const node of trace.tree.nodes) {
    const { x, y } = place.get(node.id);
    if (node.parent !== null) {
      const from = place.get(node.parent);
      const [x0, y0, middle] = [from.x + BOX.width, from.y + BOX.height / 2, (from.x + BOX.width + x) / 2];
      edges.set(
        node.id,
        svg("path", {
          class: `edge ${node.fate} ${winners.has(node.id) ? "winner" : ""}`,
          d: `M${x0},${y0} C${middle},${y0} ${middle},${y + BOX.height / 2} ${x},${y + BOX.height / 2}`,
        }),
      );
    }
    shapes.set(
      node.id,
      svg(
        "g",
        {
          class: `node ${node.fate} ${winners.has(node.id) ? "winner" : ""}`,
          transform: `translate(${x},${y})`,
          role: "button",
          "aria-label": say("step {step}, {token}, total {total}, {fate}", {
            step: node.step,
            token: tokenText(node.token),
            total: number(node.total, 2),
            fate: FATES[node.fate][0],
          }),
          onclick: () => shapes.get(node.id).focus(),
          onfocus: () => select(node),
          onpointermove: () => shapes.get(node.id).tabIndex === 0 || select(node), // not if it is scrolled under the mouse
          onkeydown: (event) => move(event, node),
        },
        svg("rect", { ...BOX, rx: 6 }),
        svg("text", { x: 8, y: 16, class: "name", lang: "" }, shortened(node.token)),
        svg("text", { x: 8, y: 30, class: "total" }, number(node.total, 2)),
      ),
    );
  }
  const select = (node) => {
    const path = new Set(pathTo(node, nodes).map((one) => one.id));
    for (const [id, shape] of shapes) {
      shape.classList.toggle("on-path", path.has(id));
      shape.tabIndex = id === node.id ? 0 : -1;
    }
    for (const [id, edge] of edges) edge.classList.toggle("on-path", path.has(id));
    detail.replaceChildren(...nodeDetail(node, nodes));
  };
  const move = (event, node) => {
    const column = trace.tree.nodes
      .filter((other) => other.step === node.step)
      .sort((a, b) => place.get(a.id).y - place.get(b.id).y);
    const children = trace.tree.nodes.filter((other) => other.parent === node.id);
    const target = {
      ArrowLeft: () => nodes.get(node.parent),
      ArrowRight: () => children.find((child) => winners.has(child.id)) ?? children.sort((a, b) => a.rank - b.rank)[0],
      ArrowUp: () => column[column.indexOf(node) - 1],
      ArrowDown: () => column[column.indexOf(node) + 1],
    }[event.key]?.();
    if (!target) return;
    event.preventDefault();
    shapes.get(target.id).focus();
  };
  const width = 1 + Math.max(...[...place.values()].map(({ x }) => x)) + BOX.width;
  const height = 1 + Math.max(...[...place.values()].map(({ y }) => y)) + BOX.height;
  const steps = Math.max(...trace.tree.nodes.map((node) => node.step));
  select(nodes.get(returned.node));
  return el(
    "div",
    { class: "scroll tree" },
    svg(
      "svg",
      {
        width,
        height,
        viewBox: `0 0 ${width} ${height}`,
        role: "group",
        "aria-label": say("the search; arrow keys move between candidates"),
      },
      Array.from({ length: steps + 1 }, (_, step) =>
        svg("text", { x: step * COLUMN + 1, y: 12, class: "step-name" }, step === 0 ? say("start") : say("step {step}", { step })),
      ),
      [...edges].sort(([a], [b]) => winners.has(a) - winners.has(b)).map(([, edge]) => edge), // the winners on top
      [...shapes.values()],
    ),
  );
}

/** One column for each step; in a column, the best at the top. */
function layOut(nodes) {
  const filled = [];
  const place = new Map();
  for (const node of [...nodes].sort((a, b) => a.step - b.step || a.rank - b.rank)) {
    filled[node.step] ??= 0;
    place.set(node.id, { x: node.step * COLUMN + 1, y: 22 + filled[node.step]++ * ROW });
  }
  return place;
}

function shortened(token) {
  const letters = [...token.text];
  return letters.length > 9 ? `${letters.slice(0, 8).join("")}…` : token.text;
}

function nodeDetail(node, nodes) {
  const path = pathTo(node, nodes);
  if (node.parent === null)
    return [el("p", {}, say("The search starts with {token}, whose log probability is 0.", { token: tokenNode(node.token) }))];
  const parent = nodes.get(node.parent);
  return [
    el(
      "div",
      { class: "strip" },
      path.map((one) => el("span", { class: "chip" }, tokenNode(one.token))),
    ),
    el(
      "p",
      {},
      say("Step {step}, rank {rank}: {sum}.", {
        step: node.step,
        rank: node.rank,
        sum: el("span", { class: "number" }, `${number(parent.total)} + ${bracketed(node.log_prob)} = ${number(node.total)}`),
      }),
      ` ${FATES[node.fate][1]} `,
      node.score !== null && say("Score {score}.", { score: number(node.score) }),
    ),
  ];
}

function bracketed(value) {
  return value < 0 ? `(${number(value)})` : number(value);
}

function finishedTable(trace, search) {
  const finished = [...trace.tree.finished].sort((a, b) => a.rank - b.rank);
  const rows = finished.map((one) => finishedRow(one, search));
  rows.slice(MOST_FINISHED).forEach((row) => {
    row.hidden = true;
  });
  const more =
    rows.length > MOST_FINISHED &&
    el(
      "button",
      {
        onclick: () => {
          rows.forEach((row) => {
            row.hidden = false;
          });
          more.remove();
        },
      },
      say("Show all {n}", { n: rows.length }),
    );
  return [
    el(
      "div",
      { class: "scroll" },
      table(
        { class: "finished" },
        [
          el("th", { class: "number" }, say("rank")),
          el("th", {}, say("translation")),
          el("th", { class: "number" }, say("length")),
          el("th", { class: "number" }, say("log probability")),
          el("th", { class: "number" }, say("length penalty")),
          el("th", { class: "number" }, say("score")),
        ],
        rows,
      ),
    ),
    more,
  ];
}

/** The length penalty: a power of the length, or as in the paper, of (5 + length) / 6. */
function penaltyFormula(length, alpha) {
  const { length_penalty_offset: offset } = pageData.search;
  return formulaNode(`${offset ? `((${offset} + ${length}) / ${offset + 1})` : length}^${alpha}`);
}

function finishedRow(one, search) {
  return el(
    "tr",
    { class: one.returned ? "chosen" : "" },
    el("td", { class: "number" }, one.rank),
    el("td", { lang: "" }, one.text || say("(nothing)"), one.returned ? el("span", { class: "tag" }, say("returned")) : null),
    el("td", { class: "number" }, one.length),
    el("td", { class: "number" }, number(one.log_prob)),
    el(
      "td",
      { class: "number" },
      el("span", {}, penaltyFormula(one.length, search.length_penalty)),
      " ",
      el("span", {}, `= ${number(one.penalty)}`),
    ),
    el(
      "td",
      { class: "number" },
      el("span", {}, `${number(one.log_prob)} / ${number(one.penalty)}`),
      " ",
      el("span", {}, "= ", el("strong", {}, number(one.score))),
    ),
  );
}

"use strict";
// Section 6: what if: a forced beginning, a missing word, another sentence, an earlier model.

function prefixPart(trace, search) {
  const forced = trace.steps.filter((step) => step.candidates[step.chosen].forced);
  return [
    el("h3", {}, say("Forced beginning")),
    el(
      "p",
      {},
      say("The translation had to start with “{prefix}”. How much the model disliked each forced token:", {
        prefix: el("span", { lang: "" }, search.prefix),
      }),
    ),
    el(
      "div",
      { class: "scroll" },
      el(
        "table",
        {},
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", {}, say("forced token")),
            el("th", { class: "number" }, say("rank")),
            el("th", { class: "number" }, say("probability")),
            el("th", {}, say("its own choice")),
          ),
        ),
        el(
          "tbody",
          {},
          forced.map((step) => {
            const chosen = step.candidates[step.chosen];
            return el(
              "tr",
              {},
              el("td", {}, tokenNode(chosen.token)),
              el("td", { class: "number" }, chosen.rank),
              el("td", { class: "number" }, percent(chosen.probability)),
              el("td", {}, chosen.rank === 1 ? say("the same") : tokenNode(step.candidates[0].token)),
            );
          }),
        ),
      ),
    ),
  ];
}

function whyNotPart(trace) {
  return trace.why_not.map((one) => [
    el("h3", {}, say("Why not “{word}”?", { word: el("span", { lang: "" }, one.word) })),
    el("p", {}, inWords(one)),
    one.steps.length > 0 &&
      el(
        "div",
        { class: "scroll" },
        el(
          "table",
          {},
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              el("th", { class: "number" }, say("step")),
              el("th", {}, say("first token that differs")),
              el("th", { class: "number" }, say("rank")),
              el("th", { class: "number" }, say("log probability")),
              el("th", { class: "number" }, say("below the choice")),
            ),
          ),
          el(
            "tbody",
            {},
            one.steps.map((step) =>
              el(
                "tr",
                { class: step.step === one.pruned_at ? "chosen" : "" },
                el("td", { class: "number" }, step.step),
                el("td", {}, tokenNode(step.token)),
                el("td", { class: "number" }, step.rank),
                el("td", { class: "number" }, number(step.log_prob)),
                el("td", { class: "number" }, number(step.gap)),
              ),
            ),
          ),
        ),
      ),
  ]);
}

/** An answer in the language of the page, whose sentences stand side by side without spaces in Chinese. */
function inWords({ sentences }) {
  return sentences.map(({ template, values }, index) => [index > 0 && say(" "), say(template, values)]);
}

// ---- Two sentences

async function comparePart(traces, changes) {
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
  const view = el("div", {});
  const show = async (change) => view.replaceChildren(...(await changedHead(traces, changes, change)));
  const { first } = pageData;
  const isFirst = (change) => ["kind", "layer", "head"].every((key) => first[key] === null || first[key] === change[key]);
  const chosen = changes.attention.find(isFirst) ?? changes.attention[0];
  const most = pageData.left_out.heads ? [] : [...new Set([chosen, ...changes.attention])].slice(0, 8);
  most.sort((a, b) => b.difference - a.difference);
  if (most.length) await show(chosen);
  return [
    el("h3", {}, say("Two sentences side by side")),
    el(
      "p",
      {},
      say(
        "What differs is coloured. Below are the heads whose attention changed most, by the mean difference of their weights over the tokens that both sentences share. In the third picture blue is more attention in the second sentence, orange less.",
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
    view,
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

// ---- Checkpoints

async function checkpointsPart(checkpoints) {
  const stage = el("div", {});
  const rows = checkpoints.map((one) =>
    el(
      "tr",
      {},
      el("td", { class: "number" }, one.step.toLocaleString("en")),
      el("td", { lang: "" }, one.text),
      el("td", { class: "number" }, number(one.log_prob, 2)),
    ),
  );
  const attentions = checkpoints[0].attention.map(({ kind, layer }) => [kind, layer]);
  const { first } = pageData;
  const isFirst = ([kind, layer]) => [null, kind].includes(first.kind) && [null, layer].includes(first.layer);
  let [index, which] = [checkpoints.length - 1, Math.max(attentions.findLastIndex(isFirst), 0)];
  const slider = el("input", {
    type: "range",
    min: 0,
    max: checkpoints.length - 1,
    value: index,
    "aria-label": say("checkpoint"),
    oninput: () => {
      index = Number(slider.value);
      show();
    },
  });
  const show = async () => {
    rows.forEach((row, i) => row.classList.toggle("chosen", i === index));
    const one = checkpoints[index];
    slider.setAttribute("aria-valuetext", say("step {step}", { step: one.step }));
    const [kind] = attentions[which];
    const input = decoderInput({ bos: pageData.traces[0].bos, target: one.target });
    const matrix = headOf(await unpack(one.attention[which].weights), "mean");
    stage.replaceChildren(
      el(
        "p",
        {},
        say("After {steps} steps: {text}", {
          steps: one.step.toLocaleString("en"),
          text: el("strong", { lang: "" }, one.text || say("(nothing)")),
        }),
      ),
      matrixPicture({
        matrix,
        name: say("mean attention"),
        most: 1,
        rowNames: (kind === "encoder" ? one.source.tokens : input).map(tokenText),
        columnNames: (kind === "decoder" ? input : one.source.tokens).map(tokenText),
      }).node,
    );
  };
  await show();
  return [
    el("h3", {}, say("The same sentence during training")),
    el(
      "p",
      {},
      say(
        "Each row is the translation by a checkpoint of this run. Move the slider to see attention take shape (mean of the heads).",
      ),
    ),
    el(
      "div",
      { class: "scroll" },
      el(
        "table",
        { class: "checkpoints" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", { class: "number" }, say("step")),
            el("th", {}, say("translation")),
            el("th", { class: "number" }, say("log probability")),
          ),
        ),
        el("tbody", {}, rows),
      ),
    ),
    choice(
      say("Attention"),
      attentions.map(([kind, layer], i) => [i, `${ATTENTION[kind][0]} ${layer}`]),
      which,
      (chosen) => {
        which = chosen;
        show();
      },
    ),
    el("label", { class: "slider" }, say("Checkpoint"), " ", slider),
    stage,
  ];
}

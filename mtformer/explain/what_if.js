"use strict";
// What if: a forced beginning, a missing word, an earlier model.

function prefixPart(trace) {
  const forced = trace.steps.filter((step) => step.candidates[step.chosen].forced);
  if (!forced.length) return null;
  return [
    el("h3", {}, say("Forced beginning")),
    el(
      "p",
      {},
      say("The translation had to start with these tokens. How much the model disliked each:"),
    ),
    el(
      "div",
      { class: "scroll" },
      table(
        {},
        [
          el("th", {}, say("forced token")),
          el("th", { class: "number" }, say("rank")),
          el("th", { class: "number" }, say("probability")),
          el("th", {}, say("its own choice")),
        ],
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
        table(
          {},
          [
            el("th", { class: "number" }, say("step")),
            el("th", {}, say("first token that differs")),
            el("th", { class: "number" }, say("rank")),
            el("th", { class: "number" }, say("log probability")),
            el("th", { class: "number" }, say("below the choice")),
          ],
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
  ]);
}

/** An answer in the language of the page, whose sentences stand side by side without spaces in Chinese. */
function inWords({ sentences }) {
  return sentences.map(({ template, values }, index) => [index > 0 && say(" "), say(template, values)]);
}

// ---- Checkpoints

async function checkpointsPart(checkpoints, bos) {
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
    const input = decoderInput({ bos, target: one.target });
    const matrix = headOf(await unpack(one.attention[which].weights), "mean");
    stage.replaceChildren(
      el(
        "p",
        {},
        say("After step {step}: {text}", {
          step: one.step.toLocaleString("en"),
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
      table(
        { class: "checkpoints" },
        [
          el("th", { class: "number" }, say("step")),
          el("th", {}, say("translation")),
          el("th", { class: "number" }, say("log probability")),
        ],
        rows,
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

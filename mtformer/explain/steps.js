"use strict";
// Section 3: decoding, one step at a time.

async function stepsSection(trace) {
  const cross = trace.attention.filter((one) => one.kind === "cross").at(-1);
  const weights = cross && headOf(await unpack(cross.weights), "mean");
  const n = trace.steps.length;
  return [
    el(
      "p",
      {},
      say(
        "The decoder reads <s> and the tokens chosen so far: the translation shifted right. From the last position it predicts the next token, the search chooses one, and this goes on until it chooses </s>.",
      ),
    ),
    player({
      n,
      at: view.step,
      name: say("step"),
      label: say("Decoding: left and right arrow keys move between steps"),
      title: (frame) => say("Step {step} of {steps}", { step: frame + 1, steps: n }),
      show: (frame) => stepPicture(trace, trace.steps[frame], weights),
      onMove: (frame) => look({ step: frame }),
    }),
  ];
}

/** The decoder's input, where it looks, what could come next, and the choice. */
function stepPicture(trace, step, weights) {
  const input = decoderInput(trace);
  const row = step.input.at(-1);
  const chosen = step.candidates[step.chosen];
  const source = trace.source.tokens.map((token, column) => {
    const weight = weights ? weights.at(row, column) : 0; // without decoder layers nothing looks at the source
    return el(
      "span",
      { class: "chip heated", "--weight": weight, title: say("weight {weight}", { weight: number(weight) }) },
      tokenNode(token),
      el("span", { class: "id" }, number(weight, 2)),
    );
  });
  const reads = [
    part(
      say("The encoder has read"),
      say("shaded by the last layer's cross-attention at this step, the mean of its heads"),
      el("div", { class: "strip" }, source),
    ),
    part(
      say("The decoder reads"),
      say("its own output so far, shifted right"),
      el(
        "div",
        { class: "strip" },
        step.input.map((position) => el("span", { class: "chip" }, tokenNode(input[position]))),
        el("span", { class: "arrow", "aria-hidden": "true" }, "→"),
        el("span", { class: "chip new" }, tokenNode(chosen.token)),
      ),
    ),
  ];
  const entropy = say("entropy {entropy} bits", { entropy: number(step.entropy_bits, 2) });
  const predicts = part(say("The likeliest next tokens"), entropy, bars(step), note(step));
  return [el("div", { class: "columns" }, el("div", {}, reads), predicts)];
}

function part(title, hint, ...content) {
  return el("div", { class: "part" }, el("h3", {}, title, el("span", { class: "muted small" }, ` ${hint}`)), content);
}

function bars(step) {
  return table(
    { class: "bars" },
    [
      el("th", { class: "number" }, say("rank")),
      el("th", {}, say("token")),
      el("th", {}, say("probability")),
      el("th", { class: "number" }, say("log")),
    ],
    step.candidates.map((candidate, index) =>
      el(
        "tr",
        { class: index === step.chosen ? "chosen" : "" },
        el("td", { class: "number" }, candidate.rank),
        el(
          "td",
          {},
          tokenNode(candidate.token),
          index === step.chosen ? el("span", { class: "tag" }, candidate.forced ? say("forced") : say("chosen")) : null,
          lesson?.forceButton(step, candidate, index === step.chosen),
        ),
        el(
          "td",
          {},
          el(
            "div",
            { class: "bar" },
            el("span", { class: "fill", "--part": candidate.probability }),
            percent(candidate.probability),
          ),
        ),
        el("td", { class: "number" }, number(candidate.log_prob, 3)),
      ),
    ),
  );
}

/** Says why the choice is not the likeliest token, where it is not. */
function note(step) {
  const chosen = step.candidates[step.chosen];
  if (chosen.forced) return el("p", {}, say("The prefix forced this token."));
  const ends = chosen.token.text === "</s>" && chosen.token.kind === "special";
  if (ends && chosen.rank > 1)
    return el("p", {}, say("</s> has rank {rank} here: this translation scored better than those that went on, or it had the most tokens allowed.", { rank: chosen.rank }));
  if (ends) return el("p", {}, say("</s> ends the translation: decoding stops."));
  if (chosen.rank > 1)
    return el("p", {}, say("The choice has rank {rank} here: its beam won later, by what followed it.", { rank: chosen.rank }));
  return null;
}

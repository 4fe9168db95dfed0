"use strict";
// Section 3: decoding, one step at a time.

async function stepsSection(trace) {
  const last = trace.steps.length;
  const cross = trace.attention.filter((one) => one.kind === "cross").at(-1);
  const weights = headOf(await unpack(cross.weights), "mean");
  const stage = el("div", { class: "step" });
  const count = el("span", { class: "count", "aria-live": "polite" });
  const slider = el("input", {
    type: "range",
    min: 1,
    max: last,
    value: 1,
    "aria-label": say("step"),
    oninput: () => {
      stop();
      go(Number(slider.value));
    },
  });
  const previous = el(
    "button",
    {
      onclick: () => {
        stop();
        go(now - 1);
      },
    },
    say("← Previous"),
  );
  const next = el(
    "button",
    {
      onclick: () => {
        stop();
        go(now + 1);
      },
    },
    say("Next →"),
  );
  const play = el("button", { onclick: () => (timer ? stop() : start()) }, say("Play"));
  let now = 1;
  let timer = null;

  const go = (number) => {
    now = clamp(number, 1, last);
    slider.value = now;
    count.textContent = say("Step {step} of {steps}", { step: now, steps: last });
    previous.disabled = now === 1;
    next.disabled = now === last;
    if (now === last) stop();
    stage.replaceChildren(...stepPicture(trace, trace.steps[now - 1], weights));
  };
  const start = () => {
    if (now === last) go(1);
    timer = setInterval(() => go(now + 1), 1200);
    play.textContent = say("Pause");
  };
  const stop = () => {
    clearInterval(timer);
    timer = null;
    play.textContent = say("Play");
  };
  const keys = (event) => {
    const target = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 1, End: last }[event.key];
    if (target === undefined || event.target === slider) return; // a slider has keys of its own
    event.preventDefault();
    stop();
    go(target);
  };
  go(1);
  return [
    el(
      "p",
      {},
      say(
        "The decoder reads <s> and the tokens chosen so far: the translation shifted right. From the last position it predicts the next token, the search chooses one, and this goes on until it chooses </s>.",
      ),
    ),
    el(
      "div",
      {
        class: "stepper",
        tabindex: 0,
        role: "group",
        "aria-label": say("Decoding: left and right arrow keys move between steps"),
        onkeydown: keys,
      },
      el("div", { class: "controls" }, previous, play, next, slider, count),
      stage,
    ),
  ];
}

/** The decoder's input, where it looks, what could come next, and the choice. */
function stepPicture(trace, step, weights) {
  const input = decoderInput(trace);
  const row = step.input.at(-1);
  const chosen = step.candidates[step.chosen];
  const source = trace.source.tokens.map((token, column) => {
    const weight = weights.at(row, column);
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
  return el(
    "table",
    { class: "bars" },
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("th", { class: "number" }, say("rank")),
        el("th", {}, say("token")),
        el("th", {}, say("probability")),
        el("th", { class: "number" }, say("log")),
      ),
    ),
    el(
      "tbody",
      {},
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
    ),
  );
}

/** Says why the choice is not the likeliest token, where it is not. */
function note(step) {
  const chosen = step.candidates[step.chosen];
  if (chosen.forced) return el("p", {}, say("The prefix forced this token."));
  if (chosen.rank > 1)
    return el("p", {}, say("The choice has rank {rank} here: its beam won later, by what followed it.", { rank: chosen.rank }));
  if (chosen.token.text === "</s>" && chosen.token.kind === "special")
    return el("p", {}, say("</s> ends the translation: decoding stops."));
  return null;
}

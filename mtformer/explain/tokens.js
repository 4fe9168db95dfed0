"use strict";
// Section 1: from the text to tokens to ids, and the translation with the model's uncertainty.

function tokensSection(trace) {
  const unusual = trace.source.tokens.some((token) => token.kind === "byte");
  const follows = trace.source.tokens.some((token) => token.text === "<context>"); // which no text contains
  const source = el(
    "div",
    {},
    el("h3", {}, say("The text as the model reads it")),
    el(
      "p",
      {},
      say(
        "The tokenizer cuts the text into tokens, and the model knows each token by its id. ▁ marks the start of a word; frequent words are one token, rare ones several. </s> (dashed) ends the sentence.",
      ),
      unusual && [" ", say("Characters that the vocabulary lacks are spelled as bytes (tinted), such as <0xE2>.")],
      follows && [" ", say("The sentence before <context> is read, but not translated.")],
    ),
    el(
      "div",
      { class: "strip" },
      trace.source.tokens.map((token) => chip(token)),
    ),
  );
  const target = el(
    "div",
    {},
    el("h3", {}, say("The translation, and where the model hesitated")),
    el(
      "p",
      {},
      say(
        "The stronger the colour, the less probable was the token that the search chose. A wavy line marks a close call. Select a token to see what else was possible there.",
      ),
    ),
    targetStrip(trace),
  );
  return [el("div", { class: "columns" }, source, target)];
}

function chip(token, ...more) {
  return el("span", { class: "chip" }, tokenNode(token), el("span", { class: "id" }, token.id), ...more);
}

function targetStrip(trace) {
  const detail = el("div", { class: "detail", "aria-live": "polite" });
  const buttons = trace.steps.map((step) => {
    const chosen = step.candidates[step.chosen];
    const button = el(
      "button",
      {
        class: "chip uncertain",
        "aria-pressed": "false",
        "--doubt": `${Math.round(50 * (1 - chosen.probability))}%`,
        "data-close": step.instead !== null,
        onclick: () => select(button, step),
        onfocus: () => select(button, step),
      },
      tokenNode(chosen.token),
      el("span", { class: "id" }, chosen.token.id),
      el("span", { class: "id" }, percent(chosen.probability)),
    );
    return button;
  });
  const select = (button, step) => {
    buttons.forEach((other) => other.setAttribute("aria-pressed", other === button));
    detail.replaceChildren(...uncertainty(step));
  };
  rove(buttons);
  const most = trace.steps.reduce((worst, step) => (step.margin < worst.margin ? step : worst));
  select(buttons[trace.steps.indexOf(most)], most);
  return el(
    "div",
    {},
    el("div", { class: "strip", role: "group", "aria-label": say("tokens of the translation") }, buttons),
    el("div", { class: "legend" }, say("certain"), el("span", { class: "ramp" }), say("uncertain")),
    detail,
  );
}

/** What could have been said instead of the token chosen at a step. */
function uncertainty(step) {
  const chosen = step.candidates[step.chosen];
  const other = step.candidates.find((candidate) => candidate !== chosen);
  const line = [
    say("Step {step}: {token} has probability {probability}.", {
      step: step.number,
      token: tokenNode(chosen.token),
      probability: percent(chosen.probability),
    }),
    " ",
    chosen.forced && [say("The prefix forced this token."), " "],
    other &&
      say("The best other token is {token} with {probability}.", {
        token: tokenNode(other.token),
        probability: percent(other.probability),
      }),
    " ",
    say("Entropy {entropy} bits.", { entropy: number(step.entropy_bits, 2) }),
  ];
  const instead =
    step.instead &&
    other &&
    el(
      "p",
      {},
      say("With {token} it would have said: {text}", {
        token: tokenNode(other.token),
        text: el("q", { lang: "" }, step.instead),
      }),
    );
  return [el("p", {}, line), ...(instead ? [instead] : [])];
}

"use strict";
// The page: its head, its contents and its sections, for the sentence that is chosen.

function summary(trace) {
  const { model, search } = pageData;
  const how = search.beam_size === 1 ? say("greedy search") : say("beam size {size}", { size: search.beam_size });
  const step = model.step === null ? "" : say(", step {step}", { step: model.step.toLocaleString("en") });
  return [
    el("p", { class: "translation", lang: model.tgt_lang }, trace.target.text),
    el(
      "p",
      { class: "muted small" },
      `${model.src_lang} → ${model.tgt_lang} · `,
      model.name && `${model.name}${step} · `,
      say("{encoder} encoder and {decoder} decoder layers, {heads} heads, d_model {d_model}, {norm}-norm", {
        encoder: model.n_encoder_layers,
        decoder: model.n_decoder_layers,
        heads: model.n_heads,
        d_model: model.d_model,
        norm: model.norm,
      }),
      ` · ${how} · `,
      say("log probability {log_prob}, score {score}", {
        log_prob: number(trace.target.log_prob),
        score: number(trace.target.score),
      }),
    ),
  ];
}

async function sectionsOf(trace) {
  const { search, changes, checkpoints, left_out: leftOut, traces } = pageData;
  const whatIf = [
    search.prefix && prefixPart(trace, search),
    whyNotPart(trace),
    changes && (await comparePart(traces, changes)),
    checkpoints.length > 0 && (await checkpointsPart(checkpoints)),
  ]
    .flat(2)
    .filter(Boolean);
  return [
    ["tokens", say("Tokens"), tokensSection(trace)],
    ["attention", say("Attention"), await attentionSection(trace)],
    ["decoding", say("Decoding"), await stepsSection(trace)],
    ["search", search.beam_size === 1 ? say("Search") : say("Beam search"), treeSection(trace, search)],
    ["matrices", say("Matrices"), matricesSection(trace, leftOut)],
    ["what-if", say("What if"), whatIf],
  ].filter(([, , content]) => content.length > 0);
}

async function showTrace(trace) {
  redraws.clear();
  const sections = await sectionsOf(trace);
  const title = document.querySelector("h1");
  title.textContent = trace.source.text;
  title.classList.toggle("long", trace.source.text.length > 160);
  document.querySelector("main").replaceChildren(
    ...summary(trace),
    el(
      "nav",
      { class: "contents", "aria-label": say("Contents") },
      sections.map(([id, title]) => el("a", { href: `#${id}`, onclick: scrollToSection }, title)),
    ),
    ...sections.map(([id, title, content]) =>
      el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), content),
    ),
  );
}

/** Follows a link of the contents where the browser cannot: in a notebook's frame, which has no address of its own. */
function scrollToSection(event) {
  if (location.protocol !== "about:") return;
  event.preventDefault();
  document.querySelector(event.target.hash).scrollIntoView();
}

/** Marks in the contents the section that is being read. */
function followReading() {
  const links = [...document.querySelectorAll("nav.contents a")];
  const current = links.findLast(
    (link) => document.querySelector(link.hash).getBoundingClientRect().top < innerHeight / 3,
  );
  for (const link of links) link.setAttribute("aria-current", link === current);
}
addEventListener("scroll", followReading, { passive: true });

if (pageData.traces.length > 1) {
  const names = pageData.traces.map((trace) => [trace, trace.source.text]);
  document.querySelector("header").append(choice(say("Sentence"), names, names[0][0], showTrace, "list"));
}
showTrace(pageData.traces[0]).then(() => location.hash && document.querySelector(location.hash)?.scrollIntoView());

"use strict";
// The page: its head, its contents and its sections, for the sentence that is chosen.

function summary(trace) {
  return [el("p", { class: "translation", lang: pageData.model.tgt_lang }, trace.target.text), facts(trace)];
}

/** What the model is, and how sure it was. */
function facts(trace) {
  const { model } = pageData;
  const { beam_size: size } = searchOf();
  const how = size === 1 ? say("greedy search") : say("beam size {size}", { size });
  const step = model.step === null ? "" : say(", step {step}", { step: model.step.toLocaleString("en") });
  return el(
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
    lesson && [" · ", say("weights rounded to 8 bits")],
    ` · ${how} · `,
    say("log probability {log_prob}, score {score}", {
      log_prob: number(trace.target.log_prob),
      score: number(trace.target.score),
    }),
  );
}

/** The sections about a sentence; `pair`: two sentences to be compared, or null. */
async function sectionsOf(trace, pair) {
  const { checkpoints, left_out: leftOut } = pageData;
  const search = searchOf();
  const isFirst = !lesson || trace.source.text === pageData.live.text; // which the checkpoints have translated
  const whatIf = [
    prefixPart(trace),
    whyNotPart(trace),
    pair && (await comparePart(pair)),
    isFirst && checkpoints.length > 0 && (await checkpointsPart(checkpoints, trace.bos)),
  ]
    .flat(2)
    .filter(Boolean);
  return [
    ["tokens", say("Tokens"), tokensSection(trace)],
    ["attention", say("Attention"), await attentionSection(trace)],
    ["flow", say("Flow"), await flowSection(trace)],
    ["decoding", say("Decoding"), await stepsSection(trace)],
    ["search", search.beam_size === 1 ? say("Search") : say("Beam search"), treeSection(trace, search)],
    ["matrices", say("Matrices"), matricesSection(trace, leftOut)],
    ["words", say("Words"), await vectorsSection(trace, pair)],
    ["what-if", say("What if"), whatIf],
  ].filter(([, , content]) => content.length > 0);
}

let nShown = 0; // traces that were to be shown: of two in a row the later one counts

/** Shows a trace; returns whether it is still the one to show. */
async function showTrace(trace, pair) {
  const turn = ++nShown;
  redraws.clear();
  const sections = await sectionsOf(trace, pair);
  if (turn !== nShown) return false;
  if (!lesson) showTitle(trace);
  document.querySelector("main").replaceChildren(
    ...(lesson ? [facts(trace)] : summary(trace)),
    el(
      "nav",
      { class: "contents", "aria-label": say("Contents") },
      sections.map(([id, title]) => el("a", { href: `#${id}`, onclick: scrollToSection }, title)),
    ),
    ...sections.map(([id, title, content]) =>
      el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), content),
    ),
  );
  followReading();
  return true;
}

function showTitle(trace) {
  const title = document.querySelector("h1");
  title.textContent = trace.source.text;
  title.classList.toggle("long", trace.source.text.length > 160);
}

/** Follows a link of the contents where the browser cannot: in a notebook's frame, and where the address has a state. */
function scrollToSection(event) {
  if (location.protocol !== "about:" && !lesson) return;
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
  if (view.section !== (current?.hash.slice(1) ?? null)) look({ section: current?.hash.slice(1) ?? null });
}
addEventListener("scroll", followReading, { passive: true });

/** Shows the sentence of a page about one, or the first of two. */
async function showSentences([first, ...others]) {
  const pair = others.length ? [first, ...others] : null;
  const names = [first, ...others].map((trace) => [trace, trace.source.text]);
  if (pair) document.querySelector("header").append(choice(say("Sentence"), names, first, (trace) => showTrace(trace, pair), "list"));
  await showTrace(first, pair);
  if (location.hash) document.querySelector(location.hash)?.scrollIntoView();
}

if (pageData.live) startLesson(pageData.live);
else showSentences(pageData.traces);

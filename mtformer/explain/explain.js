"use strict";
// The page: its head, its contents and its sections, for the sentence that is chosen.

function summary(trace) {
  const { model, search } = pageData;
  const how = search.beam_size === 1 ? "greedy search" : `beam size ${search.beam_size}`;
  return [
    el("p", { class: "translation", lang: model.tgt_lang }, trace.target.text),
    el(
      "p",
      { class: "muted small" },
      `${model.src_lang} → ${model.tgt_lang} · ${model.name}${model.step === null ? "" : `, step ${model.step.toLocaleString("en")}`} · `,
      `${model.n_encoder_layers} encoder and `,
      `${model.n_decoder_layers} decoder layers, ${model.n_heads} heads, d_model ${model.d_model}, ${model.norm}-norm · ${how} · `,
      `log probability ${number(trace.target.log_prob)}, score ${number(trace.target.score)}`,
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
    ["tokens", "Tokens", tokensSection(trace)],
    ["attention", "Attention", await attentionSection(trace)],
    ["decoding", "Decoding", await stepsSection(trace)],
    ["search", search.beam_size === 1 ? "Search" : "Beam search", treeSection(trace, search)],
    ["matrices", "Matrices", matricesSection(trace, leftOut)],
    ["what-if", "What if", whatIf],
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
      { class: "contents", "aria-label": "Contents" },
      sections.map(([id, title]) => el("a", { href: `#${id}` }, title)),
    ),
    ...sections.map(([id, title, content]) =>
      el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), content),
    ),
  );
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
  document.querySelector("header").append(choice("Sentence", names, names[0][0], showTrace, "list"));
}
showTrace(pageData.traces[0]).then(() => location.hash && document.querySelector(location.hash)?.scrollIntoView());

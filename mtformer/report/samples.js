// The slider through the validations: the sample translations at each.
"use strict";
(() => {
  const slider = document.querySelector("#samples input[type=range]");
  if (!slider) return;
  const output = document.querySelector("#samples output");
  const { steps, sentences } = pageData.samples;

  // Segments are [text, differs]; text never becomes markup.
  const marked = (segments, kind) => segments.map(([text, differs]) => (differs ? el("mark", { class: kind }, text) : text));
  const plain = (segments) => segments.map(([text]) => text).join("");

  const show = () => {
    const at = Number(slider.value);
    output.textContent = steps[at];
    slider.setAttribute("aria-valuetext", steps[at]);
    sentences.forEach((versions, i) => {
      const card = document.querySelector(`#sample-${i}`);
      const [reference, hypothesis] = versions[at];
      card.querySelector(".reference").replaceChildren(...marked(reference, "missing"));
      card.querySelector(".hypothesis").replaceChildren(...marked(hypothesis, "extra"));
      const changed = at > 0 && plain(hypothesis) !== plain(versions[at - 1][1]);
      card.querySelector(".change").textContent = at === 0 ? "first validation" : changed ? "changed since the previous validation" : "unchanged since the previous validation";
    });
  };
  slider.addEventListener("input", show);
  show();
})();

// The heat map of cross-attention: a row for each target token, a column for each source token.
"use strict";
(() => {
  const figure = document.querySelector("figure[data-attention]");
  if (!figure) return;
  const { sources, targets, layers } = pageData.attention;
  const [layerChoice, headChoice] = figure.querySelectorAll("select");
  const table = figure.querySelector("table");
  const readout = figure.querySelector(".readout");
  let at = null; // row and column of the cursor

  const weights = () => {
    const heads = layers[Number(layerChoice.value)];
    if (headChoice.value !== "mean") return heads[Number(headChoice.value)];
    return heads[0].map((row, t) => row.map((_, s) => heads.reduce((sum, head) => sum + head[t][s], 0) / heads.length));
  };

  const cells = () => [...table.tBodies[0].rows].map((row) => [...row.cells].slice(1));
  const paint = () => {
    const shown = weights();
    cells().forEach((row, t) => row.forEach((cell, s) => { cell.style.background = `rgba(var(--heat), ${shown[t][s]})`; }));
    read();
  };
  const read = () => {
    for (const cell of table.querySelectorAll(".at")) cell.classList.remove("at");
    if (!at) {
      readout.textContent = "Hover, or select the table and use the arrow keys, to read weights.";
      return;
    }
    const [t, s] = at;
    cells()[t][s].classList.add("at");
    readout.textContent = `${targets[t]} attends to ${sources[s]}: ${weights()[t][s].toFixed(3)}`;
  };
  const move = (t, s) => {
    at = [Math.min(targets.length - 1, Math.max(0, t)), Math.min(sources.length - 1, Math.max(0, s))];
    read();
  };

  table.addEventListener("pointermove", (event) => {
    const cell = event.target.closest("tbody td");
    if (cell) move(cell.parentNode.sectionRowIndex, cell.cellIndex - 1);
  });
  table.addEventListener("pointerleave", () => { at = null; read(); });
  table.addEventListener("keydown", (event) => {
    const [t, s] = at ?? [0, -1];
    const moves = { ArrowUp: [t - 1, s], ArrowDown: [t + 1, s], ArrowLeft: [t, s - 1], ArrowRight: [t, s + 1] };
    if (event.key === "Escape") { at = null; read(); }
    else if (event.key in moves) {
      move(...moves[event.key]);
      table.querySelector(".at").scrollIntoView({ block: "nearest", inline: "nearest" });
    } else return;
    event.preventDefault();
  });
  for (const choice of [layerChoice, headChoice]) choice.addEventListener("change", paint);
  paint();
})();

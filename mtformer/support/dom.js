"use strict";
// What all pages build with: elements, numbers as text, colours, choices.

const SVG = "http://www.w3.org/2000/svg";

// Strings become text nodes, never markup: a sentence may contain anything.
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) node.style.setProperty(name, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** A table with a row of cells as its head. */
function table(attributes, head, rows) {
  return el("table", attributes, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows));
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}

// Null stands for -∞, which JSON lacks.
function number(value, digits = 4) {
  if (value === null || value === -Infinity) return "−∞";
  return (Math.abs(value) < 0.5 * 10 ** -digits ? 0 : value).toFixed(digits).replace("-", "−");
}

function percent(probability) {
  if (probability < 0.001) return "< 0.1 %";
  return `${(100 * probability).toFixed(probability < 0.0995 || probability > 0.9949 ? 1 : 0)} %`;
}

/** A formula as the paper sets it: W^Q and d_head with raised and lowered letters, as nodes. */
function formulaNode(text) {
  const parts = text.split(/([_^](?:[A-Za-zα]+|[0-9.]+))/);
  return el(
    "span",
    { class: "formula" },
    parts.map((part) =>
      part.startsWith("_") ? el("sub", {}, part.slice(1)) : part.startsWith("^") ? el("sup", {}, part.slice(1)) : part,
    ),
  );
}

// ---- Colours follow light and dark: who draws on a canvas draws again when the scheme changes.

const darkScheme = matchMedia("(prefers-color-scheme: dark)");
const redraws = new Set();
darkScheme.addEventListener("change", () => redraws.forEach((redraw) => redraw()));

function cssColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// ---- Choices: native radio buttons, so that the keyboard and screen readers work as everywhere.

let nChoices = 0;

/** Returns a row of options of which one is chosen. `options` are [value, label] pairs, a label being text or a node. */
function choice(legend, options, chosen, onChange, kind = "segmented") {
  const name = `choice-${++nChoices}`;
  const buttons = options.map(([value, label]) =>
    el(
      "label",
      {},
      el("input", { type: "radio", name, checked: value === chosen, onchange: () => onChange(value) }),
      el("span", {}, label),
    ),
  );
  return el("fieldset", { class: `choice ${kind}` }, el("legend", {}, legend), el("div", {}, buttons));
}

/** Makes arrow keys move the focus among `items`, of which one at a time is reached with Tab. */
function rove(items, keys = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }) {
  items.forEach((item, index) => {
    item.tabIndex = index === 0 ? 0 : -1;
    item.addEventListener("focus", () =>
      items.forEach((other) => {
        other.tabIndex = other === item ? 0 : -1;
      }),
    );
    item.addEventListener("keydown", (event) => {
      const targets = { Home: 0, End: items.length - 1 };
      const target = event.key in keys ? clamp(index + keys[event.key], 0, items.length - 1) : targets[event.key];
      if (target === undefined) return;
      event.preventDefault();
      items[target].focus();
    });
  });
}

"use strict";
// A text and its translation, whose words light up together.

const UNSURE = 0.5; // a word that is less likely than this
const LESS_SURE = 0.8;
const HINT = "Point at a word, or tap it, to see where it comes from. Choose it to see what else it could be.";
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** The nodes of a text with an element for each of its ranges; what is between them is plain text. */
function nodesOf(text, ranges, elementOf) {
  const nodes = [];
  let end = 0;
  for (const range of ranges) {
    nodes.push(text.slice(end, range.start), elementOf(range, text.slice(range.start, range.end)));
    end = range.end;
  }
  return [...nodes, text.slice(end)].filter((node) => node !== "");
}

/**
 * Which words of a text, of which those in Chinese, Japanese and Thai are single characters, are one word: in the
 * dictionary of the browser, or because they have a token in common (`continues`, which a server leaves out).
 */
function wordGroups(text, ranges) {
  const dictionary = new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)[Symbol.iterator]();
  const groups = [];
  let end = 0; // of the word in the dictionary that has the last range
  for (const [i, { start, continues }] of ranges.entries()) {
    if (start < end || continues) groups.at(-1).push(i);
    else groups.push([i]);
    while (end <= start) {
      const { index, segment } = dictionary.next().value;
      end = index + segment.length;
    }
  }
  return groups;
}

/** Words of a text and of its translation, with those characters joined that are one word. */
function joinWords(source, { text, words, sources }) {
  const [srcGroups, groups] = [wordGroups(source, sources), wordGroups(text, words)];
  const groupOf = srcGroups.flatMap((group, place) => group.map(() => place));
  const span = (all, group) => ({ start: all[group[0]].start, end: all[group.at(-1)].end });
  const joined = groups.map((group) => {
    const members = group.map((i) => words[i]);
    const confidence = members.reduce((sum, member) => sum + member.confidence, 0) / members.length;
    const comesFrom = new Set(members.flatMap((member) => member.sources.map((i) => groupOf[i])));
    return { ...members[0], ...span(words, group), confidence, sources: [...comesFrom] };
  });
  return { text, words: joined, sources: srcGroups.map((group) => span(sources, group)) };
}

function sureness({ confidence }) {
  return confidence < UNSURE ? "unsure" : confidence < LESS_SURE ? "less-sure" : "";
}

/**
 * Shows the words of both texts and how they correspond. The words of the source lie under the box that one types in.
 *
 * `onChoose` is called with the word of the translation that is clicked, or chosen with Enter.
 */
class LinkedWords {
  constructor({ source, mirror, target, readout, onChoose }) {
    Object.assign(this, { source, mirror, target, readout, onChoose, words: [], sources: [], lit: [] });
    this.clear("");
    const wordAt = (event) => this.words.find(({ node }) => node === event.target);
    target.addEventListener("pointerover", (event) => this.light(wordAt(event)));
    target.addEventListener("click", (event) => this.choose(wordAt(event)));
    target.addEventListener("keydown", (event) => this.onKey(event));
    source.addEventListener("pointermove", (event) => this.lightSource(this.sourceUnder(event)));
    source.addEventListener("click", () => this.lightSource(this.sourceAtCaret()));
    source.addEventListener("keyup", ({ key }) => key in STEPS && this.lightSource(this.sourceAtCaret()));
    for (const box of [source, target]) {
      box.addEventListener("pointerleave", ({ pointerType }) => pointerType !== "touch" && this.light(null));
      box.addEventListener("blur", () => target.querySelector(".asked") || this.light(null));
    }
  }

  /** Shows a text whose translation is not known yet; that of the text before stays until it is. */
  clear(text) {
    this.mirror.replaceChildren(`${text}\n`); // so that an empty last line has its height
    this.target.querySelector(".current")?.classList.remove("current");
    this.sources = [];
    this.light(null);
  }

  /** Shows a text and its translation, of which `words` and `sources` have offsets into the whole. */
  show(text, translated) {
    const { text: translation, words, sources } = joinWords(text, translated);
    const add = (kind) => (range, shown) => {
      range.text = shown;
      range.node = el("span", { class: `${kind} ${kind === "word" ? sureness(range) : ""}` }, shown);
      return range.node;
    };
    this.mirror.replaceChildren(...nodesOf(text, sources, add("source-word")), "\n");
    this.target.replaceChildren(...nodesOf(translation, words, add("word")));
    Object.assign(this, { words, sources });
    this.light(null);
  }

  /** Lights a word of the translation and what it comes from. */
  light(word) {
    const sources = word ? word.sources.map((index) => this.sources[index]).filter(Boolean) : []; // none of a new text
    this.mark(word ? [word] : [], sources);
    if (!word) this.readout.replaceChildren(this.words.length ? HINT : "");
    else this.read(word.text, sources.length ? "←" : "", sources, `${Math.round(100 * word.confidence)} % sure`);
  }

  /** Lights a word of the source and what has become of it. */
  lightSource(source) {
    const index = this.sources.indexOf(source);
    if (index < 0) return this.light(null);
    const words = this.words.filter(({ sources }) => sources.includes(index));
    this.mark(words, [source]);
    this.read(source.text, words.length ? "→" : "", words, words.length ? "" : "no word of its own");
  }

  mark(words, sources) {
    for (const { node } of this.lit) node.classList.remove("lit");
    this.lit = [...words, ...sources];
    for (const { node } of this.lit) node.classList.add("lit");
  }

  read(text, arrow, others, more) {
    const texts = others.map((other, index) => [index > 0 && " ", el("bdi", {}, other.text)]);
    const parts = [el("bdi", { class: "strong" }, text), arrow && ` ${arrow} `, texts, more && ` · ${more}`];
    this.readout.replaceChildren(...parts.flat(2).filter(Boolean));
  }

  sourceUnder({ clientX, clientY }) {
    const nodes = document.elementsFromPoint(clientX, clientY);
    return this.sources.find(({ node }) => nodes.includes(node));
  }

  sourceAtCaret() {
    const at = this.source.selectionStart;
    return this.sources.find(({ start, end }) => start <= at && at <= end);
  }

  /** Walks through the words of the translation with the keys. */
  onKey(event) {
    const last = this.words.length - 1;
    const current = this.words.findIndex(({ node }) => node.classList.contains("current"));
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.choose(this.words[current], { byKey: true });
      return;
    }
    const isMirrored = getComputedStyle(this.target).direction === "rtl" && ["ArrowLeft", "ArrowRight"].includes(event.key);
    const next = { Home: 0, End: last }[event.key] ?? current + (isMirrored ? -STEPS[event.key] : STEPS[event.key]);
    if (Number.isNaN(next) || event.ctrlKey || event.metaKey || last < 0) return;
    event.preventDefault();
    this.visit(clamp(next, 0, last));
  }

  /** Goes to a word of the translation, from which the keys go on. */
  visit(index) {
    const word = this.words[index];
    this.target.querySelector(".current")?.classList.remove("current");
    this.light(word);
    word?.node.classList.add("current");
    word?.node.scrollIntoView({ block: "nearest" });
  }

  choose(word, how = {}) {
    if (!word || !getSelection().isCollapsed) return;
    this.light(word);
    this.onChoose(word, how);
  }
}

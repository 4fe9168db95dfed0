"use strict";
// The translator's page: what is typed is translated at once, by the model that the page contains.

const PAUSE = 150; // milliseconds without a key until a text is translated
const SPEAK_AFTER = 1000; // milliseconds until a translation is read out by screen readers
const MOST_SHOWN = 10; // directions of a model
const NOTHING = { text: "", segments: [] }; // a translation
const CHECK = "check: "; // starts notes on what may be wrong
const RTL_SCRIPTS = ["Arab", "Hebr", "Syrc", "Thaa", "Nkoo", "Adlm", "Rohg"];

function byId(id) {
  return document.getElementById(id);
}

/** The code of a language as browsers write it: zh-Hant for zh_Hant. */
function languageTag(code) {
  return code.replaceAll("_", "-");
}

function languageName(code) {
  try {
    return new Intl.DisplayNames("en", { type: "language" }).of(languageTag(code));
  } catch {
    return code;
  }
}

/** The direction of a language's script; that of its first letters where the language does not tell. */
function directionOf(code) {
  try {
    return RTL_SCRIPTS.includes(new Intl.Locale(languageTag(code)).maximize().script) ? "rtl" : "auto";
  } catch {
    return "auto";
  }
}

/** The choice of a direction among those of the model, each [source language, target language]. */
class LanguageChoice {
  constructor(place, directions, onChange) {
    Object.assign(this, { place, directions, onChange });
    this.set(directions[0]);
  }

  set([src, tgt]) {
    Object.assign(this, { src, tgt });
    const { directions } = this;
    const sources = [...new Set(directions.map(([from]) => from))];
    const targets = directions.filter(([from]) => from === src).map(([, to]) => to);
    const setSource = (from) => this.change(directions.find((pair) => pair[0] === from && pair[1] === tgt) ?? directions.find((pair) => pair[0] === from));
    this.place.replaceChildren(
      this.language("From", sources, src, setSource),
      this.swap(),
      this.language("To", targets, tgt, (to) => this.change([src, to])),
    );
  }

  change(pair, { isSwap = false } = {}) {
    const focused = [...this.place.children].indexOf(document.activeElement);
    this.set(pair);
    if (focused >= 0) this.place.children[focused].focus();
    this.onChange(isSwap);
  }

  language(label, codes, chosen, onChoose) {
    if (codes.length === 1) return el("span", { class: "language" }, languageName(chosen));
    const options = codes.map((code) => el("option", { value: code, selected: code === chosen }, languageName(code)));
    return el("select", { class: "language", "aria-label": label, onchange: (event) => onChoose(event.target.value) }, options);
  }

  swap() {
    const reverse = this.directions.find(([from, to]) => from === this.tgt && to === this.src);
    if (!reverse) return el("span", { "aria-label": "to" }, "→");
    const onclick = () => this.change(reverse, { isSwap: true });
    return el("button", { type: "button", "aria-label": "Swap languages", title: "Swap languages", onclick }, "⇄");
  }
}

/** The page: the two texts, and all that happens between them. */
class TranslatorPage {
  constructor({ engine: header, about }) {
    const [source, target] = [byId("source"), byId("target")];
    Object.assign(this, { source, target, chosen: new Map(), given: [] }); // nothing is shown yet
    const boxes = { source, mirror: byId("source-words"), target, readout: byId("readout") };
    this.words = new LinkedWords({ ...boxes, onChoose: (word, how) => this.offerAlternatives(word, how) });
    this.menu = new AlternativesMenu(byId("alternatives"));
    const directions = header.texts.directions.map(({ src_lang: src, tgt_lang: tgt }) => [src, tgt]);
    this.choice = new LanguageChoice(byId("languages"), directions, (isSwap) => this.onDirection(isSwap));
    this.files = new FileList({
      list: byId("files"),
      input: byId("files-input"),
      button: byId("choose-files"),
      direction: () => this.direction,
      translate: (line, { src, tgt }) => this.translateLine(line, src, tgt),
      translateDocument: (file, { src, tgt }) => this.engine.translateDocument(file, { from: src, to: tgt }),
      documents: header.documents ?? [],
    });
    const few = directions.slice(0, MOST_SHOWN).map((pair) => pair.map(languageName).join(" → "));
    const translates = few.join(", ") + (directions.length > few.length ? `, … ${directions.length} directions` : "");
    byId("about").append(...[["Translates", translates], ...about].flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
    source.addEventListener("input", () => this.onInput());
    byId("glossary").addEventListener("input", () => this.onGlossary());
    byId("clear").addEventListener("click", () => this.clear());
    byId("copy").addEventListener("click", () => this.copy());
    this.showDirection();
    this.open(header);
    this.onGlossary(); // browsers keep what was typed when a page is loaded again
  }

  get direction() {
    return { src: this.choice.src, tgt: this.choice.tgt };
  }

  open(header) {
    const holder = byId("weights"); // none where a server computes
    const weights = holder && readWeights(holder.textContent).finally(() => holder.remove());
    this.engine = startEngine(header, weights);
    this.engine.ready.then(
      () => this.say(""),
      (error) => this.say(`The model cannot be opened: ${error.message}`),
    );
    if (new URLSearchParams(location.search).has("selftest")) this.test();
  }

  say(text) {
    byId("state").textContent = text;
  }

  showDirection() {
    const { src, tgt } = this.direction;
    document.title = `${languageName(src)} → ${languageName(tgt)}`;
    for (const [code, nodes] of [[src, [this.source, this.words.mirror]], [tgt, [this.target]]]) {
      for (const node of nodes) Object.assign(node, { lang: languageTag(code), dir: directionOf(code) });
    }
  }

  onDirection(isSwap) {
    this.showDirection();
    const isShown = this.given[0] === this.source.value; // else the translation is that of an earlier text
    if (isSwap && isShown && this.translation.text) this.source.value = this.translation.text;
    this.onInput();
  }

  clear() {
    this.source.focus(); // which select() does not do everywhere
    this.source.select();
    document.execCommand("delete"); // which can be undone, unlike a new value
  }

  onInput() {
    clearTimeout(this.timer);
    this.running?.cancel();
    this.running = null;
    const text = this.source.value;
    this.words.clear(text);
    byId("clear").hidden = !text;
    if (!text.trim()) return this.show(text, NOTHING);
    this.target.setAttribute("aria-busy", "true");
    this.timer = setTimeout(() => this.translate(text), PAUSE);
  }

  async translate(text) {
    const { src, tgt } = this.direction;
    const onProgress = ({ done, of }) => this.say(of > 1 ? `${done} of ${of} sentences` : "");
    const running = this.engine.translate(text, { from: src, to: tgt, onProgress });
    this.running = running;
    try {
      const translation = await running;
      const found = await this.termed(translation, src, tgt);
      if (this.running === running) this.show(text, translation, found);
    } catch (error) {
      if (this.running !== running) return;
      this.show(text, NOTHING);
      this.say(`This could not be translated: ${error.message}`);
    }
  }

  onGlossary() {
    const { badLines } = parseGlossary(byId("glossary").value);
    const which = (badLines.length > 1 ? "Lines " : "Line ") + badLines.join(", ");
    byId("bad-terms").textContent = badLines.length ? `${which}: there is no term with a translation` : "";
    this.onInput();
  }

  /** The segments of a translation that change by the glossary, by their sources, and notes as namedNotes() takes them. */
  async termed({ segments }, src, tgt) {
    const { terms } = parseGlossary(byId("glossary").value);
    const begin = (text, start) => this.engine.begin(text, start, { from: src, to: tgt });
    const found = { segments: new Map(), notes: [] };
    for (const segment of terms.length ? segments : []) {
      const { segment: termed, missed } = await withTerms(segment, terms, begin);
      if (termed) found.segments.set(segment.src, termed);
      found.notes.push({ start: segment.start, notes: missed.map((term) => MISSED + term) });
    }
    return found;
  }

  /** Shows a translation, with the alternatives that were chosen for its segments, and the terms of the glossary. */
  show(text, translation, termed = { segments: new Map(), notes: [] }) {
    this.given = [text, translation, termed];
    const chosenFor = ({ src }) => this.chosen.get(this.keyOf(src)) ?? termed.segments.get(src);
    this.translation = withChoices(translation, chosenFor);
    const { segments } = this.translation;
    const words = segments.flatMap((segment) => segment.words);
    this.words.show(text, { text: this.translation.text, words, sources: segments.flatMap((segment) => segment.sources) });
    this.target.removeAttribute("aria-busy");
    byId("copy").disabled = !this.translation.text;
    byId("legend").hidden = !words.some(sureness);
    const notes = namedNotes(text, [...translation.segments, ...termed.notes]);
    byId("notes").replaceChildren(...notes.map((note) => el("li", {}, note)));
    byId("notes").hidden = !notes.length;
    this.say("");
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => this.speak(), SPEAK_AFTER);
  }

  speak() {
    byId("spoken").replaceChildren(el("span", { lang: this.target.lang }, this.translation.text));
  }

  keyOf(src) {
    return JSON.stringify([this.direction, src]);
  }

  offerAlternatives(word, how) {
    const { segment } = word;
    const { src, tgt } = this.direction;
    const key = this.keyOf(segment.src);
    const place = this.words.words.indexOf(word);
    const change = (alternative) => {
      if (alternative) this.chosen.set(key, alternative);
      else this.chosen.delete(key);
      this.show(...this.given);
      this.target.focus();
      this.words.visit(place);
    };
    const prefix = this.translation.text.slice(segment.tgtStart, word.start);
    this.menu.open(word, {
      ...how,
      lang: this.target.lang,
      find: async () => {
        const found = await this.engine.alternatives(segment.src, prefix, { from: src, to: tgt });
        const seen = new Set([word.text]);
        const named = found.map((one) => ({ ...one, word: wordAfter(prefix, one.segment) }));
        return named.filter((one) => !seen.has(one.word) && seen.add(one.word));
      },
      onPick: (alternative) => change(alternative.segment),
      onReset: this.chosen.has(key) ? () => change(null) : null,
      why: this.engine.why && (() => this.engine.why(segment.src, prefix, word.text, { from: src, to: tgt })),
    });
  }

  translateLine(line, src, tgt) {
    const running = this.engine.translate(line, { from: src, to: tgt });
    const withGlossary = async (translation) => {
      const { segments } = await this.termed(translation, src, tgt);
      return withChoices(translation, (segment) => segments.get(segment.src)).text;
    };
    return Object.assign(running.then(withGlossary), { cancel: () => running.cancel() });
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(this.translation.text);
    } catch {
      getSelection().selectAllChildren(this.target);
      document.execCommand("copy"); // where pages from files may not use the clipboard
      getSelection().removeAllRanges();
    }
    this.say("Copied");
  }

  /** Compares what the model computes here with what it computed where the page was made: ?selftest. */
  async test() {
    const place = byId("selftest");
    place.hidden = false;
    place.textContent = "Testing …";
    place.textContent = await this.engine.selftest().then(
      ({ passed, of, worst }) => `Self-test: ${passed} of ${of} passed; the largest difference is ${worst.toExponential(1)}.`,
      (error) => `Self-test: ${error.message}`,
    );
  }
}

/** The notes on parts of a text, each { start, notes }, once each; with their lines if the text has several. */
function namedNotes(text, parts) {
  const lineOf = ({ start }) => text.slice(0, start).split("\n").length;
  const noted = parts.flatMap((part) => part.notes.map((note) => ({ note, line: lineOf(part) })));
  noted.sort((a, b) => a.line - b.line);
  return Array.from(Map.groupBy(noted, ({ note }) => note), ([note, all]) => {
    if (!text.trim().includes("\n")) return note;
    const lines = [...new Set(all.map(({ line }) => line))];
    const which = `${lines.length > 1 ? "lines" : "line"} ${lines.join(", ")}`;
    return note.startsWith(CHECK) ? `check ${which}: ${note.slice(CHECK.length)}` : `${which}: ${note}`;
  });
}

/** The word of a segment that follows the start of its translation. */
function wordAfter(start, { src, tgt, words, sources }) {
  const word = joinWords(src, { text: tgt, words, sources }).words.find((each) => each.start >= start.trimEnd().length);
  return word ? tgt.slice(word.start, word.end) : "";
}

/**
 * A translation with other segments in the place of some: `chosenFor` takes a segment and returns another one, or
 * undefined. The offsets of words and the indices of sources become those of the whole text.
 */
function withChoices({ text, segments }, chosenFor) {
  let [whole, end, nSources] = ["", 0, 0];
  const placed = segments.map((segment) => {
    whole += text.slice(end, segment.tgtStart);
    end = segment.tgtEnd;
    const chosen = chosenFor(segment);
    const { tgt, words, start } = chosen ?? segment;
    const move = whole.length - (chosen ? 0 : segment.tgtStart);
    const result = { ...segment, tgt, tgtStart: whole.length, tgtEnd: whole.length + tgt.length };
    result.words = words.map((word) => ({
      ...word,
      segment: result,
      start: word.start + move,
      end: word.end + move,
      sources: word.sources.map((index) => index + nSources),
    }));
    result.sources = segment.sources.map((source) => ({ ...source }));
    whole += tgt;
    nSources += segment.sources.length;
    return result;
  });
  return { text: whole + text.slice(end), segments: placed };
}

const isRecent = [globalThis.DecompressionStream, Intl.Segmenter, Promise.withResolvers, document.body.showPopover].every(Boolean);
if (!isRecent) byId("state").textContent = "This page needs a browser of 2024 or later.";
const translatorPage = isRecent && new TranslatorPage(pageData);
if (pageData.isApp && location.protocol.startsWith("http")) {
  navigator.serviceWorker?.register("service-worker.js").catch(() => {}); // the page works without
}

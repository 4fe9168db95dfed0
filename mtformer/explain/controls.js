"use strict";
// What a reader changes in a lesson: the sentences, the search, and the parts of the model.

const MOST_BEAMS = 10;
const MOST_PADDING = 8;
const TEMPERATURES = [0.25, 0.35, 0.5, 0.7, 1, 1.4, 2, 2.8, 4];

// The switches that are either on or off, with what they do.
const SWITCHES = {
  scale: () => [say("Divide scores by √d"), say("Without it, scores are large and softmax looks at one token only.")],
  positions: () => [say("Positions"), say("Without them, the encoder sees a bag of words.")],
  causal: () => [say("Causal mask"), say("Without it, earlier tokens look at later ones too, which never happened in training.")],
  padding: () => [say("Padding mask"), say("Without it, every token looks at the padding too, if there is any.")],
};

/** The column with all controls of a lesson. `sync()` shows the state of the lesson in them. */
class Controls {
  constructor(lesson) {
    Object.assign(this, { lesson, syncs: [] });
    this.translation = el("output", { class: "translation", lang: pageData.model.tgt_lang, "aria-live": "polite" });
    this.baseline = el("p", { class: "small muted" });
    this.status = el("p", { class: "status", role: "status" });
    this.forced = el("div", { class: "forced" });
    this.node = el(
      "aside",
      { class: "controls-column", "aria-label": say("Controls") },
      this.sentence("text", say("Sentence")),
      this.translation,
      this.baseline,
      this.status,
      this.forced,
      this.sentence("other", say("Compare with a second sentence")),
      this.buttons(),
      el("details", { class: "group", open: matchMedia("(min-width: 64rem)").matches }, el("summary", {}, say("Search and switches")), this.search(), this.switches(), this.layers()),
    );
    this.sync();
  }

  get state() {
    return this.lesson.state;
  }

  sync() {
    this.syncs.forEach((sync) => sync());
  }

  sentence(key, label) {
    const box = el("textarea", {
      rows: 2,
      spellcheck: "false",
      lang: pageData.model.src_lang,
      dir: "auto",
      oninput: () => this.lesson.type({ [key]: box.value.replaceAll("\n", " ") }),
      onkeydown: (event) => event.key === "Enter" && event.preventDefault(), // a lesson reads one sentence
    });
    this.syncs.push(() => {
      if (box.value.replaceAll("\n", " ") !== this.state[key]) box.value = this.state[key];
    });
    return el("label", { class: "sentence" }, el("span", { class: "small muted" }, label), box);
  }

  range(label, { values, get, set, show = String }) {
    const shown = el("output", { class: "number" });
    const input = el("input", { type: "range", min: 0, max: values.length - 1, oninput: () => set(values[input.value]) });
    this.syncs.push(() => {
      const place = values.indexOf(get());
      if (Number(input.value) !== place) input.value = place;
      shown.textContent = show(get());
      input.setAttribute("aria-valuetext", show(get()));
    });
    return el("label", { class: "range" }, el("span", {}, label), input, shown);
  }

  search() {
    const { lesson } = this;
    const isGreedy = (size) => (size === 1 ? say("1: greedy") : String(size));
    return el(
      "div",
      {},
      this.range(say("Beam size"), {
        values: Array.from({ length: Math.max(MOST_BEAMS, lesson.initial.search.beam_size) }, (_, i) => i + 1),
        get: () => this.state.search.beam_size,
        set: (size) => lesson.change({ search: { ...this.state.search, beam_size: size } }),
        show: isGreedy,
      }),
      this.range(say("Temperature"), {
        values: TEMPERATURES,
        get: () => this.state.switches.temperature,
        set: (temperature) => lesson.turn({ temperature }),
      }),
      this.range(say("Padding tokens"), {
        values: Array.from({ length: MOST_PADDING + 1 }, (_, i) => i),
        get: () => this.state.nPadding,
        set: (nPadding) => lesson.change({ nPadding }),
      }),
    );
  }

  switches() {
    const names = Object.keys(SWITCHES).filter((name) => name !== "positions" || pageData.model.positions !== "none");
    return el(
      "fieldset",
      {},
      el("legend", {}, say("Switches")),
      names.map((name) => {
        const [label, hint] = SWITCHES[name]();
        const effect = el("p", { class: "small muted hint" }, hint);
        this.syncs.push(() => {
          effect.hidden = this.state.switches[name];
        });
        return [this.check(label, () => this.state.switches[name], (isOn) => this.lesson.turn({ [name]: isOn })), effect];
      }),
    );
  }

  /** Layers, each with its heads, as check boxes. */
  layers() {
    const { n_encoder_layers: nEncoder, n_decoder_layers: nDecoder } = pageData.model;
    const rows = (stack, n, name, kinds) =>
      Array.from({ length: n }, (_, i) => [
        this.part("layers", `${stack}.${i + 1}`, name(i + 1)),
        kinds.map(([kind, hint]) => this.headsOf(kind, i + 1, hint)),
      ]);
    return el(
      "fieldset",
      { class: "parts" },
      el("legend", {}, say("Layers and heads")),
      rows("encoder", nEncoder, (layer) => say("Encoder layer {layer}", { layer }), [["encoder", say("self-attention")]]),
      rows("decoder", nDecoder, (layer) => say("Decoder layer {layer}", { layer }), [
        ["decoder", say("self-attention")],
        ["cross", say("cross-attention")],
      ]),
    );
  }

  headsOf(kind, layer, name) {
    const heads = Array.from({ length: pageData.model.n_heads }, (_, i) => {
      const label = `${ATTENTION[kind][0]}: ${headTitle(layer, i)}`;
      return this.part("heads", `${kind}.${layer}.${i + 1}`, String(i + 1), { title: label, class: "head", "aria-label": label });
    });
    return el("div", { class: "heads-row" }, el("span", { class: "small muted" }, name), heads);
  }

  /** A box for a layer or a head: checked where it is not in the list of those switched off. */
  part(list, name, label, attributes = {}) {
    const isOn = () => !this.state.switches[list].includes(name);
    const set = (on) => {
      const others = this.state.switches[list].filter((each) => each !== name);
      this.lesson.turn({ [list]: on ? others : [...others, name] });
    };
    return this.check(label, isOn, set, attributes);
  }

  check(label, get, set, { class: kind = "", "aria-label": name = null, title = null } = {}) {
    const input = el("input", { type: "checkbox", "aria-label": name, onchange: () => set(input.checked) });
    this.syncs.push(() => {
      input.checked = get();
    });
    return el("label", { class: `check ${kind}`, title }, input, el("span", {}, label));
  }

  buttons() {
    const copied = el("span", { class: "small muted", role: "status" });
    const copy = async () => {
      this.lesson.writeLink();
      try {
        await navigator.clipboard.writeText(location.href);
        copied.textContent = say("Copied.");
      } catch {
        copied.textContent = say("Copy the address of this page.");
      }
    };
    return el(
      "div",
      { class: "buttons" },
      el("button", { type: "button", onclick: copy }, say("Copy link")),
      el("button", { type: "button", onclick: () => this.lesson.reset() }, say("Reset")),
      copied,
    );
  }

  /** Shows the translation, and what it would be without any change. */
  showTranslation(text, whole) {
    this.translation.textContent = text;
    this.baseline.replaceChildren(...(whole === null ? [] : [say("Without your changes: {text}", { text: el("q", { lang: "" }, whole) })].flat()));
  }

  /** Shows the forced tokens of a trace; none without one. */
  showForced(trace) {
    const tokens = (trace?.steps ?? []).map((step) => step.candidates[step.chosen]).filter(({ forced }) => forced);
    const release = el("button", { type: "button", class: "small", onclick: () => this.lesson.change({ prefix: [] }) }, say("Release"));
    const shown = [el("span", { class: "small muted" }, say("Forced:")), tokens.map(({ token }) => el("span", { class: "chip" }, tokenNode(token))), release];
    this.forced.replaceChildren(...(tokens.length ? shown.flat() : []));
  }
}

"use strict";
// A lesson: what the reader types and switches is computed by the model in the page, and every view follows.

const PAUSE = 120; // milliseconds without a key until a sentence is computed
const LINK_PAUSE = 300; // and until the address follows: browsers limit how often it may change

/** The state of a lesson as it opens, but for its link. */
function initialState({ text, other, prefix }) {
  const { beam_size, length_penalty } = pageData.search;
  return { text, other, prefix, nPadding: 0, search: { beam_size, length_penalty }, switches: { ...ALL_ON } };
}

class Lesson {
  constructor(live) {
    this.live = live;
    this.initial = initialState(live);
    this.state = this.initial;
    this.wholes = new Map(); // translations with the whole model, by sentence
    Object.assign(this, { nComputed: 0, running: [] });
    lesson = this;
    this.controls = new Controls(this);
    document.body.classList.add("lesson");
    document.querySelector("h1").textContent = say("How this model translates");
    document.querySelector("header").after(this.controls.node);
    const holder = document.getElementById("weights");
    const weights = readWeights(holder.textContent).finally(() => holder.remove());
    this.engine = startEngine(live.engine, weights);
    lookers.add(() => this.linkSoon());
    addEventListener("hashchange", () => this.open());
    this.tell(say("The model is being unpacked …"), { isProblem: false });
  }

  /** Follows a link to another state of this page. */
  open() {
    this.state = { ...this.initial, ...readLink(location.hash) };
    const { section } = view;
    this.controls.sync();
    this.compute().then(() => section && document.getElementById(section)?.scrollIntoView({ behavior: "instant" }));
  }

  // ---- Changes

  /** Another sentence, which comes key by key. */
  type(changes) {
    Object.assign(this.state, changes, "text" in changes ? { prefix: [] } : {});
    if ("text" in changes) look({ pinned: null });
    this.setBusy(true);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.compute(), PAUSE);
  }

  change(changes) {
    this.state = { ...this.state, ...changes };
    this.controls.sync();
    return this.compute();
  }

  /** Turns switches of the model. */
  turn(switches) {
    return this.change({ switches: { ...this.state.switches, ...switches } });
  }

  /** Puts everything back but the sentences. */
  reset() {
    const { text, other } = this.state;
    return this.change({ ...this.initial, text, other, prefix: [] });
  }

  isHeadOff(kind, layer, head) {
    return this.state.switches.heads.includes(`${kind}.${layer}.${head + 1}`);
  }

  /** A button that switches a head off, or on again; null for the mean of the heads. */
  headButton(kind, layer, head) {
    if (head === "mean") return null;
    const name = `${kind}.${layer}.${head + 1}`;
    const { heads } = this.state.switches;
    const isOff = heads.includes(name);
    const others = heads.filter((each) => each !== name);
    const title = headTitle(layer, head);
    const press = async () => {
      await this.turn({ heads: isOff ? others : [...others, name] });
      document.querySelector(`#attention [data-head="${name}"]`)?.focus({ preventScroll: true });
    };
    const text = isOff ? say("Switch on: {title}", { title }) : say("Switch off: {title}", { title });
    return el("button", { type: "button", class: "small switch", "data-head": name, onclick: press }, text);
  }

  /** A button that forces a candidate at a step, or releases the forced ones from there on. */
  forceButton(step, { token, forced }, isChosen) {
    if (isChosen && !forced) return null;
    const values = { token: tokenText(token), step: step.number };
    const [label, name] = forced ? [say("release"), say("Release “{token}” at step {step}", values)] : [say("force"), say("Force “{token}” at step {step}", values)];
    const before = this.trace.target.tokens.slice(0, step.number - 1).map(({ id }) => id);
    const force = async () => {
      await this.change({ prefix: forced ? before : [...before, token.id] });
      document.querySelector("#decoding .stepper")?.focus({ preventScroll: true });
    };
    return el("button", { type: "button", class: "force small", "aria-label": name, onclick: force }, label);
  }

  // ---- Computing

  /** Whether the model is whole, and searches as the command did. */
  get isWhole() {
    const { switches, nPadding, search } = this.state;
    const isOn = Object.entries(ALL_ON).every(([name, value]) => String(switches[name]) === String(value));
    return isOn && nPadding === 0 && search.beam_size === this.initial.search.beam_size;
  }

  /** Whether the translation begins as the command wants it. */
  get isPrefixed() {
    return String(this.state.prefix) === String(this.initial.prefix);
  }

  /** Whether what the whole model says is worth showing beside the translation. */
  get isAltered() {
    return !this.isWhole || this.state.prefix.length > 0;
  }

  explain(request) {
    const task = this.engine.whenReady({ task: "explain", lesson: this.live.lesson, request });
    this.running.push(task);
    return task;
  }

  async compute() {
    const number = ++this.nComputed;
    this.linkSoon();
    for (const task of this.running.splice(0)) task.cancel();
    const { text, other, prefix, ...how } = this.state;
    const request = { ...how, text, prefix };
    clearTimeout(this.timer);
    this.setBusy(true);
    try {
      const whole = this.isAltered && !this.wholes.has(text) && this.explain({ text, search: this.initial.search });
      const second = other.trim() && this.explain({ ...request, text: other, prefix: this.isPrefixed ? prefix : [] });
      const traces = await Promise.all([this.explain(request), second, whole]);
      if (number === this.nComputed) await this.show(...traces);
    } catch (error) {
      if (number !== this.nComputed) return; // something newer is computed
      this.refuse(say("This could not be computed: {error}", { error: say(error.message) }));
    }
  }

  async show(trace, second, whole) {
    if (trace.problem) return this.refuse(this.problemOf(trace));
    this.tell(second?.problem ? this.problemOf(second, { isSecond: true }) : "");
    const { text } = trace.source;
    if (!this.isAltered) this.wholes.set(text, trace.target.text);
    else if (whole && !whole.problem) this.wholes.set(text, whole.target.text);
    this.trace = this.answered(trace);
    this.controls.showTranslation(trace.target.text, this.isAltered ? (this.wholes.get(text) ?? null) : null);
    this.controls.showForced(trace);
    document.title = `${text} · mtformer explain`;
    const isShown = await showTrace(trace, second && !second.problem ? [trace, second] : null);
    if (isShown) this.setBusy(false);
  }

  setBusy(is) {
    document.querySelector("main").setAttribute("aria-busy", is);
  }

  /** The trace with the command's answers to --why-not, while it is of the sentence that they are about. */
  answered(trace) {
    if (trace.source.text === this.live.text && this.isWhole && this.isPrefixed) trace.why_not = this.live.why_not;
    return trace;
  }

  /** Says why there is no translation, instead of that of another sentence. */
  refuse(reason) {
    this.tell(reason);
    this.controls.showTranslation("", null);
    this.controls.showForced(null);
    this.setBusy(false);
  }

  problemOf({ problem, n, most }, { isSecond = false } = {}) {
    if (problem === "empty") return say("Type a sentence.");
    if (isSecond) return say("The second sentence has {n} tokens; a lesson takes up to {most}.", { n, most });
    return say("This sentence has {n} tokens; a lesson takes up to {most}.", { n, most });
  }

  tell(text, { isProblem = true } = {}) {
    const { status } = this.controls;
    status.textContent = text;
    status.classList.toggle("muted", !isProblem);
  }

  // ---- The link

  linkSoon() {
    clearTimeout(this.linkTimer);
    this.linkTimer = setTimeout(() => this.writeLink(), LINK_PAUSE);
  }

  writeLink() {
    clearTimeout(this.linkTimer);
    history.replaceState(null, "", `#${linkOf(this.state, this.initial)}`);
  }
}

/** Opens a lesson: with the state of the link, if there is one. */
function startLesson(live) {
  new Lesson(live).open();
}

"use strict";
// The way of a sentence through the whole model: all layers of the encoder, then the decoder step by step.

const CELL = { width: 68, height: 60 }; // from token to token, and from layer to layer
const LABEL = 24; // the height of a row of tokens
const GAP = 34; // between encoder and decoder

async function flowSection(trace) {
  const weights = new Map(); // the mean of the heads by kind and layer; layers that are switched off have none
  for (const one of trace.attention) weights.set(`${one.kind}.${one.layer}`, headOf(await unpack(one.weights), "mean"));
  const frames = flowFrames(trace);
  const scene = new FlowScene(trace, weights);
  return [
    el(
      "p",
      {},
      say(
        "All tokens of the source go up through the encoder side by side. The decoder goes up once for each token of the translation, and each time looks across at what the encoder has made of the source. Each circle is a vector; lines are attention.",
      ),
    ),
    player({
      n: frames.length,
      at: view.frame,
      name: say("frame"),
      label: say("The flow: left and right arrow keys move between frames"),
      title: (frame) => say("Frame {frame} of {frames}", { frame: frame + 1, frames: frames.length }),
      show: (frame) => scene.show(frames, frame),
      onMove: (frame) => look({ frame }),
    }),
  ];
}

/** What happens one after the other: { kind, layer, step }. */
function flowFrames(trace) {
  const { n_encoder_layers: nEncoder, n_decoder_layers: nDecoder } = pageData.model;
  const layers = (n, kind, step) => Array.from({ length: n }, (_, i) => ({ kind, layer: i + 1, step }));
  const steps = trace.steps.flatMap((_, step) => [
    { kind: "reads", layer: 0, step },
    ...layers(nDecoder, "decoder", step),
    { kind: "chooses", layer: nDecoder, step },
  ]);
  return [{ kind: "embeds", layer: 0 }, ...layers(nEncoder, "encoder"), ...steps];
}

/** The picture: a column for each token, a row for each layer from the bottom up. */
class FlowScene {
  constructor(trace, weights) {
    const { n_encoder_layers: nEncoder, n_decoder_layers: nDecoder } = pageData.model;
    Object.assign(this, { trace, weights, nEncoder, nDecoder, input: decoderInput(trace), circles: new Map() });
    this.nSource = trace.source.tokens.length;
    this.top = 2 * LABEL + 16;
    this.bottom = this.top + Math.max(nEncoder, nDecoder) * CELL.height;
    this.wires = svg("g", { class: "flow-wires" });
    this.caption = el("p", { class: "flow-caption", "aria-live": "polite" });
    this.chosen = trace.steps.map((step, t) => this.label("target", t, this.top - 18, step.candidates[step.chosen].token));
    this.box = el("div", { class: "scroll flow" }, this.picture());
  }

  /** Where the vector of a token at a level stands; level 0 is the embedding. */
  at(side, column, level) {
    const shift = side === "source" ? 0 : this.nSource * CELL.width + GAP;
    return { x: shift + (column + 0.5) * CELL.width, y: this.bottom - level * CELL.height };
  }

  label(side, column, y, token) {
    const { x } = this.at(side, column, 0);
    const letters = [...tokenText(token)];
    const text = letters.length > 7 ? `${letters.slice(0, 6).join("")}…` : letters.join("");
    return svg("text", { x, y, "text-anchor": "middle", lang: "" }, text);
  }

  picture() {
    const nodes = [];
    const add = (side, tokens, nLevels) =>
      tokens.forEach((token, column) => {
        for (let level = 0; level <= nLevels; level++) {
          const { x, y } = this.at(side, column, level);
          this.circles.set(`${side}.${column}.${level}`, svg("circle", { cx: x, cy: y, r: 8 }));
        }
        nodes.push(this.label(side, column, this.bottom + 30, token));
      });
    add("source", this.trace.source.tokens, this.nEncoder);
    add("target", this.input, this.nDecoder);
    const width = this.at("target", this.input.length, 0).x - CELL.width / 2;
    const height = this.bottom + LABEL + 16;
    const heading = (side, n, text) => svg("text", { x: (this.at(side, 0, 0).x + this.at(side, n - 1, 0).x) / 2, y: 14, class: "flow-heading", "text-anchor": "middle" }, text);
    return svg(
      "svg",
      { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
      heading("source", this.nSource, say("Encoder")),
      heading("target", this.input.length, say("Decoder")),
      this.wires,
      [...this.circles.values()],
      nodes,
      this.chosen,
    );
  }

  /** Draws a frame; returns the nodes of the picture the first time. */
  show(frames, now) {
    const frame = frames[now];
    const done = new Set(frames.slice(0, now).flatMap((each) => this.circlesOf(each)));
    const active = new Set(this.circlesOf(frame));
    for (const [place, circle] of this.circles) {
      circle.classList.toggle("done", done.has(place));
      circle.classList.toggle("active", active.has(place));
    }
    this.chosen.forEach((label, t) => {
      const chooses = frames.findIndex(({ kind, step }) => kind === "chooses" && step === t);
      label.classList.toggle("hidden", chooses > now);
      label.classList.toggle("new", chooses === now);
    });
    this.wires.replaceChildren(...this.wiresOf(frame));
    this.caption.replaceChildren(...[this.inWords(frame)].flat());
    const { x } = this.at(frame.step === undefined ? "source" : "target", frame.step ?? 0, 0);
    requestAnimationFrame(() => { // at first the box has no width yet
      this.box.scrollLeft = x - this.box.clientWidth / 2;
    });
    if (this.isShown) return null;
    this.isShown = true;
    return [this.box, this.caption];
  }

  circlesOf({ layer, step }) {
    if (step !== undefined) return [`target.${step}.${layer}`];
    return this.trace.source.tokens.map((_, column) => `source.${column}.${layer}`);
  }

  wiresOf({ kind, layer, step }) {
    if (kind === "encoder") return this.trace.source.tokens.flatMap((_, column) => this.wiresTo("source", column, layer, [["encoder", "source", layer - 1, column]]));
    if (kind !== "decoder") return [];
    return this.wiresTo("target", step, layer, [
      ["decoder", "target", layer - 1, step],
      ["cross", "source", this.nEncoder, step],
    ]);
  }

  /** The lines to a vector: the one that it was, and those that it attends to, as [kind, side, level, row] each. */
  wiresTo(side, column, layer, attentions) {
    const to = this.at(side, column, layer);
    const from = this.at(side, column, layer - 1);
    const residual = svg("path", { class: "residual", d: `M${from.x},${from.y} L${to.x},${to.y}` });
    const attended = attentions.flatMap(([kind, keySide, level, row]) => {
      const matrix = this.weights.get(`${kind}.${layer}`);
      if (!matrix) return [];
      return Array.from({ length: matrix.columns }, (_, key) => {
        const weight = matrix.at(row, key);
        if (weight < 0.02) return null;
        const { x, y } = this.at(keySide, key, level);
        const middle = (y + to.y) / 2 - (level === layer ? 18 : 0);
        return svg("path", {
          class: kind,
          d: `M${x},${y} C${x},${middle} ${to.x},${middle} ${to.x},${to.y}`,
          "stroke-width": 0.5 + 4.5 * weight,
          "stroke-opacity": 0.15 + 0.85 * weight,
          pathLength: 1,
        });
      }).filter(Boolean);
    });
    return [residual, ...attended];
  }

  inWords({ kind, layer, step }) {
    if (kind === "embeds")
      return ["rotary", "none"].includes(pageData.model.positions) || isSwitchedOff("positions")
        ? say("Each token of the source becomes a vector: its embedding.")
        : say("Each token of the source becomes a vector: its embedding, to which its position is added.");
    if (layer && kind !== "chooses" && !this.weights.has(`${kind}.${layer}`))
      return kind === "encoder"
        ? say("Encoder layer {layer} is switched off: the vectors pass it unchanged.", { layer })
        : say("Decoder layer {layer} is switched off: the vectors pass it unchanged.", { layer });
    if (kind === "encoder")
      return say(
        "Encoder layer {layer}: each token takes from all tokens what it needs (lines: the mean of the heads); then a feed-forward network works on each by itself.",
        { layer },
      );
    if (kind === "reads") {
      const read = { step: step + 1, token: tokenNode(this.input[step]) };
      return isSwitchedOff("causal")
        ? say("Step {step}: the decoder reads {token}.", read)
        : say("Step {step}: the decoder reads {token}. What it has made of earlier tokens stays.", read);
    }
    if (kind === "decoder" && isSwitchedOff("causal"))
      return say(
        "Decoder layer {layer}: without the causal mask, the position looks at the whole translation, later tokens too, and across at the encoder's output; then comes its feed-forward network.",
        { layer },
      );
    if (kind === "decoder")
      return say(
        "Decoder layer {layer}: the new position looks back at what has been read so far, and across at the encoder's output; then comes its feed-forward network.",
        { layer },
      );
    const { candidates, chosen } = this.trace.steps[step];
    return say("The vector at the top becomes a probability for each token of the vocabulary. Chosen: {token} with {probability}.", {
      token: tokenNode(candidates[chosen].token),
      probability: percent(candidates[chosen].probability),
    });
  }
}

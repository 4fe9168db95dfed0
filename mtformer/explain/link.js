"use strict";
// The state of a lesson as the part of its address after #, which may come from anybody: what is no state is ignored.

const FLAGS = ["causal", "padding", "positions", "scale"];

/** What of a state differs from the one with which the page opens, and what the reader looks at. */
function linkOf({ text, other, prefix, nPadding, search, switches }, initial) {
  const { kind, heads, overlay, pinned, step, frame, token, section } = view;
  const off = [...switches.layers, ...switches.heads, ...FLAGS.filter((name) => !switches[name])];
  const [[side, place] = []] = Object.entries(pinned ?? {});
  const values = {
    text,
    other,
    force: prefix.join("."),
    beam: search.beam_size === initial.search.beam_size ? "" : search.beam_size,
    temperature: switches.temperature === 1 ? "" : switches.temperature,
    pad: nPadding || "",
    off: off.join(" "),
    kind,
    heads: heads.map(([layer, head]) => `${layer}.${head === "mean" ? head : head + 1}`).join(" "),
    overlay: overlay ? 1 : "",
    pin: side ? `${side}.${place + 1}` : "",
    step: step ? step + 1 : "",
    frame: frame ? frame + 1 : "",
    token: token === null ? "" : token + 1,
    section,
  };
  return new URLSearchParams(Object.entries(values).filter(([, value]) => value || value === 0));
}

/** The state in an address, as far as it has one; sets what the reader looks at. */
function readLink(hash) {
  const link = new URLSearchParams(hash.slice(1));
  if (!link.has("text")) return {};
  const { n_encoder_layers: nEncoder, n_decoder_layers: nDecoder, n_heads: nHeads, tgt_vocab_size: size } = pageData.model;
  const whole = (name, most) => (/^\d{1,6}$/.test(link.get(name) ?? "") ? clamp(Number(link.get(name)), 0, most) : null);
  const listed = (name, pattern) => (link.get(name) ?? "").split(" ").filter((each) => pattern.test(each));
  const off = listed("off", /^[a-z]+(\.[1-9]\d*){0,2}$/);
  const depth = { encoder: nEncoder, decoder: nDecoder, cross: nDecoder };
  const isPart = (nNumbers) => (name) => {
    const [stack, layer, head = "1", ...more] = name.split(".");
    return name.split(".").length === 1 + nNumbers && layer <= depth[stack] && head <= nHeads && !more.length;
  };
  const heads = listed("heads", /^[1-9]\d*\.(mean|[1-9]\d*)$/).map((each) => {
    const [layer, head] = each.split(".");
    return [Number(layer), head === "mean" ? head : head - 1];
  });
  const [side, place] = (/^(query|key)\.[1-9]\d*$/.exec(link.get("pin")) ?? [""])[0].split(".");
  look({
    kind: Object.hasOwn(depth, link.get("kind")) ? link.get("kind") : pageData.first.kind,
    heads,
    overlay: link.get("overlay") === "1",
    pinned: side ? { [side]: place - 1 } : null,
    step: Math.max(0, (whole("step", 1e6) ?? 1) - 1),
    frame: Math.max(0, (whole("frame", 1e6) ?? 1) - 1),
    token: link.has("token") ? (whole("token", 1e6) ?? 1) - 1 : null,
    section: link.get("section"),
  });
  const temperature = Number(link.get("temperature"));
  return {
    text: link.get("text").replaceAll("\n", " "),
    other: (link.get("other") ?? "").replaceAll("\n", " "),
    prefix: listed("force", /^[\d.]+$/).flatMap((ids) => ids.split(".").map(Number)).filter((id) => id < size).slice(0, MOST_TOKENS),
    nPadding: whole("pad", MOST_PADDING) ?? 0,
    search: { ...initialState(pageData.live).search, ...(whole("beam", MOST_BEAMS) ? { beam_size: whole("beam", MOST_BEAMS) } : {}) },
    switches: {
      ...ALL_ON,
      ...Object.fromEntries(FLAGS.filter((name) => off.includes(name)).map((name) => [name, false])),
      layers: off.filter((name) => ["encoder", "decoder"].includes(name.split(".")[0])).filter(isPart(1)),
      heads: off.filter(isPart(2)),
      temperature: TEMPERATURES.includes(temperature) ? temperature : 1,
    },
  };
}

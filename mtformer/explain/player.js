"use strict";
// Frames that one goes through by buttons, a slider, arrow keys, or that play by themselves.

const PACE = 1200; // milliseconds a frame

/**
 * Returns a box with controls and a stage. `show(frame)` returns the nodes of a frame, from 0, or null if it has changed
 * those that are there; `title(frame)` says which it is. `at` is the first frame shown, and `onMove(frame)` hears of each that follows.
 */
function player({ n, at, name, label, title, show, onMove, pace = PACE }) {
  const stage = el("div", { class: "step" });
  const count = el("span", { class: "count", "aria-live": "polite" });
  const button = (text, onclick) => el("button", { type: "button", onclick }, text);
  const slider = el("input", { type: "range", min: 1, max: n, "aria-label": name, oninput: () => jump(slider.value - 1) });
  const previous = button(say("← Previous"), () => jump(now - 1));
  const next = button(say("Next →"), () => jump(now + 1));
  const play = button(say("Play"), () => (timer ? stop() : start()));
  let [now, timer] = [clamp(at, 0, n - 1), null];

  const draw = () => {
    slider.value = now + 1;
    slider.setAttribute("aria-valuetext", title(now));
    count.textContent = title(now);
    previous.disabled = now === 0;
    next.disabled = now === n - 1;
    const nodes = show(now);
    if (nodes) stage.replaceChildren(...nodes);
  };
  const go = (frame) => {
    now = clamp(frame, 0, n - 1);
    if (now === n - 1) stop();
    draw();
    onMove(now);
  };
  const jump = (frame) => {
    stop();
    go(frame);
  };
  const start = () => {
    if (now === n - 1) go(0);
    timer = setInterval(() => (node.isConnected ? go(now + 1) : stop()), pace);
    play.textContent = say("Pause");
  };
  const stop = () => {
    clearInterval(timer);
    timer = null;
    play.textContent = say("Play");
  };
  const keys = (event) => {
    const target = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: n - 1 }[event.key];
    if (target === undefined || event.target === slider) return; // a slider has keys of its own
    event.preventDefault();
    jump(target);
  };
  const controls = el("div", { class: "controls" }, previous, play, next, slider, count);
  const node = el("div", { class: "stepper", tabindex: 0, role: "group", "aria-label": label, onkeydown: keys }, controls, stage);
  draw();
  return node;
}

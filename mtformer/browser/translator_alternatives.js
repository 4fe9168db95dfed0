"use strict";
// What else the model would have written from a word on, and why it has not.

/**
 * A menu below a word. `find` looks for alternatives, each { word, probability, text }; `onPick` gets the one that is
 * picked. `why`, if the engine can, returns a promise of the tokens of the word, as `whyTable` shows them.
 */
class AlternativesMenu {
  constructor(menu) {
    this.menu = menu;
    this.asked = 0;
    menu.addEventListener("toggle", ({ newState }) => newState === "closed" && this.onClosed());
  }

  onClosed() {
    this.asked++;
    document.querySelector(".asked")?.classList.remove("asked");
  }

  async open(word, { find, onPick, onReset, why, lang, byKey }) {
    const asked = ++this.asked;
    const title = el("p", { class: "muted" }, "Instead of ", el("bdi", { class: "strong" }, word.text));
    this.show([title, el("p", {}, "Looking …")], word.node);
    word.node.classList.add("asked");
    const found = await find().catch((error) => error);
    if (asked !== this.asked) return; // another word was chosen meanwhile, or none
    const pick = (action) => () => {
      this.menu.hidePopover();
      action();
    };
    const buttons = found instanceof Error ? [] : found.map((one) => this.button(one, lang, pick(() => onPick(one))));
    if (onReset) buttons.push(el("button", { type: "button", onclick: pick(onReset) }, "The first translation again"));
    if (why) buttons.push(el("button", { type: "button", onclick: ({ target }) => this.explain(why, target, word) }, "Why this word?"));
    const nothing = found instanceof Error ? found.message : "Nothing else is likely here.";
    rove(buttons, { ArrowUp: -1, ArrowDown: 1 });
    this.show([title, found.length ? null : el("p", {}, nothing), ...buttons], word.node);
    if (byKey) buttons[0]?.focus();
  }

  /** Shows why a word was chosen, in the place of a button. */
  async explain(why, button, word) {
    const { asked } = this;
    button.replaceChildren("Looking …");
    button.disabled = true;
    const tokens = await why().catch((error) => error);
    if (asked !== this.asked) return;
    button.replaceWith(tokens instanceof Error ? el("p", {}, tokens.message) : whyTable(tokens));
    this.show([...this.menu.childNodes], word.node);
    this.menu.focus();
  }

  button({ word, probability, text }, lang, onclick) {
    const parts = [el("strong", {}, word), el("small", {}, percent(probability)), el("span", {}, text)];
    return el("button", { type: "button", lang, dir: "auto", onclick }, parts);
  }

  /** Shows the menu below a word, or above it where there is no room below. */
  show(contents, node) {
    const { menu } = this;
    menu.replaceChildren(...contents.filter(Boolean));
    if (!menu.matches(":popover-open")) menu.showPopover();
    const [word, size] = [node.getClientRects()[0], menu.getBoundingClientRect()];
    const { clientWidth: width, clientHeight: height } = document.documentElement;
    const below = word.bottom + 6;
    const top = below + size.height > height ? Math.max(6, word.top - size.height - 6) : below;
    menu.style.left = `${scrollX + clamp(word.left, 6, Math.max(6, width - size.width - 6))}px`;
    menu.style.top = `${scrollY + top}px`;
  }
}

/** The tokens of a word, each { token, probability, others: [{ token, probability }] }, from the first to the last. */
function whyTable(tokens) {
  const rows = tokens.map(({ token, probability, others }) =>
    el("tr", {}, el("th", { scope: "row" }, el("bdi", {}, token)), el("td", {}, percent(probability)), el("td", {}, others.map((other) => el("span", {}, el("bdi", {}, other.token), ` ${percent(other.probability)}`)))),
  );
  const head = el("tr", {}, ["Token", "Probability", "Instead"].map((name) => el("th", { scope: "col" }, name)));
  return el("table", { class: "why" }, el("caption", {}, "The model chose it token by token:"), head, rows);
}

"use strict";
// Attention of one head or several as lines between two columns of tokens.

const VISIBLE = 0.005; // smaller weights round to 0.00
const HEAD_COLORS = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5"]; // of heads shown together

/** Lines between queries and keys. `heads`: { title, matrix, control } of each. Tells `onShow` what is marked, as { query, key }. */
class AttentionLines {
  constructor(heads, { queries, keys, predicted }, onShow) {
    Object.assign(this, { heads, queries, keys, onShow, isOverlay: heads.length > 1 });
    this.readout = el("output", { class: "readout" });
    this.paths = heads.flatMap((head, number) => this.pathsOf(head.matrix, number));
    this.ends = {
      query: queries.map((token, index) => this.end(token, "query", index, predicted?.[index])),
      key: keys.map((token, index) => this.end(token, "key", index)),
    };
    for (const side of ["query", "key"]) {
      this.ends[side].forEach((end) => this.listen(end, side));
      rove(this.ends[side].map((end) => end.node), { ArrowUp: -1, ArrowDown: 1 });
    }
    this.node = this.picture();
    this.show(null);
  }

  colorOf(number) {
    return this.isOverlay ? `var(${HEAD_COLORS[number % HEAD_COLORS.length]})` : "rgb(var(--heat))";
  }

  get title() {
    return this.heads.map(({ title }) => title).join(" + ");
  }

  pathsOf(matrix, number) {
    const paths = [];
    const faint = Math.max(VISIBLE, (this.keys.length - 20) / 2000); // long sentences would have thousands of lines, which cover each other
    const shift = this.isOverlay ? (0.5 * (number + 0.5)) / this.heads.length - 0.25 : 0; // so that none hides another
    for (let query = 0; query < matrix.rows; query++) {
      for (let key = 0; key < matrix.columns; key++) {
        const weight = matrix.at(query, key);
        if (weight < faint) continue;
        const [from, to] = [query + 0.5 + shift, key + 0.5 + shift];
        const node = svg("path", {
          d: `M0,${from} C45,${from} 55,${to} 100,${to}`,
          "stroke-width": 0.5 + (this.isOverlay ? 4 : 7) * weight,
          "--weight": weight,
          "vector-effect": "non-scaling-stroke",
          "--ink": this.colorOf(number),
        });
        paths.push({ query, key, node });
      }
    }
    return paths;
  }

  end(token, side, index, next) {
    const weights = this.heads.map((_, number) =>
      el("span", { class: this.isOverlay ? "weight patch" : "weight", "--ink": this.colorOf(number) }),
    );
    const parts = [tokenLabel(token), next ? el("span", { class: "next", lang: "" }, `→ ${tokenText(next)}`) : null];
    const group = el("span", { class: "weights" }, weights);
    const node = el(
      "button",
      { type: "button", class: `end ${side}`, "aria-pressed": String(view.pinned?.[side] === index), "data-index": index },
      side === "query" ? [group, parts] : [parts, group],
    );
    return { node, weights, index };
  }

  listen(end, side) {
    const selection = { [side]: end.index };
    // Not pointerenter: a token that scrolls under a resting mouse is not pointed at.
    end.node.addEventListener("pointermove", () => end.node.classList.contains("selected") || this.show(selection));
    end.node.addEventListener("pointerleave", () => this.show(this.focused));
    end.node.addEventListener("focus", () => this.show(selection));
    end.node.addEventListener("blur", () => this.show(null));
    end.node.addEventListener("click", () => {
      const again = view.pinned?.[side] === end.index; // selected a second time, a token is released
      look({ pinned: again ? null : selection });
      for (const other of [...this.ends.query, ...this.ends.key])
        other.node.setAttribute("aria-pressed", String(other === end && !again));
      this.show(selection);
    });
  }

  /** Marks a query, a key or both; null shows what is pinned, or every line. */
  show(chosen) {
    const { query, key } = (chosen ?? this.pinned) ?? {};
    for (const path of this.paths) {
      const visible = (query === undefined || path.query === query) && (key === undefined || path.key === key);
      path.node.classList.toggle("faded", !visible);
    }
    this.mark("key", key, (matrix, k) => (query === undefined || (key !== undefined && k !== key) ? null : matrix.at(query, k)));
    this.mark("query", query, (matrix, q) => (key === undefined || query !== undefined ? null : matrix.at(q, key)));
    this.readout.replaceChildren(...this.sentences(query, key));
    this.onShow({ query, key });
  }

  /** The token that the keyboard is at, as { query } or { key }; null if it is at none. */
  get focused() {
    for (const side of ["query", "key"])
      for (const { node, index } of this.ends[side]) if (node.matches(":focus-visible")) return { [side]: index };
    return null;
  }

  /** The selected token, which stays when another head is chosen, to compare heads; null if it is not in this sentence. */
  get pinned() {
    const { query, key } = view.pinned ?? {};
    return (query ?? this.queries.length) < this.queries.length || (key ?? this.keys.length) < this.keys.length ? view.pinned : null;
  }

  mark(side, selected, weightOf) {
    for (const { node, weights, index } of this.ends[side]) {
      const given = this.heads.map(({ matrix }) => weightOf(matrix, index));
      node.style.setProperty("--weight", this.isOverlay ? 0 : (given[0] ?? 0));
      node.classList.toggle("selected", index === selected);
      given.forEach((weight, i) => {
        weights[i].style.setProperty("--weight", weight ?? 0);
        weights[i].textContent = this.isOverlay || weight === null || weight < VISIBLE ? "" : number(weight, 2);
      });
    }
  }

  sentences(query, key) {
    if (query === undefined && key === undefined)
      return [
        say("Point at a token on the left to see where it looks, on the right to see who looks at it; select it to keep it."),
      ];
    if (!this.isOverlay) return [this.inWords(this.heads[0].matrix, query, key)];
    return this.heads.map(({ title, matrix }, i) =>
      el("span", { class: "of-head" }, el("span", { class: "dot", "--ink": this.colorOf(i) }), `${title}: ${this.inWords(matrix, query, key)}`),
    );
  }

  inWords(matrix, query, key) {
    const { queries, keys } = this;
    if (query !== undefined && key !== undefined) {
      return say("“{query}” gives “{key}” {weight} of its attention.", {
        query: tokenText(queries[query]),
        key: tokenText(keys[key]),
        weight: number(matrix.at(query, key)),
      });
    }
    const [from, to] = query !== undefined ? [queries[query], keys] : [keys[key], queries];
    const all = to.map((token, i) => [token, query !== undefined ? matrix.at(query, i) : matrix.at(i, key)]);
    const strongest = all.sort((a, b) => b[1] - a[1]).slice(0, 3).filter(([, weight]) => weight >= VISIBLE);
    const values = {
      token: tokenText(from),
      others: strongest.map(([token, weight]) => `“${tokenText(token)}” (${number(weight, 2)})`).join(say(", ")),
    };
    if (query !== undefined) return say("“{token}” looks at {others}.", values);
    if (!strongest.length) return say("Nothing looks at “{token}”.", values);
    return say("“{token}” is looked at by {others}.", values);
  }

  picture() {
    const height = Math.max(this.queries.length, this.keys.length);
    const across = (event) => {
      const side = { ArrowLeft: "query", ArrowRight: "key" }[event.key];
      if (!side) return;
      event.preventDefault();
      const index = Number(event.target.closest(".end").dataset.index);
      this.ends[side][clamp(index, 0, this.ends[side].length - 1)].node.focus();
    };
    const label = say("Lines of {title}: up and down move between tokens, left and right between the columns", {
      title: this.title,
    });
    const wires = { class: "wires", viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none", "--n": height, "aria-hidden": "true" };
    const column = (side) => el("div", { class: "ends" }, this.ends[side].map((end) => end.node));
    return el(
      "div",
      {},
      el("div", { class: "stage-head" }, el("h3", {}, this.title), el("div", {}, this.heads.map(({ control }) => control)), this.readout),
      el(
        "div",
        { class: "lines", role: "group", "aria-label": label, onkeydown: across },
        column("query"),
        svg("svg", wires, this.paths.map((path) => path.node)),
        column("key"),
      ),
    );
  }
}

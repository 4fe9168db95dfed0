// Charts in SVG: lines over steps or minutes, and bars. Each is drawn at the width that it has, and read with the mouse,
// a finger or the arrow keys; the cursor is shared by all charts with the same axis.
"use strict";
(() => {
  const HEIGHT = 220;
  const MARGIN = { left: 50, right: 12, top: 18, bottom: 26 };
  const DASHES = ["", "7 4", "2 3", "10 3 2 3", "4 2"]; // beside the colour, for those who cannot tell colours apart
  const MOST_MARKERS = 60;
  const view = { axis: "step", logarithmic: false, cursor: null };
  const charts = [];

  const dash = (i) => DASHES[(i + Math.floor(i / 5)) % 5];
  const colour = (i) => `var(--series-${(i % 5) + 1})`;
  const number = (value, digits = 4) =>
    value !== 0 && (Math.abs(value) < 0.001 || Math.abs(value) >= 1e9)
      ? value.toExponential(Math.min(digits, 3) - 1)
      : value.toLocaleString("en", { maximumSignificantDigits: Math.max(digits, Math.ceil(Math.log10(Math.abs(value) + 1))) });
  const time = (minutes) => (minutes >= 180 ? `${number(minutes / 60, 3)} h` : `${number(minutes, 3)} min`);
  const place = (point) => (view.axis === "step" ? point[0] : point[1]);

  // Round numbers that divide a range into about n parts.
  const ticks = (low, high, n) => {
    const raw = (high - low) / Math.max(1, n) || 1;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999);
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(Number((i * step).toPrecision(12)));
    return found;
  };
  const logTicks = (low, high) => {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const factor of [1, 2, 5]) if (factor * 10 ** power >= low && factor * 10 ** power <= high) found.push(factor * 10 ** power);
    return found.length > 1 ? found : [low, high];
  };

  const marker = (i, x, y, size = 3.5) => {
    const shapes = [
      () => svg("circle", { cx: x, cy: y, r: size }),
      () => svg("rect", { x: x - size, y: y - size, width: 2 * size, height: 2 * size }),
      () => svg("path", { d: `M${x} ${y - size - 1}l${size + 1} ${2 * size}h${-2 * size - 2}z` }),
      () => svg("path", { d: `M${x} ${y - size - 1}l${size + 1} ${size + 1}l${-size - 1} ${size + 1}l${-size - 1} ${-size - 1}z` }),
    ];
    const shape = shapes[i % shapes.length]();
    shape.setAttribute("fill", colour(i));
    return shape;
  };

  class Chart {
    constructor(figure, data) {
      Object.assign(this, { figure, data, index: null });
      this.plot = svg("svg", { tabindex: 0, role: "application", "aria-roledescription": "chart" });
      this.plot.setAttribute("aria-label", `${data.title}. Left and right arrow keys read the values.`);
      this.legend = el("ul", { class: "legend" });
      this.readout = el("p", { class: "readout" });
      figure.append(this.plot, this.legend, this.readout);
      this.places = []; // of the cursor, in the units of the axis
      this.plot.addEventListener("pointermove", (event) => this.point(event));
      this.plot.addEventListener("pointerdown", (event) => this.point(event));
      this.plot.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.select(null));
      this.plot.addEventListener("keydown", (event) => this.key(event));
      this.plot.addEventListener("focus", () => this.readout.setAttribute("aria-live", "polite"));
      this.plot.addEventListener("blur", () => this.readout.removeAttribute("aria-live"));
      this.drawLegend();
    }

    point(event) {
      const box = this.plot.getBoundingClientRect();
      this.select(this.nearest(this.toValue(event.clientX - box.left)));
    }

    key(event) {
      const last = this.places.length - 1;
      const current = this.index ?? last;
      const moves = {
        ArrowLeft: current - 1, ArrowRight: current + 1, PageUp: current - 10, PageDown: current + 10, Home: 0, End: last,
      };
      if (event.key === "Escape") this.select(null);
      else if (event.key in moves) this.select(clamp(moves[event.key], 0, last));
      else return;
      event.preventDefault();
    }

    nearest(value) {
      let best = 0;
      this.places.forEach((x, i) => { if (Math.abs(x - value) < Math.abs(this.places[best] - value)) best = i; });
      return best;
    }

    draw() {
      this.width = Math.max(240, this.plot.clientWidth || this.figure.clientWidth);
      this.plot.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
      this.plot.setAttribute("height", HEIGHT);
      this.inner = { left: MARGIN.left, right: this.width - MARGIN.right, top: MARGIN.top, bottom: HEIGHT - MARGIN.bottom };
      this.plot.replaceChildren();
      this.paint();
      this.overlay = svg("g");
      this.plot.append(this.overlay);
      this.show();
    }

    grid(yTicks, toY) {
      const { left, right } = this.inner;
      const group = svg("g", { class: "axis" });
      const differ = (digits) => new Set(yTicks.map((tick) => number(tick, digits))).size === yTicks.length;
      const digits = [3, 4, 5].find(differ) ?? 6;
      for (const tick of yTicks) {
        group.append(svg("line", { class: "grid", x1: left, x2: right, y1: toY(tick), y2: toY(tick) }));
        group.append(svg("text", { x: left - 6, y: toY(tick) + 4, "text-anchor": "end" }, number(tick, digits)));
      }
      this.plot.append(group);
    }
  }

  class LineChart extends Chart {
    drawLegend() {
      if (this.data.series.length === 1 && !pageData.namesRuns) return;
      this.data.series.forEach((series) => {
        const i = series.style;
        const item = el("li");
        const sample = svg("svg", { viewBox: "0 0 28 12", "aria-hidden": "true" });
        sample.append(svg("line", { class: "line", x1: 0, x2: 28, y1: 6, y2: 6, stroke: colour(i), "stroke-dasharray": dash(i) }));
        if (series.markers) sample.append(marker(i, 14, 6));
        item.append(sample, series.name);
        this.legend.append(item);
      });
    }

    paint() {
      const points = this.data.series.flatMap((series) => series.points);
      this.places = [...new Set(points.map(place))].sort((a, b) => a - b);
      const logarithmic = this.data.logarithmic && view.logarithmic && points.every((point) => point[2] > 0);
      const values = points.map((point) => point[2]);
      let [low, high] = [Math.min(...values), Math.max(...values)];
      if (this.data.fromZero) low = Math.min(0, low);
      if (low === high) [low, high] = [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1];
      const { left, right, top, bottom } = this.inner;
      const scale = logarithmic ? Math.log10 : (value) => value;
      const yTicks = logarithmic ? logTicks(low, high) : ticks(low, high, 5);
      if (!logarithmic && yTicks.length > 1) {
        // Up to a round number on both sides, so that no line runs along the edge.
        const step = yTicks[1] - yTicks[0];
        if (low < yTicks[0]) yTicks.unshift((low = yTicks[0] - step));
        if (high > yTicks[yTicks.length - 1]) yTicks.push((high = yTicks[yTicks.length - 1] + step));
        if (high > this.data.most) while ((high = yTicks[yTicks.length - 1]) > this.data.most) yTicks.pop();
      }
      const [first, last] = [0, this.places[this.places.length - 1] || 1];
      this.toX = (value) => left + ((value - first) / (last - first)) * (right - left);
      this.toValue = (x) => first + ((x - left) / (right - left)) * (last - first);
      this.toY = (value) => bottom - ((scale(value) - scale(low)) / (scale(high) - scale(low))) * (bottom - top);
      this.grid(yTicks, this.toY);
      this.xAxis(first, last);
      this.marks();
      this.data.series.forEach((series) => this.line(series, series.style));
    }

    xAxis(first, last) {
      const group = svg("g", { class: "axis" });
      const { right, bottom } = this.inner;
      for (const tick of ticks(first, last, Math.max(2, Math.floor(this.width / 90)))) {
        if (this.toX(tick) > right - 52) continue; // the unit stands there
        group.append(svg("text", { x: this.toX(tick), y: bottom + 17, "text-anchor": "middle" }, number(tick, 4)));
      }
      group.append(svg("text", { x: right, y: bottom + 17, "text-anchor": "end" }, view.axis === "step" ? "steps" : "min"));
      this.plot.append(group);
    }

    marks() {
      const { top, bottom, right } = this.inner;
      const crowded = pageData.marks.length > 4;
      for (const { at, label, kind } of pageData.marks) {
        const x = this.toX(place(at));
        const isBest = kind === "best";
        this.plot.append(svg("line", { class: "mark", x1: x, x2: x, y1: top, y2: bottom, "stroke-dasharray": isBest ? "" : "3 3" }));
        const anchor = x > right - 60 ? "end" : "start";
        const beside = anchor === "end" ? x - 4 : x + 4; // not across the line
        const text = isBest ? `★ ${label}` : crowded ? "↻" : `↻ ${label}`;
        this.plot.append(svg("text", { class: "mark-label", x: isBest ? x : beside, y: isBest ? top - 6 : bottom - 5, "text-anchor": anchor }, text));
      }
    }

    line(series, i) {
      const path = series.points.map((point, n) => `${n ? "L" : "M"}${this.toX(place(point)).toFixed(1)} ${this.toY(point[2]).toFixed(1)}`);
      this.plot.append(svg("path", { class: "line", d: path.join(""), stroke: colour(i), "stroke-dasharray": dash(i) }));
      const few = series.points.length <= MOST_MARKERS;
      if ((series.markers && few) || series.points.length === 1)
        for (const point of series.points) this.plot.append(marker(i, this.toX(place(point)), this.toY(point[2])));
    }

    select(index) {
      view.cursor = index === null ? null : this.places[index];
      for (const chart of charts) if (chart instanceof LineChart) chart.show();
    }

    show() {
      this.overlay.replaceChildren();
      this.index = view.cursor === null || !this.places.length ? null : this.nearest(view.cursor);
      const at = this.index === null ? this.places[this.places.length - 1] : this.places[this.index];
      this.readout.replaceChildren();
      let shown = null;
      const values = this.data.series.map((series) => {
        const point = series.points.reduce((best, other) => (Math.abs(place(other) - at) < Math.abs(place(best) - at) ? other : best));
        if (place(point) === at) shown = shown ?? point;
        return [series, series.style, point];
      });
      this.readout.append(`${this.index === null ? "last: " : ""}step ${number(shown[0], 9)}, ${time(shown[1])}: `);
      values.forEach(([series, i, point], n) => {
        const away = point[0] === shown[0] ? "" : ` (step ${number(point[0], 9)})`;
        this.readout.append(n ? " · " : "", this.data.series.length > 1 ? `${series.name} ` : "", el("b", {}, number(point[2], this.data.digits ?? 4)), away);
        if (this.index !== null) this.overlay.append(marker(i, this.toX(place(point)), this.toY(point[2]), 4.5));
      });
      if (this.index === null) return;
      const x = this.toX(at);
      this.overlay.prepend(svg("line", { class: "cursor", x1: x, x2: x, y1: this.inner.top, y2: this.inner.bottom }));
    }
  }

  class BarChart extends Chart {
    drawLegend() {}

    paint() {
      const { left, right, top, bottom } = this.inner;
      const bars = this.data.bars;
      const width = (right - left) / bars.length;
      this.places = bars.map((_, i) => i);
      const high = Math.max(...bars.map((bar) => bar.value), 1);
      const yTicks = ticks(0, high, 5);
      const step = yTicks[1] - yTicks[0];
      if (high > yTicks[yTicks.length - 1] + 1e-6 * step) yTicks.push(yTicks[yTicks.length - 1] + step);
      const most = yTicks[yTicks.length - 1];
      this.toX = (i) => left + (i + 0.5) * width;
      this.toValue = (x) => (x - left) / width - 0.5;
      this.toY = (value) => bottom - (value / most) * (bottom - top);
      this.grid(yTicks, this.toY);
      const group = svg("g", { class: "axis" });
      bars.forEach((bar, i) => {
        const [y, thick] = [this.toY(bar.value), Math.min(0.72 * width, 72)];
        this.plot.append(svg("rect", { x: this.toX(i) - thick / 2, y, width: thick, height: bottom - y, fill: colour(0), rx: 2 }));
        if (width > 34) this.plot.append(svg("text", { x: this.toX(i), y: y - 4, "text-anchor": "middle" }, number(bar.value, 3)));
        if (bar.count && width > 40 && bottom - y > 18) // few sentences make an uncertain score
          this.plot.append(svg("text", { class: "count", x: this.toX(i), y: bottom - 5, "text-anchor": "middle" }, `n ${number(bar.count, 9)}`));
        group.append(svg("text", { x: this.toX(i), y: bottom + 17, "text-anchor": "middle" }, bar.label));
      });
      this.plot.append(group);
    }

    select(index) {
      this.index = index;
      this.show();
    }

    show() {
      this.overlay.replaceChildren();
      if (this.index === null) {
        this.readout.textContent = this.data.caption;
        return;
      }
      const bar = this.data.bars[this.index];
      const { left, right, top, bottom } = this.inner;
      const width = (right - left) / this.data.bars.length;
      this.overlay.append(svg("rect", { class: "cursor", fill: "none", x: left + (this.index + 0.06) * width, y: top, width: 0.88 * width, height: bottom - top }));
      this.readout.replaceChildren(`${bar.text}: `, el("b", {}, number(bar.value, 4)));
    }
  }

  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    const data = pageData.charts[figure.dataset.chart];
    charts.push(data.bars ? new BarChart(figure, data) : new LineChart(figure, data));
  }
  const redraw = () => charts.forEach((chart) => chart.draw());
  for (const button of document.querySelectorAll("button[data-set]"))
    button.addEventListener("click", () => {
      const { set, to } = button.dataset;
      for (const other of document.querySelectorAll(`button[data-set="${set}"]`)) other.setAttribute("aria-pressed", other === button);
      if (set === "axis") view.axis = to;
      else view.logarithmic = to === "logarithmic";
      view.cursor = null;
      redraw();
    });
  let width = 0;
  new ResizeObserver(() => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    redraw();
  }).observe(document.body);
  redraw();
})();

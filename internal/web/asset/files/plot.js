// CDFs, time lines and histories, drawn by uPlot.
import uPlot from "./uplot.js";
import { dash, sample, shape, swatch, theme } from "./chart.js";
import { el, number, param, quantity, setParam, titled } from "./dom.js";

// Each kind as one form: an x axis, one or two y axes, series of points, and what is marked.
function cdf(spec) {
  const f = spec.cdf, sides = f.sides ?? [];
  return {
    x: f.x, axes: [{ label: "Calls that are at most so slow", unit: "%" }], yRange: [0, 100],
    canLog: sides.every((s) => s.values.every((v) => v > 0)),
    series: sides.map((s) => {
      const n = s.values.length, x = [], y = [];
      s.values.forEach((v, i) => {
        const share = 100 * (s.shares ? s.shares[i] : i / (n - 1));
        if (x.at(-1) === v) y[y.length - 1] = share; // of calls that took as long, the last
        else { x.push(v); y.push(share); }
      });
      return { name: s.name, axis: 0, x, y, step: true, calls: s.calls };
    }),
    marks: (f.slos ?? []).map((m) => ({ ...m, slo: true })),
  };
}

function time(spec) {
  const f = spec.time;
  return {
    x: { label: "Time since the start", unit: "s" }, axes: f.axes, clock: f.clock,
    series: (f.series ?? []).map((s) => ({ name: s.name, axis: s.axis ?? 0, x: s.seconds ?? [], y: s.values ?? [], step: s.step })),
    marks: f.marks ?? [], spans: f.spans ?? [], limits: (f.limits ?? []).map((l) => ({ ...l, axis: l.axis ?? 0 })),
  };
}

function past(spec) {
  const f = spec.history, points = f.points ?? [], at = (t) => Date.parse(t) / 1000;
  const list = (a) => a ?? [];
  return {
    x: { label: "Date (UTC)", time: true }, axes: [f.y], better: f.better,
    series: [{ name: f.y.label, axis: 0, x: points.map((p) => at(p.at)), y: points.map((p) => p.value), points }],
    noise: list(f.noise).map((b) => ({ ...b, from: at(b.from), to: at(b.to) })),
    numbered: [...list(f.changes).map((c) => ({ at: at(c.at), kind: c.kind, text: c.label, href: c.href })), ...list(f.notes).map((n) => ({ at: at(n.at), kind: "note", text: n.text }))]
      .sort((a, b) => a.at - b.at).map((c, i) => ({ ...c, n: i + 1 })),
  };
}

const sign = { gain: "▲", loss: "▼", shift: "◆", note: "✎" };
const day = (s) => new Date(s * 1000).toISOString().replace("T", " ").slice(0, 16);

export class Plot {
  constructor(frame, spec) {
    this.frame = frame;
    this.model = spec.cdf ? cdf(spec) : spec.time ? time(spec) : past(spec);
    const hidden = new Set((frame.state("hide") ?? "").split("~"));
    this.series = this.model.series;
    this.series.forEach((s) => { s.shown = !hidden.has(s.name); });
    const log = frame.state("log");
    this.log = this.model.canLog === true && (log == null ? !!this.model.x.log : log === "1");
    this.join();
  }

  join() {
    const tables = this.series.map((s) => [s.x, s.y]);
    this.data = tables.length ? uPlot.join(tables) : [[]];
    const x = this.data[0];
    let lo = x[0] ?? 0, hi = x.at(-1) ?? 1;
    for (const m of this.model.marks ?? []) { if (m.at != null && m.slo && (!this.log || m.at > 0)) { lo = Math.min(lo, m.at); hi = Math.max(hi, m.at * 1.05); } }
    for (const m of this.model.numbered ?? []) { lo = Math.min(lo, m.at); hi = Math.max(hi, m.at); }
    if (lo === hi) { const d = this.model.x.time ? 43200 : Math.abs(lo) / 10 || 1; lo -= d; hi += d; }
    const pad = this.model.x.time ? (hi - lo) * 0.04 : 0;
    if (!this.log && !this.model.x.time && lo > 0 && lo < hi / 3) lo = 0;
    if (this.log && lo <= 0) lo = hi / 1000;
    this.whole = [lo - pad, hi + pad];
  }

  axes() { return `${titled(this.model.x)} across, ${this.model.axes.map(titled).join(" and ")} up`; }

  toggles() {
    if (this.model.numbered) return [];
    const t = theme();
    return this.series.map((s, i) => ({ i, name: s.name + (s.x.length ? "" : " (no data)"), shown: s.shown, swatches: [swatch(i, t.series[i % 10])] }));
  }

  controls() {
    if (!this.model.canLog) return [];
    const box = el("input", { type: "checkbox", checked: this.log, onchange: () => this.setLog(box.checked) });
    return [el("label", {}, box, "Logarithmic")];
  }

  setLog(on) {
    this.log = on;
    this.frame.keep("log", on === !!this.model.x.log ? null : on ? "1" : "0");
    setParam(this.zoomKey(), null);
    this.redraw();
    this.frame.zoomChanged();
  }

  notes() {
    const all = this.model.numbered ?? [];
    if (!all.length) return [];
    return [el("ol", { class: "chart-notes" }, ...all.map((c) => el("li", {}, `${sign[c.kind]} ${day(c.at)}: ${c.kind === "note" ? "" : c.kind + " "}${c.text}`, ...(c.href ? [" ", el("a", { href: c.href }, "open")] : []))))];
  }

  draw(box) {
    this.box = box;
    if (!this.data[0].length) {
      box.append(el("p", { class: "none" }, "There is nothing to draw yet."));
      return;
    }
    this.u = new uPlot(this.options(), this.data, box);
    this.sizes = new ResizeObserver(() => { if (this.u && box.clientWidth && box.clientWidth !== this.u.width) this.u.setSize(this.size()); });
    this.sizes.observe(box);
    if (this.model.clock) {
      this.other = (e) => { if (e.detail.clock === this.model.clock && e.detail.from !== this) this.scaleTo(e.detail.range); };
      document.addEventListener("chart-zoom", this.other);
    }
  }

  size() { return { width: Math.max(200, this.box.clientWidth), height: this.box.clientWidth < 500 ? 260 : 320 }; }

  zoomKey() { return this.model.clock ? `clock-${this.model.clock}.zoom` : `${this.frame.name}.zoom`; }
  zoomOf() {
    const z = (param(this.zoomKey()) ?? "").split(",").map(Number);
    return z.length === 2 && z.every(Number.isFinite) && z[0] < z[1] && (!this.log || z[0] > 0) ? z : null;
  }
  zoomed() { return this.zoomOf() != null; }

  options() {
    const t = (this.t = theme()), m = this.model, [min, max] = this.zoomOf() ?? this.whole;
    const scales = { x: { time: !!m.x.time, auto: false, min, max, range: (u, lo, hi) => [lo, hi], distr: this.log ? 3 : 1 } };
    m.axes.forEach((a, k) => { scales["y" + k] = { distr: a.log ? 3 : 1, range: (u, lo, hi) => this.range(k, lo, hi) }; });
    const axis = { stroke: t.muted, font: t.font, labelFont: t.font, grid: { stroke: t.grid, width: 1 }, ticks: { stroke: t.grid, width: 1 } };
    const values = (u, all) => all.map((v) => (v == null ? "" : number(v)));
    const narrow = this.box.clientWidth < 500;
    return {
      ...this.size(), scales, padding: [26, narrow ? 6 : 16, 0, narrow ? 0 : 4],
      tzDate: (s) => uPlot.tzDate(new Date(s * 1000), "Etc/UTC"),
      legend: { show: false },
      cursor: {
        drag: { x: true, y: false, dist: 6 }, focus: { prox: 24 }, points: { size: 9 },
        sync: m.clock ? { key: "clock-" + m.clock, scales: ["x", null] } : undefined,
        bind: { dblclick: () => () => { this.reset(); this.frame.zoomChanged(); } },
      },
      axes: [
        { ...axis, label: titled(m.x), labelSize: 22, size: 34, space: narrow ? 62 : 80, values: m.x.time ? dates : this.log ? logTicks : values },
        ...m.axes.map((a, k) => ({ ...axis, scale: "y" + k, side: k ? 1 : 3, size: 54, values, grid: { ...axis.grid, show: k === 0 } })),
      ],
      series: [{}, ...this.series.map((s, i) => ({
        label: s.name, scale: "y" + s.axis, show: s.shown, stroke: t.series[i % 10], width: m.numbered ? 1 : 2, dash: m.numbered ? [3, 3] : dash(i),
        points: { show: false }, paths: s.step ? uPlot.paths.stepped({ align: 1 }) : undefined,
      }))],
      hooks: {
        drawClear: [(u) => this.under(u)], drawSeries: [(u, i) => this.markers(u, i - 1)], draw: [(u) => this.over(u)],
        setCursor: [(u) => this.hover(u)], setScale: [(u, key) => { if (key === "x") this.scaled(u); }],
        ready: [(u) => u.over.addEventListener("click", () => this.click())],
      },
    };
  }

  // The range of a y axis has its limits and intervals in it, and zero where values are not far from it.
  range(k, lo, hi) {
    const m = this.model;
    if (m.yRange) return m.yRange;
    const all = [lo, hi];
    for (const l of m.limits ?? []) if (l.axis === k) all.push(l.at);
    for (const p of this.series[0]?.points ?? []) all.push(p.low, p.high);
    for (const b of m.noise ?? []) all.push(b.low, b.high);
    const known = all.filter((v) => v != null && Number.isFinite(v));
    if (!known.length) return m.axes[k].log ? [1, 10] : [0, 1];
    lo = Math.min(...known);
    hi = Math.max(...known);
    if (m.axes[k].log) return uPlot.rangeLog(Math.max(lo, hi / 1e6) || 1, hi || 10, 10, true);
    const pad = (hi - lo) * 0.08 || Math.abs(hi) * 0.1 || 1;
    const low = lo >= 0 && (lo < hi / 2 || !m.numbered) ? 0 : lo - pad;
    return [low, hi + pad];
  }

  scaled(u) {
    const { min, max } = u.scales.x, [lo, hi] = this.whole, eps = (hi - lo) * 1e-6;
    if (this.quiet || min == null) return;
    const same = Math.abs(min - lo) < eps && Math.abs(max - hi) < eps;
    setParam(this.zoomKey(), same ? null : [min, max].map((v) => Number(v.toPrecision(8))).join(","));
    this.frame.zoomChanged();
    if (this.model.clock) document.dispatchEvent(new CustomEvent("chart-zoom", { detail: { clock: this.model.clock, from: this, range: same ? null : [min, max] } }));
  }

  // scaleTo takes over the zoom of another plot on the same clock.
  scaleTo(range) {
    const [min, max] = range ?? this.whole;
    this.quiet = true;
    this.u?.setScale("x", { min, max });
    this.quiet = false;
    this.frame.zoomChanged();
  }

  zoom(factor, at) {
    if (!this.u) return;
    const { min, max } = this.u.scales.x, [lo, hi] = this.whole;
    const on = this.log ? Math.log : (v) => v, back = this.log ? Math.exp : (v) => v;
    const middle = at ? on(this.series[at[0]].x[at[1]]) : (on(min) + on(max)) / 2, half = ((on(max) - on(min)) / 2) * factor;
    this.u.setScale("x", { min: Math.max(lo, back(middle - half)), max: Math.min(hi, back(middle + half)) });
  }

  reset() { if (this.u) this.u.setScale("x", { min: this.whole[0], max: this.whole[1] }); }

  toggle(i) {
    const s = this.series[i];
    s.shown = !s.shown;
    this.u?.setSeries(i + 1, { show: s.shown });
    this.frame.keep("hide", this.series.filter((s) => !s.shown).map((s) => s.name).join("~"));
  }

  // Below the lines: spans and noise.
  under(u) {
    const { ctx: c, bbox: b } = u, t = this.t;
    this.clipped(u, () => {
      for (const s of this.model.spans ?? []) {
        const from = u.valToPos(s.from, "x", true), to = u.valToPos(s.to, "x", true);
        c.fillStyle = t.steady;
        c.fillRect(from, b.top, to - from, b.height);
      }
      for (const s of this.model.noise ?? []) {
        if (s.low == null || s.high == null) continue;
        const x = u.valToPos(s.from, "x", true), w = u.valToPos(s.to, "x", true) - x, y = u.valToPos(s.high, "y0", true);
        c.fillStyle = t.noise;
        c.fillRect(x, y, w, u.valToPos(s.low, "y0", true) - y);
        if (s.middle != null) this.line(c, t.series[0], [], x, u.valToPos(s.middle, "y0", true), x + w, u.valToPos(s.middle, "y0", true));
      }
    });
  }

  clipped(u, f) {
    const { ctx: c, bbox: b } = u;
    c.save();
    c.beginPath();
    c.rect(b.left - 1, b.top - 1, b.width + 2, b.height + 2);
    c.clip();
    f();
    c.restore();
  }

  line(c, colour, pattern, x1, y1, x2, y2, width = 1) {
    const k = uPlot.pxRatio;
    c.save();
    c.strokeStyle = colour;
    c.lineWidth = width * k;
    c.setLineDash(pattern.map((v) => v * k));
    c.beginPath();
    c.moveTo(x1, y1);
    c.lineTo(x2, y2);
    c.stroke();
    c.restore();
  }

  // markers tell series apart without their hue: every point of a history, of lines one in about 90 pixels.
  markers(u, i) {
    const s = this.series[i];
    if (!s?.shown || i < 0) return;
    const { ctx: c } = u, k = uPlot.pxRatio, scale = "y" + s.axis, form = new Path2D(shape(i)), colour = this.t.series[i % 10];
    let last = -Infinity;
    this.clipped(u, () => {
      c.fillStyle = c.strokeStyle = colour;
      for (let j = 0; j < s.x.length; j++) {
        if (s.y[j] == null) continue;
        const x = u.valToPos(s.x[j], "x", true), y = u.valToPos(s.y[j], scale, true);
        const p = s.points?.[j];
        if (!p && x - last < (last === -Infinity ? 0 : 90 * k) + (j === 0 ? (14 * i * k) : 0)) continue;
        last = x;
        if (p) this.interval(u, p, x);
        c.save();
        c.translate(x, y);
        c.scale(k, k);
        if (p?.verdict === "void") { c.fillStyle = this.t.back; c.fill(form); c.lineWidth = 1.5; c.stroke(form); } else c.fill(form);
        c.restore();
      }
    });
  }

  interval(u, p, x) {
    if (p.low == null && p.high == null) return;
    const k = uPlot.pxRatio, to = (v) => u.valToPos(v ?? p.value, "y0", true), colour = this.t.series[0];
    this.line(u.ctx, colour, [], x, to(p.low), x, to(p.high), 1.5);
    for (const v of [p.low, p.high]) if (v != null) this.line(u.ctx, colour, [], x - 4 * k, to(v), x + 4 * k, to(v), 1.5);
  }

  // Above the lines: SLOs, moments, numbers of changes, and the titles of the axes, where they read without turning the head.
  over(u) {
    const { ctx: c, bbox: b } = u, t = this.t, k = uPlot.pxRatio, m = this.model;
    c.save();
    c.font = t.font.replace("12px", 12 * k + "px");
    c.textBaseline = "alphabetic";
    this.clipped(u, () => {
      for (const mark of m.marks ?? []) this.upright(u, mark);
      for (const l of m.limits ?? []) {
        const y = u.valToPos(l.at, "y" + l.axis, true);
        this.line(c, t.slo, [6, 4], b.left, y, b.left + b.width, y, 1.5);
        this.words(c, l.label, b.left + b.width - 6 * k, y - 5 * k, "end", t.slo);
      }
      for (const s of m.spans ?? []) this.words(c, s.label, Math.max(b.left, u.valToPos(s.from, "x", true)) + 5 * k, b.top + b.height - 6 * k, "start", t.muted);
      for (const n of m.numbered ?? []) this.numbered(u, n);
    });
    m.axes.forEach((a, i) => this.words(c, titled(a), i ? b.left + b.width : Math.max(4 * k, b.left - 40 * k), 14 * k, i ? "end" : "start", t.muted, i === 0 && m.axes.length === 1 ? b.width : b.width / 2));
    c.restore();
  }

  upright(u, mark) {
    if (mark.at == null) return;
    const { ctx: c, bbox: b } = u, k = uPlot.pxRatio, x = u.valToPos(mark.at, "x", true), colour = mark.slo ? this.t.slo : this.t.axis;
    this.line(c, colour, [6, 4], x, b.top, x, b.top + b.height, 1.5);
    const left = x > b.left + b.width * 0.7;
    this.words(c, mark.label, x + (left ? -6 : 6) * k, b.top + b.height - 10 * k, left ? "end" : "start", colour);
  }

  numbered(u, n) {
    const { ctx: c, bbox: b } = u, k = uPlot.pxRatio, x = u.valToPos(n.at, "x", true), colour = { gain: this.t.good, loss: this.t.bad }[n.kind] ?? this.t.muted;
    this.line(c, colour, n.kind === "note" ? [2, 4] : [], x, b.top, x, b.top + b.height, 1.5);
    this.words(c, sign[n.kind] + n.n, x + 4 * k, b.top + (n.n % 2 ? 13 : 28) * k, "start", colour);
  }

  // words writes on a ground of its own, so that it reads over lines.
  words(c, text, x, y, align, colour, most) {
    const k = uPlot.pxRatio, w = Math.min(c.measureText(text).width, most ?? Infinity);
    c.save();
    c.globalAlpha = 0.8;
    c.fillStyle = this.t.back;
    c.fillRect(align === "end" ? x - w - 2 * k : x - 2 * k, y - 11 * k, w + 4 * k, 14 * k);
    c.restore();
    c.textAlign = align;
    c.fillStyle = colour;
    c.fillText(text, x, y, most);
  }

  count(i) { return this.series[i].x.length; }

  nearest(i, from, j) {
    const xs = this.series[i].x, x = this.series[from].x[j];
    return xs.reduce((best, v, k) => (Math.abs(v - x) < Math.abs(xs[best] - x) ? k : best), 0);
  }

  point(i, j) {
    const s = this.series[i], a = this.model.axes[s.axis], p = s.points?.[j];
    if (p) return { text: this.build(p, a), href: p.href };
    const x = quantity(s.x[j], this.model.x.unit), y = quantity(s.y[j], a.unit);
    return { text: this.model.yRange ? `${s.name}: ${y} of the calls at most ${x}` : `${s.name}: ${y} at ${x}` };
  }

  build(p, a) {
    const interval = p.low != null && p.high != null ? ` [${number(p.low)}, ${number(p.high)}]` : "";
    return [p.label, day(Date.parse(p.at) / 1000) + " UTC", quantity(p.value, a.unit) + interval, p.launches && (p.launches === 1 ? "1 launch" : p.launches + " launches"), p.verdict].filter(Boolean).join(", ");
  }

  show(i, j) {
    if (!this.u) return;
    const s = this.series[i], x = s.x[j], y = s.y[j] ?? this.u.scales["y" + s.axis].min;
    let { min, max } = this.u.scales.x;
    if (x < min || x > max) {
      const half = (max - min) / 2;
      this.u.setScale("x", { min: Math.max(this.whole[0], x - half), max: Math.min(this.whole[1], x + half) });
    }
    this.shown = true; // the reader goes by keys: what hover would say is not wanted
    this.u.setCursor({ left: this.u.valToPos(x, "x"), top: this.u.valToPos(y, "y" + s.axis) }, true, true);
    this.shown = false;
  }

  clear() { this.u?.setCursor({ left: -10, top: -10 }, true, true); }

  hover(u) {
    if (this.shown || u.cursor.left < 0) return;
    const at = u.cursor.idxs ?? [];
    this.below = null;
    const p = this.series[0]?.points?.[at[1]];
    if (p) {
      this.below = p;
      return this.frame.read({ text: this.build(p, this.model.axes[0]), href: p.href });
    }
    const idx = u.cursor.idx;
    if (idx == null) return;
    const words = this.series.map((s, i) => (s.shown && at[i + 1] != null && this.data[i + 1][at[i + 1]] != null ? `${s.name} ${quantity(this.data[i + 1][at[i + 1]], this.model.axes[s.axis].unit)}` : null));
    this.frame.read({ text: `${quantity(this.data[0][idx], this.model.x.unit)}: ${words.filter(Boolean).join(", ") || "–"}` });
  }

  click() {
    const p = this.below;
    if (p?.href) location.assign(new URL(p.href, location.href));
  }

  table() {
    const m = this.model;
    if (m.numbered) {
      return {
        columns: ["Date (UTC)", titled(m.axes[0]), "Low", "High", "Launches", "Verdict", "What"],
        rows: this.series[0].points.map((p) => [day(Date.parse(p.at) / 1000), p.value, p.low, p.high, p.launches ?? null, p.verdict ?? "", p.label ?? ""]),
      };
    }
    const shown = this.series.map((s, i) => i).filter((i) => this.series[i].shown);
    if (m.yRange) return this.percentiles(shown);
    return {
      columns: [titled(m.x), ...shown.map((i) => { const a = m.axes[this.series[i].axis]; return this.series[i].name + (a.unit ? ` (${a.unit})` : ""); })],
      rows: this.data[0].map((x, j) => [x, ...shown.map((i) => this.data[i + 1][j] ?? null)]),
    };
  }

  // Of a distribution a reader wants its percentiles; every value is in the JSON.
  percentiles(shown) {
    const all = [...Array.from({ length: 100 }, (_, i) => i), 99.5, 99.9, 100];
    const at = (s, p) => s.x[s.y.findIndex((share) => share >= p - 1e-9)] ?? null;
    return {
      columns: ["Percentile", ...shown.map((i) => `${this.series[i].name} (${this.model.x.unit || this.model.x.label})`)],
      rows: all.map((p) => [p, ...shown.map((i) => at(this.series[i], p))]),
    };
  }

  async picture() { return this.u ? this.u.ctx.canvas : Object.assign(el("canvas"), { width: 600, height: 100 }); }
  vector() { return null; }
  scale() { return uPlot.pxRatio; }
  sample(c, i, x, y, scale) { sample(c, i, this.t.series[i % 10], x, y, scale); }

  theme() { this.redraw(); }

  redraw() {
    this.join();
    this.destroy();
    this.box.replaceChildren();
    this.draw(this.box);
  }

  destroy() {
    this.sizes?.disconnect();
    if (this.other) document.removeEventListener("chart-zoom", this.other);
    this.u?.destroy();
    this.u = null;
  }
}

// dates are short, with the time of day only where ticks are closer than days, and the year at the first tick of each.
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
function dates(u, all, axis, space, step) {
  let year = null;
  return all.map((v) => {
    const d = new Date(v * 1000), y = d.getUTCFullYear(), at = `${months[d.getUTCMonth()]} ${d.getUTCDate()}`;
    const text = (step < 86400 ? d.toISOString().slice(11, 16) + "\n" : "") + at + (y !== year ? (step < 86400 ? ", " : "\n") + y : "");
    year = y;
    return text;
  });
}

// Of a logarithmic axis only 1, 2 and 5 of each power have room for a figure.
function logTicks(u, all) {
  return all.map((v) => {
    if (v == null) return "";
    const first = Number((v / 10 ** Math.floor(Math.log10(v) + 1e-9)).toPrecision(2));
    const few = u.scales.x.max / u.scales.x.min < 300;
    return first === 1 || (few && (first === 2 || first === 5)) ? number(v) : "";
  });
}

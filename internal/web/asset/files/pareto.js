// Launches against two measures, as SVG. Between two launches nothing was measured: a front goes in steps over the corner
// that both of them reach, and never over a point that neither does.
import { dash, shape, swatch, theme } from "./chart.js";
import { el, number, quantity, svg, titled } from "./dom.js";

export class Pareto {
  constructor(frame, spec) {
    this.frame = frame;
    const p = (this.p = spec.pareto);
    this.x = this.measure(frame.state("x") ?? p.x) ?? this.measure(p.x);
    this.y = this.measure(frame.state("y") ?? p.y) ?? this.measure(p.y);
    this.stat = (p.stats ?? []).includes(frame.state("stat")) ? frame.state("stat") : p.stat;
    this.series = (p.fronts ?? []).map((f) => ({ name: f.name, group: f.group || f.name, launches: f.launches ?? [] }));
    this.groups = [...new Set(this.series.map((s) => s.group))];
    const asked = frame.state("show")?.split("~");
    const on = new Set(asked ?? this.groups.slice(0, 1));
    this.series.forEach((s) => { s.shown = on.has(s.group); });
    this.place();
  }

  measure(name) { return this.p.measures.find((m) => m.name === name); }
  key(m) { return m.by_stat ? `${this.stat} ${m.name}` : m.name; }
  title(m) { return titled({ label: (m.by_stat ? (this.stat[0] === "p" ? this.stat.toUpperCase() : this.stat) + " " : "") + m.label, unit: m.unit }); }

  // place takes what each launch has for the two axes. A launch that lacks one of them has no place, and the plot says how many do.
  place() {
    this.without = 0;
    for (const s of this.series) {
      s.points = [];
      for (const l of s.launches) {
        const x = l.figures?.[this.key(this.x)], y = l.figures?.[this.key(this.y)];
        if (x?.value == null || y?.value == null) { if (s.shown) this.without++; continue; }
        s.points.push({ x, y, label: l.label, href: l.href, verdict: l.verdict });
      }
      s.points.sort((a, b) => a.x.value - b.x.value);
      s.front = front(s.points.filter((p) => p.verdict !== "void"), this.x.better, this.y.better);
      s.front.forEach((p) => { p.front = true; });
    }
  }

  axes() { return `${this.title(this.x)} across, ${this.title(this.y)} up; ${this.x.better} and ${this.y.better} is better`; }

  toggles() {
    const t = theme();
    return this.groups.map((name, i) => {
      const mine = this.series.map((s, k) => k).filter((k) => this.series[k].group === name);
      return { i: mine[0], name, shown: mine.some((k) => this.series[k].shown), swatches: mine.slice(0, 4).map((k) => swatch(k, t.series[k % 10])), group: i };
    });
  }

  // toggle gets the first series of a group.
  toggle(i) {
    const group = this.series[i].group, on = !this.series[i].shown;
    this.series.forEach((s) => { if (s.group === group) s.shown = on; });
    const shown = this.groups.filter((g) => this.series.some((s) => s.group === g && s.shown));
    const first = shown.length === 1 && shown[0] === this.groups[0];
    this.frame.keep("show", first ? null : shown.join("~") || "~");
    this.again();
  }

  controls() {
    const select = (name, key, all, now, take) => {
      const s = el("select", { onchange: () => { take(s.value); this.frame.keep(key, s.value === this.p[key] ? null : s.value); this.frame.keep("zoom", null); this.again(); this.frame.changed(); } },
        ...all.map(([value, text]) => el("option", { value, selected: value === now }, text)));
      return el("label", {}, name, s);
    };
    const measures = this.p.measures.map((m) => [m.name, m.label]);
    const list = [
      select("Across", "x", measures, this.x.name, (v) => { this.x = this.measure(v); }),
      select("Up", "y", measures, this.y.name, (v) => { this.y = this.measure(v); }),
    ];
    if ((this.x.by_stat || this.y.by_stat) && this.p.stats?.length) list.push(select("Percentile", "stat", this.p.stats.map((s) => [s, s.toUpperCase()]), this.stat, (v) => { this.stat = v; }));
    return list;
  }

  notes() {
    const all = [];
    if (this.without) all.push(el("p", { class: "muted" }, `${this.without} of the launches shown ${this.without === 1 ? "has" : "have"} no figure for one of these axes.`));
    return all;
  }

  again() {
    this.place();
    this.paint();
    this.frame.note();
    this.frame.zoomChanged();
  }

  draw(box) {
    this.box = box;
    this.sizes = new ResizeObserver(() => { if (box.clientWidth && box.clientWidth !== this.width) this.paint(); });
    this.sizes.observe(box);
    this.paint();
  }

  extent() {
    const all = (axis) => this.series.filter((s) => s.shown).flatMap((s) => s.points.flatMap((p) => [p[axis].value, p[axis].low, p[axis].high])).filter((v) => v != null);
    return [...span(all("x")), ...span(all("y"))];
  }

  window() {
    const z = (this.frame.state("zoom") ?? "").split(",").map(Number);
    return z.length === 4 && z.every(Number.isFinite) && z[0] < z[1] && z[2] < z[3] ? z : null;
  }
  zoomed() { return this.window() != null; }

  paint() {
    const t = (this.t = theme()), w = (this.width = Math.max(240, this.box.clientWidth)), narrow = w < 500, h = (this.height = narrow ? 300 : 400);
    const [x0, x1, y0, y1] = (this.now = this.window() ?? this.extent());
    const b = (this.b = { left: narrow ? 48 : 58, right: w - (narrow ? 10 : 18), top: 30, bottom: h - 48 });
    this.px = (v) => b.left + ((v - x0) / (x1 - x0)) * (b.right - b.left);
    this.py = (v) => b.bottom - ((v - y0) / (y1 - y0)) * (b.bottom - b.top);
    const text = (x, y, anchor, s, colour = t.muted) => svg("text", { x, y, "text-anchor": anchor, fill: colour, "font-size": 12, "font-family": "system-ui, -apple-system, 'Segoe UI', Arial, sans-serif" }, s);
    const clip = `clip-${this.frame.name}`;
    const root = svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${w} ${h}`, width: w, height: h, "aria-hidden": "true" },
      svg("rect", { width: w, height: h, fill: t.back }),
      svg("clipPath", { id: clip }, svg("rect", { x: b.left - 5, y: b.top - 5, width: b.right - b.left + 10, height: b.bottom - b.top + 10 })));
    for (const v of ticks(y0, y1, 6)) root.append(svg("line", { x1: b.left, x2: b.right, y1: this.py(v), y2: this.py(v), stroke: t.grid }), text(b.left - 6, this.py(v) + 4, "end", number(v)));
    for (const v of ticks(x0, x1, narrow ? 4 : 8)) root.append(svg("line", { x1: this.px(v), x2: this.px(v), y1: b.top, y2: b.bottom, stroke: t.grid }), text(this.px(v), b.bottom + 16, "middle", number(v)));
    const arrow = (m, more, less) => (m.better === "higher" ? more : less);
    root.append(text(8, 16, "start", `${this.title(this.y)} ${arrow(this.y, "↑", "↓")} better`), text((b.left + b.right) / 2, h - 12, "middle", `${this.title(this.x)} ${arrow(this.x, "→", "←")} better`));
    const area = svg("g", { "clip-path": `url(#${clip})` });
    this.series.forEach((s, i) => { if (s.shown) this.front(area, s, i); });
    this.series.forEach((s, i) => { if (s.shown) this.points(area, s, i); });
    root.append(area);
    this.ring = svg("circle", { r: 9, fill: "none", stroke: t.text, "stroke-width": 2, visibility: "hidden" });
    root.append(this.ring);
    const shown = this.series.some((s) => s.shown && s.points.length);
    this.box.replaceChildren(root, ...(shown ? [] : [el("p", { class: "none" }, "Nothing to show: choose a group, or other axes.")]));
    this.root = root;
    this.pointer(root);
  }

  front(area, s, i) {
    if (!s.front.length) return;
    const worse = (m, a, b) => (m.better === "higher" ? Math.min(a, b) : Math.max(a, b));
    let d = "";
    s.front.forEach((p, k) => {
      const q = s.front[k - 1];
      if (q) d += `L${this.px(worse(this.x, q.x.value, p.x.value))} ${this.py(worse(this.y, q.y.value, p.y.value))}L`;
      else d += "M";
      d += `${this.px(p.x.value)} ${this.py(p.y.value)}`;
    });
    area.append(svg("path", { class: "front", d, fill: "none", stroke: this.t.series[i % 10], "stroke-width": 2, "stroke-dasharray": dash(i).join(" ") || null }));
  }

  points(area, s, i) {
    const colour = this.t.series[i % 10];
    for (const p of s.points) {
      const x = this.px(p.x.value), y = this.py(p.y.value), line = (x1, y1, x2, y2) => svg("line", { class: "whisker", x1, y1, x2, y2, stroke: colour, "stroke-width": 1.2, opacity: 0.7 });
      if (p.x.low != null && p.x.high != null) area.append(line(this.px(p.x.low), y, this.px(p.x.high), y));
      if (p.y.low != null && p.y.high != null) area.append(line(x, this.py(p.y.low), x, this.py(p.y.high)));
      const empty = p.verdict === "void";
      area.append(svg("path", { d: shape(i), transform: `translate(${x} ${y})`, fill: empty ? this.t.back : colour, stroke: empty ? colour : null, "stroke-width": empty ? 1.5 : null, opacity: p.front || empty ? null : 0.55 }));
    }
  }

  // The pointer: what is nearest is said; a drag zooms; a click opens.
  pointer(root) {
    const at = (e) => { const r = root.getBoundingClientRect(); return [((e.clientX - r.left) / r.width) * this.width, ((e.clientY - r.top) / r.height) * this.height]; };
    let from = null, frame = null;
    root.addEventListener("pointerdown", (e) => { if (e.button === 0 && e.pointerType === "mouse") { from = at(e); root.setPointerCapture(e.pointerId); } });
    root.addEventListener("pointermove", (e) => {
      const [x, y] = at(e);
      if (from && Math.hypot(x - from[0], y - from[1]) > 6) {
        frame ??= root.appendChild(svg("rect", { fill: this.t.series[0], opacity: 0.15 }));
        for (const [k, v] of Object.entries({ x: Math.min(x, from[0]), y: Math.min(y, from[1]), width: Math.abs(x - from[0]), height: Math.abs(y - from[1]) })) frame.setAttribute(k, v);
      } else this.hover(x, y);
    });
    root.addEventListener("pointerup", (e) => {
      const [x, y] = at(e);
      if (frame) this.windowOf(from, [x, y]);
      else if (from) { const hit = this.hit(x, y), p = hit && this.point(...hit); if (p?.href) location.assign(new URL(p.href, location.href)); }
      frame?.remove();
      from = frame = null;
    });
    root.addEventListener("dblclick", () => { this.reset(); });
  }

  hit(x, y) {
    let best = null, least = 18;
    this.series.forEach((s, i) => { if (s.shown) s.points.forEach((p, j) => { const d = Math.hypot(this.px(p.x.value) - x, this.py(p.y.value) - y); if (d < least) { least = d; best = [i, j]; } }); });
    return best;
  }

  hover(x, y) {
    const hit = this.hit(x, y);
    this.root.style.cursor = hit ? "pointer" : "";
    if (!hit) return this.clear();
    this.show(...hit);
    this.frame.read(this.point(...hit));
  }

  windowOf([ax, ay], [bx, by]) {
    const { left, right, top, bottom } = this.b, [x0, x1, y0, y1] = this.now;
    const x = (p) => x0 + ((Math.min(right, Math.max(left, p)) - left) / (right - left)) * (x1 - x0), y = (p) => y0 + ((bottom - Math.min(bottom, Math.max(top, p))) / (bottom - top)) * (y1 - y0);
    this.zoomTo([Math.min(x(ax), x(bx)), Math.max(x(ax), x(bx)), Math.min(y(ay), y(by)), Math.max(y(ay), y(by))]);
  }

  zoomTo(z) {
    if (z && !(z[0] < z[1] && z[2] < z[3])) return;
    this.frame.keep("zoom", z ? z.map((v) => Number(v.toPrecision(6))).join(",") : null);
    this.paint();
    this.frame.zoomChanged();
  }

  zoom(factor, at) {
    const [x0, x1, y0, y1] = this.now, p = at && this.series[at[0]].points[at[1]], all = this.extent();
    const around = (lo, hi, middle, least, most) => { const half = ((hi - lo) / 2) * factor; return [Math.max(least, middle - half), Math.min(most, middle + half)]; };
    const z = [...around(x0, x1, p ? p.x.value : (x0 + x1) / 2, all[0], all[1]), ...around(y0, y1, p ? p.y.value : (y0 + y1) / 2, all[2], all[3])];
    this.zoomTo(z.every((v, i) => v === all[i]) ? null : z);
    if (at) this.show(...at);
  }

  reset() { this.zoomTo(null); }

  count(i) { return this.series[i].points.length; }

  nearest(i, from, j) {
    const x = this.series[from].points[j].x.value;
    return this.series[i].points.reduce((best, p, k, all) => (Math.abs(p.x.value - x) < Math.abs(all[best].x.value - x) ? k : best), 0);
  }

  point(i, j) {
    const p = this.series[i].points[j];
    const figure = (r, m) => quantity(r.value, m.unit) + (r.low != null && r.high != null ? ` [${number(r.low)}, ${number(r.high)}]` : "");
    return { text: [`${this.series[i].name}: ${p.label}`, figure(p.x, this.x), figure(p.y, this.y), p.front && "on the front", p.verdict].filter(Boolean).join(", "), href: p.href };
  }

  show(i, j) {
    const p = this.series[i].points[j];
    this.ring.setAttribute("cx", this.px(p.x.value));
    this.ring.setAttribute("cy", this.py(p.y.value));
    this.ring.setAttribute("visibility", "visible");
  }

  clear() { this.ring?.setAttribute("visibility", "hidden"); }

  table() {
    const rows = this.series.filter((s) => s.shown).flatMap((s) => s.points.map((p) => [s.name, p.label, p.x.value, p.x.low, p.x.high, p.y.value, p.y.low, p.y.high, p.front ? "yes" : "", p.verdict ?? ""]));
    return { columns: ["Side", "Launch", this.title(this.x), "Low", "High", this.title(this.y), "Low ", "High ", "On the front", "Verdict"], rows };
  }

  vector() {
    const copy = this.root.cloneNode(true);
    copy.removeAttribute("style");
    if (this.frame.spec.simulated) copy.append(svg("text", { x: this.width - 8, y: 16, "text-anchor": "end", fill: this.t.sim, "font-size": 12, "font-weight": 700, "font-family": "sans-serif" }, "SIMULATED"));
    copy.prepend(svg("title", {}, this.frame.spec.title));
    return new XMLSerializer().serializeToString(copy) + "\n";
  }

  async picture() {
    const url = URL.createObjectURL(new Blob([this.vector()], { type: "image/svg+xml" }));
    const image = new Image();
    image.src = url;
    await image.decode();
    URL.revokeObjectURL(url);
    const canvas = el("canvas", { width: this.width * 2, height: this.height * 2 });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas;
  }

  scale() { return 2; }

  sample(c, i, x, y, scale) {
    c.save();
    c.translate(x + 14 * scale, y);
    c.scale(scale, scale);
    c.fillStyle = this.t.series[i % 10];
    c.fill(new Path2D(shape(i)));
    c.restore();
  }

  theme() { this.paint(); }
  destroy() { this.sizes?.disconnect(); }
}

// front are the points that no other is better than in one measure and at least as good in the other, in the order of x.
export function front(points, betterX, betterY) {
  const sx = betterX === "higher" ? 1 : -1, sy = betterY === "higher" ? 1 : -1;
  const all = [...points].sort((a, b) => sx * (b.x.value - a.x.value) || sy * (b.y.value - a.y.value));
  let best = -Infinity;
  return all.filter((p) => { const v = sy * p.y.value; if (v <= best) return false; best = v; return true; }).sort((a, b) => a.x.value - b.x.value);
}

function span(all) {
  if (!all.length) return [0, 1];
  let lo = Math.min(...all), hi = Math.max(...all);
  if (lo > 0 && lo < hi / 2) lo = 0;
  const pad = (hi - lo) * 0.06 || Math.abs(hi) * 0.1 || 1;
  return [lo === 0 ? 0 : lo - pad, hi + pad];
}

function ticks(lo, hi, n) {
  const rough = (hi - lo) / n, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= rough);
  const all = [];
  for (let v = Math.ceil(lo / step - 1e-9) * step; v <= hi + step * 1e-9; v += step) all.push(Number(v.toPrecision(12)));
  return all;
}

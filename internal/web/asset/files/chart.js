// Plots: the frame that all kinds share. <figure data-chart> holds the JSON of package figure in a script element, or data-chart is the URL of it.
//
// The frame gives every plot a name, a caption, toggles, arrow keys that walk points and say them, a table of
// the data, zoom and choices in the URL (NAME.zoom, NAME.hide, ...), and files to keep. What the figure held for readers without
// JavaScript, beside its caption, is taken out.
//
// A kind is a class with: series [{name, shown}], draw(box), toggle(i), count(i), point(i, j) -> {text, href}, show(i, j),
// clear(), table() -> {columns, rows}, swatch(i), controls() -> elements, notes() -> elements, picture() -> Promise<canvas>, vector() -> text or null,
// zoom(factor), zoomed(), reset(), theme(), destroy().
import { csv, el, getJSON, number, param, save, setParam, svg } from "./dom.js";

export async function charts(root) {
  await Promise.all([...root.querySelectorAll("figure[data-chart]")].filter((f) => !f.dataset.name).map(open));
}

async function open(figure) {
  const inside = figure.querySelector('script[type="application/json"]');
  try {
    const spec = inside ? JSON.parse(inside.textContent) : await getJSON(figure.dataset.chart);
    if (!spec) return; // the run has ended: its report comes
    const frame = new Frame(figure, spec);
    await frame.draw();
    if (!inside) {
      figure.addEventListener("chart-reload", async () => {
        const next = await getJSON(figure.dataset.chart);
        if (next) frame.renew(next);
      });
    }
  } catch (e) {
    figure.append(el("p", { class: "note" }, "This plot could not be drawn: " + e.message));
    console.error(e);
  }
}

// Colours come from the style sheet, so that they follow the reader's scheme.
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  const forced = matchMedia("(forced-colors: active)").matches;
  const text = forced ? "CanvasText" : of("--fg");
  return {
    text, muted: forced ? "CanvasText" : of("--muted"), axis: forced ? "CanvasText" : of("--axis"), grid: forced ? "transparent" : of("--grid"), back: forced ? "Canvas" : of("--bg"),
    slo: forced ? "LinkText" : of("--slo"), sim: forced ? "CanvasText" : of("--simfg"), steady: of("--steady"), noise: of("--noise"), good: forced ? "CanvasText" : of("--good"), bad: forced ? "CanvasText" : of("--bad"),
    series: Array.from({ length: 10 }, (_, i) => (forced ? "CanvasText" : of("--s" + i))),
    font: '12px system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif',
  };
}

// A series is told from others by hue, by dash and by marker: no reader needs all three.
const dashes = [[], [9, 4], [2, 4], [10, 4, 2, 4], [5, 3], [14, 4], [2, 2]];
export const dash = (i) => dashes[i % dashes.length];
const shapes = [
  "M0-4A4 4 0 1 1 0 4A4 4 0 1 1 0-4Z", // circle
  "M-3.6-3.6H3.6V3.6H-3.6Z", // square
  "M0-4.6L4.4 3.4H-4.4Z", // triangle
  "M0-5L4.4 0L0 5L-4.4 0Z", // diamond
  "M-1.4-4.4H1.4V-1.4H4.4V1.4H1.4V4.4H-1.4V1.4H-4.4V-1.4H-1.4Z", // cross
  "M0 4.6L4.4-3.4H-4.4Z", // triangle on its point
];
export const shape = (i) => shapes[i % shapes.length];

const most = 25; // rows of a page of the table

class Frame {
  constructor(figure, spec) {
    this.figure = figure;
    this.spec = spec;
    this.name = spec.name;
    figure.dataset.name = spec.name;
    this.at = null; // the point that the keys are at: [series, point]
  }

  async draw() {
    const { Pareto } = this.spec.pareto ? await import("./pareto.js") : {};
    this.Kind = Pareto ?? (await import("./plot.js")).Plot;
    this.kind = new this.Kind(this, this.spec);
    const caption = this.figure.querySelector("figcaption") ?? this.figure.appendChild(el("figcaption"));
    if (!caption.textContent.trim()) caption.textContent = this.spec.title;
    if (this.spec.caption && !caption.querySelector("small")) caption.append(el("small", {}, this.spec.caption));
    if (this.spec.simulated && !caption.querySelector(".chart-sim")) caption.prepend(el("span", { class: "chart-sim" }, "SIMULATED"));
    for (const child of [...this.figure.children]) if (child !== caption) child.remove();
    const id = (part) => `chart-${this.name}-${part}`;
    caption.id = id("caption");
    this.tools = el("div", { class: "chart-tools" });
    this.box = el("div", { class: "chart-plot", role: "img", tabindex: "0", "aria-label": this.label(), "aria-describedby": id("how"), "aria-details": id("rows") });
    this.say = el("output", { class: "chart-say" });
    this.say.setAttribute("aria-live", "off");
    this.heard = el("p", { class: "sr", "aria-live": "polite" });
    this.notes = el("div");
    this.rows = el("div", { id: id("rows"), hidden: true });
    const how = el("p", { class: "sr", id: id("how") }, "Arrow keys walk the points and the series, plus and minus zoom. The button Table shows the data.");
    this.figure.append(this.tools, this.box, this.say, this.heard, how, this.notes, this.rows);
    this.kind.draw(this.box);
    this.toolbar();
    this.note();
    this.box.addEventListener("keydown", (e) => this.key(e));
    this.box.addEventListener("blur", () => { this.at = null; this.kind.clear(); });
    for (const q of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) matchMedia(q).addEventListener("change", () => { this.kind.theme(); this.toolbar(); });
  }

  // renew draws new data where the old was: zoom, choices and what is open stay.
  renew(spec) {
    this.spec = spec;
    this.kind.destroy();
    this.box.replaceChildren();
    this.kind = new this.Kind(this, spec);
    this.at = null;
    this.kind.draw(this.box);
    this.box.setAttribute("aria-label", this.label());
    this.toolbar();
    this.note();
    if (!this.rows.hidden) this.table();
  }

  note() { this.notes.replaceChildren(...this.kind.notes()); }

  label() {
    const shown = this.kind.series.filter((s) => s.shown).map((s) => s.name);
    return `${this.spec.simulated ? "Simulated. " : ""}Plot: ${this.spec.title}. ${this.kind.axes()}. ${shown.length ? "Shown: " + shown.join(", ") : "Nothing is shown"}.`;
  }

  // State in the URL: under the plot's name, or under a clock that several share.
  state(key) { return param(`${this.name}.${key}`); }
  keep(key, value) { setParam(`${this.name}.${key}`, value); }

  toolbar() {
    const focus = this.tools.contains(document.activeElement) ? [...this.tools.querySelectorAll("button,select,input,summary")].indexOf(document.activeElement) : -1;
    const button = (text, press, more = {}) => el("button", { type: "button", onclick: press, ...more }, text);
    const toggles = this.kind.toggles().map(({ i, name, shown, swatches }) =>
      el("button", { type: "button", "aria-pressed": String(shown), onclick: () => { this.kind.toggle(i); this.changed(); } }, ...swatches, name));
    this.unzoom = button("Whole", () => this.reset(), { hidden: !this.kind.zoomed() });
    const menu = el("details", { class: "menu" }, el("summary", {}, "Keep"), el("ul", {},
      el("li", {}, button("PNG", () => this.png())),
      this.kind.vector() != null && el("li", {}, button("SVG", () => save(this.name + ".svg", "image/svg+xml", this.kind.vector()))),
      el("li", {}, button("CSV", () => { const t = this.kind.table(); save(this.name + ".csv", "text/csv", csv(t.columns, t.rows)); })),
      el("li", {}, button("JSON", () => save(this.name + ".json", "application/json", JSON.stringify(this.spec, null, 2) + "\n")))));
    this.more = button("Table", () => { this.rows.hidden = !this.rows.hidden; this.more.setAttribute("aria-expanded", !this.rows.hidden); if (!this.rows.hidden) this.table(); },
      { "aria-expanded": String(!this.rows.hidden), "aria-controls": this.rows.id });
    this.tools.replaceChildren(...this.kind.controls(), ...toggles, el("span", { class: "end" }, this.unzoom, this.more, menu));
    if (focus >= 0) this.tools.querySelectorAll("button,select,input,summary")[focus]?.focus();
  }

  // changed is called when what is shown has changed.
  changed() {
    this.at = null;
    this.box.setAttribute("aria-label", this.label());
    this.toolbar();
    if (!this.rows.hidden) this.table();
  }

  zoomChanged() { if (this.unzoom) this.unzoom.hidden = !this.kind.zoomed(); }

  reset() {
    this.kind.reset();
    this.zoomChanged();
    this.box.focus();
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const shown = this.kind.series.map((s, i) => i).filter((i) => this.kind.series[i].shown && this.kind.count(i) > 0);
    if (e.key === "+" || e.key === "=") this.kind.zoom(0.5, this.at);
    else if (e.key === "-") this.kind.zoom(2, this.at);
    else if (e.key === "0") this.reset();
    else if (e.key === "Escape") { this.at = null; this.kind.clear(); this.say.replaceChildren(); }
    else if (e.key === "Enter") { const p = this.at && this.kind.point(...this.at); if (p?.href) location.assign(new URL(p.href, location.href)); }
    else if (shown.length && this.walk(e.key, shown)) this.tell();
    else return;
    e.preventDefault();
    e.stopPropagation();
  }

  walk(key, shown) {
    let [i, j] = this.at ?? [shown[0], -1];
    const n = this.kind.count(i), page = Math.max(1, Math.round(n / 20));
    const to = { ArrowRight: j + 1, ArrowLeft: j < 0 ? n - 1 : j - 1, Home: 0, End: n - 1, PageDown: j + page, PageUp: j - page }[key];
    if (to != null) this.at = [i, Math.max(0, Math.min(n - 1, to))];
    else if (key === "ArrowDown" || key === "ArrowUp") {
      const k = (shown.indexOf(i) + (key === "ArrowDown" ? 1 : shown.length - 1)) % shown.length;
      this.at = this.at ? [shown[k], this.kind.nearest(shown[k], i, j)] : [shown[0], 0];
    } else return false;
    return true;
  }

  tell() {
    const p = this.kind.point(...this.at), [i, j] = this.at;
    this.kind.show(i, j);
    this.read(p);
    this.heard.textContent = `${p.text} (${j + 1} of ${this.kind.count(i)})`;
  }

  // read shows what is under the pointer or at the keys.
  read(p) {
    this.say.replaceChildren(p.text, ...(p.href ? [" ", el("a", { href: p.href }, "open")] : []));
  }

  table(page = 0) {
    const { columns, rows } = this.kind.table();
    const pages = Math.max(1, Math.ceil(rows.length / most)), from = page * most;
    const cell = (v) => el("td", typeof v === "number" || v == null ? { class: "n" } : {}, typeof v === "number" ? number(v) : v ?? "–");
    const head = (c, i) => el("th", { scope: "col", class: rows.some((r) => typeof r[i] === "number") ? "n" : null }, c);
    const move = (text, to) => el("button", { type: "button", disabled: to < 0 || to >= pages, onclick: () => this.table(to) }, text);
    this.rows.replaceChildren(
      el("div", { class: "tablebox chart-rows" }, el("table", {}, el("caption", { class: "sr" }, "Data of the plot: " + this.spec.title),
        el("thead", {}, el("tr", {}, ...columns.map(head))),
        el("tbody", {}, ...rows.slice(from, from + most).map((r) => el("tr", {}, ...r.map(cell)))))),
      el("div", { class: "pager" }, rows.length === 0 ? "No data" : `${from + 1} to ${Math.min(from + most, rows.length)} of ${rows.length}`, pages > 1 && move("Back", page - 1), pages > 1 && move("Next", page + 1)));
    const box = this.rows.firstChild;
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) { box.tabIndex = 0; box.setAttribute("role", "group"); box.setAttribute("aria-label", "Data of the plot"); }
  }

  // png adds what stands around the plot: title, SIMULATED and who is who.
  async png() {
    const inner = await this.kind.picture(), t = theme(), scale = this.kind.scale();
    const shown = this.kind.toggles().filter((s) => s.shown).map((s) => ({ name: s.name, i: s.i }));
    const out = el("canvas"), c = out.getContext("2d"), pad = 12 * scale, line = 20 * scale;
    c.font = t.font.replace("12px", 12 * scale + "px");
    const lines = [[]];
    let x = pad;
    for (const s of shown) {
      const w = 34 * scale + c.measureText(s.name).width + 14 * scale;
      if (x + w > inner.width && lines.at(-1).length) { lines.push([]); x = pad; }
      lines.at(-1).push({ ...s, x });
      x += w;
    }
    out.width = inner.width;
    out.height = inner.height + pad * 2 + line * (1 + lines.length);
    c.fillStyle = t.back;
    c.fillRect(0, 0, out.width, out.height);
    c.textBaseline = "middle";
    const font = (weight) => { c.font = t.font.replace("12px", `${weight} ${12 * scale}px`); };
    font(600);
    c.fillStyle = t.text;
    c.fillText(this.spec.title, pad, pad + line / 2, out.width - pad * 2 - (this.spec.simulated ? 90 * scale : 0));
    if (this.spec.simulated) { c.textAlign = "end"; c.fillStyle = t.sim; c.fillText("SIMULATED", out.width - pad, pad + line / 2); c.textAlign = "start"; }
    font(400);
    lines.forEach((all, k) => all.forEach(({ name, i, x }) => {
      const y = pad + line * (k + 1.5);
      this.kind.sample(c, i, x, y, scale);
      c.fillStyle = t.text;
      c.fillText(name, x + 34 * scale, y);
    }));
    c.drawImage(inner, 0, pad + line * (1 + lines.length));
    out.toBlob((blob) => save(this.name + ".png", "image/png", blob));
  }
}

// swatch is how a series looks, for its toggle.
export function swatch(i, colour, lined = true) {
  return svg("svg", { viewBox: "0 0 28 12", "aria-hidden": "true" },
    lined && svg("line", { x1: 0, y1: 6, x2: 28, y2: 6, stroke: colour, "stroke-width": 2, "stroke-dasharray": dash(i).join(" ") || null }),
    svg("path", { d: shape(i), transform: "translate(14 6)", fill: colour }));
}

// sample draws the same on a canvas.
export function sample(c, i, colour, x, y, scale, lined = true) {
  c.save();
  c.translate(x, y);
  c.scale(scale, scale);
  c.strokeStyle = c.fillStyle = colour;
  c.lineWidth = 2;
  if (lined) { c.setLineDash(dash(i)); c.beginPath(); c.moveTo(0, 0); c.lineTo(28, 0); c.stroke(); }
  c.translate(14, 0);
  c.fill(new Path2D(shape(i)));
  c.restore();
}

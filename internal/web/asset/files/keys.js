// Keys: a palette (Ctrl+K or /), rows (j k x Enter), places (g then a letter), help (?).
// A link or button with data-key="n" is pressed by that key; data-key="g r" by g and then r. They are listed in the help by their text.
import { el, getJSON, later, writing } from "./dom.js";

const own = [
  ["Ctrl+K or /", "Find a run, a study, a page"],
  ["j and k", "Next and previous row"],
  ["Enter or o", "Open the row"],
  ["x", "Tick the row to compare"],
  ["?", "These keys"],
  ["Escape", "Close"],
];

export function keys() {
  const palette = new Palette();
  let prefix = "";
  document.addEventListener("keydown", (e) => {
    if ((e.ctrlKey || e.metaKey) && !e.altKey && e.key.toLowerCase() === "k") { e.preventDefault(); return palette.open(); }
    if (e.ctrlKey || e.metaKey || e.altKey || writing(e) || document.querySelector("dialog[open]")) return;
    const chord = prefix ? prefix + " " + e.key : e.key;
    prefix = "";
    if (press(chord)) return e.preventDefault();
    if ([...document.querySelectorAll("[data-key]")].some((b) => b.dataset.key.startsWith(chord + " "))) prefix = chord;
    if (chord === "/") { e.preventDefault(); palette.open(); }
    else if (chord === "?") { e.preventDefault(); help(); }
    else if (row(chord)) e.preventDefault();
  });
  for (const b of document.querySelectorAll("[data-palette]")) { b.hidden = false; b.addEventListener("click", () => palette.open()); }
  for (const b of document.querySelectorAll("[data-help]")) { b.hidden = false; b.addEventListener("click", help); }
}

function press(chord) {
  const b = [...document.querySelectorAll("[data-key]")].find((b) => b.dataset.key === chord && b.checkVisibility());
  b?.click();
  return b != null;
}

// row moves in the first table that has rows with links: the row at hand has the focus, so that a screen reader says it.
function row(key) {
  const rows = [...document.querySelectorAll("table[data-table] tbody tr")].filter((r) => r.checkVisibility());
  if (!rows.length) return false;
  const at = rows.findIndex((r) => r.classList.contains("at"));
  const to = { j: at + 1, k: at - 1 }[key];
  if (to != null) {
    move(rows, Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : to)));
    return true;
  }
  if (at < 0) return false;
  if (key === "x") { rows[at].querySelector("input[type=checkbox]")?.click(); return true; }
  if ((key === "Enter" && document.activeElement === rows[at]) || key === "o") { rows[at].querySelector("a[href]")?.click(); return true; }
  return false;
}

function move(rows, to) {
  rows.forEach((r, i) => { r.classList.toggle("at", i === to); r.tabIndex = i === to ? 0 : -1; });
  rows[to].focus({ preventScroll: true });
  rows[to].scrollIntoView({ block: "nearest" });
}

function help() {
  const list = el("dl", { class: "keys" });
  const add = (key, what) => list.append(el("dt", {}, el("kbd", {}, key)), el("dd", {}, what));
  own.forEach(([key, what]) => add(key, what));
  document.querySelectorAll("[data-key]").forEach((b) => add(b.dataset.key, b.dataset.keyText ?? b.textContent.trim()));
  if (document.querySelector("figure[data-chart]")) {
    add("← →", "In a plot: the next point");
    add("↑ ↓", "In a plot: the next series");
    add("+ - 0", "In a plot: zoom in, out, all");
  }
  const d = el("dialog", { "aria-labelledby": "keys-title" }, el("header", {}, el("h2", { id: "keys-title" }, "Keys"), el("button", { type: "button", onclick: () => d.close() }, "Close")), list);
  d.addEventListener("close", () => d.remove());
  document.body.append(d);
  d.showModal();
}

// The palette asks GET /api/v1/search?q= for [{"title", "kind", "href"}], and has the links of the page's own top before anything is typed.
class Palette {
  constructor() {
    this.ask = later(() => this.find(), 120);
    this.turn = 0;
  }

  open() {
    if (this.dialog) return;
    this.input = el("input", { type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-autocomplete": "list", "aria-label": "Find a run, a study, a page", placeholder: "Find a run, a study, a page", autocomplete: "off", spellcheck: "false" });
    this.list = el("ul", { role: "listbox", id: "palette-list", "aria-label": "Found" });
    this.note = el("p", { role: "status" });
    this.dialog = el("dialog", { class: "palette", "aria-label": "Find" }, this.input, this.list, this.note);
    this.input.addEventListener("input", this.ask);
    this.input.addEventListener("keydown", (e) => this.key(e));
    this.list.addEventListener("click", (e) => { const o = e.target.closest("[role=option]"); if (o) this.go(o); });
    this.dialog.addEventListener("click", (e) => { if (e.target === this.dialog) this.dialog.close(); });
    this.dialog.addEventListener("close", () => { this.dialog.remove(); this.dialog = null; this.turn++; });
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.show(this.pages(""));
  }

  pages(text) {
    const links = [...document.querySelectorAll(".top nav a, [data-key][href]")];
    return links.map((a) => ({ title: a.textContent.trim(), kind: "page", href: a.getAttribute("href") })).filter((r) => r.title.toLowerCase().includes(text.toLowerCase()));
  }

  async find() {
    const text = this.input.value.trim(), turn = ++this.turn;
    if (!text) return this.show(this.pages(""));
    try {
      const found = await getJSON("/api/v1/search?q=" + encodeURIComponent(text));
      if (turn === this.turn) this.show([...this.pages(text), ...found]);
    } catch (e) {
      if (turn === this.turn) this.show(this.pages(text), "The search failed: " + e.message);
    }
  }

  show(rows, note) {
    this.list.replaceChildren(...rows.slice(0, 50).map((r, i) => el("li", { role: "option", id: "found-" + i, "aria-selected": "false", "data-href": r.href }, r.title, el("small", {}, r.kind))));
    this.note.textContent = note ?? (rows.length ? "" : "Nothing has this name.");
    this.at(0);
  }

  at(i) {
    const all = [...this.list.children];
    this.now = all.length ? (i + all.length) % all.length : -1;
    all.forEach((o, k) => o.setAttribute("aria-selected", k === this.now));
    if (this.now < 0) return this.input.removeAttribute("aria-activedescendant");
    this.input.setAttribute("aria-activedescendant", "found-" + this.now);
    all[this.now].scrollIntoView({ block: "nearest" });
  }

  key(e) {
    if (e.key === "ArrowDown") this.at(this.now + 1);
    else if (e.key === "ArrowUp") this.at(this.now - 1);
    else if (e.key === "Enter" && this.now >= 0) this.go(this.list.children[this.now]);
    else return;
    e.preventDefault();
  }

  // Only places of this server are gone to, whatever a title or the server says.
  go(option) {
    const url = new URL(option.dataset.href, location.href);
    if (url.origin === location.origin) location.assign(url);
  }
}

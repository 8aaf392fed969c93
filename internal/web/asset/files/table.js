// Tables of runs and studies: columns chosen, rows ticked to compare, what is seen exported.
//
//   <div class="tablebox tall">
//   <table data-table="runs" data-compare="/compare" data-all='[{"name":"p99_ttft_ms","label":"P99 TTFT (ms)"}]'>
//     <thead><tr><th></th><th data-col="name" data-fixed>Name</th><th data-col="p99_ttft_ms" class="n">P99 TTFT (ms)</th></tr></thead>
//     <tbody><tr><td><input type="checkbox" name="run" value="ID" aria-label="Tick NAME"></td><th scope="row"><a href="…">NAME</a></th><td class="n" data-value="131.38">131.4</td></tr></tbody>
//   </table></div>
//
// data-col: a column that can be left out; data-fixed: not this one. data-all: columns that the server can draw too: choosing asks it, by ?columns=a,b.
// data-value: the figure as it is exported; without it the text. Ticks are kept over pages of the list, and without JavaScript a form around the table sends them.
import { canCopy, copy, csv, el, json, markdown, param, remember, remembered, save, setParam } from "./dom.js";

export function tables(root) {
  for (const t of root.querySelectorAll("table[data-table]")) if (!t.dataset.started) { t.dataset.started = ""; new Table(t); }
}

class Table {
  constructor(table) {
    this.table = table;
    this.name = table.dataset.table;
    this.box = table.closest(".tablebox") ?? table;
    this.heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    this.server = table.dataset.all ? JSON.parse(table.dataset.all) : null;
    this.bar = el("div", { class: "toolbar table-tools" });
    this.box.before(this.bar);
    if (this.heads.some((h) => h.dataset.col)) this.columns();
    this.exports();
    this.rows();
    if (table.querySelector("tbody input[type=checkbox]")) this.ticks();
  }

  // Columns: what the URL says, else what the reader chose last, else what the server drew.
  columns() {
    const own = this.heads.filter((h) => h.dataset.col).map((h) => ({ name: h.dataset.col, label: h.textContent.trim(), fixed: h.dataset.fixed != null }));
    const drawn = own.map((c) => c.name), all = this.server ? [...own, ...this.server.filter((c) => !drawn.includes(c.name))] : own;
    const asked = param("columns"), kept = remembered(this.name + ".columns");
    if (!asked && kept && this.server && kept !== drawn.join(",")) {
      const url = new URL(location.href);
      url.searchParams.set("columns", kept);
      return location.replace(url);
    }
    const chosen = new Set((asked ?? kept)?.split(",") ?? drawn);
    for (const c of own) if (c.fixed) chosen.add(c.name);
    const show = () => this.heads.forEach((h, i) => {
      const out = h.dataset.col && !chosen.has(h.dataset.col);
      for (const r of this.table.rows) if (r.cells.length === this.heads.length) r.cells[i].hidden = out;
    });
    if (!this.server) show();
    const choose = (name, on) => {
      if (on) chosen.add(name); else chosen.delete(name);
      const text = all.map((c) => c.name).filter((n) => chosen.has(n)).join(","), first = text === drawn.join(",") && !this.server;
      remember(this.name + ".columns", first ? null : text);
      setParam("columns", first ? null : text);
      if (this.server) location.reload(); else show();
    };
    const item = (c) => { const box = el("input", { type: "checkbox", checked: chosen.has(c.name), disabled: c.fixed, onchange: () => choose(c.name, box.checked) }); return el("li", {}, el("label", {}, box, c.label)); };
    this.bar.append(el("details", { class: "menu left" }, el("summary", {}, "Columns"), el("ul", {}, ...all.map(item))));
  }

  seen() {
    const at = this.heads.map((h, i) => i).filter((i) => !this.heads[i].hidden && this.heads[i].textContent.trim());
    const value = (c) => {
      const v = c.dataset.value;
      if (v != null) return v === "" ? null : Number.isFinite(Number(v)) ? Number(v) : v;
      return c.innerText.replace(/\s+/g, " ").trim();
    };
    const rows = [...this.table.tBodies].flatMap((b) => [...b.rows]).filter((r) => r.cells.length === this.heads.length && r.checkVisibility());
    return { columns: at.map((i) => this.heads[i].textContent.trim()), rows: rows.map((r) => at.map((i) => value(r.cells[i]))) };
  }

  exports() {
    const kinds = [["CSV", "csv", "text/csv", csv], ["JSON", "json", "application/json", json], ["Markdown", "md", "text/markdown", markdown]];
    const press = (f) => () => { const { columns, rows } = this.seen(); f(columns, rows); };
    const items = kinds.map(([text, end, type, write]) => el("li", {}, el("button", { type: "button", onclick: press((c, r) => save(this.name + "." + end, type, write(c, r))) }, text)));
    if (canCopy()) items.push(el("li", {}, el("button", { type: "button", onclick: press((c, r) => copy(markdown(c, r))) }, "Copy as Markdown")));
    this.bar.append(el("details", { class: "menu left" }, el("summary", {}, "Export"), el("ul", {}, ...items)));
  }

  // One row is a stop for Tab; j and k, and the arrows, move from there.
  rows() {
    const rows = [...this.table.tBodies[0]?.rows ?? []].filter((r) => r.querySelector("a[href]"));
    if (rows[0]) rows[0].tabIndex = 0;
    this.table.addEventListener("keydown", (e) => {
      const key = { ArrowDown: "j", ArrowUp: "k" }[e.key];
      if (key && e.target.tagName === "TR") { e.preventDefault(); document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })); }
    });
    this.table.addEventListener("focusin", (e) => {
      if (e.target.tagName !== "TR") return;
      for (const r of rows) r.classList.toggle("at", r === e.target);
    });
  }

  ticks() {
    const boxes = [...this.table.querySelectorAll("tbody input[type=checkbox]")];
    this.ticked = new Map(JSON.parse(this.session() ?? "[]"));
    let last = null;
    for (const b of boxes) {
      b.checked = b.checked || this.ticked.has(b.value);
      this.take(b);
      b.addEventListener("click", (e) => {
        if (e.shiftKey && last) {
          const [from, to] = [boxes.indexOf(last), boxes.indexOf(b)].sort((x, y) => x - y);
          for (const other of boxes.slice(from, to + 1)) { other.checked = b.checked; this.take(other); }
        }
        last = b;
        this.take(b);
        this.compare();
      });
    }
    this.compare();
  }

  take(b) {
    b.closest("tr").classList.toggle("ticked", b.checked);
    if (b.checked) this.ticked.set(b.value, b.name);
    else this.ticked.delete(b.value);
  }

  session(value) {
    try {
      if (value === undefined) return sessionStorage.getItem("perflab.ticks." + this.name);
      sessionStorage.setItem("perflab.ticks." + this.name, value);
    } catch { /* ticks then end with the page */ }
    return null;
  }

  compare() {
    this.session(JSON.stringify([...this.ticked]));
    if (!this.table.dataset.compare) return;
    this.tickbar ??= this.box.parentNode.insertBefore(el("div", { class: "bar-compare", role: "region", "aria-label": "Ticked" }), this.box.nextSibling);
    const n = this.ticked.size, url = new URL(this.table.dataset.compare, location.href);
    for (const [value, name] of this.ticked) url.searchParams.append(name, value);
    this.tickbar.hidden = n === 0;
    this.tickbar.replaceChildren(el("a", { class: "button primary", href: url.pathname + url.search, "data-key": "c", "data-key-text": "Compare what is ticked" }, `Compare ${n}`), el("button", { type: "button", onclick: () => this.none() }, "Clear"));
  }

  none() {
    for (const b of this.table.querySelectorAll("tbody input[type=checkbox]")) { b.checked = false; this.take(b); }
    this.ticked.clear();
    this.compare();
  }
}

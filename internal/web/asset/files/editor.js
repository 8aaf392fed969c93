// An editor of a study file over a textarea: numbers of lines, errors at their lines as one types, completion of keys and values.
//
//   <form method="post"><textarea class="code" name="study" data-editor data-check="/api/v1/studies/check" data-complete="/api/v1/studies/complete" aria-label="Study file"></textarea> <button>Check</button></form>
//
// check:    POST, the text as the body -> [{"line": 3, "column": 5, "path": "$.strategy", "message": "…", "hint": "…"}], [] for a right file.
// complete: POST ?line=3&column=5, the text as the body -> [{"text": "staged", "detail": "…"}]; a choice takes the place of the word before the cursor.
// Lines and columns begin at 1; columns count code points. Without JavaScript the form does the same by its button.
import { el, getJSON, later } from "./dom.js";

export function editors(root) {
  for (const t of root.querySelectorAll("textarea[data-editor]")) if (!t.closest(".editor")) new Editor(t);
}

class Editor {
  constructor(text) {
    this.text = text;
    this.id = text.id || (text.id = "editor-" + Math.random().toString(36).slice(2, 8));
    text.spellcheck = false;
    text.wrap = "off";
    text.classList.remove("code");
    this.numbers = el("pre", { class: "numbers", "aria-hidden": "true" });
    const box = el("div", { class: "editor" });
    text.replaceWith(box);
    box.append(this.numbers, text);
    this.outer = el("div", { class: "editor-box" });
    box.replaceWith(this.outer);
    this.outer.append(box);
    this.state = el("p", { class: "muted", role: "status" });
    this.list = el("ul", { class: "editor-wrong", id: this.id + "-wrong" });
    this.outer.after(this.state, this.list);
    this.menu = el("ul", { class: "complete", role: "listbox", id: this.id + "-list", "aria-label": "Completions", hidden: true });
    this.outer.append(this.menu);
    text.setAttribute("aria-describedby", this.list.id);
    text.setAttribute("aria-autocomplete", "list");
    text.setAttribute("aria-controls", this.menu.id);
    this.wrong = [];
    this.turn = 0;
    this.checkLater = later(() => this.check(), 400);
    this.completeLater = later(() => this.complete(), 150);
    text.addEventListener("input", (e) => { this.count(); this.checkLater(); if (!e.inputType?.startsWith("delete")) this.completeLater(); else this.close(); });
    text.addEventListener("scroll", () => { this.numbers.scrollTop = text.scrollTop; this.close(); });
    text.addEventListener("keydown", (e) => this.key(e));
    text.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    new ResizeObserver(() => { this.numbers.style.height = text.offsetHeight + "px"; }).observe(text);
    this.menu.addEventListener("mousedown", (e) => { const o = e.target.closest("[role=option]"); if (o) { e.preventDefault(); this.take([...this.menu.children].indexOf(o)); } });
    this.count();
    this.check();
  }

  count() {
    const n = this.text.value.split("\n").length, bad = new Set(this.wrong.map((w) => w.line));
    if (n === this.counted && this.bad === [...bad].join()) return;
    this.counted = n;
    this.bad = [...bad].join();
    this.numbers.replaceChildren(...Array.from({ length: n }, (_, i) => (bad.has(i + 1) ? el("span", { class: "wrong" }, String(i + 1)) : String(i + 1) + "\n")));
  }

  async check() {
    if (!this.text.dataset.check) return;
    const turn = ++this.turn;
    try {
      const wrong = await getJSON(this.text.dataset.check, { method: "POST", body: this.text.value, headers: { Accept: "application/json", "Content-Type": "application/yaml" } });
      if (turn !== this.turn) return; // what was typed since is checked after
      this.wrong = wrong;
      this.say(wrong.length === 0 ? "The file is right." : wrong.length === 1 ? "One thing is wrong." : `${wrong.length} things are wrong.`);
    } catch (e) {
      if (turn !== this.turn) return;
      this.wrong = [];
      this.say("The file could not be checked: " + e.message);
    }
    this.text.setAttribute("aria-invalid", String(this.wrong.length > 0));
    this.text.dispatchEvent(new CustomEvent("editor-checked", { bubbles: true, detail: this.wrong }));
    this.count();
    this.list.replaceChildren(...this.wrong.map((w) => el("li", {}, el("button", { type: "button", onclick: () => this.go(w.line, w.column) }, `Line ${w.line}`), " ", w.message, ...(w.hint ? [el("small", {}, w.hint)] : []))));
  }

  say(text) { if (this.state.textContent !== text) this.state.textContent = text; }

  go(line, column) {
    const lines = this.text.value.split("\n"), before = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
    const at = before + [...(lines[line - 1] ?? "")].slice(0, Math.max(0, (column || 1) - 1)).join("").length;
    this.text.focus();
    this.text.setSelectionRange(at, at);
    this.text.scrollTop = Math.max(0, (line - 4) * this.height());
  }

  height() { return parseFloat(getComputedStyle(this.text).lineHeight); }

  // The place of the cursor, from 1, in code points.
  place() {
    const before = this.text.value.slice(0, this.text.selectionStart).split("\n");
    return { line: before.length, column: [...before.at(-1)].length + 1, text: before.at(-1) };
  }

  async complete() {
    if (!this.text.dataset.complete || document.activeElement !== this.text || this.text.selectionStart !== this.text.selectionEnd) return;
    const { line, column } = this.place(), asked = this.text.value;
    let found;
    try {
      found = await getJSON(`${this.text.dataset.complete}?line=${line}&column=${column}`, { method: "POST", body: asked, headers: { Accept: "application/json", "Content-Type": "application/yaml" } });
    } catch { return; } // what cannot be completed can be typed
    if (asked !== this.text.value || document.activeElement !== this.text) return;
    const word = this.word();
    found = found.filter((f) => f.text !== word);
    if (!found.length) return this.close();
    this.found = found;
    this.menu.replaceChildren(...found.slice(0, 100).map((f, i) => el("li", { role: "option", id: `${this.id}-o${i}`, "aria-selected": "false" }, f.text, ...(f.detail ? [el("small", {}, f.detail)] : []))));
    this.menu.hidden = false;
    this.put();
    this.at(0);
  }

  word() { return /[\w.-]*$/.exec(this.place().text)[0]; }

  // Below the line of the cursor. Letters are all as wide: a canvas tells how wide.
  put() {
    const style = getComputedStyle(this.text), c = (this.canvas ??= el("canvas").getContext("2d"));
    c.font = style.font;
    const { line, text } = this.place();
    const x = this.text.offsetLeft + parseFloat(style.paddingLeft) + c.measureText(text).width - this.text.scrollLeft;
    const y = this.text.offsetTop + parseFloat(style.paddingTop) + line * this.height() - this.text.scrollTop;
    this.menu.style.left = Math.max(0, Math.min(x, this.outer.clientWidth - this.menu.offsetWidth - 4)) + "px";
    this.menu.style.top = y + 2 + "px";
  }

  at(i) {
    const all = [...this.menu.children];
    this.now = (i + all.length) % all.length;
    all.forEach((o, k) => o.setAttribute("aria-selected", k === this.now));
    all[this.now].scrollIntoView({ block: "nearest" });
    this.text.setAttribute("aria-activedescendant", all[this.now].id);
  }

  close() {
    this.menu.hidden = true;
    this.text.removeAttribute("aria-activedescendant");
  }

  take(i) {
    const f = this.found[i], end = this.text.selectionStart, from = end - this.word().length;
    this.close();
    this.text.focus();
    this.text.setSelectionRange(from, end);
    // execCommand keeps the browser's undo, which setRangeText ends; where it is gone the other does.
    if (!document.execCommand("insertText", false, f.text)) { this.text.setRangeText(f.text, from, end, "end"); this.text.dispatchEvent(new InputEvent("input", { inputType: "insertText" })); }
    this.close();
  }

  key(e) {
    if ((e.ctrlKey || e.metaKey) && e.key === " ") { e.preventDefault(); return this.complete(); }
    if (!this.menu.hidden) {
      const act = { ArrowDown: () => this.at(this.now + 1), ArrowUp: () => this.at(this.now - 1), Enter: () => this.take(this.now), Tab: () => this.take(this.now), Escape: () => this.close() }[e.key];
      if (act && !e.ctrlKey && !e.metaKey) { e.preventDefault(); e.stopPropagation(); return act(); }
    }
    if (e.key === "Enter" && !e.ctrlKey && !e.metaKey && !e.shiftKey) this.indent(e);
  }

  // A new line begins where the one before it did, and deeper after a key without a value. Tab leaves the editor, as everywhere.
  indent(e) {
    const { text } = this.place(), space = /^ */.exec(text)[0] + (/:\s*$/.test(text) ? "  " : "");
    if (!space) return;
    e.preventDefault();
    if (!document.execCommand("insertText", false, "\n" + space)) this.text.setRangeText("\n" + space, this.text.selectionStart, this.text.selectionEnd, "end");
  }
}

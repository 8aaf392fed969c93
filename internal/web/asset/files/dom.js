// What the other modules share: elements, the URL as the state of a page, words for the reader.

// el makes an element: el("button", {type: "button", onclick: f, "aria-label": "x"}, "text", child).
export function el(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  fill(e, attributes);
  e.append(...children.filter((c) => c != null && c !== false));
  return e;
}

// svg makes an element of SVG.
export function svg(name, attributes = {}, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  fill(e, attributes);
  e.append(...children.filter((c) => c != null && c !== false));
  return e;
}

function fill(e, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (key === "class") e.setAttribute("class", value);
    else e.setAttribute(key, value === true ? "" : value);
  }
}

// param reads a part of the page's state from the URL.
export const param = (name) => new URLSearchParams(location.search).get(name);

// setParam writes a part of the page's state into the URL; what is as at first (null) is not written.
export function setParam(name, value) {
  const url = new URL(location.href);
  if (value == null || value === "") url.searchParams.delete(name);
  else url.searchParams.set(name, value);
  if (url.href !== location.href) history.replaceState(history.state, "", url);
}

// remembered and remember keep a choice of the reader on this device. A browser may refuse to keep anything.
export function remembered(key) {
  try { return localStorage.getItem("perflab." + key); } catch { return null; }
}
export function remember(key, value) {
  try {
    if (value == null) localStorage.removeItem("perflab." + key);
    else localStorage.setItem("perflab." + key, value);
  } catch { /* then it is chosen again next time */ }
}

// number writes a figure as reports do: four digits that count, thousands grouped; missing as a dash.
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const four = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });
export function number(v) {
  if (v == null || !Number.isFinite(v)) return "–";
  const size = Math.abs(v);
  if (size >= 1000) return whole.format(v);
  if (size !== 0 && size < 1e-4) return v.toExponential(2);
  return four.format(v);
}

// unit joins a figure and its unit.
export const quantity = (v, unit) => (v == null ? "–" : number(v) + (unit ? " " + unit : ""));

// titled is the title of an axis.
export const titled = (axis) => axis.label + (axis.unit ? ` (${axis.unit})` : "");

function region() {
  return document.getElementById("toasts") ?? document.body.appendChild(el("div", { id: "toasts", role: "status", "aria-live": "polite" }));
}

// toast says something for a moment. kind: "", "good" or "bad"; what is bad stays until it is clicked.
export function toast(text, kind = "") {
  const t = el("div", { class: "toast " + kind }, text);
  t.addEventListener("click", () => t.remove());
  region().append(t);
  if (kind !== "bad") setTimeout(() => t.remove(), 4000);
}

// copy puts a text on the clipboard. On plain http of another machine a browser has none.
export const canCopy = () => !!navigator.clipboard;
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied");
  } catch (e) {
    toast("The browser did not let the text be copied: " + e.message, "bad");
  }
}

// save gives a file to the reader.
export function save(name, type, content) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const a = el("a", { href: url, download: name });
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

// csv, markdown and json write rows of a table. Text that a spreadsheet would take for a formula gets an apostrophe in front: names are of unknown origin.
export function csv(columns, rows) {
  const cell = (v) => {
    let s = v == null ? "" : String(v);
    if (typeof v === "string" && /^[=+\-@\t\r]/.test(s) && !Number.isFinite(Number(s))) s = "'" + s;
    return /[",\n\r]/.test(s) ? '"' + s.replaceAll('"', '""') + '"' : s;
  };
  return [columns, ...rows].map((r) => r.map(cell).join(",")).join("\n") + "\n";
}
export function markdown(columns, rows) {
  const line = (r) => "| " + r.map((v) => String(v ?? "").replaceAll("\\", "\\\\").replaceAll("|", "\\|").replaceAll("<", "&lt;").replace(/\s+/g, " ")).join(" | ") + " |";
  return [line(columns), line(columns.map(() => "---")), ...rows.map(line)].join("\n") + "\n";
}
export const json = (columns, rows) => JSON.stringify(rows.map((r) => Object.fromEntries(columns.map((c, i) => [c, r[i] ?? null]))), null, 2) + "\n";

// getJSON asks the server, and says in one sentence what went wrong. null: there is nothing to give.
export async function getJSON(url, options = {}) {
  const answer = await fetch(url, { headers: { Accept: "application/json", ...options.headers }, ...options });
  if (!answer.ok) {
    let why = "";
    try { const b = await answer.json(); why = b.error ?? b.message ?? ""; } catch { /* no JSON: the status says it */ }
    throw new Error(why || `the server answered ${answer.status} ${answer.statusText}`);
  }
  return answer.status === 204 ? null : answer.json();
}

// later calls f once nothing has asked for a while.
export function later(f, ms) {
  let timer;
  return (...a) => { clearTimeout(timer); timer = setTimeout(() => f(...a), ms); };
}

// writing reports whether keys are text just now.
export const writing = (e) => e.target.closest("input:not([type=checkbox],[type=radio],[type=button]),textarea,select,[contenteditable]") != null;

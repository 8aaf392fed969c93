// The one script of a page: it starts what the page has markup for, and loads no module that the page has no use for.
import { canCopy, copy, el } from "./dom.js";
import { keys } from "./keys.js";

// Copy buttons of code, as in reports.
function copies(root) {
  if (!canCopy()) return;
  for (const box of root.querySelectorAll(".cmd:not(:has(> .copy))")) {
    const code = box.querySelector("code,pre");
    if (code) box.prepend(el("button", { class: "copy", type: "button", onclick: () => copy(code.textContent) }, "Copy"));
  }
  for (const b of root.querySelectorAll("button[data-copy]")) {
    b.hidden = false;
    b.addEventListener("click", () => copy(b.dataset.copy));
  }
}

// A button opens the dialog that data-open names; data-close closes the one that it is in.
function dialogs(root) {
  for (const b of root.querySelectorAll("button[data-open]")) {
    b.hidden = false;
    b.setAttribute("aria-haspopup", "dialog");
    b.addEventListener("click", () => document.getElementById(b.dataset.open).showModal());
  }
  for (const b of root.querySelectorAll("dialog [data-close]")) b.addEventListener("click", () => b.closest("dialog").close());
  for (const d of root.querySelectorAll("dialog")) d.addEventListener("click", (e) => { if (e.target === d) d.close(); });
}

// A menu closes on Escape and on a click beside it.
function menus() {
  const open = () => document.querySelectorAll("details.menu[open]");
  document.addEventListener("click", (e) => open().forEach((d) => { if (!d.contains(e.target)) d.open = false; }));
  document.addEventListener("keydown", (e) => {
    if (e.key !== "Escape") return;
    open().forEach((d) => { d.open = false; if (d.contains(document.activeElement)) d.querySelector("summary").focus(); });
  });
}

// Buttons with role=tab show one panel each; arrows move between them. Tabs that are links need no script.
function tabs(root) {
  for (const list of root.querySelectorAll(".tabs[role=tablist]")) {
    const all = [...list.querySelectorAll("[role=tab]")];
    const show = (tab) => all.forEach((t) => {
      t.setAttribute("aria-selected", t === tab);
      t.tabIndex = t === tab ? 0 : -1;
      document.getElementById(t.getAttribute("aria-controls")).hidden = t !== tab;
    });
    list.hidden = false;
    show(all.find((t) => t.getAttribute("aria-selected") === "true") ?? all[0]);
    list.addEventListener("click", (e) => { const t = e.target.closest("[role=tab]"); if (t) show(t); });
    list.addEventListener("keydown", (e) => {
      const i = all.indexOf(document.activeElement);
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: all.length - 1 }[e.key];
      if (i < 0 || to == null) return;
      e.preventDefault();
      const t = all[(to + all.length) % all.length];
      show(t);
      t.focus();
    });
  }
}

// What is chosen in a form of filters counts at once.
function filters(root) {
  for (const f of root.querySelectorAll("form[data-auto]")) f.addEventListener("change", () => f.requestSubmit());
}

// Only what scrolls is a stop for the keyboard.
function reach() {
  for (const box of document.querySelectorAll(".tablebox,.plotbox,.chart-rows,pre")) {
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight + 1) {
      box.tabIndex = 0;
      if (!box.hasAttribute("aria-label") && !box.hasAttribute("role") && box.tagName !== "PRE") { box.setAttribute("role", "group"); box.setAttribute("aria-label", box.querySelector("caption")?.textContent ?? "Scrolls"); }
    } else if (box.tabIndex === 0 && !box.dataset.keep) box.removeAttribute("tabindex");
  }
}

// start starts what an element, such as one that came later, has markup for.
export async function start(root = document) {
  copies(root);
  dialogs(root);
  tabs(root);
  filters(root);
  const has = (selector) => root.querySelector(selector) != null;
  const loads = [];
  if (has("table[data-table]")) loads.push(import("./table.js").then((m) => m.tables(root)));
  if (has("figure[data-chart]")) loads.push(import("./chart.js").then((m) => m.charts(root)));
  if (has("[data-events]")) loads.push(import("./live.js").then((m) => m.live(root)));
  if (has("textarea[data-editor]")) loads.push(import("./editor.js").then((m) => m.editors(root)));
  await Promise.all(loads);
  reach();
}

menus();
keys();
addEventListener("resize", reach);
document.addEventListener("toggle", reach, true);
await start();
document.documentElement.dataset.ready = ""; // for tests, and for styles that wait

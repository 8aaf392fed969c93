// The pages of Launch: the ranking of a study without leaving its editor, the command of a bench as its form grows.
//
//   <form method="post" data-study="URL"> textarea[data-editor], button[value=check] … <span data-study-state> <div data-study-checked>
//   The button "check" posts the form to URL and shows the part of a page that comes. What is typed meanwhile gives the ranking up.
//
//   <form method="post" data-bench="URL"> inputs … <span data-wrong="NAME" hidden> <code data-bench-command> <div data-bench-rest>
//   Every change posts the form to URL -> {"command": "…", "wrong": {"NAME": "…"}, "rest": ["…"]}.
//
// Without JavaScript both forms do the same by their buttons.
import { el, later } from "./dom.js";

const body = (form) => new URLSearchParams(new FormData(form));

function study(form) {
  const state = form.querySelector("[data-study-state]"), checked = form.querySelector("[data-study-checked]");
  let asked = null;
  const giveUp = (text) => {
    if (!asked) return;
    asked.abort();
    asked = null;
    state.textContent = text;
  };
  form.addEventListener("submit", async (e) => {
    if (e.submitter?.value !== "check") return giveUp("");
    e.preventDefault();
    giveUp("");
    const mine = (asked = new AbortController());
    state.textContent = "Checking, and predicting what would be tried …";
    try {
      const answer = await fetch(form.dataset.study, { method: "POST", body: body(form), signal: mine.signal });
      const text = await answer.text();
      if (asked !== mine) return;
      const page = new DOMParser().parseFromString(text, "text/html");
      if (!answer.ok) throw new Error(page.querySelector("main p")?.textContent ?? answer.statusText);
      checked.replaceChildren(...page.body.childNodes);
      state.textContent = "Checked.";
      (await import("./app.js")).start(checked);
    } catch (error) {
      if (asked === mine) state.textContent = "Not checked: " + error.message;
    }
    if (asked === mine) asked = null;
  });
  form.addEventListener("input", (e) => {
    if (!e.target.matches("textarea[data-editor]")) return;
    if (asked) giveUp("The text has changed: check it again.");
    else state.textContent = "";
    checked.replaceChildren();
  });
}

function bench(form) {
  const command = form.querySelector("[data-bench-command]"), rest = form.querySelector("[data-bench-rest]");
  let turn = 0;
  const check = async () => {
    const mine = ++turn;
    try {
      const answer = await fetch(form.dataset.bench, { method: "POST", body: body(form) });
      if (!answer.ok) return; // the buttons say why
      const said = await answer.json();
      if (mine !== turn) return;
      command.textContent = said.command;
      for (const e of form.querySelectorAll("[data-wrong]")) {
        const wrong = said.wrong[e.dataset.wrong] ?? "";
        e.textContent = wrong;
        e.hidden = !wrong;
        form.elements[e.dataset.wrong].setAttribute("aria-invalid", String(!!wrong));
      }
      rest.replaceChildren(...(said.rest ?? []).map((text) => el("p", { class: "wrong" }, text)));
      if (!said.rest?.length && !Object.keys(said.wrong).length) rest.replaceChildren(el("p", {}, "This bench is right and allowed."));
    } catch { /* the buttons do the same */ }
  };
  form.addEventListener("input", later(check, 250));
}

for (const f of document.querySelectorAll("form[data-study]")) study(f);
for (const f of document.querySelectorAll("form[data-bench]")) bench(f);

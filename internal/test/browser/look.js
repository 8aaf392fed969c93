// What a reader sees without doing anything: a sentence for each thing that is wrong. It runs in the page.
(scripted) => {
  const wrong = [];
  const root = document.documentElement;
  const name = (e) => `${e.tagName.toLowerCase()}${e.className ? "." + String(e.className.baseVal ?? e.className).replaceAll(" ", ".") : ""} "${(e.textContent || "").trim().slice(0, 40)}"`;
  const boxes = [...document.querySelectorAll("body *")].filter((e) => /auto|scroll/.test(getComputedStyle(e).overflowX) && e.checkVisibility());
  if (root.scrollWidth > root.clientWidth) {
    const out = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1 && !boxes.some((b) => b !== e && b.contains(e)));
    wrong.push(`scrolls sideways by ${root.scrollWidth - root.clientWidth} px: ${out.slice(0, 3).map(name).join(", ")}`);
  }
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  for (const box of document.querySelectorAll(".cmd")) {
    const button = box.querySelector("button"), text = box.querySelector("pre");
    if (scripted !== !!button) wrong.push(`${name(box)} has ${button ? "a" : "no"} Copy ${scripted ? "with" : "without"} JavaScript`);
    if (button && text && meet(button.getBoundingClientRect(), text.getBoundingClientRect())) wrong.push(`Copy covers ${name(text)}`);
  }
  for (const box of boxes) {
    if (box.scrollWidth > box.clientWidth + 1 && box.tabIndex !== 0 && !box.querySelector("a,button,input,select,textarea,[tabindex='0']")) wrong.push(`no keyboard scrolls ${name(box)}`);
  }
  for (const svg of document.querySelectorAll("figure svg")) {
    const r = svg.getBoundingClientRect();
    if (r.width && root.clientWidth < 500 && r.width > svg.closest("figure").clientWidth + 1) wrong.push(`a plot is wider than the phone: ${name(svg)}`);
  }
  const ids = new Set();
  for (const e of document.querySelectorAll("[id]")) {
    if (ids.has(e.id)) wrong.push(`two elements have the id ${e.id}`);
    ids.add(e.id);
  }
  return wrong;
}

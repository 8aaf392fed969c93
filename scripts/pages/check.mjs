// Looks at pages in a browser, as a reader would: three widths, light and dark, with
// JavaScript and without. Prints a line for each thing that is wrong, and nothing else.
//
//   npm install
//   node check.mjs /usr/bin/chromium page.html ...
//
// PICTURES=DIR keeps a picture of each page at each width in both schemes.
import { chromium } from "playwright-core";
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [executablePath, ...pages] = process.argv.slice(2);
const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const pictures = process.env.PICTURES;
const widths = [360, 820, 1440];

// What a reader sees without doing anything. It runs in the page.
function look(scripted) {
  const wrong = [];
  const root = document.documentElement;
  const name = (e) => `${e.tagName.toLowerCase()}${e.className ? "." + String(e.className.baseVal ?? e.className).replaceAll(" ", ".") : ""} "${(e.textContent || "").trim().slice(0, 40)}"`;
  if (root.scrollWidth > root.clientWidth) {
    const out = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1 && !e.closest(".tablebox,.plotbox,pre"));
    wrong.push(`scrolls sideways by ${root.scrollWidth - root.clientWidth} px: ${out.slice(0, 3).map(name).join(", ")}`);
  }
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  for (const box of document.querySelectorAll(".cmd")) {
    const button = box.querySelector("button"), text = box.querySelector("pre");
    if (scripted !== !!button) wrong.push(`${name(box)} has ${button ? "a" : "no"} Copy ${scripted ? "with" : "without"} JavaScript`);
    if (button && meet(button.getBoundingClientRect(), text.getBoundingClientRect())) wrong.push(`Copy covers ${name(text)}`);
  }
  for (const box of document.querySelectorAll(".tablebox,.plotbox,pre")) {
    if (box.getClientRects().length && box.scrollWidth > box.clientWidth && box.tabIndex !== 0) wrong.push(`no keyboard scrolls ${name(box)}`);
  }
  for (const svg of document.querySelectorAll("figure svg")) {
    const r = svg.getBoundingClientRect();
    if (r.width && root.clientWidth < 500 && r.width > svg.closest("figure").clientWidth + 1) wrong.push(`a plot is wider than the phone: ${name(svg)}`);
  }
  const search = document.querySelector("form[role=search]");
  if (search && scripted === search.hidden) wrong.push(`the search is ${search.hidden ? "hidden" : "shown"} ${scripted ? "with" : "without"} JavaScript`);
  return wrong;
}

// The search finds what the first row of its index is about.
async function search(page) {
  if (!(await page.$("#q"))) return [];
  await page.fill("#q", (await page.evaluate(() => window.perflabIndex[0][0])).split(/\s+/).slice(0, 3).join(" "));
  const hits = await page.$$eval("#hits a", (l) => l.map((a) => a.getAttribute("href")));
  return hits.length ? [] : ["the search finds nothing"];
}

// What assistive technology could not use.
async function accessible(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document));
  return found.violations.map((v) => `axe ${v.id}: ${v.nodes.length} times, as ${v.nodes[0].html.slice(0, 120)}`);
}

async function picture(page, file, width, scheme) {
  const name = path.relative(process.cwd(), file).replaceAll(/[^\w-]+/g, "_");
  await page.screenshot({ path: path.join(pictures, `${name}-${width}-${scheme}.png`), fullPage: true });
}

// All widths in both schemes, of one load of a page.
async function visit(browser, file, scripted) {
  let at = "";
  const say = (text) => console.log(`${file}${at}, JavaScript ${scripted ? "on" : "off"}: ${text}`);
  const context = await browser.newContext({ javaScriptEnabled: scripted });
  const page = await context.newPage();
  const url = pathToFileURL(path.resolve(file)).href;
  page.on("console", (m) => { if (m.type() === "error") say(`console: ${m.text()}`); });
  page.on("pageerror", (e) => say(`error: ${e.message}`));
  page.on("dialog", (d) => { say(`a script of a name ran: ${d.message()}`); d.dismiss(); });
  page.on("request", (r) => { if (r.url() !== url && !r.url().startsWith("data:") && path.basename(r.url()) !== "search.js") say(`loads ${r.url()}`); });
  await page.goto(url);
  for (const width of widths) {
    for (const scheme of ["light", "dark"]) {
      at = ` at ${width} px, ${scheme}`;
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme: scheme });
      if (scripted) await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))); // what the page does about its new width
      for (const text of await page.evaluate(look, scripted)) say(text);
      if (pictures && scripted) await picture(page, file, width, scheme);
    }
  }
  if (scripted) {
    await page.evaluate(() => document.querySelectorAll("details").forEach((d) => (d.open = true)));
    for (const [width, scheme] of [[360, "light"], [1440, "dark"]]) {
      at = ` at ${width} px, ${scheme}`;
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme: scheme });
      for (const text of await accessible(page)) say(text);
    }
    for (const text of await search(page)) say(text);
  }
  await context.close();
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
for (const file of pages) {
  await visit(browser, file, true);
  await visit(browser, file, false);
}
await browser.close();

// What lives: one EventSource a page, which names elements and says their new text.
//
//   <main data-events="/api/v1/studies/7/events" data-stale="15">
//     <p class="live" data-live-state>not live</p> <button type="button" data-live-pause hidden>Pause</button>
//     <dd data-live="best">…</dd>  <progress data-live="spent" max="1" value="0"></progress>  <pre class="log" role="log" aria-live="off" aria-label="Log" data-live-log="engine" data-most="500"></pre>
//
// Events are lines of JSON:
//   event: set      data: {"best": "2,345 tok/s", "spent": 0.4}     text, or the value of a progress
//   event: append   data: {"log": "engine", "lines": ["…"]}          bounded: the oldest lines go
//   event: figure   data: {"name": "race"}                           that plot is drawn anew from its URL
//   event: reload   data: {}                                         something changed that only the server can draw
//   event: end      data: {"text": "the study has ended"}            no more comes, and nobody asks again
//   event: alive    data: {}                                         nothing is new; without any event for data-stale seconds the page says that it may be old
// Every event may have an id. After a break the last one comes back as ?last_event_id=. Text is text and never markup.
import { toast } from "./dom.js";

const first = 1000, longest = 30000; // between attempts, in ms
const hiddenMost = 10 * 60 * 1000; // nobody looks: the connection is given back

export function live(root) {
  for (const box of root.querySelectorAll("[data-events]")) new Live(box);
}

class Live {
  constructor(box) {
    this.box = box;
    this.wait = first;
    this.last = box.dataset.lastEvent ?? "";
    this.stale = Number(box.dataset.stale || 30) * 1000;
    this.held = [];
    this.button = box.querySelector("[data-live-pause]");
    if (this.button) {
      this.button.hidden = false;
      this.button.addEventListener("click", () => this.pause(!this.paused));
    }
    document.addEventListener("visibilitychange", () => this.seen());
    addEventListener("pagehide", () => this.close());
    this.open();
  }

  open() {
    if (this.ended || this.source) return;
    const url = new URL(this.box.dataset.events, location.href);
    if (this.last) url.searchParams.set("last_event_id", this.last); // a new EventSource has no way to send the header
    const s = (this.source = new EventSource(url));
    s.onopen = () => { this.wait = first; this.here(); };
    s.onerror = () => this.failed(s);
    for (const kind of ["set", "append", "figure", "reload", "end", "alive"]) s.addEventListener(kind, (e) => this.hear(kind, e));
  }

  // A browser tries again by itself after a break, but never after an answer that is no stream, and always after the same time.
  failed(s) {
    if (s !== this.source) return;
    s.close();
    this.source = null;
    this.state("retry", `not connected; next attempt in ${Math.round(this.wait / 1000)} s`);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.open(), this.wait * (0.75 + Math.random() / 2)); // not all pages at once
    this.wait = Math.min(this.wait * 2, longest);
  }

  here() {
    this.state(this.paused ? "paused" : "open", this.paused ? "paused" : "live");
    this.box.classList.remove("is-stale");
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => {
      this.box.classList.add("is-stale");
      this.state("stale", `nothing came for ${Math.round(this.stale / 1000)} s: what is shown may be old`);
    }, this.stale);
  }

  hear(kind, e) {
    if (e.lastEventId) this.last = e.lastEventId;
    this.here();
    if (kind === "alive") return;
    let data;
    try { data = JSON.parse(e.data); } catch { return console.error(`event ${kind} is no JSON: ${e.data.slice(0, 80)}`); }
    if (this.paused && kind !== "end") {
      this.held.push([kind, data]);
      if (this.held.length > 5000) this.held.shift();
    } else this.take(kind, data);
  }

  take(kind, data) {
    if (kind === "set") for (const [name, value] of Object.entries(data)) this.set(name, value);
    else if (kind === "append") this.append(data);
    else if (kind === "figure") document.querySelector(`figure[data-chart][data-name="${CSS.escape(data.name)}"]`)?.dispatchEvent(new CustomEvent("chart-reload"));
    else if (kind === "reload") this.reload();
    else if (kind === "end") this.end(data.text ?? "ended");
  }

  set(name, value) {
    for (const e of this.box.querySelectorAll(`[data-live="${CSS.escape(name)}"]`)) {
      if (e.tagName === "PROGRESS") {
        if (value == null) e.removeAttribute("value");
        else e.value = value;
        continue;
      }
      const text = value == null ? "–" : String(value);
      if (e.textContent === text) continue;
      e.textContent = text;
      e.classList.remove("changed");
      requestAnimationFrame(() => e.classList.add("changed"));
    }
  }

  append({ log, lines }) {
    for (const e of this.box.querySelectorAll(`[data-live-log="${CSS.escape(log)}"]`)) {
      const most = Number(e.dataset.most || 1000);
      const below = e.scrollHeight - e.scrollTop - e.clientHeight < 24; // who has scrolled up reads
      for (const line of lines) e.append(document.createTextNode(line + "\n"));
      while (e.childNodes.length > most) e.firstChild.remove();
      if (below) e.scrollTop = e.scrollHeight;
      if (e.scrollHeight > e.clientHeight) e.tabIndex = 0;
    }
  }

  // The parts of the page that have an id and data-live-part are taken from the page as the server draws it now; what a reader has open or in focus stays.
  // What scripts add to a part, such as a Copy button, is there as soon as the part is: they are loaded before.
  async reload() {
    try {
      const { start } = await import("./app.js");
      const text = await (await fetch(location.href, { headers: { Accept: "text/html" } })).text();
      const page = new DOMParser().parseFromString(text, "text/html");
      for (const part of this.box.querySelectorAll("[data-live-part][id]")) {
        const now = page.getElementById(part.id);
        if (!now || part.contains(document.activeElement) || now.innerHTML === part.innerHTML) continue;
        part.replaceChildren(...now.childNodes);
        start(part);
      }
    } catch (e) {
      toast("The page could not be renewed: " + e.message, "bad");
    }
  }

  pause(on) {
    this.paused = on;
    this.button.textContent = on ? "Go on" : "Pause";
    if (!on) for (const [kind, data] of this.held.splice(0)) this.take(kind, data);
    if (!this.ended) this.state(on ? "paused" : "open", on ? "paused" : "live");
  }

  seen() {
    clearTimeout(this.away);
    if (document.hidden) this.away = setTimeout(() => { this.close(); this.state("ended", "not looked at; goes on when you come back"); }, Number(this.box.dataset.hiddenMost || hiddenMost));
    else if (!this.source) { this.wait = first; this.open(); }
  }

  end(text) {
    this.ended = true;
    this.close();
    this.state("ended", text);
  }

  close() {
    this.source?.close();
    this.source = null;
    clearTimeout(this.quiet);
    clearTimeout(this.timer);
  }

  state(state, text) {
    for (const e of this.box.querySelectorAll("[data-live-state]")) {
      e.dataset.state = state;
      if (e.textContent !== text) e.textContent = text;
    }
  }
}


// Numbers, times and words for people.
import { h } from "./dom.js";

let skew = 0; // of the controller's clock against this one, in milliseconds

export const setClock = (now) => { skew = Date.parse(now) - Date.now(); };
export const clock = () => Date.now() + skew;

export const count = (n) => n.toLocaleString("en-US");
export const plural = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;
export const words = (state) => state.replaceAll("_", " ");

export function duration(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return s < 600 && s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

// since and until are elements that keep counting, see tick.
export const since = (at, suffix = "") => counting(at, suffix, "since");
export const ago = (at) => counting(at, " ago", "since");
export const until = (at) => counting(at, "", "until");

function counting(at, suffix, way) {
  if (!at) return "";
  const el = h("time", { datetime: at, title: new Date(at).toLocaleString(), "data-count": way, "data-suffix": suffix });
  show(el);
  return el;
}

function show(el) {
  const at = Date.parse(el.dateTime);
  const ms = el.dataset.count === "since" ? clock() - at : at - clock();
  const text = duration(ms) + el.dataset.suffix;
  if (el.textContent !== text) el.textContent = text;
}

export function tick() {
  for (const el of document.querySelectorAll("time[data-count]")) show(el);
}

export const moment = (at) => h("time", { datetime: at, title: new Date(at).toLocaleString() },
  new Date(at).toLocaleTimeString([], { hour12: false }));

export function dollars(price) {
  if (!price || !price.high) return "–";
  const digits = price.high < 10 ? 2 : price.high < 1000 ? 1 : 0;
  const text = (n) => n.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return price.high - price.low < 0.005 ? `$${text(price.high)}` : `$${text(price.low)}–${text(price.high)}`;
}

// bytes is a size with three digits, in powers of 1024.
export function bytes(n) {
  let unit = 0;
  for (; n >= 1000 && unit < 5; unit++) n /= 1024;
  return `${n < 10 && unit ? n.toFixed(2) : n < 100 && unit ? n.toFixed(1) : Math.round(n)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
}

// rate is how often in a second.
export const rate = (n) => `${n === 0 ? "0" : n < 10 ? n.toFixed(n < 0.1 ? 2 : 1) : count(Math.round(n))}/s`;

// took is a short time, in seconds.
export const took = (s) => (s < 1e-3 ? `${Math.round(s * 1e6)} µs` : s < 1 ? `${(s * 1e3).toFixed(s < 0.01 ? 1 : 0)} ms` : `${s.toFixed(s < 10 ? 1 : 0)} s`);

export const percent = (part) => `${Math.round(part * 100)}%`;

// The order in which states are drawn, the same everywhere.
export const jobStatuses = ["running", "pending", "scheduled", "failed", "stopped", "succeeded"];
export const taskStates = ["running", "building", "assigned", "pending", "preempted", "worker_failed", "exit_unknown", "failed", "unschedulable", "killed", "succeeded"];
export const phases = ["ready", "creating", "queued", "wanted", "deleting", "dead"];

// inPhases are slices by phase; those that are up are in use or idle.
export function inPhases(counts, idle) {
  const parts = phases.map((name) => ({ name, n: counts[name] ?? 0 }));
  parts[0] = { name: "in use", state: "ready", n: parts[0].n - idle };
  return parts.toSpliced(1, 0, { name: "idle", n: idle });
}

// badge is a state: never told by its colour alone.
export const badge = (state, more) => h("span", { class: `badge s-${state}` }, h("i", { class: "glyph", "aria-hidden": "true" }), words(state), more);

// bar is a stack of parts: {name, n, state}.
export function bar(parts, { total, label } = {}) {
  const all = total || parts.reduce((sum, p) => sum + p.n, 0);
  const text = parts.filter((p) => p.n).map((p) => `${count(p.n)} ${words(p.name)}`).join(", ") || "none";
  return h("span", { class: "bar", role: "img", "aria-label": label ? `${label}: ${text}` : text, title: text },
    parts.filter((p) => p.n).map((p) => h("i", { class: `f-${p.state ?? p.name}`, style: { width: `${(100 * p.n) / Math.max(1, all)}%` } })));
}

export const legend = (parts) => h("ul", { class: "legend" }, parts.filter((p) => p.n).map((p) =>
  h("li", null, p.href ? h("a", { href: p.href }, key(p)) : key(p))));

const key = (p) => [h("i", { class: `key f-${p.state ?? p.name}` }), h("b", null, count(p.n)), " ", words(p.name)];

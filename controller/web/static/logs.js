// What tasks write, as they write it.
import { follow } from "./api.js";
import { h } from "./dom.js";
import { count } from "./format.js";
import { keep, kept } from "./keep.js";

const maxLines = 5000;
// Colours and cursor movements of terminals.
const escapes = /\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])/g;

export function logView() {
  const attempts = h("select", { "aria-label": "Attempt" });
  const tasks = h("select", { "aria-label": "Task" });
  const find = h("input", { type: "search", placeholder: "Find in what is shown", "aria-label": "Find in the log" });
  const tail = h("input", { type: "checkbox", checked: true });
  const wrap = h("input", { type: "checkbox" });
  const times = h("input", { type: "checkbox", checked: kept("fray-times") !== "off" });
  const state = h("span", { class: "faint", role: "status" });
  const text = h("div", { class: "log", tabindex: "0", role: "log", "aria-live": "off", "aria-label": "Log" });
  const el = h("section", { class: "card flush logs", "data-own": "" }, h("div", { class: "filters" }, h("h2", null, "Log"), attempts, tasks, find,
    h("label", null, tail, " follow"), h("label", null, wrap, " wrap"), h("label", null, times, " times"), state), text);
  // The time of the last line of each task, by which lines of several tasks are merged.
  let latest = {};
  let job, shown, stop = () => {}, queue = [], frame, several = false;

  // show points the view at a job; what is shown already goes on.
  function show(next, attempt) {
    const other = job?.id !== next.id;
    job = next;
    options(attempts, job.attempts.map((a) => [String(a.number), `attempt ${a.number}`]).reverse(), other || shownAttempt !== attempt?.number ? String(attempt?.number ?? "") : undefined);
    shownAttempt = attempt?.number;
    const of = job.attempts.find((a) => String(a.number) === attempts.value);
    const n = of?.tasks?.length ?? 0;
    several = n > 1;
    options(tasks, [["all", n > 64 ? "first 64 tasks" : "all tasks"], ...Array.from({ length: n }, (_, i) => [String(i), `task ${i}`])], other ? "all" : undefined);
    tasks.hidden = n < 2;
    open();
  }
  let shownAttempt;

  function open() {
    const key = JSON.stringify([job?.id, attempts.value, tasks.value]);
    if (key === shown) return;
    shown = key;
    stop();
    queue = [];
    latest = {};
    text.replaceChildren();
    if (!attempts.value) { state.textContent = "nothing was started yet"; return; }
    state.textContent = "…";
    stop = follow(`jobs/${encodeURIComponent(job.id)}/logs`, { attempt: attempts.value, task: tasks.value === "all" || tasks.hidden ? "" : tasks.value }, {
      log: (chunk) => {
        const lines = chunk.text.split("\n");
        if (lines.at(-1) === "") lines.pop();
        const dated = dates(chunk, lines.length);
        const order = (at) => (latest[chunk.task] = Math.max(latest[chunk.task] ?? 0, at ?? 0));
        if (chunk.cut) queue.push({ order: order(dated[0]), note: "what was written before is left out" });
        lines.forEach((line, i) => queue.push({ order: order(dated[i]), at: dated[i], task: chunk.task, line }));
        frame ??= requestAnimationFrame(paint);
      },
      problem: (p) => { state.textContent = p.error; },
      end: (_, source) => {
        source.close();
        state.textContent = text.children.length + queue.length ? "ended" : "it wrote nothing";
      },
    }, (s) => { state.textContent = s === "live" ? "live" : "connection lost"; });
  }

  function paint() {
    frame = undefined;
    if (several) queue.sort((a, b) => a.order - b.order); // lines of one time stay in order
    for (const entry of queue.slice(-maxLines)) put(line(entry));
    queue = [];
    while (text.children.length > maxLines) text.firstChild.remove();
    if (tail.checked) text.scrollTop = text.scrollHeight;
  }

  // put puts a row behind the last one that is not later.
  function put(row) {
    let before = text.lastChild;
    while (several && before && Number(before.dataset.order) > Number(row.dataset.order)) before = before.previousSibling;
    if (before) before.after(row); else text.prepend(row);
  }

  function line({ task, line: raw, note, at, order }) {
    if (note) return h("div", { class: "faint", "data-order": order }, `… ${note}`);
    const clean = raw.replace(escapes, "");
    const row = h("div", { "data-order": order },
      h("time", { class: "at", datetime: at ? new Date(at).toISOString() : undefined, title: at ? new Date(at).toLocaleString() : "It is not known when this was written." }, at ? stamp(at) : "–"),
      several && tasks.value === "all" ? h("b", { class: `task t${task % 8}` }, `${task} `) : null,
      h("span", null, clean.slice(clean.lastIndexOf("\r", clean.length - 2) + 1)));
    row.hidden = hides(row);
    return row;
  }

  const hides = (row) => find.value !== "" && !row.lastChild.textContent.toLowerCase().includes(find.value.toLowerCase());

  find.addEventListener("input", () => {
    let n = 0;
    for (const row of text.children) { row.hidden = hides(row); if (!row.hidden) n++; }
    state.textContent = find.value ? `${count(n)} found` : "";
  });
  attempts.addEventListener("change", () => show(job, job.attempts.find((a) => String(a.number) === attempts.value)));
  tasks.addEventListener("change", open);
  const timed = () => { text.classList.toggle("untimed", !times.checked); keep("fray-times", times.checked ? "on" : "off"); };
  times.addEventListener("change", timed);
  timed();
  wrap.addEventListener("change", () => text.classList.toggle("wrap", wrap.checked));
  tail.addEventListener("change", () => { if (tail.checked) text.scrollTop = text.scrollHeight; });
  // A reader who scrolls up stays there; at the end the log is followed again.
  text.addEventListener("scroll", () => { tail.checked = text.scrollTop + text.clientHeight >= text.scrollHeight - 4; });

  return { el, show, leave: () => { stop(); cancelAnimationFrame(frame); } };
}

// dates are the times of the lines of a chunk, undefined where none is known.
function dates(chunk, n) {
  const out = new Array(n);
  (chunk.times ?? []).forEach(({ line, at }, i, all) => out.fill(at && Date.parse(at), line, all[i + 1]?.line ?? n));
  return out;
}

// stamp is the time of day, to a millisecond.
const stamp = (at) => new Date(at).toLocaleTimeString([], { hour12: false }) + "." + String(at % 1000).padStart(3, "0");

function options(select, entries, choose) {
  const want = choose ?? select.value;
  const text = JSON.stringify(entries);
  if (select.dataset.text !== text) {
    select.dataset.text = text;
    select.replaceChildren(...entries.map(([value, name]) => h("option", { value }, name)));
  }
  select.value = entries.some(([value]) => value === want) ? want : entries[0]?.[0] ?? "";
}

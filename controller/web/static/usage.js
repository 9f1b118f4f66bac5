// What tasks use over time, as small lines.
import { get } from "./api.js";
import { h, svg } from "./dom.js";
import { bytes, percent, rate } from "./format.js";

const size = { width: 120, height: 26 };
const pace = 5000; // agents measure that often

// usageOf asks what the tasks of an attempt use, again and again; show is called with
// the answer by task.
export function usageOf(show) {
  let timer, asked = 0, of;
  async function ask() {
    const mine = ++asked;
    clearTimeout(timer);
    const answer = await get(`jobs/${encodeURIComponent(of.id)}/usage`, { attempt: of.attempt }).catch(() => ({ tasks: [] }));
    if (mine !== asked) return;
    show(new Map(answer.tasks.map((t) => [t.task, t])));
    if (of.runs) timer = setTimeout(ask, pace);
  }
  return {
    follow(id, attempt, runs) {
      if (of && of.id === id && of.attempt === attempt && of.runs === runs) return;
      of = { id, attempt, runs };
      if (attempt) ask();
    },
    leave() { asked++; clearTimeout(timer); },
  };
}

const kinds = {
  cpu: { name: "CPU", text: (v) => `${v < 10 ? v.toFixed(2) : Math.round(v)} cores`, least: 1 },
  memory: { name: "Memory", text: bytes, least: 1 },
  duty: { name: "TPU busy", text: percent, least: 1 },
  calls: { name: "Calls", text: rate, least: 1 },
};

// columns are the kinds that any task has something of.
export const columns = (usage) => Object.keys(kinds).filter((kind) => [...usage.values()].some((t) => t[kind]?.some((v) => v !== null)));
export const columnName = (kind) => kinds[kind].name;

// cell is a task's line with its last value.
export function cell(usage, kind) {
  const values = usage?.[kind] ?? [];
  const last = values.findLast((v) => v !== null);
  if (last === undefined) return h("span", { class: "faint" }, "–");
  const of = kinds[kind];
  const most = Math.max(of.least, ...values);
  const label = `${of.name} ${of.text(last)}, at most ${of.text(Math.max(...values))} over ${Math.max(1, Math.round((values.length * usage.step_seconds) / 60))} min`;
  return h("span", { class: "spark", title: label }, line(values, most, label), h("span", { class: "nowrap" }, of.text(last)));
}

function line(values, most, label) {
  const x = (i) => (values.length < 2 ? size.width : (i * size.width) / (values.length - 1)).toFixed(1);
  const y = (v) => (size.height - 2 - (v / most) * (size.height - 4)).toFixed(1);
  let d = "", open = false;
  values.forEach((v, i) => {
    if (v === null) { open = false; return; }
    d += `${open ? "L" : "M"}${x(i)} ${y(v)}`;
    open = true;
  });
  if (values.length === 1) d += `l-${size.width} 0`;
  return svg("svg", { ...size, viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-label": label }, svg("path", { d }));
}

// The curves of metrics that a job's log has.
import { get } from "./api.js";
import { fill, h, svg } from "./dom.js";

const pace = 3000, slowPace = 15000; // with curves, and while there are none
const after = 3; // so often it is asked again once the job has ended: its last lines may come later
const size = { width: 320, height: 120 };
const pad = { left: 54, right: 8, top: 8, bottom: 18 };
const first = 6; // so many are shown at once, the others on demand

// curvesView is a card with the curves of a job, hidden where there are none.
export function curvesView() {
  const shown = h("div", { class: "curves" });
  const others = h("div", { class: "curves" });
  const more = h("details", { hidden: true, "data-own": "" }, h("summary", null, "More metrics"), others);
  const el = h("section", { class: "card", hidden: true, "data-own": "" }, h("h2", null, "Curves"), shown, more);
  let timer, asked = 0, of, left;

  async function ask() {
    const mine = ++asked;
    clearTimeout(timer);
    const answer = await get(`jobs/${encodeURIComponent(of.id)}/curves`).catch(() => undefined);
    if (mine !== asked) return;
    if (answer) paint(answer.curves);
    if (of.runs || left-- > 0) timer = setTimeout(ask, of.runs && el.hidden ? slowPace : pace);
  }

  function paint(all) {
    fill(shown, all.slice(0, first).map(chart));
    fill(others, all.slice(first).map(chart));
    more.hidden = all.length <= first;
    el.hidden = all.length === 0;
  }

  return {
    el,
    follow(id, runs) {
      if (of && of.id === id && of.runs === runs) return;
      of = { id, runs };
      left = after;
      ask();
    },
    leave() { asked++; clearTimeout(timer); },
  };
}

const number = (v, digits = 4) => String(Number(v.toPrecision(digits)));

// chart draws one curve with its axes; a share has one from 0 to 1.
function chart(c) {
  const last = c.values.at(-1), lowest = Math.min(...c.values), highest = Math.max(...c.values);
  let [lo, hi] = [lowest, highest];
  if (lo >= 0 && hi <= 1 && (hi >= 0.5 || lo === hi)) [lo, hi] = [0, 1];
  if (lo === hi) [lo, hi] = [lo - 1, hi + 1];
  const [from, to] = [c.steps[0], c.steps.at(-1)];
  const x = (step) => pad.left + (to > from ? (step - from) / (to - from) : 0) * (size.width - pad.left - pad.right);
  const y = (v) => pad.top + (1 - (v - lo) / (hi - lo)) * (size.height - pad.top - pad.bottom);
  const at = (i) => `${x(c.steps[i]).toFixed(1)} ${y(c.values[i]).toFixed(1)}`;
  const label = `${c.name}: ${number(last)} at step ${to}, from ${number(lowest)} to ${number(highest)} over steps ${from} to ${to}`;
  const text = (props, value) => svg("text", { class: "tick", ...props }, value);
  return h("figure", { "data-key": c.name },
    h("figcaption", null, h("span", { class: "mono" }, c.name), h("b", null, number(last))),
    svg("svg", { viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-label": label },
      svg("title", null, label),
      [lo, hi].map((v) => svg("path", { class: "rule", d: `M${pad.left} ${y(v).toFixed(1)}H${size.width - pad.right}` })),
      [lo, hi].map((v) => text({ x: pad.left - 6, y: y(v) + 4, "text-anchor": "end" }, number(v, 3))),
      text({ x: pad.left, y: size.height - 3 }, String(from)),
      text({ x: size.width - pad.right, y: size.height - 3, "text-anchor": "end" }, to > from ? `step ${to}` : ""),
      svg("path", { class: "curve", d: c.steps.map((_, i) => `${i ? "L" : "M"}${at(i)}`).join("") }),
      svg("circle", { class: "last", cx: x(to).toFixed(1), cy: y(last).toFixed(1), r: 2.6 })));
}

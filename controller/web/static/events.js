// What happened, the newest first.
import { get, search } from "./api.js";
import { fill, h } from "./dom.js";
import { count, moment, plural } from "./format.js";
import { linked, toJob, toSlice } from "./links.js";

const shown = 500;

export function events(root, route) {
  const field = h("input", { type: "search", placeholder: "Filter: address, slice, what happened…  ( / )", "aria-label": "Filter events", value: route.query.q ?? "" });
  const summary = h("p", { class: "summary", role: "status" });
  const list = h("ol", { class: "card events" });
  root.append(h("h1", { class: "hidden" }, "Events"), h("div", { class: "filters" }, field), summary, list);
  let asked = 0;

  async function refresh() {
    const mine = ++asked;
    const answer = await get("events", { q: field.value.trim(), limit: shown });
    if (mine !== asked) return;
    fill(summary, answer.total > shown ? `the last ${count(shown)} of ${plural(answer.total, "event")}` : plural(answer.total, "event"));
    fill(list, answer.events.map((e) => h("li", { "data-key": String(e.seq), class: `level-${e.level}` },
      h("span", { class: "faint nowrap" }, moment(e.at)), h("i", { class: "dot", "aria-hidden": "true" }),
      h("span", { class: "what" }, e.job_id ? h("a", { class: "mono", href: toJob(e.job_id) }, e.about) : h("span", { class: "mono" }, e.slice ? h("a", { href: toSlice(e.about) }, e.about) : linked(e.about)), " ", h("span", null, linked(e.text))))));
  }

  let timer;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { history.replaceState(null, "", `#/events${search({ q: field.value.trim() })}`); refresh(); }, 120);
  });
  return { update: (_, fresh) => { if (fresh) refresh().catch((error) => fill(summary, error.message)); }, leave: () => { asked++; clearTimeout(timer); } };
}

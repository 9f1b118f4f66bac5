// Slices by zone: a cell for each, and a list of them.
import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { badge, bar, count, inPhases, legend, phases, plural, since, until } from "./format.js";
import { linked, toJob, toSlice } from "./links.js";
import { VirtualList } from "./list.js";

export function slices(root, route) {
  const top = h("section", { class: "card" });
  const zoneHealth = h("section", { class: "card", hidden: true });
  const zones = h("div", { class: "zones" });
  const field = h("input", { type: "search", placeholder: "Filter: name, zone, phase, holder, idle…  ( / )", "aria-label": "Filter slices", value: route.query.q ?? "" });
  const summary = h("p", { class: "summary", role: "status" });
  let q = field.value.trim(), asked = 0, timer;
  const list = new VirtualList({ height: 46, key: (row) => row.name, draw, load });
  root.append(h("h1", { class: "hidden" }, "Slices"), top, zoneHealth, zones, h("div", { class: "filters" }, field), summary,
    h("div", { class: "table slices", role: "table", "aria-label": "Slices" }, h("div", { class: "sticky", role: "rowgroup" },
      h("div", { class: "row thead", role: "row" }, ["Phase", "Slice", "Zone", "Type", "Hosts", "Holder", "Age"].map((name, i) =>
        h("span", { role: "columnheader", class: `k-${i}` }, name)))), list.el));

  async function load(offset, limit) {
    const mine = q;
    const answer = await get("slices", { q, offset, limit });
    if (mine === q) fill(summary, answer.matched === answer.total ? plural(answer.total, "slice") : `${count(answer.matched)} of ${plural(answer.total, "slice")}`);
    return { rows: answer.slices ?? [], total: answer.matched };
  }

  const problem = (error) => fill(summary, h("span", { class: "level-error" }, error.message));

  function filter(reset) {
    clearTimeout(timer);
    q = field.value.trim();
    list.reload(reset).catch(problem);
  }

  async function refresh() {
    const mine = ++asked;
    const fresh = await get("slices", { summary: true, cells: mostCells });
    if (mine !== asked) return;
    const sum = (of) => fresh.zones.reduce((n, z) => n + of(z), 0);
    const parts = inPhases(Object.fromEntries(phases.map((name) => [name, sum((z) => z.phases[name] ?? 0)])), sum((z) => z.idle));
    fill(top, h("h2", null, `${plural(fresh.total, "slice")}, ${count(sum((z) => z.chips))} chips`), bar(parts, { label: "Slices" }),
      legend(parts));
    fill(zoneHealth, h("h2", null, "Places that are blocked for now"), h("ul", { class: "rows" }, fresh.zone_health.map((w) => h("li", null,
      h("div", { class: "line" }, badge(w.kind), h("span", { class: "mono ellipsis" }, w.place),
        h("span", { class: "faint nowrap" }, "tried again in ", until(w.until))),
      h("div", { class: "why" }, w.reason, w.failures > 1 ? ` (${count(w.failures)} times in a row)` : "")))));
    zoneHealth.hidden = fresh.zone_health.length === 0;
    fill(zones, fresh.zones.map(zone));
    filter();
  }

  zones.addEventListener("click", (event) => {
    const name = event.target.closest("[data-slice]")?.dataset.slice;
    if (name) { field.value = name; filter(true); field.scrollIntoView({ block: "center" }); }
  });
  field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => filter(true), 120); });
  return {
    route: (next) => { field.value = next.query.q ?? ""; filter(true); },
    update: (_, fresh) => { if (fresh) refresh().catch(problem); },
    leave: () => { clearTimeout(timer); asked++; list.leave(); },
  };
}

const look = (s) => (s.idle ? "idle" : s.phase);

// Of a zone with more slices the phases are a bar.
const mostCells = 400;
const zone = (z) => h("section", { class: "card zone", "data-key": `${z.provider}/${z.zone ?? ""}` },
  h("h3", { class: "line" }, h("span", { class: "mono ellipsis" }, z.zone || z.provider), h("span", { class: "faint nowrap" }, z.chips ? `${plural(z.slices, "slice")}, ${count(z.chips)} chips` : plural(z.slices, "slice"))),
  z.note ? h("p", { class: "why level-warn" }, z.note) : null,
  z.cells ? h("div", { class: z.slices > 160 ? "cells dense" : "cells" }, z.cells.map((s) =>
    h("a", { class: `cell f-${look(s)}${s.notice ? " notice" : ""}`, role: "button", tabindex: "-1", "data-slice": s.name, title: s.about, "aria-label": s.about })))
    : [bar(inPhases(z.phases, z.idle), { label: z.zone || z.provider }), legend(inPhases(z.phases, z.idle))]);

const draw = (s) => h("div", { class: "row", role: "row" },
  h("span", { role: "cell", class: "k-0" }, badge(look(s))),
  h("span", { role: "cell", class: "k-1" }, h("span", { class: "mono ellipsis", title: s.name }, s.name), h("span", { class: "sub ellipsis", title: s.notice || s.reason || "" }, s.notice ? `notice: ${s.notice}` : s.reason ? linked(s.reason) : s.on ? [`on host ${s.on_host ?? 0} of `, h("a", { href: toSlice(s.on) }, s.on)] : "")),
  h("span", { role: "cell", class: "k-2" }, s.zone || s.provider),
  h("span", { role: "cell", class: "k-3" }, h("span", { class: "ellipsis" }, s.shape), h("span", { class: "sub" }, s.preemptible ? "preemptible" : "")),
  h("span", { role: "cell", class: "k-4" }, `${count(s.hosts_up)} of ${count(s.hosts)}`),
  h("span", { role: "cell", class: "k-5" }, s.holder ? h("a", { class: "mono ellipsis", href: toJob(s.holder) }, s.holder_name) : s.idle_since ? ["idle for ", since(s.idle_since)] : h("span", { class: "faint" }, "none"),
    h("span", { class: "sub mono ellipsis" }, s.owner === s.holder_name ? "" : linked(s.owner))),
  h("span", { role: "cell", class: "k-6" }, s.born_at ? since(s.born_at) : s.asked_at ? ["asked ", since(s.asked_at)] : "–"));

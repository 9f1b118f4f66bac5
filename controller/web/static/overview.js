// The stack at a glance.
import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { ago, badge, bar, count, dollars, inPhases, jobStatuses, legend, moment, plural, since } from "./format.js";
import { linked, toJob, toSlice } from "./links.js";

export function overview(root) {
  const tiles = h("section", { class: "tiles", "aria-label": "In numbers" });
  const attention = h("section", { class: "card grow" });
  const zones = h("section", { class: "card" });
  const recent = h("section", { class: "card" });
  const about = h("section", { class: "card" });
  root.append(h("h1", { class: "hidden" }, "Overview"), tiles,
    h("div", { class: "columns" }, h("div", { class: "stack" }, attention), h("div", { class: "stack side" }, zones, recent, about)));
  let asked = 0;

  async function refresh() {
    const mine = ++asked;
    const [all, places, happened] = await Promise.all([get("overview"), get("slices", { summary: true }), get("events", { limit: 8 })]);
    if (mine !== asked) return;
    fill(attention, h("h2", null, "Needs attention"), all.attention.length
      ? h("ul", { class: "rows" }, all.attention.map(concern))
      : h("p", { class: "empty" }, "Nothing has failed, and nothing waits for anything but the loop."));
    fill(zones, h("h2", null, h("a", { href: "#/slices" }, "Slices by zone")), places.zones.length ? places.zones.map(zone) : h("p", { class: "empty" }, "There are none."));
    fill(recent, h("h2", null, h("a", { href: "#/events" }, "Lately")), happened.events.length
      ? h("ul", { class: "rows tight" }, happened.events.map((e) => h("li", null, h("div", { class: "line" },
        h("span", { class: `ellipsis level-${e.level}` }, e.job_id ? h("a", { href: toJob(e.job_id) }, e.about) : e.slice ? h("a", { href: toSlice(e.about) }, e.about) : linked(e.about)), h("span", { class: "faint nowrap" }, moment(e.at))),
      h("div", { class: "why" }, linked(e.text)))))
      : h("p", { class: "empty" }, "Nothing has happened yet."));
  }

  return {
    update(latest, fresh) {
      fill(tiles, tilesOf(latest));
      fill(about, h("h2", null, "Controller"), h("dl", { class: "facts" }, facts(latest)));
      if (fresh) refresh().catch(() => {});
    },
  };
}

function tilesOf(o) {
  const jobs = jobStatuses.map((name) => ({ name, n: o.jobs[name] ?? 0, href: `#/jobs?status=${name}` }));
  const slices = inPhases(o.slices, o.idle);
  const total = (parts) => parts.reduce((sum, p) => sum + p.n, 0);
  return [
    tile("Jobs", count(total(jobs)), bar(jobs, { label: "Jobs" }), legend(jobs), "#/jobs", "two"),
    tile("Slices", count(total(slices)), bar(slices, { label: "Slices" }), legend(slices), "#/slices"),
    tile("Chips up", count(o.chips), bar([{ name: "in use", state: "ready", n: o.chips_held }, { name: "free", state: "idle", n: o.chips - o.chips_held }], { label: "Chips" }),
      h("p", { class: "note" }, `${count(o.chips_held)} in use on ${plural(o.hosts, "host")}`)),
    tile("Cost an hour", dollars(o.cost), null, h("p", { class: "note" }, o.cost_unknown ? `estimated, without ${plural(o.cost_unknown, "slice")} of unknown price` : "estimated, at list prices")),
    tile("Pending", count(o.pending), null, h("p", { class: "note" }, waitsOf(o)), "#/jobs?pending=true"),
  ];
}

const waitsOf = (o) => {
  const kinds = Object.entries(o.waits ?? {}).sort(([a, n], [b, m]) => m - n || a.localeCompare(b));
  return kinds.length ? kinds.map(([kind, n]) => `${count(n)} for ${awaited[kind] ?? kind}`).join(", ") : "jobs that wait for something";
};

// What jobs wait for, by the kinds of package plan.
const awaited = {
  underway: "what is being done",
  dependency: "other jobs or values",
  blocked: "jobs that failed",
  turn: "their turn",
  limit: "a limit",
  room: "room in a reservation",
  capacity: "capacity",
  quota: "quota",
  retry: "the next try",
  provider: "a provider that does not answer",
  constraint: "a place that fits",
};

const tile = (name, value, picture, more, href, size = "") => h("div", { class: `tile ${size}` },
  h("h2", null, href ? h("a", { href }, name) : name), h("p", { class: "number" }, value), picture, more);

const concern = (job) => h("li", null,
  h("div", { class: "line" }, badge(job.blocked ? "blocked" : job.status), h("a", { class: "mono ellipsis", href: toJob(job.id) }, job.name),
    h("span", { class: "faint nowrap" }, job.status === "failed" ? ago(job.ended_at) : since(job.admitted_at))),
  h("div", { class: "why" }, linked(job.reason)));

const zone = (z) => h("div", { class: "zoneline" },
  h("div", { class: "line" }, h("span", { class: "mono ellipsis" }, z.zone || z.provider), h("span", { class: "faint nowrap" }, z.chips ? `${plural(z.slices, "slice")}, ${count(z.chips)} chips` : plural(z.slices, "slice"))),
  bar(inPhases(z.phases, z.idle), { label: z.zone || z.provider }),
  z.note ? h("div", { class: "why level-warn" }, z.note) : null);

const facts = (o) => [
  fact("Leader", o.leads ? o.leader : o.leader ? `${o.leader} (not this one)` : "none"),
  fact("Epoch", String(o.epoch)),
  o.since ? fact("Leads for", since(o.since)) : null,
  fact("Last step", o.step_at ? [ago(o.step_at), `, took ${Math.round(o.step_seconds * 1000)} ms`] : "not yet"),
  fact("Revision", String(o.revision)),
  fact("State", `serial ${o.serial}`),
  fact("Version", o.fray || "unknown"),
];

const fact = (name, value) => [h("dt", null, name), h("dd", null, value)];

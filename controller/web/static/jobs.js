// All jobs: filtered and sorted by the controller, drawn as far as they are seen.
import { get, search } from "./api.js";
import { fill, h } from "./dom.js";
import { badge, bar, count, jobStatuses, plural, since, taskStates, words } from "./format.js";
import { linked, toJob } from "./links.js";
import { VirtualList } from "./list.js";

const columns = [
  { name: "Status", sort: "status", class: "c-status" },
  { name: "Job", sort: "name", class: "c-job" },
  { name: "Namespace", sort: "namespace", class: "c-ns" },
  { name: "Band", sort: "band", class: "c-band" },
  { name: "Tasks", class: "c-tasks" },
  { name: "Where", sort: "chips", class: "c-where" },
  { name: "Attempt", sort: "attempt", class: "c-attempt" },
  { name: "Age", sort: "admitted", class: "c-age" },
];

export function jobs(root, route) {
  let query = route.query, timer;
  const field = h("input", { type: "search", placeholder: "Filter: name, user, zone, reason…  ( / )", "aria-label": "Filter jobs", value: query.q ?? "" });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Status" });
  const namespaces = h("select", { "aria-label": "Namespace" });
  const bands = h("select", { "aria-label": "Band" });
  const summary = h("p", { class: "summary", role: "status" });
  const head = h("div", { class: "row thead", role: "row" });
  const nothing = h("p", { class: "empty", hidden: true }, "No job matches.");
  const list = new VirtualList({ height: 46, key: (row) => row.id, draw: (row) => draw(row, !query.sort), load });
  root.append(h("h1", { class: "hidden" }, "Jobs"),
    h("div", { class: "filters" }, field, namespaces, bands, chips), summary,
    h("div", { class: "table jobs", role: "table", "aria-label": "Jobs" }, h("div", { class: "sticky", role: "rowgroup" }, head), list.el, nothing));

  async function load(offset, limit) {
    const asked = query;
    const { q, status, namespace, band, pending, sort, order } = query;
    const answer = await get("jobs", { q, status, namespace, band, pending, sort, order, offset, limit });
    if (asked === query) describe(answer);
    return { rows: answer.jobs, total: answer.rows };
  }

  function describe(a) {
    fill(summary, a.matched === a.total ? plural(a.total, "job") : `${count(a.matched)} of ${plural(a.total, "job")}`,
      query.pending ? " that wait" : "");
    nothing.hidden = a.rows > 0;
    choices(namespaces, "All namespaces", a.facets.namespace, query.namespace);
    choices(bands, "All bands", a.facets.band, query.band);
    for (const button of chips.children) button.lastChild.textContent = count(a.facets.status[button.dataset.status] ?? 0);
  }

  // The filter is in the address, so that it can be kept and sent. What was just
  // typed counts, whatever else is changed.
  function set(change) {
    clearTimeout(timer);
    const next = { ...query, q: field.value.trim(), ...change };
    history.replaceState(null, "", `#/jobs${search(next)}`);
    apply(next);
  }

  function apply(next) {
    query = next;
    if (document.activeElement !== field) field.value = query.q ?? "";
    drawHead();
    const on = (query.status ?? "").split(",");
    for (const button of chips.children) button.setAttribute("aria-pressed", on.includes(button.dataset.status));
    list.reload(true).catch(problem);
  }

  function drawHead() {
    head.replaceChildren(...columns.map((c) => {
      const here = c.sort && query.sort === c.sort;
      const down = query.order === "desc";
      const cell = h("span", { role: "columnheader", class: c.class, "aria-sort": here ? (down ? "descending" : "ascending") : undefined });
      if (!c.sort) { cell.append(c.name); return cell; }
      const next = !here ? { sort: c.sort, order: "" } : down ? { sort: "", order: "" } : { sort: c.sort, order: "desc" };
      cell.append(h("button", { type: "button", class: "sort", onclick: () => { set(next); head.querySelector(`.${c.class} button`)?.focus(); } }, c.name, here ? (down ? " ↓" : " ↑") : ""));
      return cell;
    }));
  }

  const problem = (error) => fill(summary, h("span", { class: "level-error" }, error.message));

  for (const status of jobStatuses) {
    chips.append(h("button", {
      type: "button", class: "chip", "data-status": status, "aria-pressed": "false",
      onclick: () => {
        const on = new Set((query.status ?? "").split(",").filter(Boolean));
        if (!on.delete(status)) on.add(status);
        set({ status: [...on].join(",") });
      },
    }, h("i", { class: `key f-${status}` }), `${status} `, h("b", null, "")));
  }
  field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => set({}), 120); });
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") { event.preventDefault(); list.el.querySelector("a")?.focus(); }
  });
  namespaces.addEventListener("change", () => set({ namespace: namespaces.value }));
  bands.addEventListener("change", () => set({ band: bands.value }));
  apply(query);

  return {
    route: (next) => { if (JSON.stringify(next.query) !== JSON.stringify(query)) { field.value = next.query.q ?? ""; apply(next.query); } },
    update: (_, fresh) => { if (fresh) list.reload().catch(problem); },
    leave: () => { clearTimeout(timer); list.leave(); },
  };
}

function choices(select, all, counts, chosen = "") {
  const names = Object.keys(counts).sort();
  const text = JSON.stringify([counts, chosen]);
  if (select.dataset.text === text || document.activeElement === select) return;
  select.dataset.text = text;
  select.replaceChildren(h("option", { value: "" }, all), ...names.map((name) =>
    h("option", { value: name, selected: name === chosen }, `${name || "none"} (${counts[name]})`)));
}

// tally is what tasks do: how many run, or of a job that has ended how they ended.
export function tally(status, tasks, total) {
  const state = status === "succeeded" ? "succeeded" : ["failed", "stopped"].includes(status) ? taskStates.findLast((name) => name !== "succeeded" && tasks[name]) ?? "succeeded" : "running";
  return `${count(tasks[state] ?? 0)} of ${count(total)} ${words(state)}`;
}

// draw is a job in a list; as a tree, set in by how deep it is.
export function draw(job, tree) {
  const tasks = taskStates.map((name) => ({ name, n: job.tasks?.[name] ?? 0 }));
  const total = tasks.reduce((sum, t) => sum + t.n, 0);
  const lost = [job.failures && plural(job.failures, "failure"), job.preemptions && plural(job.preemptions, "preemption")].filter(Boolean).join(", ");
  return h("div", { class: `row${job.context ? " context" : ""}${job.past ? " past" : ""}`, role: "row" },
    h("span", { role: "cell", class: "c-status" }, badge(job.blocked ? "blocked" : job.status)),
    h("span", { role: "cell", class: "c-job", style: tree ? { "--depth": Math.min(job.depth, 6) } : undefined },
      h("span", { class: "line" }, tree && job.depth ? h("i", { class: "twig", "aria-hidden": "true" }) : null,
        h("a", { class: "mono ellipsis", href: toJob(job.id), title: job.address }, job.name),
        job.children ? h("span", { class: "pill", title: plural(job.children, "child", "children") }, count(job.children)) : null,
        job.past ? h("span", { class: "pill" }, "former") : null,
        job.ready && job.status === "running" ? h("span", { class: "pill good" }, "ready") : null),
      h("span", { class: "sub ellipsis", title: job.reason ?? "" }, linked(job.reason))),
    h("span", { role: "cell", class: "c-ns" }, h("span", { class: "ellipsis" }, job.namespace || "–"), h("span", { class: "sub ellipsis" }, job.user ?? "")),
    h("span", { role: "cell", class: "c-band" }, job.band),
    h("span", { role: "cell", class: "c-tasks" }, total ? bar(tasks, { label: "Tasks" }) : h("span", { class: "faint" }, "–"),
      total ? h("span", { class: "sub" }, tally(job.status, job.tasks, total)) : null),
    h("span", { role: "cell", class: "c-where" }, h("span", { class: "ellipsis" }, (job.slices > 1 ? `${job.slices} × ` : "") + job.shape),
      h("span", { class: "sub ellipsis" }, (job.zones ?? []).join(", "))),
    h("span", { role: "cell", class: "c-attempt" }, job.attempt ? `#${job.attempt}` : "–", h("span", { class: "sub ellipsis", title: lost }, lost)),
    h("span", { role: "cell", class: "c-age" }, job.admitted_at ? since(job.admitted_at) : job.started_at ? since(job.started_at) : "–"));
}

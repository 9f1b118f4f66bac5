// Actors: where they are, and how they are called.
import { get, search } from "./api.js";
import { fill, h } from "./dom.js";
import { badge, count, plural, rate, since, took } from "./format.js";
import { toAddress, toJob } from "./links.js";

const pace = 5000; // hosts report calls that often
const shown = 500;

export function actors(root, route) {
  const field = h("input", { type: "search", placeholder: "Filter: name, namespace, job…  ( / )", "aria-label": "Filter actors", value: route.query.q ?? "" });
  const summary = h("p", { class: "summary", role: "status" });
  const list = h("section", { class: "card" });
  root.append(h("h1", { class: "hidden" }, "Actors"), h("div", { class: "filters" }, field), summary, list);
  let asked = 0, timer;

  async function refresh() {
    const mine = ++asked;
    clearTimeout(timer);
    try {
      const answer = await get("actors", { q: field.value.trim() });
      if (mine !== asked) return;
      fill(summary, plural(answer.actors.length, "actor"));
      fill(list, answer.actors.length ? table(answer.actors.slice(0, shown)) : h("p", { class: "empty" }, "There are none. A job that hosts actors, or an actor_service, has some."));
    } catch (error) {
      if (mine === asked) fill(summary, h("span", { class: "level-error" }, error.message));
    }
    timer = setTimeout(refresh, pace);
  }

  field.addEventListener("input", () => { history.replaceState(null, "", `#/actors${search({ q: field.value.trim() })}`); refresh(); });
  return { update: (_, fresh) => { if (fresh) refresh(); }, leave: () => { asked++; clearTimeout(timer); } };
}

const states = { READY: "ready", CREATING: "creating", RESTARTING: "restarting", FAILED: "failed" };

const table = (all) => h("div", { class: "scroll" }, h("table", { class: "actors" },
  h("thead", null, h("tr", null, ["Actor", "Status", "Job", "Address", "Calls", "Errors", "Waiting", "Median", "99%", "For"].map((name, i) => h("th", { scope: "col", class: i > 3 ? "num" : "" }, name)))),
  h("tbody", null, all.map((a) => h("tr", { "data-key": `${a.namespace}/${a.name}/${a.actor_id ?? ""}` },
    h("td", { class: "mono" }, a.name, h("span", { class: "sub" }, h("a", { href: toAddress(`namespace.${a.namespace}`) }, a.namespace))),
    h("td", null, badge(states[a.status] ?? a.status), a.reason ? h("span", { class: "sub" }, a.reason) : null),
    h("td", { class: "mono" }, h("a", { href: toJob(a.job_id) }, a.job), h("span", { class: "sub" }, `attempt ${a.attempt}, task ${a.task}`)),
    h("td", { class: "mono" }, a.address ?? ""),
    a.measured ? [
      h("td", { class: "num" }, rate(a.calls_per_second)), h("td", { class: a.errors_per_second ? "num level-error" : "num" }, rate(a.errors_per_second)),
      h("td", { class: "num" }, count(a.calls_pending)), h("td", { class: "num" }, a.calls_per_second ? took(a.p50_seconds) : "–"), h("td", { class: "num" }, a.calls_per_second ? took(a.p99_seconds) : "–"),
    ] : [h("td", { class: "num faint", colspan: 5 }, a.status === "READY" ? "not measured yet" : "")],
    h("td", { class: "num" }, a.since ? since(a.since) : ""))))));

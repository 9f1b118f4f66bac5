// The frame of the page: which part is shown, and what keeps it up to date.
import { actors } from "./actors.js";
import { follow } from "./api.js";
import { fill, h } from "./dom.js";
import { ago, setClock, tick } from "./format.js";
import { events } from "./events.js";
import { graph } from "./graph.js";
import { job } from "./job.js";
import { jobs } from "./jobs.js";
import { keep, kept } from "./keep.js";
import { overview } from "./overview.js";
import { reservations } from "./reservations.js";
import { shares } from "./shares.js";
import { slices } from "./slices.js";

const pages = { overview, jobs, job, actors, graph, slices, reservations, shares, events };
const main = document.getElementById("main");
const app = { latest: undefined, page: undefined, route: undefined };

// The address after '#': "/jobs?status=failed", "/jobs/ID".
function parse(hash) {
  const [path, query] = (hash.replace(/^#/, "") || "/").split("?");
  const [name, ...rest] = path.split("/").filter(Boolean);
  const id = rest.length ? decodeURIComponent(rest.join("/")) : "";
  const page = name === "jobs" && id ? "job" : name ?? "overview";
  return { page: pages[page] ? page : "overview", id, query: Object.fromEntries(new URLSearchParams(query)) };
}

function show() {
  const hash = location.hash;
  if (hash === "#main") return; // the skip link
  const route = parse(hash);
  const same = app.route && app.route.page === route.page && app.route.id === route.id;
  app.route = route;
  for (const link of document.querySelectorAll("#nav a")) {
    const here = link.dataset.page === (route.page === "job" ? "jobs" : route.page);
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    if (here) link.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  if (same && app.page?.route) return app.page.route(route);
  app.page?.leave?.();
  main.replaceChildren();
  window.scrollTo(0, 0);
  if (app.latest) document.title = titleOf(app.latest);
  app.page = pages[route.page](main, route);
  if (app.latest) app.page.update?.(app.latest, true);
}

// titleOf tells the tabs of several stacks apart.
const titleOf = (latest) => [app.route.id || app.route.page, latest.place, "fray"].filter(Boolean).join(" · ");

function update(latest) {
  setClock(latest.now);
  const fresh = !app.latest || app.latest.version !== latest.version;
  app.latest = latest;
  const stack = document.getElementById("stack");
  stack.textContent = latest.place || latest.stack;
  stack.title = [latest.location, `stack ${latest.stack}`].filter(Boolean).join(", ");
  document.title = titleOf(latest);
  step(latest);
  banner(latest);
  app.page?.update?.(latest, fresh);
  document.getElementById("nav").dataset.version = latest.version;
}

function step(latest) {
  const live = document.getElementById("live");
  live.dataset.state = latest.leads ? "live" : "waiting";
  if (!latest.leads) fill(live, "does not lead");
  else fill(live, h("span", { class: "wide" }, "observed "), latest.step_at ? ago(latest.step_at) : "not yet");
}

function banner(latest) {
  const el = document.getElementById("banner");
  const lines = [];
  if (latest.paused) {
    lines.push(h("p", null, h("b", null, "Paused"), ` by ${latest.paused.by}`, latest.paused.reason ? `: ${latest.paused.reason}` : "", ". Nothing is changed until the stack is resumed."));
  }
  for (const [provider, why] of Object.entries(latest.unreachable ?? {})) {
    const since = latest.conditions?.[provider]?.unseen?.since;
    lines.push(h("p", null, h("b", null, `Provider ${provider} cannot be seen`), since ? " since " : "", since ? ago(since) : "", `: ${why}. Of its slices only those are read, one by one, about which something is to be done.`));
  }
  for (const [provider, condition] of Object.entries(latest.conditions ?? {})) {
    if (condition.missing) {
      lines.push(h("p", null, h("b", null, `${condition.missing.slices} of ${condition.missing.of} slices are missing from the list of provider ${provider}`), ". Nothing is done about them before each is confirmed to be gone."));
    }
    for (const item of condition.skipped ?? []) {
      lines.push(h("p", null, h("b", null, `${item.name}${item.zone ? ` in ${item.zone}` : ""} is skipped`), `: ${item.text}.`));
    }
  }
  fill(el, lines);
  el.hidden = lines.length === 0;
}

function connection(state) {
  const live = document.getElementById("live");
  if (state === "lost") {
    live.dataset.state = "lost";
    live.textContent = "connection lost";
  }
}

// Colours: as the system, light or dark.
const schemes = ["", "light", "dark"];
function theme(next) {
  const names = { "": "as the system", light: "light", dark: "dark" };
  document.documentElement.dataset.theme = next;
  const button = document.getElementById("theme");
  button.dataset.theme = next;
  button.title = `Colours: ${names[next]}`;
  button.setAttribute("aria-label", button.title);
  keep("fray-theme", next);
}

const chosen = kept("fray-theme");
theme(schemes.includes(chosen) ? chosen : "");
document.getElementById("theme").addEventListener("click", () => {
  theme(schemes[(schemes.indexOf(document.documentElement.dataset.theme) + 1) % schemes.length]);
});

// '/' goes to the filter of the page.
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const field = main.querySelector("input[type=search]");
  if (field) { event.preventDefault(); field.focus(); field.select(); }
});

window.addEventListener("hashchange", show);
setInterval(tick, 1000);
show();
follow("updates", {}, { update }, connection);

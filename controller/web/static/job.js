// One job: its attempts on a time line, its tasks, what they write.
import { get } from "./api.js";
import { curvesView } from "./curves.js";
import { fill, h } from "./dom.js";
import { ago, badge, clock, count, duration, moment, plural, since, until, words } from "./format.js";
import { draw } from "./jobs.js";
import { linked, toAddress, toJob, toSlice } from "./links.js";
import { logView } from "./logs.js";
import { profilesView } from "./profiles.js";
import { cell, columnName, columns, usageOf } from "./usage.js";

export function job(root, route) {
  const head = h("section", { class: "jobhead" });
  const waits = h("section", { class: "card", hidden: true });
  const attempts = h("section", { class: "card" });
  const tasks = h("section", { class: "card" });
  const below = h("section", { class: "card flush", hidden: true });
  const spec = h("section", { class: "card" });
  const logs = logView();
  const curves = curvesView();
  const profiles = profilesView();
  root.append(head, waits, attempts, curves.el, tasks, logs.el, profiles.el, below, spec);
  let chosen, last, asked = 0, usage = new Map();
  const used = usageOf((fresh) => { usage = fresh; if (last) paint(); });

  async function refresh() {
    const mine = ++asked;
    try {
      const fresh = await get(`jobs/${encodeURIComponent(route.id)}`);
      if (mine !== asked) return;
      last = fresh;
      paint();
    } catch (error) {
      fill(head, h("h1", { class: "mono" }, route.id), h("p", { class: "empty" }, error.message));
    }
  }

  function paint() {
    const attempt = last.attempts.find((a) => a.number === chosen) ?? last.attempts.at(-1);
    fill(head, heading(last));
    fill(waits, h("h2", null, last.blocked ? "Blocked" : "Waits for"), h("ul", { class: "reasons" }, (last.pending ?? []).map((why) => h("li", null, linked(why)))));
    waits.hidden = !last.pending?.length;
    attempts.replaceChildren(h("h2", null, "Attempts"), ...timeline(last, attempt, (number) => { chosen = number; paint(); attempts.querySelector("[aria-pressed=true]")?.focus(); }));
    fill(tasks, h("h2", null, attempt ? `Tasks of attempt ${attempt.number}` : "Tasks"), tasksOf(attempt, usage));
    used.follow(last.id, attempt?.number, attempt !== undefined && !attempt.ended_at);
    fill(below, h("h2", null, `Launched by it (${count(last.below.length)})`), h("div", { class: "table jobs static", role: "table", "aria-label": "Jobs that it launched" }, last.below.slice(0, 500).map((row) => draw(row, true))));
    below.hidden = last.below.length === 0;
    fill(spec, specOf(last));
    logs.show(last, attempt);
    curves.follow(last.id, !last.ended_at);
    profiles.show(last);
  }

  refresh();
  return {
    update: (_, fresh) => { if (fresh) refresh(); },
    leave: () => { asked++; used.leave(); logs.leave(); curves.leave(); profiles.leave(); },
  };
}

const heading = (j) => [
  h("p", { class: "crumbs" }, h("a", { href: "#/jobs" }, "Jobs"), " / ",
    j.namespace ? [h("a", { href: `#/jobs?namespace=${encodeURIComponent(j.namespace)}` }, j.namespace), " / "] : null,
    j.parent && j.parent_name ? [h("a", { href: toJob(j.parent) }, j.parent_name), " / "] : null),
  h("h1", { class: "mono" }, j.name, " ", badge(j.blocked ? "blocked" : j.status), j.ready && j.status === "running" ? h("span", { class: "pill good" }, "ready") : null),
  j.reason && !j.pending?.length ? h("p", { class: j.status === "failed" ? "why level-error" : "why" }, linked(j.reason)) : null,
  h("dl", { class: "facts wide" },
    fact("Address", h("span", { class: "mono" }, j.address)),
    fact("Id", h("span", { class: "mono" }, j.id)),
    fact("Band", [j.band, j.priority ? `, priority ${j.priority}` : ""]),
    j.user ? fact("User", j.user) : null,
    fact("Runs on", [`${j.slices > 1 ? `${j.slices} × ` : ""}${j.shape}`, j.preemptible ? ", preemptible" : ""]),
    j.choice ? fact("Chosen", chosen(j)) : null,
    j.zones?.length ? fact("Where", j.zones.join(", ")) : null,
    j.reservation ? fact("Reservation", h("a", { class: "mono", href: toAddress(`reservation.${j.reservation}`) }, j.reservation)) : null,
    j.admitted_at ? fact("Submitted", ago(j.admitted_at)) : null,
    j.ended_at ? fact("Ended", ago(j.ended_at)) : null,
    j.retry_at && Date.parse(j.retry_at) > clock() ? fact("Next try in", until(j.retry_at)) : null,
    j.schedule ? fact("Schedule", [h("span", { class: "mono" }, j.schedule.cron), ` ${j.schedule.timezone}`]) : null,
    j.schedule ? fact("Next run", nextRun(j.schedule)) : null,
    j.schedule?.outcome ? fact("Last run", `run ${j.schedule.ended} ${j.schedule.outcome}`) : null,
    fact("Failures", budget(j.failures, j.max_failures)),
    fact("Preemptions", budget(j.preemptions, j.max_preemptions))),
];

const day = (at) => new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short", hour12: false });

// nextRun is when the next run of a schedule begins.
const nextRun = (s) => [
  s.suspend ? "suspended" : !s.next ? "none" : Date.parse(s.next) > clock() ? ["in ", until(s.next), `, at ${day(s.next)}`] : `due since ${day(s.next)}`,
  s.queued ? `; ${count(s.queued)} queued` : "",
];

// chosen is why a job has the alternative that it has, and none of those before it.
const chosen = (j) => [
  `${j.choice.accelerator}, ${j.choice.text}`,
  j.choice.passed?.length ? h("ul", { class: "reasons passed" }, j.choice.passed.map((p) => h("li", null, h("span", { class: "mono" }, p.accelerator), ` (${p.cause})`, p.text ? `: ${p.text}` : ""))) : null,
];

const fact = (name, value) => h("div", null, h("dt", null, name), h("dd", null, value));
const budget = (spent, max) => (max < 0 ? `${count(spent)}, no limit` : `${count(spent)}, at most ${count(max)} retried`);

// timeline draws attempts from the job's submission to its end, or to now.
function timeline(j, chosen, choose) {
  if (!j.attempts.length) return [h("p", { class: "empty" }, "It has not been tried yet.")];
  const starts = j.attempts.map((a) => Date.parse(a.started_at));
  const cut = j.attempts[0].number > 1;
  const from = cut || !j.admitted_at ? Math.min(...starts) : Math.min(Date.parse(j.admitted_at), ...starts);
  const running = j.attempts.some((a) => !a.ended_at);
  const to = Math.max(from + 1000, running ? clock() : Math.max(...j.attempts.map((a) => Date.parse(a.ended_at))));
  const at = (ms) => `${(100 * (ms - from)) / (to - from)}%`;
  return [
    h("div", { class: "axis", "aria-hidden": "true" }, ticks(from, to).map((t) => h("span", { style: { left: at(t.at) } }, t.text))),
    h("ol", { class: "attempts" }, [...j.attempts].reverse().map((a) => {
      const start = Date.parse(a.started_at), end = a.ended_at ? Date.parse(a.ended_at) : to;
      const state = a.outcome || (a.stopping ? "stopping" : "running");
      const ready = a.ready_at ? Date.parse(a.ready_at) : undefined;
      return h("li", { class: a === chosen ? "chosen" : "" },
        h("button", { type: "button", class: "attempt", "aria-pressed": String(a === chosen), onclick: () => choose(a.number), "aria-label": `Attempt ${a.number}, ${words(state)}, ${duration(end - start)}` },
          h("span", { class: "n" }, `#${a.number}`),
          h("span", { class: "track" },
            h("i", { class: `span f-${state}`, style: { left: at(start), width: `max(3px, ${(100 * (end - start)) / (to - from)}%)` } },
              ready && ready > start ? h("i", { class: "warmup", style: { width: `${(100 * (ready - start)) / Math.max(1, end - start)}%` } }) : null)),
          h("span", { class: "took" }, a.ended_at ? duration(end - start) : since(a.started_at))),
        h("div", { class: "story" }, badge(state), " ",
          h("span", null, h("b", null, "began "), moment(a.started_at), a.why ? [": ", linked(a.why)] : ""),
          a.ended_at ? h("span", null, h("b", null, "ended "), moment(a.ended_at), a.reason ? [": ", linked(a.reason)] : "") : a.reason ? h("span", null, linked(a.reason)) : null,
          h("span", null, h("b", null, "on "), h("span", { class: "mono" }, few(a.slices ?? [])), a.zones?.length ? ` in ${a.zones.join(", ")}` : "")));
    })),
    cut ? h("p", { class: "note" }, `The ${plural(j.attempts[0].number - 1, "attempt")} before are not kept.`) : "",
  ].filter(Boolean);
}

const few = (names) => [names.slice(0, 3).map((name, i) => [i ? ", " : "", h("a", { href: toSlice(name) }, name)]), names.length > 3 ? ` and ${names.length - 3} more` : "", names.length ? "" : "nothing"];

function ticks(from, to) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800].map((s) => s * 1000);
  const step = steps.find((s) => (to - from) / s <= 6) ?? (to - from) / 6;
  const out = [];
  const zone = new Date(from).getTimezoneOffset() * 60000;
  for (let at = Math.ceil((from - zone) / step) * step + zone; at < to - (to - from) * 0.06; at += step) {
    const t = new Date(at);
    out.push({ at, text: step >= 86400000 ? t.toLocaleDateString([], { month: "short", day: "numeric" }) : t.toLocaleTimeString([], step < 60000 ? { hour12: false } : { hour: "2-digit", minute: "2-digit", hour12: false }) });
  }
  return out;
}

function tasksOf(attempt, usage) {
  if (!attempt?.tasks?.length) return h("p", { class: "empty" }, "None yet.");
  const shown = attempt.tasks.slice(0, 256);
  const kinds = columns(usage);
  return [h("div", { class: "scroll" }, h("table", null,
    h("thead", null, h("tr", null, ["Task", "State", ...kinds.map(columnName), "Host", "Address", "Ports", "Exit", "Says"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", null, shown.map((t) => h("tr", { "data-key": String(t.index) },
      h("td", null, String(t.index)),
      h("td", null, badge(t.state), t.health ? h("span", { class: `pill ${t.health === "healthy" ? "good" : t.health === "unhealthy" ? "bad" : ""}` }, t.health) : null),
      kinds.map((kind) => h("td", null, cell(usage.get(t.index), kind))),
      h("td", { class: "mono" }, h("a", { href: toSlice(t.slice) }, `${t.slice}/${t.host}`), t.zone ? h("span", { class: "sub" }, t.zone) : null),
      h("td", { class: "mono" }, t.address ?? ""),
      h("td", { class: "mono" }, Object.entries(t.ports ?? {}).map(([name, n]) => `${name} ${n}`).join(", ")),
      h("td", { class: t.exit_code ? "level-error" : "" }, t.exit_code ?? ""),
      h("td", { class: "says" }, t.reason ?? "", t.bad_host ? h("span", { class: "pill bad" }, "bad host") : null,
        t.silent_seconds ? h("span", { class: "level-warn" }, `its host has said nothing for ${duration(t.silent_seconds * 1000)}`) : null,
        t.tail?.length ? h("pre", null, t.tail.join("\n")) : null)))))),
  attempt.tasks.length > shown.length ? h("p", { class: "note" }, `and ${count(attempt.tasks.length - shown.length)} more`) : null];
}

const specOf = (j) => [
  h("h2", null, "What it runs"),
  h("pre", { class: "command" }, j.command.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ") || "nothing"),
  h("dl", { class: "facts wide" },
    j.image ? fact("Image", h("span", { class: "mono" }, j.image)) : null,
    j.group ? fact("Group", h("a", { class: "mono", href: toAddress(j.group) }, j.group)) : null,
    j.depends_on?.length ? fact("Depends on", h("span", { class: "mono" }, linked(j.depends_on.join(", ")))) : null),
  j.env?.length ? h("details", null, h("summary", null, `Environment (${j.env.length})`), h("div", { class: "scroll" }, h("table", { class: "env" }, h("tbody", null, j.env.map((e) =>
    h("tr", null, h("th", { scope: "row", class: "mono" }, e.name), h("td", { class: "mono" }, e.value))))))) : null,
];

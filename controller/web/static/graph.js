// What depends on what, as `fray graph` draws it: a column for each step of the way, what
// nothing is needed for on the left. Arrows go to what is depended on.
import { get } from "./api.js";
import { h, svg } from "./dom.js";
import { count, jobStatuses, plural, words } from "./format.js";
import { toAddress, toJob } from "./links.js";

const maxNodes = 400;
const size = { width: 220, height: 44, gapX: 90, gapY: 16, pad: 14 };

export function graph(root) {
  const el = h("section", { class: "card graph" });
  root.append(h("h1", null, "Dependencies"),
    h("p", { class: "legend edges" }, ...["waits", "draws", "part"].map((kind) => h("span", null, sample(kind), { waits: "waits for", draws: "draws slices from", part: "is part of" }[kind]))), el);
  let asked = 0, drawn = "";
  async function refresh() {
    const mine = ++asked;
    const answer = await get("graph");
    const text = JSON.stringify([answer.nodes, answer.edges]);
    if (mine !== asked || text === drawn) return;
    drawn = text;
    const focus = el.contains(document.activeElement) ? document.activeElement.dataset.address : undefined;
    el.replaceChildren(picture(answer));
    if (focus) [...el.querySelectorAll("[data-address]")].find((a) => a.dataset.address === focus)?.focus();
  }
  return {
    update: (_, fresh) => { if (fresh) refresh().catch((error) => el.replaceChildren(h("p", { class: "empty" }, error.message))); },
    leave: () => { asked++; },
  };
}

function picture({ nodes, edges }) {
  if (!nodes.length) return h("p", { class: "empty" }, "Nothing is declared.");
  if (nodes.length > maxNodes) return h("p", { class: "empty" }, `${plural(nodes.length, "block")} are too many for a picture that can be read; fray graph draws them all.`);
  const columns = layout(nodes, edges);
  const at = new Map(columns.flatMap((column, x) => column.map((n, y) => [n.address, {
    x: size.pad + x * (size.width + size.gapX), y: size.pad + y * (size.height + size.gapY),
  }])));
  const width = 2 * size.pad + columns.length * (size.width + size.gapX) - size.gapX;
  const height = 2 * size.pad + Math.max(...columns.map((c) => c.length)) * (size.height + size.gapY) - size.gapY;
  return h("div", { class: "scroll" }, svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `${plural(nodes.length, "block")} and ${plural(edges.length, "dependency", "dependencies")}` },
    svg("defs", null, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, svg("path", { d: "M0 0L8 4L0 8z", class: "head" }))),
    edges.map((e) => curve(at.get(e.from), at.get(e.to), e)), nodes.map((n) => box(n, at.get(n.address), edges))));
}

// layout puts each node one column right of all that it depends on, and within a column
// near those.
function layout(nodes, edges) {
  const needs = Map.groupBy(edges, (e) => e.from);
  const depth = new Map();
  const of = (address, above) => {
    if (depth.has(address)) return depth.get(address);
    if (above.has(address)) return 0; // a loop, which no plan has
    above.add(address);
    const d = Math.max(-1, ...(needs.get(address) ?? []).map((e) => of(e.to, above))) + 1;
    above.delete(address);
    depth.set(address, d);
    return d;
  };
  const columns = [];
  for (const n of nodes) (columns[of(n.address, new Set())] ??= []).push(n);
  const place = new Map();
  for (const column of columns) {
    const near = (n) => {
      const to = (needs.get(n.address) ?? []).map((e) => place.get(e.to)).filter((y) => y !== undefined);
      return to.length ? to.reduce((sum, y) => sum + y, 0) / to.length : column.length;
    };
    if (place.size) column.sort((a, b) => near(a) - near(b));
    column.forEach((n, y) => place.set(n.address, y));
  }
  return columns;
}

function curve(from, to, e) {
  const x1 = from.x, y1 = from.y + size.height / 2, x2 = to.x + size.width, y2 = to.y + size.height / 2;
  const bend = Math.max(30, (x1 - x2) / 2);
  return svg("path", { class: `edge e-${e.kind}`, d: `M${x1} ${y1}C${x1 - bend} ${y1} ${x2 + bend} ${y2} ${x2} ${y2}`, "marker-end": "url(#arrow)" });
}

const sample = (kind) => svg("svg", { width: 34, height: 10, "aria-hidden": "true" }, svg("path", { class: `edge e-${kind}`, d: "M1 5L33 5" }));

function box(n, { x, y }, edges) {
  const jobs = jobStatuses.filter((name) => n.jobs?.[name]);
  const name = n.address.length > 25 ? `${n.address.slice(0, 11)}…${n.address.slice(-13)}` : n.address;
  const kinds = { namespace: "namespace", job_group: "group of jobs", reservation: "reservation", actor_service: "service" };
  const more = jobs.length ? jobs.map((s) => (n.instances > 1 ? `${count(n.jobs[s])} ${words(s)}` : words(s))).join(", ") : kinds[n.kind] ?? "not there yet";
  const on = edges.filter((e) => e.from === n.address).map((e) => e.to);
  const label = [n.address, more, on.length ? `depends on ${on.join(", ")}` : ""].filter(Boolean).join("; ");
  const worst = ["failed", "pending", "running", "scheduled", "stopped", "succeeded"].find((s) => n.jobs?.[s]);
  return svg("a", { href: n.id ? toJob(n.id) : toAddress(n.address) ?? "#/graph", class: `node n-${n.kind}`, "aria-label": label, "data-address": n.address },
    svg("title", null, label),
    svg("rect", { x, y, width: size.width, height: size.height, rx: n.kind === "reservation" ? 20 : 8 }),
    worst ? svg("circle", { class: `s-${worst}`, cx: x + 16, cy: y + 16, r: 5 }) : null,
    svg("text", { class: "name", x: x + (worst ? 28 : 14), y: y + 20 }, name),
    svg("text", { class: "more", x: x + (worst ? 28 : 14), y: y + 35 }, [n.instances > 1 ? `×${count(n.instances)} ` : "", more].join("")));
}

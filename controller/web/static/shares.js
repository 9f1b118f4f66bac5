// What namespaces and their users have of the whole, and what they are entitled to.
import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { count, percent } from "./format.js";

export function shares(root) {
  const table = h("section", { class: "card" });
  const spent = h("section", { class: "card", hidden: true });
  root.append(h("h1", null, "Fair share"),
    h("p", { class: "note lead" }, "The bar is what a namespace holds of all that is held, by the resource of which it has most; the mark is its weight among those that hold or wait for something."), table, spent);
  return {
    async update(_, fresh) {
      if (!fresh) return;
      const all = await get("shares").catch((error) => ({ error: error.message, shares: [] }));
      spent.hidden = !all.money_budgets?.length;
      if (!spent.hidden) fill(spent, money(all.money_budgets));
      fill(table, all.shares.length ? view(all) : h("p", { class: "empty" }, all.error ?? "No namespace has jobs."));
    },
  };
}

// What namespaces have spent of their budgets of money this month.
const money = (budgets) => [
  h("h2", null, "Money this month"),
  h("div", { class: "scroll" }, h("table", { class: "shares money" },
    h("thead", null, h("tr", null, h("th", { scope: "col" }, "Namespace"), h("th", { scope: "col", class: "widest" }, "Used of the budget"), h("th", { scope: "col", class: "num" }, "Limit"))),
    h("tbody", null, budgets.map((b) => h("tr", { "data-key": b.namespace },
      h("th", { scope: "row", class: "mono" }, b.namespace),
      h("td", { class: "widest" }, h("div", { class: "share", role: "img", "aria-label": `${percent(b.counted / b.limit)} used` },
        h("i", { class: b.level ? "f-over" : "f-running", style: { width: percentWidth(b.counted / b.limit) } })),
      h("span", { class: b.level ? "sub level-warn" : "sub" }, b.text)),
      h("td", { class: "num" }, `$${count(b.limit)}`)))))),
];

const view = (all) => h("div", { class: "scroll" }, h("table", { class: "shares" },
  h("thead", null, h("tr", null, h("th", { scope: "col" }, "Namespace"), h("th", { scope: "col", class: "widest" }, "Share and entitled"),
    ["Chips", "Cores", "Budget", "Weight", "Running", "Waiting"].map((name) => h("th", { scope: "col", class: "num" }, name)))),
  h("tbody", null, all.shares.map((s) => [row(s, all), (s.users ?? []).map((u) => user(u, s))]))));

function row(s) {
  const over = s.budget > 0 && s.chips > s.budget;
  return h("tr", { "data-key": s.namespace },
    h("th", { scope: "row", class: "mono" }, h("a", { href: `#/jobs?namespace=${encodeURIComponent(s.namespace)}` }, s.namespace || "none")),
    h("td", { class: "widest" }, h("div", { class: "share", role: "img", "aria-label": `share ${percent(s.share)}, entitled to ${percent(s.entitled)}` },
      h("i", { class: s.share > s.entitled * 1.05 + 0.005 ? "f-over" : "f-running", style: { width: percentWidth(s.share) } }),
      s.entitled ? h("b", { class: "mark", style: { left: percentWidth(s.entitled) } }) : null),
    h("span", { class: "sub" }, `${percent(s.share)} of ${percent(s.entitled)}`)),
    h("td", { class: "num" }, count(s.chips), s.max_chips ? h("span", { class: "sub" }, `max ${count(s.max_chips)}`) : null),
    h("td", { class: "num" }, count(s.cpu), s.max_cpu ? h("span", { class: "sub" }, `max ${count(s.max_cpu)}`) : null),
    h("td", { class: over ? "num level-warn" : "num" }, s.budget ? count(s.budget) : "–", over ? h("span", { class: "sub level-warn" }, "over: yields") : null),
    h("td", { class: "num" }, String(s.weight)), h("td", { class: "num" }, count(s.running)), h("td", { class: "num" }, count(s.waiting)));
}

const percentWidth = (part) => `${Math.min(100, 100 * part)}%`;

const user = (u, s) => h("tr", { class: "user", "data-key": `${s.namespace}\n${u.name}` },
  h("th", { scope: "row" }, u.name),
  h("td", { class: "widest" }, h("div", { class: "share thin", role: "img", "aria-label": `${u.chips} of ${s.chips} chips` }, h("i", { class: "f-running", style: { width: percentWidth(u.chips / Math.max(1, s.chips)) } }))),
  h("td", { class: "num" }, count(u.chips), u.max_chips ? h("span", { class: "sub" }, `max ${count(u.max_chips)}`) : null),
  h("td", { class: "num" }, count(u.cpu)), h("td", { class: "num" }, u.budget ? count(u.budget) : "–"), h("td", { class: "num" }, String(u.weight)),
  h("td", { class: "num" }, count(u.running)), h("td", { class: "num" }, count(u.waiting)));

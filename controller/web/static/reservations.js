// Pools of slices: what they have, what they may have, until when.
import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { ago, count, plural, until } from "./format.js";
import { linked, toAddress, toJob } from "./links.js";

export function reservations(root, route) {
  const list = h("div", { class: "cards" });
  root.append(h("h1", null, "Reservations"), list);
  return {
    async update(_, fresh) {
      if (!fresh) return;
      const all = await get("reservations").catch((error) => ({ error: error.message, reservations: [] }));
      const first = !list.firstChild;
      fill(list, all.reservations.length ? all.reservations.map(card) : h("p", { class: "empty" }, all.error ?? "There are none. A reservation keeps slices between a min and a max for jobs that draw from it."));
      if (first) reveal(list, route.id);
    },
  };
}

// reveal brings the card of an address, or of a launched reservation's name, into sight.
function reveal(list, address) {
  [...list.children].find((el) => el.dataset.key === address)?.scrollIntoView({ block: "center" });
}

function card(r) {
  const held = r.allocated - r.free;
  const scale = Math.max(r.max, r.allocated + r.pending, 1);
  const width = (n) => ({ width: `${(100 * n) / scale}%` });
  const text = `${held} held, ${r.free} free, ${r.pending} pending, of at most ${r.max}`;
  return h("section", { class: "card", "data-key": r.address },
    h("h2", { class: "line" }, h("span", { class: "mono ellipsis" }, r.name), r.launched ? h("span", { class: "pill" }, "by API") : null,
      r.released_at ? h("span", { class: "pill bad" }, "released") : r.expired ? h("span", { class: "pill bad" }, "expired") : null, h("span", { class: "faint nowrap push" }, r.shape)),
    h("div", { class: "pool", role: "img", "aria-label": text, title: text },
      h("i", { class: "f-ready", style: width(held) }), h("i", { class: "f-idle", style: width(r.free) }), h("i", { class: "f-creating", style: width(r.pending) }),
      r.min > 0 && r.min < scale ? h("b", { class: "mark", style: { left: `${(100 * r.min) / scale}%` }, title: `min ${r.min}` }) : null),
    h("dl", { class: "facts wide" },
      fact("Min – max", `${count(r.min)} – ${count(r.max)}`), fact("Allocated", count(r.allocated)), fact("Free", count(r.free)), fact("Pending", count(r.pending)),
      fact("Expires", r.expires_at ? (r.expired ? ago(r.expires_at) : ["in ", until(r.expires_at)]) : "never"),
      fact("Priority", String(r.priority)), fact("Grows", r.growth === "offer" ? "to offer one more" : "on demand"),
      r.namespace ? fact("Namespace", h("a", { href: toAddress(`namespace.${r.namespace}`) }, r.namespace)) : null, fact("Kind", r.preemptible ? "preemptible" : "on demand")),
    r.jobs.length ? h("p", { class: "refs" }, `${plural(r.jobs.length, "job")}: `, r.jobs.slice(0, 12).map((j, i) => [i ? ", " : "", h("a", { class: "mono", href: toJob(j.id) }, j.name)]), r.jobs.length > 12 ? ", …" : "") : null,
    r.reasons?.length ? h("ul", { class: "reasons" }, r.reasons.map((why) => h("li", null, linked(why)))) : null);
}

const fact = (name, value) => h("div", null, h("dt", null, name), h("dd", null, value));

// The last profiles of a job: where they are looked at, and how one is taken.
import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { moment } from "./format.js";

const pace = 10000; // milliseconds

export function profilesView() {
  const el = h("section", { class: "card" });
  let left = false, asked = 0; // when the list was asked for last: it is a request to the store
  const path = (id, name) => `/api/v1/jobs/${encodeURIComponent(id)}/profiles/${encodeURIComponent(name)}`;

  function paint(job, profiles) {
    const first = profiles.length ? null : h("p", { class: "empty" }, "None were taken.");
    const rows = profiles.map((p) => h("tr", { "data-key": p.name },
      h("td", null, moment(p.at)),
      h("td", null, String(p.attempt)),
      h("td", null, String(p.task)),
      h("td", null, p.kind),
      h("td", null,
        p.flame ? [h("a", { href: `${path(job.id, p.name)}/flame`, target: "_blank", rel: "noopener" }, "flame graph"), " · "] : null,
        h("a", { href: path(job.id, p.name), target: "_blank", rel: "noopener" }, p.format))));
    const table = profiles.length ? h("div", { class: "scroll" }, h("table", null,
      h("thead", null, h("tr", null, ["Taken", "Attempt", "Task", "Of", "Open"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", null, rows))) : null;
    const command = job.ended_at ? null : h("p", { class: "note" }, "To take one: ", h("code", null, `fray profile ${quoted(job.address)}`));
    fill(el, h("h2", null, "Profiles"), first, table, command);
  }

  return {
    el,
    async show(job) {
      if (Date.now() - asked < pace) return;
      asked = Date.now();
      try {
        const answer = await get(`jobs/${encodeURIComponent(job.id)}/profiles`);
        if (!left) paint(job, answer.profiles);
      } catch (error) {
        if (!left) fill(el, h("h2", null, "Profiles"), h("p", { class: "empty" }, error.message));
      }
    },
    leave: () => { left = true; },
  };
}

const quoted = (address) => (/^[\w.-]+$/.test(address) ? address : `'${address}'`);

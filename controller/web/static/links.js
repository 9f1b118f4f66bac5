// Addresses as links, and texts with the addresses in them as links.
import { h } from "./dom.js";

const name = '[A-Za-z_][\\w-]*(?:\\[(?:\\d+|"(?:[^"\\\\]|\\\\.)*")\\])?';
const address = new RegExp(`\\b(?:module\\.${name}\\.)*(?:job_group\\.${name}\\.)?(job|actor_service|reservation|job_group|namespace)\\.${name}`, "g");

export const toJob = (id) => `#/jobs/${encodeURIComponent(id)}`;

// toAddress is the page about what has an address.
export function toAddress(text) {
  const [kind] = [...text.matchAll(address)].map((m) => m[1]);
  switch (kind) {
    case "job": case "actor_service": return text.endsWith("]") || kind === "job" ? toJob(text) : `#/jobs?q=${encodeURIComponent(text)}`;
    case "reservation": return `#/reservations/${encodeURIComponent(text)}`;
    case "namespace": return `#/jobs?namespace=${encodeURIComponent(text.slice(text.lastIndexOf("namespace.") + 10))}`;
    case "job_group": return `#/jobs?q=${encodeURIComponent(text)}`;
  }
  return undefined;
}

export const toSlice = (name) => `#/slices?q=${encodeURIComponent(name)}`;

// linked is a text whose addresses are links.
export function linked(text) {
  const out = [];
  let from = 0;
  for (const m of (text ?? "").matchAll(address)) {
    const at = m.index;
    out.push(text.slice(from, at), h("a", { href: toAddress(m[0]) }, m[0]));
    from = at + m[0].length;
  }
  out.push((text ?? "").slice(from));
  return out;
}

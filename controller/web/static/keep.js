// What a reader chose, kept in the browser where that is allowed.

export function kept(name) {
  try { return localStorage.getItem(name) ?? ""; } catch { return ""; }
}

export function keep(name, value) {
  try { localStorage.setItem(name, value); } catch { /* it is not kept */ }
}

// What the controller answers. Every path is below /api/v1.

export async function get(path, query, signal) {
  const response = await fetch(`/api/v1/${path}${search(query)}`, { signal, headers: { Accept: "application/json" } });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.error ?? `${response.status} ${response.statusText}`);
  return body;
}

export function search(query) {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== "" && value !== false);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

// follow opens a stream of events; on names what to do with each kind. The
// browser connects again by itself, but for rejections: then follow does.
export function follow(path, query, on, state = () => {}) {
  let source, timer;
  const open = () => {
    source = new EventSource(`/api/v1/${path}${search(query)}`);
    source.onopen = () => state("live");
    source.onerror = () => {
      state("lost");
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, 3000);
    };
    for (const [name, act] of Object.entries(on)) {
      source.addEventListener(name, (event) => act(JSON.parse(event.data), source));
    }
  };
  open();
  return () => { clearTimeout(timer); source.close(); };
}

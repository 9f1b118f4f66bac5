// Elements without templates: h("a", {href: "#/"}, "text", element, [more]).

export function h(tag, props, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) el.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [k, v] of Object.entries(value)) el.style.setProperty(k, v);
    else if (name === "class") el.className = value;
    else if (value === true) el.setAttribute(name, "");
    else el.setAttribute(name, value);
  }
  add(el, children);
  return el;
}

// svg is h for what is drawn.
export function svg(tag, props, ...children) {
  const el = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props ?? {})) if (value !== undefined && value !== null) el.setAttribute(name, value);
  add(el, children);
  return el;
}

export function add(el, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    el.append(child);
  }
}

// fill replaces what an element holds, but keeps those of its children whose
// content stays the same, so that neither focus nor selection jumps.
export function fill(el, ...children) {
  const fresh = document.createElement(el.tagName);
  add(fresh, children);
  merge(el, fresh);
}

function merge(old, fresh) {
  const was = [...old.childNodes];
  const is = [...fresh.childNodes];
  is.forEach((node, i) => {
    const before = was[i];
    if (!before) old.append(node);
    else if (before.isEqualNode(node)) return;
    else if (mergeable(before, node)) {
      mergeAttributes(before, node);
      merge(before, node);
    } else before.replaceWith(node);
  });
  was.slice(is.length).forEach((node) => node.remove());
}

// What listens to events is not merged: a fresh one would listen to others.
function mergeable(a, b) {
  return a.nodeType === Node.ELEMENT_NODE && a.nodeName === b.nodeName && a.dataset.key === b.dataset.key &&
    !["BUTTON", "INPUT", "SELECT"].includes(a.nodeName) && a.dataset.own === undefined;
}

function mergeAttributes(a, b) {
  for (const { name } of [...a.attributes]) if (name !== "style" && !b.hasAttribute(name)) a.removeAttribute(name);
  // The policy of the page forbids to set the attribute style; its rules may be set.
  for (const { name, value } of [...b.attributes]) if (name !== "style" && a.getAttribute(name) !== value) a.setAttribute(name, value);
  if (b.style.cssText !== a.style.cssText) a.style.cssText = b.style.cssText;
}

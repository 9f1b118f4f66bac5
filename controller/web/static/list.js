// A list of any length of which only what is seen is there. Rows have one height.
import { h } from "./dom.js";

const page = 100; // rows that are asked for at a time

export class VirtualList {
  // load(offset, limit) resolves to {rows: [...], total}; draw(row) is an element
  // with role row; key(row) tells rows apart.
  constructor({ height, load, draw, key }) {
    Object.assign(this, { height, load, draw, key, pages: new Map(), total: 0, asked: 0, shown: new Map() });
    this.el = h("div", { class: "vlist", role: "rowgroup" });
    this.onscroll = () => { this.frame ??= requestAnimationFrame(() => { this.frame = undefined; this.paint(); }); };
    window.addEventListener("scroll", this.onscroll, { passive: true });
    window.addEventListener("resize", this.onscroll, { passive: true });
    this.el.addEventListener("keydown", (event) => this.move(event));
  }

  leave() {
    window.removeEventListener("scroll", this.onscroll);
    window.removeEventListener("resize", this.onscroll);
    this.asked++;
  }

  // reload asks anew for what is seen; what is out of sight is forgotten.
  async reload(reset) {
    const mine = ++this.asked;
    if (reset) window.scrollTo(0, Math.min(window.scrollY, this.top()));
    const [from, to] = this.range();
    const first = Math.floor(from / page), last = Math.max(first, Math.floor(Math.max(0, to - 1) / page));
    const answers = await Promise.all(Array.from({ length: last - first + 1 }, (_, i) => this.load((first + i) * page, page)));
    if (mine !== this.asked) return;
    this.pages = new Map(answers.map((a, i) => [first + i, a.rows]));
    this.total = answers[0].total;
    this.paint();
  }

  top() { return this.el.getBoundingClientRect().top + window.scrollY; }

  range() {
    const above = Math.max(0, window.scrollY - this.top());
    const from = Math.max(0, Math.floor(above / this.height) - 8);
    return [from, Math.ceil((above + window.innerHeight) / this.height) + 8];
  }

  paint() {
    const [from, to] = this.range();
    this.el.style.height = `${this.total * this.height}px`;
    const wanted = new Map();
    for (let i = from; i < Math.min(to, this.total); i++) {
      const row = this.pages.get(Math.floor(i / page))?.[i % page];
      if (!row) { this.fetch(Math.floor(i / page)); continue; }
      wanted.set(this.key(row), { row, i });
    }
    const focused = this.el.contains(document.activeElement) ? document.activeElement.closest("[data-key]")?.dataset.key : undefined;
    for (const [key, old] of this.shown) if (!wanted.has(key)) { old.el.remove(); this.shown.delete(key); }
    for (const [key, { row, i }] of wanted) this.put(key, row, i);
    if (focused !== undefined && !this.el.contains(document.activeElement)) this.shown.get(focused)?.el.querySelector("a")?.focus({ preventScroll: true });
  }

  put(key, row, i) {
    const text = JSON.stringify(row);
    let shown = this.shown.get(key);
    if (!shown || shown.text !== text) {
      const el = this.draw(row);
      el.dataset.key = key;
      if (shown) shown.el.replaceWith(el); else this.el.append(el);
      shown = { el, text };
      this.shown.set(key, shown);
    }
    if (shown.i !== i) {
      shown.i = i;
      shown.el.style.transform = `translateY(${i * this.height}px)`;
      shown.el.setAttribute("aria-rowindex", i + 2);
    }
  }

  async fetch(n) {
    if (this.pages.has(n)) return;
    this.pages.set(n, []);
    const mine = this.asked;
    try {
      const answer = await this.load(n * page, page);
      if (mine !== this.asked) return;
      this.pages.set(n, answer.rows);
      this.total = answer.total;
      this.paint();
    } catch {
      this.pages.delete(n); // asked for again with the next paint
    }
  }

  // The arrow keys go from row to row.
  move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    const row = document.activeElement?.closest("[data-key]");
    if (!step || !row) return;
    event.preventDefault();
    const at = this.shown.get(row.dataset.key)?.i ?? 0;
    const next = Math.min(Math.max(at + step, 0), this.total - 1);
    const y = this.top() + next * this.height;
    if (y < window.scrollY + 140) window.scrollTo(0, y - 140);
    if (y + this.height > window.scrollY + window.innerHeight) window.scrollTo(0, y + this.height - window.innerHeight + 20);
    this.paint();
    for (const shown of this.shown.values()) if (shown.i === next) shown.el.querySelector("a")?.focus({ preventScroll: true });
  }
}

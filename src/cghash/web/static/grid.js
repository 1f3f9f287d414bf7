// A grid of any number of items of which only those on the screen exist. The page scrolls, not a box in it.

import { el } from "./dom.js";
import { ScrollMap } from "./scrolling.js";

const SPARE_ROWS = 2;
const REST = 90; // ms between two looks while scrolling, and after the last leap

export class VirtualGrid {
  /** fill(link, index) draws an item into a link; looked(first, last) is called with what is there to see. */
  constructor(host, { fill, looked, label }) {
    Object.assign(this, { host, fill, looked });
    this.map = new ScrollMap();
    this.cells = new Map(); // index → li
    this.total = 0;
    this.active = 0; // the one cell that Tab reaches
    this.before = this.drawn = this.lookedAt = 0; // virtual offset and times of the last draw and the last look
    this.layer = el("ul", { class: "grid", "aria-label": label, role: "list" });
    this.probe = el("li", { class: "cell probe", "aria-hidden": "true" });
    host.classList.add("grid-host");
    host.append(this.layer);
    addEventListener("scroll", () => this.soon(), { passive: true });
    addEventListener("resize", () => this.measure()); // of the height: a phone hides its address bar
    new ResizeObserver(() => this.measure()).observe(host);
    this.layer.addEventListener("keydown", (event) => this.key(event));
    this.layer.addEventListener("focusin", (event) => this.activate(Number(event.target.closest("li").dataset.index)));
  }

  /** Show `total` items, from the pixel `offset` of the whole list on. */
  show(total, offset = 0) {
    this.total = total;
    this.active = 0;
    this.clear();
    this.measure();
    if (offset > 0) this.goTo(offset);
    else this.draw();
  }

  clear() {
    for (const cell of this.cells.values()) cell.remove();
    this.cells.clear();
  }

  get hidden() {
    return this.host.offsetParent === null;
  }

  get offset() {
    return this.map.virtual;
  }

  /** Columns and rows from what the style sheet gives a cell. */
  measure() {
    if (this.hidden) return;
    const kept = Math.floor(this.map.virtual / (this.rowHeight || 1)) * (this.columns || 1);
    this.layer.append(this.probe);
    const style = getComputedStyle(this.layer);
    const gap = parseFloat(style.rowGap) || 0;
    const columns = style.gridTemplateColumns.split(" ").length;
    this.rowHeight = this.probe.getBoundingClientRect().height + gap;
    this.probe.remove();
    const changed = columns !== this.columns;
    this.columns = columns;
    this.rows = Math.ceil(this.total / this.columns);
    this.map.resize(Math.max(1, this.rows * this.rowHeight - gap), innerHeight);
    this.host.style.height = `${this.map.height}px`;
    // after a turn of the phone the same items are there
    if (changed && kept) this.goTo(Math.floor(kept / columns) * this.rowHeight);
    else this.draw();
  }

  soon() {
    if (this.frame || this.hidden) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  /** The host's top edge in the page. */
  get top() {
    return this.host.getBoundingClientRect().top + scrollY;
  }

  draw() {
    if (this.hidden || !this.rowHeight) return;
    const { map } = this;
    map.moved(Math.min(map.reach, Math.max(0, scrollY - this.top)));
    if (map.scale !== 1 && map.stuck) this.settle();
    const firstRow = Math.max(0, Math.floor(map.virtual / this.rowHeight) - SPARE_ROWS);
    const lastRow = Math.min(this.rows - 1, Math.ceil((map.virtual + map.view) / this.rowHeight) + SPARE_ROWS);
    this.fillRange(firstRow * this.columns, Math.min(this.total, (lastRow + 1) * this.columns) - 1);
    this.layer.style.transform = `translateY(${map.physical - map.virtual + firstRow * this.rowHeight}px)`;
    this.look();
  }

  /** Who scrolls steadily sees items come; places that a leap only passes are not asked for. */
  look() {
    const now = performance.now();
    const step = Math.abs(this.map.virtual - this.before);
    const pace = Math.min(1000, now - this.drawn);
    this.before = this.map.virtual;
    this.drawn = now;
    clearTimeout(this.resting);
    if (step < this.map.view && now - this.lookedAt > REST) this.report();
    this.resting = setTimeout(() => this.rest(), step < this.map.view ? REST : Math.max(REST, 2 * pace));
  }

  report() {
    this.lookedAt = performance.now();
    if (this.cells.size) this.looked(this.first, this.last);
  }

  rest() {
    if (this.hidden) return;
    if (this.map.scale !== 1) this.settle();
    this.report();
  }

  /** Scroll the page to where the list says it is; nothing moves on the screen. */
  settle() {
    const { map } = this;
    const before = map.physical;
    map.place(map.virtual);
    if (Math.abs(map.physical - before) < 1) return;
    scrollTo({ top: this.top + map.physical, behavior: "instant" });
    map.physical = Math.min(map.reach, Math.max(0, scrollY - this.top)); // browsers round what they scroll to
    this.soon();
  }

  fillRange(first, last) {
    this.first = first;
    this.last = last;
    for (const [index, cell] of this.cells) {
      if (index >= first && index <= last) continue;
      if (cell.contains(document.activeElement)) cell.classList.add("kept"); // it keeps the focus, out of sight
      else this.drop(index, cell);
    }
    let next = this.layer.firstElementChild;
    for (let index = first; index <= last; index++) {
      let cell = this.cells.get(index);
      if (!cell) {
        cell = this.make(index);
        this.cells.set(index, cell);
      }
      cell.classList.remove("kept");
      while (next?.classList.contains("kept")) next = next.nextElementSibling;
      if (cell === next) next = next.nextElementSibling;
      else this.layer.insertBefore(cell, next);
    }
  }

  drop(index, cell) {
    cell.querySelector("img")?.removeAttribute("src"); // an image that is not on its way any more
    cell.remove();
    this.cells.delete(index);
  }

  make(index) {
    const link = el("a", { tabindex: index === this.active ? "0" : "-1" });
    this.fill(link, index);
    const place = { "data-index": index, "aria-setsize": this.total, "aria-posinset": index + 1 };
    return el("li", { class: "cell", ...place }, link);
  }

  /** Draw these again: their data has come. */
  refresh(first, last) {
    for (let index = Math.max(first, this.first); index <= Math.min(last, this.last); index++) {
      const cell = this.cells.get(index);
      if (cell) this.fill(cell.firstElementChild, index);
    }
    this.reachable();
  }

  /** Tab must reach some cell: the active one, or the first on the screen. */
  reachable() {
    if (!this.cells.has(this.active)) this.activate(Math.min(this.last, this.first + SPARE_ROWS * this.columns));
  }

  activate(index) {
    this.cells.get(this.active)?.firstElementChild.setAttribute("tabindex", "-1");
    this.active = index;
    this.cells.get(index)?.firstElementChild.setAttribute("tabindex", "0");
  }

  goTo(offset) {
    scrollTo({ top: this.top + this.map.place(offset), behavior: "instant" });
    this.map.physical = Math.min(this.map.reach, Math.max(0, scrollY - this.top));
    this.draw();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const screen = Math.max(1, Math.floor(innerHeight / this.rowHeight) - 1) * this.columns;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns,
      PageUp: -screen, PageDown: screen, Home: -this.total, End: this.total };
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.focus(Math.min(this.total - 1, Math.max(0, this.active + steps[event.key])));
  }

  focus(index) {
    const { map } = this;
    const row = Math.floor(index / this.columns) * this.rowHeight;
    const above = row - map.virtual - 80; // the header covers as much
    const below = row + this.rowHeight + 80 - (map.virtual + map.view - Math.max(0, this.top - scrollY));
    if (above < 0) this.goTo(map.virtual + above);
    else if (below > 0) this.goTo(map.virtual + below);
    this.activate(index);
    this.cells.get(index)?.firstElementChild.focus({ preventScroll: true });
    for (const cell of this.layer.querySelectorAll(".kept")) this.drop(Number(cell.dataset.index), cell);
  }
}

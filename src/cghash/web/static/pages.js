// Items by position, fetched a page at a time: only what is looked at, and only so much is kept.

export class ItemPages {
  /** load(start, count, signal) → {total, items}; arrived(first, last) is called when these can be drawn. */
  constructor(load, { size = 120, limit = 50, arrived, failed }) {
    Object.assign(this, { load, size, limit, arrived, failed });
    this.reset();
  }

  reset() {
    for (const controller of this.asked?.values() ?? []) controller.abort();
    this.kept = new Map(); // page → items, the oldest first
    this.asked = new Map(); // page → its AbortController
  }

  item(index) {
    return this.kept.get(Math.floor(index / this.size))?.[index % this.size];
  }

  /** What is on the screen now: the rest is dropped from the queue. */
  want(first, last) {
    const wanted = new Set();
    for (let page = Math.floor(first / this.size); page <= Math.floor(last / this.size); page++) wanted.add(page);
    for (const [page, controller] of this.asked) {
      if (!wanted.has(page)) controller.abort();
    }
    for (const page of wanted) {
      if (this.kept.has(page)) this.keep(page, this.kept.get(page));
      else if (!this.asked.has(page)) this.fetch(page);
    }
  }

  async fetch(page) {
    const controller = new AbortController();
    this.asked.set(page, controller);
    try {
      const { items } = await this.load(page * this.size, this.size, controller.signal);
      if (this.asked.get(page) !== controller) return; // reset meanwhile
      this.keep(page, items);
      this.arrived(page * this.size, (page + 1) * this.size - 1);
    } catch (error) {
      if (error.name !== "AbortError" && this.asked.get(page) === controller) this.failed(error);
    } finally {
      if (this.asked.get(page) === controller) this.asked.delete(page);
    }
  }

  keep(page, items) {
    this.kept.delete(page);
    this.kept.set(page, items);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= this.limit) break;
      this.kept.delete(oldest);
    }
  }
}

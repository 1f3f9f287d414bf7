// Browsers cannot lay out a page of any height: past `cap` pixels the scroll position is mapped.

const EDGE_SCREENS = 20;

/**
 * `physical` is where the page is scrolled to, `virtual` where that is in the whole list, both in pixels.
 * Near either end the two run alike; between them one physical pixel stands for several. A small step moves the list
 * by as much (a wheel must not leap); a leap of the scroll bar is mapped; `settled` says where the page belongs then.
 */
export class ScrollMap {
  constructor(cap = 4_000_000) {
    this.cap = cap;
    this.physical = 0;
    this.virtual = 0;
    this.resize(0, 0);
  }

  resize(real, view) {
    this.view = view;
    this.height = Math.min(real, this.cap);
    this.most = Math.max(0, real - view); // of virtual
    this.reach = Math.max(0, this.height - view); // of physical
    this.edge = Math.min(EDGE_SCREENS * view, this.reach / 4);
    this.scale = this.most > this.reach ? (this.most - 2 * this.edge) / (this.reach - 2 * this.edge) : 1;
    this.virtual = Math.min(this.virtual, this.most);
  }

  toVirtual(physical) {
    if (this.scale === 1 || physical <= this.edge) return physical;
    if (physical >= this.reach - this.edge) return this.most - (this.reach - physical);
    return this.edge + (physical - this.edge) * this.scale;
  }

  toPhysical(virtual) {
    if (this.scale === 1 || virtual <= this.edge) return virtual;
    if (virtual >= this.most - this.edge) return this.reach - (this.most - virtual);
    return this.edge + (virtual - this.edge) / this.scale;
  }

  /** The page was scrolled to `physical`. */
  moved(physical) {
    const step = physical - this.physical;
    const leap = this.scale === 1 || Math.abs(step) > 2 * this.view;
    this.physical = physical;
    this.virtual = Math.min(this.most, Math.max(0, leap ? this.toVirtual(physical) : this.virtual + step));
  }

  /** Put the list at `virtual`; returns where the page must be scrolled to. */
  place(virtual) {
    this.virtual = Math.min(this.most, Math.max(0, virtual));
    this.physical = this.toPhysical(this.virtual);
    return this.physical;
  }

  /** True where an end of the page was reached before the end of the list. */
  get stuck() {
    return (this.physical <= 0 && this.virtual > 0) || (this.physical >= this.reach && this.virtual < this.most);
  }
}

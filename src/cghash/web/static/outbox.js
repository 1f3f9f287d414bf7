// Answers on their way: kept in the browser until the server has acknowledged them, so that none is lost.

import { post, remove } from "./api.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 8000;
const NEVER_TAKEN = (status) => [404, 409, 422].includes(status); // a proxy's 403 or 421 is no word on the answer

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

export class Outbox {
  /** changed() is called with every change, told(summary) with each acknowledgement, refused(error) in place of one. */
  constructor(workspace, { changed, told, refused }) {
    Object.assign(this, { changed, told, refused });
    this.prefix = `cghash.outbox|${workspace}|`;
    this.ids = new Map(); // key of an answer → its id, once acknowledged
    this.queue = this.left();
    this.lost = false;
    addEventListener("online", () => this.send());
    this.send();
  }

  /** What an earlier visit could not send; every step has an entry of its own: two tabs do not overwrite each other. */
  left() {
    try {
      const names = Object.keys(localStorage).filter((name) => name.startsWith(this.prefix)).sort();
      return names.map((name) => ({ ...JSON.parse(localStorage.getItem(name)), name }));
    } catch {
      return [];
    }
  }

  get waiting() {
    return this.queue.length;
  }

  add(answer) {
    this.push({ answer });
  }

  /** Take an answer back: it never leaves if it has not yet, else the server is told. */
  undo(key) {
    const at = this.queue.findIndex((step) => step.answer?.key === key);
    if (at > 0 || (at === 0 && !this.sending)) this.drop(this.queue[at]);
    else this.push({ undo: key, id: this.ids.get(key) });
  }

  push(step) {
    const stamp = `${Date.now()}`.padStart(15, "0");
    const entry = { ...step, name: `${this.prefix}${stamp}-${Math.random().toString(36).slice(2)}` };
    this.queue.push(entry);
    this.store(entry);
    this.changed();
    this.send();
  }

  store({ name, ...step }) {
    try {
      localStorage.setItem(name, JSON.stringify(step));
    } catch {
      // no room or a private window: the queue in memory has it
    }
  }

  drop(entry) {
    this.queue.splice(this.queue.indexOf(entry), 1);
    try {
      localStorage.removeItem(entry.name);
    } catch {
      // as in store
    }
    this.changed();
  }

  async send() {
    if (this.sending) return;
    this.sending = true;
    for (let wait = FIRST_WAIT; this.queue.length;) {
      const entry = this.queue[0];
      try {
        await this.deliver(entry);
        this.lost = false;
        wait = FIRST_WAIT;
        this.drop(entry);
      } catch (error) {
        this.lost = !NEVER_TAKEN(error.status);
        if (this.lost) {
          this.changed();
          await pause(wait);
          wait = Math.min(LONGEST_WAIT, wait * 2);
        } else {
          this.drop(entry);
          this.refused(error);
        }
      }
    }
    this.sending = false;
  }

  async deliver({ answer, undo, id }) {
    if (answer) {
      const told = await post("/api/answers", answer);
      this.acknowledge(answer.key, told.answer.id);
      this.told(told.summary);
    } else if (id !== undefined) this.told((await remove(`/api/answers/${id}`)).summary);
  }

  acknowledge(key, id) {
    this.ids.set(key, id);
    for (const step of this.queue) {
      if (step.undo !== key) continue;
      step.id = id;
      this.store(step);
    }
  }
}

// A fit in the background, followed as it goes; the connection may break and the server may be started anew.

import { get } from "./api.js";

const AGAIN = 2000;
export const GOING = ["queued", "running", "cancelling"];

/**
 * Calls changed(job) with every event until the job has ended, lost(why) when it cannot be followed for now, with the
 * server's sentence or null where the connection broke, and gone(why) where there is no such job.
 */
export function follow(id, { changed, lost, gone }) {
  // A stream that is refused does not say why; the job itself does, or can be looked at instead.
  const look = async () => {
    try {
      const { job } = await get(`/api/jobs/${id}`);
      changed(job);
      if (!GOING.includes(job.state)) return;
    } catch (error) {
      if (error.status === 404) {
        gone(error.message);
        return;
      }
      lost(error.status ? error.message : null);
    }
    setTimeout(connect, AGAIN);
  };
  const connect = () => {
    const source = new EventSource(`/api/jobs/${id}/events`);
    source.onmessage = (event) => {
      const job = JSON.parse(event.data);
      if (!GOING.includes(job.state)) source.close();
      changed(job);
    };
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) look(); // the browser gave up; we do not
      else lost(null);
    };
  };
  connect();
}

/** What a job told of its objective, bit by bit; kept for a reload in the middle. */
export class Progress {
  constructor(id) {
    this.name = `cghash.job.${id}`;
    try {
      this.points = JSON.parse(sessionStorage.getItem(this.name)) ?? [];
    } catch {
      this.points = [];
    }
  }

  add({ bit, objective }) {
    if (!bit || !Number.isFinite(objective)) return;
    this.points = [...this.points.filter(([at]) => at < bit), [bit, objective]];
    try {
      sessionStorage.setItem(this.name, JSON.stringify(this.points));
    } catch {
      // the chart then begins at the reload
    }
  }
}

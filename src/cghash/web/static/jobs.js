// A fit in the background, followed as it goes; the connection may break and the server may be started anew.

const AGAIN = 2000;
export const GOING = ["queued", "running", "cancelling"];

/** Calls changed(job) with every event until the job has ended, and lost() when the connection breaks. */
export function follow(id, { changed, lost }) {
  const connect = () => {
    const source = new EventSource(`/api/jobs/${id}/events`);
    source.onmessage = (event) => {
      const job = JSON.parse(event.data);
      if (!GOING.includes(job.state)) source.close();
      changed(job);
    };
    source.onerror = () => {
      lost();
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, AGAIN); // the browser gave up; we do not
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

// The worker that trains, one message at a time; changed settings never wait for an old network.
/* global WORKER_SOURCE */

const PATIENCE_MS = 150; // a worker that is longer at it than this is let go when other settings are chosen

export class Player {
  // show(state): called with every answer of the worker.
  constructor(show) {
    this.show = show;
    this.address = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" }));
    this.since = null; // when the worker began what it is at
    this.queued = null; // a setup
    this.owed = 0; // steps that a person asked for
    this.fresh();
  }

  fresh() {
    this.worker?.terminate();
    this.worker = new Worker(this.address);
    this.worker.onmessage = ({ data }) => {
      this.since = null;
      const next = this.queued ? { start: this.queued } : this.owed ? { steps: this.owed } : null;
      Object.assign(this, { queued: null, owed: 0 });
      if (next) this.send(next);
      this.show(data);
    };
    this.since = null;
  }

  get busy() {
    return this.since !== null;
  }

  get isSlow() {
    return this.busy && performance.now() - this.since > PATIENCE_MS;
  }

  start(setup) {
    if (this.isSlow) this.fresh();
    if (this.busy) this.queued = setup;
    else this.send({ start: setup });
    this.owed = 0;
  }

  // Ask for some steps; nothing happens while the worker is busy.
  advance(steps) {
    if (!this.busy) this.send({ steps });
  }

  // The steps that a person asks for, after those that the worker is at.
  step() {
    if (this.busy) this.owed += 1;
    else this.send({ steps: 1 });
  }

  send(message) {
    this.since = performance.now();
    this.worker.postMessage(message);
  }

  close() {
    this.worker.terminate();
    URL.revokeObjectURL(this.address);
  }
}

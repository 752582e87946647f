// The worker that trains, one message at a time; changed settings never wait for an old network.
/* global WORKER_SOURCE */

const PATIENCE_MS = 150; // a worker that is busy for longer is terminated when settings change

export class Player {
  // show(state): called with every answer of the worker.
  constructor(show) {
    this.show = show;
    this.address = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" }));
    this.since = null; // start time of the worker's current task
    this.queued = null; // a setup
    this.requested = 0; // steps requested by the user
    this.fresh();
  }

  fresh() {
    this.worker?.terminate();
    this.worker = new Worker(this.address);
    this.worker.onmessage = ({ data }) => {
      this.since = null;
      let next = null;
      if (this.queued) next = { start: this.queued };
      else if (this.requested) next = { steps: this.requested };
      else if (this.wantsSecond) next = { second: true };
      Object.assign(this, { queued: null, requested: 0, wantsSecond: false });
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
    this.requested = 0;
    this.wantsSecond = false;
  }

  // Request some steps; ignored while the worker is busy.
  advance(steps) {
    if (!this.busy) this.send({ steps });
  }

  // Queue steps requested by the user after the current ones.
  step() {
    if (this.busy) this.requested += 1;
    else this.send({ steps: 1 });
  }

  // Train the second task for as many steps as the first, after the current work.
  second() {
    if (this.busy) this.wantsSecond = true;
    else this.send({ second: true });
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

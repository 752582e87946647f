// The states along one training run, thinned so that a slider can go back to any stage of it.

const FIRST = 20; // up to this step all are kept
const SPACING = 1.04; // later, kept steps are this factor apart
const TRACE_SPACING = 1.008; // points of the curves over time

export class Record {
  constructor() {
    this.clear();
  }

  clear() {
    this.states = [];
    this.history = [];
    this.shown = null; // index of the displayed state; null for the newest
  }

  add(state) {
    const { time, change, loss, linearLoss } = state;
    const last = this.history.at(-1);
    if (!last || time <= 1 || time > TRACE_SPACING * last.time) this.history.push({ time, change, loss, linearLoss });
    const kept = this.states.at(-1);
    if (!kept || time <= FIRST || time >= SPACING * kept.time) this.states.push(state);
    this.newest = state;
  }

  // The state on screen.
  get now() {
    return this.shown === null ? this.newest : this.states[this.shown];
  }

  // Go to stage `index`; the last one follows the training again.
  show(index) {
    this.shown = index >= this.states.length - 1 ? null : index;
  }
}

// Poll a state, and rerun the page when it differs from the drawn one.
const watches = new Map();
const PATIENCE_MS = 5000;

class Watch {
  update(data, trigger) {
    if (data.seen !== this.data?.seen) this.askedAt = -PATIENCE_MS;
    [this.data, this.trigger] = [data, trigger];
    this.timer ??= setTimeout(() => this.ask()); // now, since the first answer identifies a phone on later visits
  }

  async ask() {
    try {
      const response = await fetch(this.data.url, { headers: { "X-Lab-Watch": this.data.watch }, cache: "no-store" });
      const { state } = await response.json();
      if (response.ok && state !== this.data.seen && performance.now() - this.askedAt >= PATIENCE_MS) {
        this.askedAt = performance.now();
        this.trigger("news", state);
      }
    } catch { /* the server restarts, or the page has just been left */ }
    if (!this.closed) this.timer = setTimeout(() => this.ask(), 1000 * this.data.every_s);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
  }
}

export default function news({ parentElement, data, setTriggerValue }) {
  if (!watches.has(parentElement)) watches.set(parentElement, new Watch());
  watches.get(parentElement).update(data, setTriggerValue);
  return () => {
    watches.get(parentElement)?.close();
    watches.delete(parentElement);
  };
}

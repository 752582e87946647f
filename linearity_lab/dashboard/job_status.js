// Bars, watches and trays of a page share one polling loop for the session's jobs, idle without active jobs.
const shared = (globalThis.linearityLabJobs ??= { mounts: new Map(), where: null, timer: 0, asks: false });
const OFFLINE_S = 3, TRAY_S = 1.5, PATIENCE_MS = 5000, SOON_MS = 300;

const mounted = () => [...shared.mounts.values()];
const headers = () => ({ "X-Lab-Session": shared.where.session });

// Ask after this time. A request that is planned already stays, unless this one is for something new.
function wake(afterMs, isNew) {
  if (shared.timer && !isNew) return;
  clearTimeout(shared.timer);
  shared.timer = 0;
  if (!shared.asks && mounted().some((mount) => mount.active())) shared.timer = setTimeout(ask, afterMs);
}

async function ask() {
  shared.timer = 0;
  shared.asks = true;
  let everyS = OFFLINE_S;
  try {
    const response = await fetch(shared.where.url, { headers: headers(), cache: "no-store" });
    if (response.ok) {
      const answer = await response.json();
      everyS = mounted().some((mount) => mount instanceof Bar) ? answer.every_s : Math.max(TRAY_S, answer.every_s);
      mounted().forEach((mount) => mount.take(answer.jobs));
    }
  } catch { /* the server restarts, or the page has just been left */ }
  shared.asks = false;
  if (mounted().some((mount) => mount.active())) shared.timer = setTimeout(ask, 1000 * everyS);
}

function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

function meter(job) {
  const made = element("div", "meter");
  const done = Math.round(100 * job.fraction);
  made.setAttribute("role", "progressbar");
  made.setAttribute("aria-valuenow", done);
  made.setAttribute("aria-label", job.words);
  made.append(element("div", "done"));
  made.firstChild.style.width = `${done}%`;
  return made;
}

// Progress in words and as a meter.
class Bar {
  constructor(root) {
    this.box = element("div", "bar");
    this.box.dataset.testid = "job-progress";
    root.append(this.box);
  }

  update(data) { this.take(data.jobs, (this.id = data.jobs[0].id)); }

  active() { return true; }

  take(jobs) {
    const job = jobs.find((each) => each.id === this.id);
    if (!job) return;
    const words = element("div", "words", job.words);
    words.title = job.words;
    this.box.replaceChildren(words, meter(job));
  }

  close() { this.box.remove(); }
}

// Invisible: reruns its part of the page when there is something new to draw.
class Watch {
  update(data, trigger) {
    const [job] = data.jobs;
    const isOther = job.id !== this.job?.id;
    if (isOther || job.seen !== this.job.seen) this.askedAt = 0;
    [this.job, this.trigger] = [job, trigger];
    if (isOther) wake(SOON_MS, true);
  }

  active() { return true; }

  take(jobs) {
    const job = jobs.find((each) => each.id === this.job.id);
    if (job?.seen === this.job.seen || performance.now() - (this.askedAt || -PATIENCE_MS) < PATIENCE_MS) return;
    this.askedAt = performance.now();
    this.trigger("news", job?.seen ?? "gone");
  }

  close() {}
}

class Tray {
  constructor(root) {
    this.root = root;
    this.box = element("div", "tray");
    this.button = element("button", "count");
    this.button.setAttribute("aria-expanded", "false");
    this.list = element("div", "list");
    this.list.hidden = true;
    this.box.append(this.button, this.list);
    root.append(this.box);
    this.button.addEventListener("click", () => this.show(this.list.hidden));
    this.away = (event) => { if (!event.composedPath().includes(this.box)) this.show(false); };
    document.addEventListener("pointerdown", this.away);
    this.box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.list.hidden) return;
      this.show(false);
      this.button.focus();
    });
  }

  update(data, trigger) {
    [this.titles, this.trigger] = [data.titles, trigger];
    this.take(data.jobs);
  }

  active() { return this.jobs.some((job) => job.active); }

  take(jobs) {
    this.jobs = jobs.filter((job) => job.page in this.titles);
    const drawn = JSON.stringify(this.jobs);
    if (drawn !== this.drawn) this.draw();
    this.drawn = drawn;
  }

  show(open) {
    this.list.hidden = !open;
    this.button.setAttribute("aria-expanded", String(open));
  }

  draw() {
    const count = (status) => this.jobs.filter((job) => job.status === status).length;
    const [running, waiting] = [count("running"), count("queued")];
    const parts = [running && `${running} running`, waiting && `${waiting} waiting`].filter(Boolean);
    this.box.hidden = !this.jobs.length;
    this.button.textContent = parts.join(", ") || "Runs";
    this.button.classList.toggle("busy", running > 0);
    const focused = this.root.activeElement?.dataset?.name;
    this.list.replaceChildren(...this.jobs.map((job) => this.row(job)));
    if (focused) this.list.querySelector(`[data-name="${focused}"]`)?.focus();
  }

  row(job) {
    const row = element("div", "job");
    const title = `${this.titles[job.page]}, ${job.points}`;
    const words = element("div", "words");
    words.append(element("strong", "", title), element("span", "", job.words));
    if (job.active) words.append(meter(job));
    row.append(words, this.action("Open", job, title, () => this.trigger("open", job.id)));
    if (job.active && job.mine) row.append(this.action("Stop", job, title, () => this.stop(job)));
    return row;
  }

  action(name, job, title, act) {
    const button = element("button", "action", name);
    button.dataset.name = `${name} ${job.id}`;
    button.setAttribute("aria-label", `${name}: ${title}`);
    button.addEventListener("click", () => { act(); if (name === "Open") this.show(false); });
    return button;
  }

  async stop(job) {
    await fetch(`${shared.where.url}/${job.id}/stop`, { method: "POST", headers: headers() }).catch(() => {});
    wake(0, true);
  }

  close() {
    document.removeEventListener("pointerdown", this.away);
    this.box.remove();
  }
}

export default function jobs({ parentElement, data, setTriggerValue }) {
  shared.where = { url: data.url, session: data.session };
  if (!shared.mounts.has(parentElement)) {
    shared.mounts.set(parentElement, new { bar: Bar, watch: Watch, tray: Tray }[data.kind](parentElement));
  }
  shared.mounts.get(parentElement).update(data, setTriggerValue);
  wake(SOON_MS, false);
  return () => {
    shared.mounts.get(parentElement)?.close();
    shared.mounts.delete(parentElement);
  };
}

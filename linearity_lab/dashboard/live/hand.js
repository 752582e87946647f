// Points that users drag, add and remove by mouse, touch or keys.
import { HEIGHT, MOST_POINTS, REACH } from "./settings.js";

const NEAR = { mouse: 16, pen: 20, touch: 30 }; // pixels within which a point is grabbed
const OUTSIDE = 24; // a point dropped this far outside is removed
const STILL = 6;
const NUDGE = 0.05;

export class Hand {
  // plot(): last drawing of the canvas; points(): current points; change(points, done): sets new points.
  constructor(canvas, { plot, points, change, choose }) {
    Object.assign(this, { canvas, plot, points, change, choose });
    this.held = null; // {index, x, y} of the pressed point; index −1 on the background
    this.chosen = 0;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointercancel", () => { this.held = null; });
    canvas.addEventListener("dblclick", (event) => this.remove(this.nearest(event, NEAR.mouse)));
    canvas.addEventListener("keydown", (event) => this.key(event));
    // A finger on a point drags it; anywhere else it scrolls the page.
    const takes = (event) => this.nearest(event.touches[0], NEAR.touch) >= 0 && event.preventDefault();
    canvas.addEventListener("touchstart", takes, { passive: false });
  }

  place(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  }

  nearest(event, within) {
    const [x, y] = this.place(event), plot = this.plot();
    let best = -1, least = within;
    this.points().forEach((point, index) => {
      const away = Math.hypot(plot.x(point[0]) - x, plot.y(point[1]) - y);
      if (away <= least) [best, least] = [index, away];
    });
    return best;
  }

  press(event) {
    const [x, y] = this.place(event);
    const index = this.nearest(event, NEAR[event.pointerType] ?? NEAR.mouse);
    this.held = { index, x, y };
    if (index < 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.pick(index);
  }

  move(event) {
    const over = this.nearest(event, NEAR.mouse) >= 0 || this.held?.index >= 0;
    this.canvas.style.cursor = over ? "grab" : "crosshair";
    if (!this.held || this.held.index < 0) return;
    const points = [...this.points()];
    points[this.held.index] = this.value(event);
    this.change(points, false);
  }

  value(event) {
    const [x, y] = this.place(event), plot = this.plot();
    return [within(plot.across(x), REACH), within(plot.up(y), HEIGHT)];
  }

  release(event) {
    const held = this.held, [x, y] = this.place(event);
    this.held = null;
    if (!held) return;
    const { clientWidth, clientHeight } = this.canvas;
    const away = Math.max(-x, -y, x - clientWidth, y - clientHeight);
    const still = Math.hypot(x - held.x, y - held.y) < STILL;
    if (held.index < 0) {
      if (still) this.add(this.value(event));
    } else if (away > OUTSIDE) this.remove(held.index);
    else if (!still) this.change(this.points(), true);
  }

  pick(index) {
    this.chosen = Math.min(Math.max(index, 0), this.points().length - 1);
    this.choose();
  }

  add(point) {
    const points = this.points();
    if (points.length >= MOST_POINTS) return;
    this.change([...points, point], true);
    this.pick(this.points().findIndex(([x]) => Math.abs(x - point[0]) < 0.006));
  }

  remove(index) {
    const points = this.points();
    if (index < 0 || points.length < 2) return;
    this.change(points.filter((_, at) => at !== index), true);
    this.pick(index);
  }

  // Arrows choose and lift a point, with Shift they move it sideways; Enter adds one, Delete removes it.
  key(event) {
    const points = [...this.points()], [x, y] = points[this.chosen] ?? points[0];
    const moved = (point) => {
      points[this.chosen] = [within(point[0], REACH), within(point[1], HEIGHT)];
      this.change(points, false);
    };
    const sideways = { ArrowLeft: -1, ArrowRight: 1 }[event.key], up = { ArrowDown: -1, ArrowUp: 1 }[event.key];
    if (sideways && event.shiftKey) moved([x + NUDGE * sideways, y]);
    else if (sideways) this.pick(this.chosen + sideways);
    else if (up) moved([x, y + NUDGE * up]);
    else if (event.key === "Enter") {
      const next = points[this.chosen + 1] ?? [Math.min(x + 0.4, REACH), y];
      this.add([(x + next[0]) / 2, (y + next[1]) / 2]);
    } else if (event.key === "Delete" || event.key === "Backspace") this.remove(this.chosen);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

function within(value, most) {
  return Math.min(Math.max(value, -most), most);
}

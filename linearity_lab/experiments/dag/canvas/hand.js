// Mouse, pen and touch: drag a box, draw an edge from its dot, pan the background, zoom with two fingers.
import { portOf, toPlace } from "./picture.js";

const STILL = 5; // pixels that a click may move

export class Hand {
  constructor(canvas) {
    Object.assign(this, { canvas, pointers: new Map(), now: null });
    const { svg } = canvas;
    svg.addEventListener("pointerdown", (event) => this.down(event));
    svg.addEventListener("pointermove", (event) => this.move(event));
    svg.addEventListener("pointerup", (event) => this.up(event));
    svg.addEventListener("pointercancel", (event) => this.cancel(event));
    svg.addEventListener("dblclick", (event) => {
      if (event.target === svg) canvas.addGroup(this.place(this.at(event)));
    });
    svg.addEventListener("wheel", (event) => { // alone it scrolls the page
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      canvas.zoom(Math.exp(-event.deltaY / 300), this.at(event));
    }, { passive: false });
    svg.addEventListener("touchmove", (event) => { // a finger on the background scrolls the page; Chromium ignores touch-action inside SVG
      if (event.touches.length > 1 || (this.now && this.now.kind !== "pan")) event.preventDefault();
    }, { passive: false });
  }

  at(event) {
    const box = this.canvas.svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  // The graph coordinates [layer, row] of a point of the drawing.
  place([px, py]) {
    const { x, y, scale } = this.canvas.view;
    return toPlace([(px - x) / scale, (py - y) / scale], this.canvas.turned);
  }

  down(event) {
    if (event.button) return;
    const { canvas } = this, at = this.at(event);
    const id = (kind) => event.target.closest(`[data-${kind}]`)?.dataset[kind];
    this.pointers.set(event.pointerId, at);
    canvas.svg.setPointerCapture(event.pointerId);
    canvas.held = null;
    if (this.pointers.size > 1) this.now = { kind: "pinch", ...this.span() };
    else if (id("port")) this.now = { kind: "link", id: id("port"), from: at };
    else if (id("group")) this.now = { kind: "drag", id: id("group"), from: at, start: canvas.found.get(id("group")) };
    else this.now = { kind: "pan", id: id("edge"), from: at, view: canvas.view };
  }

  move(event) {
    if (!this.now || !this.pointers.has(event.pointerId)) return;
    const { canvas, now } = this, at = this.at(event);
    this.pointers.set(event.pointerId, at);
    if (now.kind === "pinch") {
      const span = this.span();
      canvas.view = { ...canvas.view, x: canvas.view.x + span.x - now.x, y: canvas.view.y + span.y - now.y };
      canvas.zoom(span.length / now.length, [span.x, span.y]);
      Object.assign(now, span);
      return;
    }
    const [across, down] = [at[0] - now.from[0], at[1] - now.from[1]], { scale } = canvas.view;
    if (!now.moves && Math.hypot(across, down) < STILL) return;
    now.moves = true;
    if (now.kind === "pan") {
      canvas.view = { ...now.view, x: now.view.x + across, y: now.view.y + down };
      canvas.moved = true;
      canvas.show();
    } else if (now.kind === "drag") {
      canvas.held = [now.id, toPlace([now.start.x + across / scale, now.start.y + down / scale], canvas.turned)];
      canvas.show();
    } else {
      const { x, y } = canvas.view, from = portOf(canvas.found.get(now.id), canvas.turned);
      canvas.rubber.setAttribute("d", `M${from} L${(at[0] - x) / scale} ${(at[1] - y) / scale}`);
    }
  }

  up(event) {
    const { canvas, now } = this;
    this.release(event);
    if (!now || now.kind === "pinch") return;
    if (now.kind === "link" && now.moves) {
      const under = canvas.svg.getRootNode().elementFromPoint(event.clientX, event.clientY), box = under?.closest("[data-group]");
      if (box) canvas.model.link(now.id, box.dataset.group);
      else if (canvas.svg.contains(under)) canvas.addGroup(this.place(this.at(event)), now.id);
      canvas.choose(null); // fields would cover the next edge
    } else if (canvas.held) {
      const [id, place] = canvas.held;
      canvas.held = null;
      canvas.moved = true; // the dragged box follows the pointer
      canvas.model.put(id, place);
    } else if (!now.moves) {
      canvas.choose(now.id ?? null);
    }
  }

  cancel(event) {
    this.release(event);
    this.canvas.held = null;
    this.canvas.show();
  }

  release(event) {
    this.pointers.delete(event.pointerId);
    this.now = null;
    this.canvas.rubber.removeAttribute("d");
  }

  // The midpoint and the distance of two fingers.
  span() {
    const [[ax, ay], [bx, by]] = this.pointers.values();
    return { x: (ax + bx) / 2, y: (ay + by) / 2, length: Math.max(1, Math.hypot(ax - bx, ay - by)) };
  }
}

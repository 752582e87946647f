// The graph editor as Streamlit mounts it. The server computes the verdict.
import { Inspector, Tables, button, context, element } from "./fields.js";
import { Hand } from "./hand.js";
import { INPUT, Model, OUTPUT } from "./model.js";
import { HALF, boxes, bounds, draw, make, toPlace } from "./picture.js";

const ZOOM = [0.3, 2.2], CLOSE = 1.25; // limits of the zoom, and the largest initial zoom of a small graph
const NARROW = 480;
const WAITING = { outcome: "waiting" };

class Canvas {
  constructor(parent, props) {
    Object.assign(this, { props, chosen: null, held: null, moved: false, view: { x: 0, y: 0, scale: 1 } });
    const { words } = props.data;
    this.model = new Model(() => this.edited());
    const about = context(this.model, words), add = () => this.addGroup(this.free());
    const arrow = make("path", { d: "M0 0 L8 4 L0 8 Z" });
    const head = { id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, orient: "auto" };
    this.layer = make("g");
    this.rubber = make("path", { class: "rubber" });
    const seen = { class: "drawing", tabindex: 0, role: "application", "aria-label": words.canvas, "aria-describedby": "graph-summary" };
    this.svg = make("svg", seen, make("defs", {}, make("marker", { ...head, markerUnits: "userSpaceOnUse" }, arrow)), this.layer);
    this.summary = element("p", { id: "graph-summary", className: "unseen" });
    this.verdict = element("p", { className: "verdict", role: "status" });
    this.reasons = element("ul", { className: "reasons" });
    this.inspector = new Inspector(about, () => this.remove(this.chosen), () => this.choose(null));
    this.tables = new Tables(about, { addGroup: add, addEdge: () => this.addEdge(), remove: (id) => this.remove(id) });
    this.buttons = Object.fromEntries(Object.entries({
      group: add, undo: () => this.model.undo(), redo: () => this.model.redo(), "zoom in": () => this.zoom(1.25),
      "zoom out": () => this.zoom(0.8), fit: () => this.fit(), tidy: () => this.tidy(), clear: () => this.clear(), save: () => this.save(),
    }).map(([name, press]) => [name, button(words.signs[name] ?? words[name], press, { title: words[name], ariaLabel: words[name] })]));
    this.frame = element("div", { className: "frame" }, this.svg);
    const held = element("div", { className: "held" }, this.frame, this.inspector.root);
    this.root = element("div", { className: "graph" }, element("div", { className: "bar" }, ...Object.values(this.buttons)),
      this.verdict, held, this.summary, this.reasons, this.tables.root);
    this.root.canvas = this;
    this.root.addEventListener("keydown", (event) => this.key(event));
    parent.append(this.root);
    this.hand = new Hand(this);
    this.sizes = new ResizeObserver(() => (this.moved ? this.show() : this.fit()));
    this.sizes.observe(this.frame);
    this.open(true);
  }

  // An update from the server: the verdict on the last edit, or another graph.
  update(props) {
    const another = props.data.version !== this.props.data.version;
    this.props = props;
    if (another) this.open(false);
    else this.show();
  }

  open(isFirst) {
    const { graph, places, edit } = this.props.data;
    this.model.adopt(graph, places, isFirst);
    Object.assign(this, { number: edit, text: JSON.stringify(this.model.data()), chosen: null });
    this.fit();
  }

  // After each edit: draw immediately and send it to the server. Moving a group needs no new verdict.
  edited() {
    const { groups, edges } = this.model.data(), text = JSON.stringify({ groups, edges }), { data, send } = this.props;
    if (text !== this.text) this.number += 1;
    this.text = text;
    this.choose(this.chosen);
    send({ version: data.version, edit: this.number, groups, edges, places: this.model.named() });
  }

  show() {
    const { data } = this.props, { words } = data, { now } = this.model, { x, y, scale } = this.view;
    const judged = data.edit === this.number ? data.judged : WAITING; // ignore a verdict on an earlier drawing
    const places = this.held ? { ...now.places, [this.held[0]]: this.held[1] } : now.places;
    this.found = boxes({ ...now, places }, data, this.turned);
    draw(this.layer, this.model, this.found, { judged, chosen: this.chosen, turned: this.turned, words });
    this.layer.append(this.rubber);
    this.layer.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    this.root.dataset.outcome = judged.outcome;
    this.verdict.textContent = judged.title ?? words.waiting;
    this.reasons.replaceChildren(...(judged.reasons ?? []).map((textContent) => element("li", { textContent })));
    this.summary.textContent = judged.summary ?? "";
    this.buttons.undo.disabled = !this.model.past.length;
    this.buttons.redo.disabled = !this.model.future.length;
    this.inspector.show(this.held ? null : this.chosen);
    this.beside();
    this.tables.show(judged);
  }

  // The fields of the selection are below it, above it if there is no space, or below a narrow canvas.
  beside() {
    const { root } = this.inspector, { clientWidth: wide, clientHeight: high } = this.frame, part = this.model.part(this.chosen);
    root.classList.toggle("foot", this.turned);
    root.removeAttribute("style");
    if (root.hidden || this.turned) return;
    const [one, other] = [part.source ?? part.id, part.target ?? part.id].map((id) => this.found.get(id));
    const { x, y, scale } = this.view, half = 12 + scale * (part.source ? 12 : one.half);
    const across = x + (scale * (one.x + other.x)) / 2 - root.offsetWidth / 2, down = y + (scale * (one.y + other.y)) / 2;
    const below = down + half, above = down - half - root.offsetHeight;
    const top = below + root.offsetHeight < high || above < 0 ? Math.min(below, high - root.offsetHeight - 6) : above;
    root.style.left = `${Math.max(6, Math.min(wide - root.offsetWidth - 6, across))}px`;
    root.style.top = `${Math.max(6, top)}px`;
  }

  choose(id) {
    this.chosen = this.model.part(id) ? id : null;
    this.show();
  }

  addGroup(place, source) {
    this.moved = true;
    this.chosen = null; // fields would cover the next edge
    const id = this.model.addGroup(place, source);
    if (!this.isSeen(this.found.get(id))) this.fit();
  }

  isSeen(box) {
    const { x, y, scale } = this.view, [across, down] = [x + scale * box.x, y + scale * box.y], high = scale * box.half;
    const { clientWidth, clientHeight } = this.frame, wide = scale * HALF;
    return across > wide && across < clientWidth - wide && down > high && down < clientHeight - high;
  }

  // From the table: the first missing edge.
  addEdge() {
    const { groups, edges } = this.model.now, ids = groups.map(({ id }) => id);
    const isThere = ([source, target]) => edges.some((each) => each.source === source && each.target === target);
    const pairs = [INPUT, ...ids].flatMap((source, at) => [...ids.slice(at), OUTPUT].map((target) => [source, target]));
    const pair = pairs.find((each) => !isThere(each));
    if (pair) this.model.link(...pair);
  }

  remove(id) {
    if (this.model.part(id)) this.model.remove(id);
    this.svg.focus({ preventScroll: true });
  }

  tidy() {
    this.model.arrange();
    this.fit();
  }

  clear() {
    this.model.clear();
    this.fit();
  }

  get turned() {
    return this.frame.clientWidth < NARROW;
  }

  fit() {
    const found = boxes(this.model.now, this.props.data, this.turned), { clientWidth: wide, clientHeight: high } = this.frame;
    const { left, right, top, bottom } = bounds(found, this.model.now.edges, this.turned);
    const scale = Math.max(ZOOM[0], Math.min(CLOSE, wide / (right - left), high / (bottom - top)));
    this.view = { scale, x: (wide - scale * (left + right)) / 2, y: (high - scale * (top + bottom)) / 2 };
    this.moved = false;
    this.show();
  }

  // About a point of the drawing, by default its middle.
  zoom(factor, [px, py] = [this.frame.clientWidth / 2, this.frame.clientHeight / 2]) {
    const { x, y, scale } = this.view, now = Math.max(ZOOM[0], Math.min(ZOOM[1], scale * factor)), by = now / scale;
    this.view = { scale: now, x: px - by * (px - x), y: py - by * (py - y) };
    this.moved = true;
    this.show();
  }

  // A free place near the middle of the view.
  free() {
    const [column, row] = this.hand.place([this.frame.clientWidth / 2, this.frame.clientHeight / 2]);
    const taken = [...this.found.values()].map(({ x, y }) => toPlace([x, y], this.turned));
    const isFree = ([a, b]) => taken.every(([c, d]) => Math.hypot(c - a, d - b) > 0.8);
    const around = [[-1, 0], [0, 0], [1, 0], [0, 1], [0, -1], [-1, 1], [1, 1], [-1, -1], [1, -1], [0, 2], [0, -2]];
    return around.map(([a, b]) => [column + a, row + b]).find(isFree) ?? [column, row + 3];
  }

  key(event) {
    const isTyping = event.target.matches("input, select"), letter = event.key.toLowerCase();
    const { groups, edges } = this.model.now, ids = [...groups, ...edges].map(({ id }) => id);
    const turn = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if ((event.ctrlKey || event.metaKey) && "zy".includes(letter) && !isTyping) {
      if (letter === "y" || event.shiftKey) this.model.redo();
      else this.model.undo();
    } else if (event.key === "Escape" && this.chosen) {
      this.choose(null);
      this.svg.focus({ preventScroll: true });
    } else if (event.target !== this.svg) {
      return;
    } else if (["Delete", "Backspace"].includes(event.key) && this.chosen) {
      this.remove(this.chosen);
    } else if (event.key === "Enter" && this.chosen) {
      this.inspector.root.querySelector("input, select").focus();
    } else if (turn && ids.length) {
      const at = ids.indexOf(this.chosen);
      this.choose(ids[at < 0 ? 0 : (at + turn + ids.length) % ids.length]);
    } else {
      return;
    }
    event.preventDefault();
  }

  // Export the drawing with its current style.
  save() {
    const { left, right, top, bottom } = bounds(this.found, this.model.now.edges, this.turned), style = getComputedStyle(this.root);
    const rules = [...this.root.getRootNode().querySelectorAll("style")].map((each) => each.textContent).join("\n");
    const colors = ["--ink", "--ground"].map((name, at) => `${name}:${at ? style.backgroundColor : style.color}`).join(";");
    const copy = make("svg", { xmlns: "http://www.w3.org/2000/svg", class: "graph", style: colors, width: right - left, height: bottom - top,
      viewBox: `${left} ${top} ${right - left} ${bottom - top}` }, make("style", {}, rules), this.svg.firstChild.cloneNode(true), this.layer.cloneNode(true));
    copy.lastChild.removeAttribute("transform");
    const link = element("a", { href: URL.createObjectURL(new Blob([copy.outerHTML], { type: "image/svg+xml" })), download: "graph.svg" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  close() {
    this.sizes.disconnect();
    this.root.remove();
  }
}

const mounted = new WeakMap();

export default function canvas({ parentElement, data, setStateValue }) {
  const props = { data, send: (edit) => setStateValue("edit", edit) };
  const here = mounted.get(parentElement);
  if (here) here.update(props);
  else mounted.set(parentElement, new Canvas(parentElement, props));
  return () => {
    mounted.get(parentElement)?.close();
    mounted.delete(parentElement);
  };
}

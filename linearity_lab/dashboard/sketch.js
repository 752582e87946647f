// Users draw a line on a figure before the data appear: an overlay takes mouse and touch, and a slider draws a
// straight line for the keyboard. Both axes of the figure are logarithmic.
const COLUMNS = 33;
const mounted = new WeakMap();

class Sketch {
  constructor(root, props) {
    this.root = root;
    this.heights = Array(COLUMNS).fill(null); // log10 of the line above each column
    this.changes = new MutationObserver(() => this.soon());
    this.changes.observe(document.body, { childList: true, subtree: true });
    this.sizes = new ResizeObserver(() => this.soon());
    const { words } = props;
    this.slope = this.part("input", { type: "range", min: -1.2, max: 1.2, step: 0.05, value: 0, id: "slope" });
    this.value = this.part("output", { htmlFor: "slope" }, words.unset);
    this.compare = this.part("button", { type: "button", className: "primary" }, words.compare);
    const again = this.part("button", { type: "button" }, words.again);
    const label = this.part("label", { htmlFor: "slope" }, words.slope);
    this.hint = this.part("p", { role: "status" }, words.task);
    const row = this.part("div", { className: "row" });
    row.append(label, this.slope, this.value, this.compare, again);
    root.replaceChildren(this.hint, row);
    this.slope.addEventListener("input", () => this.straight(Number(this.slope.value)));
    // The page's arrow and digit keys are off while the slider has the focus.
    for (const kind of ["keydown", "keyup"]) this.slope.addEventListener(kind, (event) => {
      if (/^(Arrow|Page|Home|End)/.test(event.key)) event.stopPropagation();
    });
    again.addEventListener("click", () => this.forget());
    this.compare.addEventListener("click", () => this.finish());
  }

  part(name, given, text) {
    const made = Object.assign(document.createElement(name), given);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  update(props, send) {
    Object.assign(this, { props, send });
    this.show();
    this.soon();
  }

  soon() {
    this.request ??= requestAnimationFrame(() => {
      this.request = undefined;
      this.lay();
    });
  }

  // The overlay covers the plot even after Streamlit mounts it again.
  lay() {
    const plot = document.querySelector(`.st-key-${CSS.escape(this.props.plot)} .js-plotly-plot`);
    const size = plot?._fullLayout?._size;
    if (!size) return;
    if (!this.sheet || this.sheet.parentElement !== plot.querySelector(".svg-container")) {
      this.sheet?.remove();
      this.sheet = this.part("div", { className: "sketch-sheet" });
      this.sheet.innerHTML = '<svg aria-hidden="true" width="100%" height="100%"><polyline/></svg>';
      this.listen();
      plot.querySelector(".svg-container").append(this.sheet);
      this.sizes.observe(plot);
    }
    const { xaxis, yaxis } = plot._fullLayout;
    this.ranges = { x: xaxis.range.map(Number), y: yaxis.range.map(Number) };
    Object.assign(this.sheet.style, {
      position: "absolute", left: `${size.l}px`, top: `${size.t}px`, width: `${size.w}px`, height: `${size.h}px`,
      touchAction: "none", cursor: "crosshair",
    });
    this.size = { w: size.w, h: size.h };
    this.draw();
  }

  listen() {
    let last = null;
    const at = (event) => {
      const box = this.sheet.getBoundingClientRect();
      const [low, high] = this.ranges.y;
      const [left, right] = this.ranges.x;
      const [first, end] = this.props.ends;
      const x = left + ((event.clientX - box.left) / box.width) * (right - left);
      const y = high - ((event.clientY - box.top) / box.height) * (high - low);
      const column = ((x - first) / (end - first)) * (COLUMNS - 1);
      return [Math.max(0, Math.min(COLUMNS - 1, Math.round(column))), Math.max(low, Math.min(high, y))];
    };
    this.sheet.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      this.sheet.setPointerCapture(event.pointerId);
      last = at(event);
      const drawn = this.heights.findLastIndex((each, column) => each !== null && column <= last[0]);
      this.stroke(drawn < 0 ? [0, this.props.start] : [drawn, this.heights[drawn]], last); // fill gaps
    });
    this.sheet.addEventListener("pointermove", (event) => {
      if (!last) return;
      for (const each of event.getCoalescedEvents?.() ?? [event]) {
        const now = at(each);
        this.stroke(last, now);
        last = now;
      }
    });
    const lift = () => { last = null; };
    this.sheet.addEventListener("pointerup", lift);
    this.sheet.addEventListener("pointercancel", lift);
  }

  // The columns between two pointer positions.
  stroke([from, low], [to, high]) {
    const [first, last] = from < to ? [from, to] : [to, from];
    for (let column = first; column <= last; column++) {
      const share = to === from ? 1 : (column - from) / (to - from);
      this.heights[column] = low + share * (high - low);
    }
    this.heights[0] = this.props.start;
    this.show();
    this.draw();
  }

  straight(slope) {
    const [first, end] = this.props.ends;
    const step = (end - first) / (COLUMNS - 1);
    this.heights = this.heights.map((_, column) => this.props.start + slope * step * column);
    this.show();
    this.draw();
  }

  forget() {
    this.heights.fill(null);
    this.show();
    this.draw();
  }

  // Least squares over the columns, as on the server.
  fitted() {
    const known = this.heights.filter((each) => each !== null);
    const [first, end] = this.props.ends;
    const middle = (known.length - 1) / 2;
    const step = (end - first) / (COLUMNS - 1);
    const moment = known.reduce((sum, each, column) => sum + (column - middle) * each, 0);
    return moment / known.reduce((sum, _, column) => sum + (column - middle) ** 2, 0) / step;
  }

  get isWhole() { return this.heights[COLUMNS - 1] !== null; }

  show() {
    const { words, letter } = this.props;
    const slope = this.heights[1] === null ? null : this.fitted();
    this.value.textContent = slope === null ? words.unset : `${letter}^${slope.toFixed(2).replace("-", "−")}`;
    this.slope.value = slope ?? 0;
    this.slope.setAttribute("aria-valuetext", this.value.textContent);
    this.compare.disabled = !this.isWhole;
    this.hint.textContent = this.heights[1] === null || this.isWhole ? words.task : words.short;
  }

  draw() {
    if (!this.sheet || !this.ranges) return;
    const { x: [left, right], y: [low, high] } = this.ranges;
    const [first, end] = this.props.ends;
    const points = this.heights.flatMap((height, column) => {
      if (height === null) return [];
      const x = first + ((end - first) * column) / (COLUMNS - 1);
      return [[((x - left) / (right - left)) * this.size.w, ((high - height) / (high - low)) * this.size.h]];
    });
    const line = this.sheet.querySelector("polyline");
    line.setAttribute("points", points.map((each) => each.map((value) => value.toFixed(1)).join()).join(" "));
    line.setAttribute("style", "fill: none; stroke: currentColor; stroke-width: 3.5; stroke-linejoin: round");
  }

  finish() {
    if (this.isWhole) this.send(this.heights);
  }

  close() {
    this.changes.disconnect();
    this.sizes.disconnect();
    cancelAnimationFrame(this.request);
    this.sheet?.remove();
  }
}

export default function sketch({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".sketch");
  if (!mounted.has(parentElement)) mounted.set(parentElement, new Sketch(root, data));
  mounted.get(parentElement).update(data, (heights) => setTriggerValue("drawn", heights));
  return () => {
    mounted.get(parentElement)?.close();
    mounted.delete(parentElement);
  };
}

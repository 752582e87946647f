// One cursor for the figures of a page: figures with the same axis in layout.meta.cursor share a line. It follows the
// pointer and returns to the page's choices. Clicks on marks are sent to the server.
import { Present } from "./present.js";

const mounted = new WeakMap();

class Linked {
  constructor() {
    this.props = { at: {} };
    this.present = new Present();
    this.pinned = {}; // clicked positions on axes without a choice on the page
    this.pointed = null; // axis and value under the pointer, or of the current animation frame
    this.heard = new WeakSet();
    this.kept = new WeakSet();
    this.legends = new Map(); // curves of a figure → visibility of each
    this.zooms = new Map(); // figure → changed ranges of its axes
    this.changes = new MutationObserver(() => this.soon());
    this.changes.observe(document.body, { childList: true, subtree: true });
  }

  update(props, send) {
    Object.assign(this, { props, send });
    this.soon();
  }

  soon() {
    this.request ??= requestAnimationFrame(() => {
      this.request = undefined;
      // The style sheet cannot ask for the color scheme that Streamlit has set.
      const app = document.querySelector('[data-testid="stApp"]');
      if (app) document.documentElement.dataset.scheme = getComputedStyle(app).colorScheme;
      document.querySelectorAll(".js-plotly-plot").forEach((plot) => this.show(plot));
      this.land();
      this.answer();
    });
  }

  // The clicked run, at the end of the controls beside the figure.
  answer() {
    const { answer } = this.props, side = document.querySelector(".st-key-side"), text = JSON.stringify(answer);
    let card = document.querySelector(".clicked-run");
    if (!answer || !side) return card?.remove();
    if (card?.text === text && card.parentElement === side) return;
    card?.remove();
    card = Object.assign(document.createElement("figure"), { className: "clicked-run", text });
    for (const { title, picture } of answer.pictures) {
      const head = Object.assign(document.createElement("div"), { textContent: title });
      head.append(document.importNode(new DOMParser().parseFromString(picture, "image/svg+xml").documentElement, true));
      card.append(head);
    }
    card.append(Object.assign(document.createElement("figcaption"), { textContent: answer.words }));
    side.append(card);
  }

  // A link to another figure than the first one scrolls to it.
  land() {
    if (!this.props.land || this.landed === this.props.land) return;
    const tabs = [...document.querySelectorAll('[role="tab"]')];
    const tab = tabs.find((each) => each.textContent.trim() === this.props.land);
    if (!tab || !document.querySelector(".js-plotly-plot .main-svg")) return;
    this.landed = this.props.land;
    tab.style.scrollMarginTop = "5rem"; // below the menu
    tab.scrollIntoView({ block: "start" });
  }

  show(plot) {
    if (!plot.on || !plot._fullLayout?._size) return;
    if (!this.kept.has(plot)) this.keep(plot);
    const { cursor: axis, frames } = plot.layout.meta ?? {};
    if (!(axis || frames)) return;
    if (!this.heard.has(plot)) this.listen(plot, axis, frames);
    if (!axis) return;
    const points = this.pointed?.axis === axis;
    draw(plot, points ? this.pointed.value : this.props.at[axis] ?? this.pinned[axis], points);
  }

  // Streamlit mounts a figure with another choice as a new element. Its zoom is restored by the figure's key, the titles
  // of its axes and the settings in the URL.
  keep(plot) {
    this.kept.add(plot);
    const key = /st-key-\S+/.exec(plot.closest('[class*="st-key-"]')?.className);
    const axes = Object.keys(plot._fullLayout).filter((name) => /^[xy]axis\d*$/.test(name));
    const name = [location.href, key, ...axes.map((axis) => plot._fullLayout[axis].title.text)].join();
    const ranges = () => axes.map((axis) => [`${axis}.range`, [...plot._fullLayout[axis].range]]);
    const home = ranges().map(String);
    if (this.zooms.has(name)) window.Plotly.relayout(plot, this.zooms.get(name));
    plot.on("plotly_relayout", () => {
      const moved = ranges().filter((range, index) => String(range) !== home[index]);
      if (moved.length) this.zooms.set(name, Object.fromEntries(moved));
      else this.zooms.delete(name);
    });
    // The same for curves toggled in the legend; the URL may be written after that click.
    const curves = [key, ...plot.data.map(({ legendgroup, name: title }) => legendgroup ?? title)].join();
    if (this.legends.has(curves)) window.Plotly.restyle(plot, { visible: this.legends.get(curves) });
    plot.on("plotly_restyle", ([changed]) => {
      if ("visible" in changed) this.legends.set(curves, plot._fullData.map(({ visible }) => visible));
    });
  }

  listen(plot, axis, frames) {
    this.heard.add(plot);
    if (frames) {
      plot.on("plotly_animatingframe", ({ name }) => {
        this.pointed = { axis: frames.axis, value: frames.at[name] };
        this.soon();
      });
      return;
    }
    const over = (pointed) => {
      this.pointed = pointed;
      const hand = pointed && axis in this.props.at ? "pointer" : "";
      plot.querySelectorAll(".nsewdrag").forEach((area) => { area.style.cursor = hand; });
      this.soon();
    };
    plot.on("plotly_hover", ({ points: [point] }) => over({ axis, value: point.x }));
    plot.on("plotly_unhover", () => over(null));
    plot.on("plotly_click", ({ points: [point] }) => this.click(plot, axis, point));
    plot.on("plotly_afterplot", () => this.soon());
  }

  click(plot, axis, point) {
    const chosen = {};
    if (axis in this.props.at) chosen[axis] = point.x;
    const { seed, seeds } = point.data.meta ?? {};
    if ("seed" in this.props.at) chosen.seed = (seeds ? point.customdata[0] : seed) ?? null;
    if (!(axis in this.props.at)) this.pinned[axis] = point.x;
    this.props = { ...this.props, at: { ...this.props.at, ...chosen } }; // before the server answers
    if (Object.keys(chosen).length) this.send(chosen);
    this.soon();
  }

  close() {
    this.present.stop();
    this.changes.disconnect();
    cancelAnimationFrame(this.request);
    document.querySelectorAll(".linked-line, .clicked-run").forEach((each) => each.remove());
  }
}

function draw(plot, value, points) {
  const { xaxis, _size: size } = plot._fullLayout;
  const left = value === undefined || value === null ? NaN : xaxis._offset + xaxis.d2p(value);
  let line = plot.querySelector(".linked-line");
  if (!(left >= size.l - 1 && left <= size.l + size.w + 1)) {
    line?.remove();
    return;
  }
  if (!line) {
    line = document.createElement("div");
    line.className = "linked-line";
    plot.querySelector(".svg-container").append(line);
  }
  line.dataset.at = value;
  Object.assign(line.style, {
    position: "absolute", pointerEvents: "none", left: `${left - 0.75}px`, top: `${size.t}px`, height: `${size.h}px`,
    borderLeft: `1.5px ${points ? "dotted" : "solid"} currentColor`, opacity: "0.55",
  });
}

export default function linked({ parentElement, data, setTriggerValue }) {
  if (!mounted.has(parentElement)) mounted.set(parentElement, new Linked());
  mounted.get(parentElement).update(data, (chosen) => setTriggerValue("clicked", chosen));
  return () => {
    mounted.get(parentElement)?.close();
    mounted.delete(parentElement);
  };
}

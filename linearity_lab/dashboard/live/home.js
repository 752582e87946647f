// Two networks from the same weights, one with a linear and one with a nonlinear output, under one slider of widths;
// each new width adds both kernel changes to a plot of ΔK against width.
import { Sentence, element, legend, set, widthSlider } from "./controls.js";
import { Panel, mount } from "./panel.js";
import { drawFunctions } from "./panels.js";
import { Player } from "./player.js";
import { Plot, decades, schemeOf, themeOf } from "./plot.js";
import { WIDTHS, pointsOf, positionOf, setup } from "./settings.js";
import { filled, longest, percent, sentences } from "./verdict.js";

const STEPS = 200; // after which ΔK is recorded: our choice
const STEPS_A_FRAME = 5;
const NARROW_CHART = 500; // pixels, as on a phone
const LABEL_APART = 17;
const REST_MS = 500; // between two widths of the tour
const CHART_DECADES = [-3, 1];
const WIDEST_SEEN = { first: "4", last: "4,096", from0: "444%", to0: "0.044%", from1: "444%", to1: "444%" };
const FAR_APART = 64; // smallest ratio of widths for a sentence about the plot

// One of the two networks: its training, its picture and its sentence.
class Side {
  constructor(data, output, changed) {
    Object.assign(this, { data, output, changed, points: new Map() });
    const title = data.words.home[output];
    this.canvas = element("canvas", { role: "img", "aria-label": title });
    this.title = element("h3", {}, title);
    this.verdict = new Sentence(longest(data.words.verdicts));
    this.whole = element("section", { class: "side" }, this.title, this.canvas, this.verdict.whole);
    this.player = new Player((state) => this.take(state));
  }

  start(width) {
    this.settings = { ...this.data.settings, width, output: this.output };
    this.asked = { ...setup(this.settings), id: (this.asked?.id ?? 0) + 1 };
    this.player.start(this.asked);
  }

  take(state) {
    if (state.begun) Object.assign(this, { begun: state.begun, first: state });
    this.now = state;
    if (this.ended && this.begun.id === this.asked.id) {
      this.points.set(this.begun.width, state.change);
    }
    this.changed();
  }

  get ended() {
    return this.now?.time >= STEPS;
  }

  advance() {
    if (!this.now || this.ended || this.player.busy) return;
    this.player.advance(Math.min(STEPS_A_FRAME, STEPS - this.now.time));
  }

  draw(theme) {
    const { data, begun, now, settings } = this;
    drawFunctions(this.canvas, theme, { begun, now, points: pointsOf(settings), chosen: -1, words: data.words.drawn });
    this.verdict.text = sentences(data.words.verdicts, begun, now, this.first);
    this.canvas.setAttribute("aria-label", `${this.title.textContent}. ${this.verdict.text}`);
  }
}

class Home extends Panel {
  constructor(parent, data, least = 0) {
    super();
    this.data = data;
    this.still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.playing = !this.still;
    this.tour = [...data.tour];
    const news = () => { this.stale = true; };
    this.sides = data.outputs.map((output) => new Side(data, output, news));
    this.width = widthSlider(data.words, ({ width }) => this.choose(width));
    this.button = element("button", { type: "button", "data-do": "play" }, this.action);
    this.button.addEventListener("click", () => this.press());
    this.chart = element("canvas", { role: "img", "aria-label": data.words.home.chart });
    this.sentence = new Sentence(filled(data.words.home.seen, WIDEST_SEEN));
    this.status = element("p", { class: "unseen", role: "status" });
    this.note = element("span", { class: "slides" }, data.words.home.slides);
    const bar = element("div", { class: "bar" }, this.button, this.width.whole, this.note);
    const root = element("div", { class: "live", "data-form": "home" }, legend(data.words, data.colors),
      element("div", { class: "sides" }, ...this.sides.map((side) => side.whole)), bar,
      element("figure", {}, element("figcaption", {}, element("span", {}, data.words.home.chart)), this.chart),
      this.sentence.whole, this.status);
    root.home = this;
    this.begin(data.settings.width);
    this.open(parent, root, least);
  }

  // What the button does when it is pressed.
  get action() {
    const { pause, play } = this.data.words.controls;
    return this.playing ? pause : play;
  }

  begin(width) {
    this.chosen = width;
    this.rested = null;
    const text = width.toLocaleString("en-US");
    set(this.width, positionOf(width), `m = ${text}`, text);
    for (const side of this.sides) side.start(width);
  }

  // Choosing a width ends the tour of widths.
  choose(width) {
    this.tour = [];
    this.playing = true;
    this.begin(width);
  }

  press() {
    if (this.ended && !this.tour.length) this.begin(this.chosen);
    this.playing = this.ended || !this.playing;
    this.stale = true;
  }

  get ended() {
    return this.sides.every((side) => side.ended && side.begun.id === side.asked.id);
  }

  frame() {
    if (this.playing) for (const side of this.sides) side.advance();
    if (this.ended && this.playing) this.rest();
    if (this.stale && this.sides.every((side) => side.now)) this.draw();
  }

  // When both have finished, pause and go to the next width of the tour.
  rest() {
    this.rested ??= performance.now();
    if (performance.now() - this.rested < REST_MS) return;
    const next = this.tour[this.tour.indexOf(this.chosen) + 1];
    if (next) this.begin(next);
    else {
      this.tour = [];
      this.playing = false;
      this.stale = true;
      this.status.textContent = this.sentence.text;
    }
  }

  draw() {
    this.stale = false;
    const theme = themeOf(this.root, this.data.colors), scheme = schemeOf(this.root);
    this.root.style.colorScheme = scheme;
    for (const side of this.sides) side.draw(theme);
    this.drawChart(theme);
    this.sentence.text = this.summary();
    this.button.textContent = this.action;
    this.note.style.visibility = this.playing && this.tour.length ? "visible" : "hidden";
    this.paintedAt ??= performance.now();
  }

  drawChart(theme) {
    const { words, styles } = this.data;
    const plot = new Plot(this.chart, theme);
    const narrow = plot.width < NARROW_CHART;
    plot.frame({ left: 52, right: narrow ? 100 : 120, top: 8, bottom: 40 }, [Math.log10(3), Math.log10(6000)], CHART_DECADES);
    const widths = [];
    for (let m = WIDTHS.least; m <= WIDTHS.most; m *= narrow ? 16 : 4) widths.push([Math.log10(m), m.toLocaleString("en-US")]);
    plot.axes(widths, decades(...CHART_DECADES));
    plot.words(words.home.across, (plot.box.left + plot.box.right) / 2, plot.box.bottom + 36, "center");
    plot.label("ΔK", plot.box.left + 6, plot.box.top + 14, "left");
    const ends = [];
    this.sides.forEach((side, at) => {
      const { color, symbol } = styles[at];
      const places = [...side.points].sort(([a], [b]) => a - b).map(([m, change]) => {
        const bounded = Math.min(Math.max(change, 10 ** CHART_DECADES[0]), 10 ** CHART_DECADES[1]);
        return [plot.x(Math.log10(m)), plot.y(Math.log10(bounded))];
      });
      plot.curve(places, color, 3);
      for (const place of places) plot.mark(place, color, symbol);
      if (places.length) ends.push({ at: places.at(-1), text: words.home.end[side.output] });
    });
    if (ends.length > 1 && Math.abs(ends[0].at[1] - ends[1].at[1]) < LABEL_APART) { // close lines, labels apart
      const middle = (ends[0].at[1] + ends[1].at[1]) / 2, first = ends[0].at[1] < ends[1].at[1] ? -1 : 1;
      ends.forEach((end, at) => { end.at = [end.at[0], middle + ((at ? -first : first) * LABEL_APART) / 2]; });
    }
    for (const { at: [x, y], text } of ends) plot.words(text, x + 12, y + 5);
    this.chart.setAttribute("aria-label", `${words.home.chart}. ${this.sentence.text}`);
  }

  // A sentence about the points so far.
  summary() {
    const { home } = this.data.words;
    const widths = [...this.sides[0].points.keys()].filter((m) => this.sides[1].points.has(m)).sort((a, b) => a - b);
    if (widths.length < 2 || widths.at(-1) / widths[0] < FAR_APART) return home.begun;
    const numbers = { first: widths[0].toLocaleString("en-US"), last: widths.at(-1).toLocaleString("en-US") };
    this.sides.forEach((side, at) => {
      numbers[`from${at}`] = percent(side.points.get(widths[0]));
      numbers[`to${at}`] = percent(side.points.get(widths.at(-1)));
    });
    return filled(home.seen, numbers);
  }

  update(data) {
    this.data = data;
    for (const side of this.sides) side.data = data;
    this.stale = true;
  }

  close() {
    super.close();
    for (const side of this.sides) side.player.close();
  }
}

export default function home({ parentElement, data }) {
  return mount(Home, parentElement, data);
}

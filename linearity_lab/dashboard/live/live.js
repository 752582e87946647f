// A network and its linear model train in the browser: the component as Streamlit mounts it.
import { Controls } from "./controls.js";
import { Hand } from "./hand.js";
import { Panel, mount } from "./panel.js";
import { drawChange, drawDifference, drawFunctions, drawKernel, drawLosses, drawNeurons } from "./panels.js";
import { Player } from "./player.js";
import { schemeOf, scientific, themeOf } from "./plot.js";
import { Record } from "./record.js";
import { TOUR, pointsOf, settingsFrom, setup, textsOf, tidied } from "./settings.js";
import { addingSentence, difference, percent, sentences } from "./verdict.js";

const DRAW = {
  difference: drawDifference, kernel: drawKernel, neurons: drawNeurons, change: drawChange, losses: drawLosses,
};
const SINGLE_STEPS = 60; // the first steps, which change most, are shown one by one
const PACE = 0.015; // later each frame adds this share of all steps, as the axes are logarithmic
const MOST_STEPS = 30_000;
const LEARNED = 1e-7; // of both losses; below it nothing visible changes
const REST_MS = 3000; // at the end of one width of a tour

class Live extends Panel {
  constructor(parent, data, least = 0) {
    super();
    const { form, words, settings } = data;
    Object.assign(this, { data, words, settings, begun: null, tour: data.tour ?? [] });
    this.record = new Record();
    this.still = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.playing = !this.still.matches;
    this.frames = 0; // number of drawn frames and their steps, for benchmarks
    this.steps = 0;
    this.player = new Player((state) => this.take(state)); // first: its worker starts while the panel is built
    this.restart();
    this.controls = new Controls({
      form, words, colors: data.colors,
      changed: (part, done) => this.choose(part, done),
      pressed: (name) => this.press(name),
      explained: (text) => { this.controls.note.textContent = text; },
      staged: (index) => this.goTo(index),
    });
    this.controls.root.live = this;
    const canvas = this.controls.canvases.functions;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    this.hand = new Hand(canvas, {
      plot: () => this.plot,
      points: () => pointsOf(this.settings),
      change: (points, done) => this.choose({ target: "own", points: done ? tidied(points) : points }, done),
      choose: () => { this.stale = true; },
    });
    this.still.addEventListener("change", () => this.play(!this.still.matches));
    this.controls.root.addEventListener("pointerdown", () => { this.tour = []; });
    this.controls.root.addEventListener("keydown", () => { this.tour = []; });
    this.controls.show(settings);
    this.open(parent, this.controls.root, least);
  }

  // Apply chosen settings; `done` after the pointer is released, which reports them to the server.
  choose(part, done) {
    if ("target" in part && part.target !== "own") part.points = null;
    const trains = Object.keys(part).some((name) => name !== "speed" && name !== "tour");
    this.settings = { ...this.settings, ...part };
    this.controls.show(this.settings);
    if (trains) this.restart();
    if (done) this.data.send?.(this.settings);
  }

  press(name) {
    if (name === "play") {
      if (this.settled) this.restart();
      this.play(this.settled || !this.playing);
    } else if (name === "step") {
      this.play(false);
      this.record.shown = null;
      this.player.step();
    } else if (name === "restart") this.restart();
    else if (name === "second") this.askSecond();
    else if (name === "seed") this.choose({ seed: this.settings.seed + 1 }, true);
    else this.guide({ begin: 1, back: this.settings.tour - 1, next: this.settings.tour + 1, end: 0 }[name]);
  }

  // Go to step `at` of the guided tour: default settings with the step's changes; 0 changes nothing.
  guide(at) {
    if (at === 0) return this.choose({ tour: 0 }, true);
    const { defaults } = this.data;
    this.choose({ ...defaults, ...TOUR[at - 1][1], seed: this.settings.seed, speed: this.settings.speed, tour: at }, true);
    if (!this.still.matches) this.play(true);
  }

  // Show an earlier stage of this run and pause; at the end of the slider, the newest one.
  goTo(index) {
    this.record.show(index);
    this.play(false);
  }

  // The state on screen, and the newest one.
  get now() {
    return this.record.now;
  }

  get newest() {
    return this.record.newest;
  }

  play(playing) {
    this.playing = playing;
    if (playing) this.record.shown = null;
    this.stale = true;
    this.announce();
  }

  // Pause, train a second task from the same start for as many steps, and show whether both add.
  askSecond() {
    this.play(false);
    this.record.shown = null;
    this.player.second();
  }

  restart() {
    this.settled = false;
    this.added = null;
    this.asked = { ...setup(this.settings), id: (this.asked?.id ?? 0) + 1 };
    this.player.start(this.asked);
    this.stale = true;
  }

  // Take a result of the worker.
  take(state) {
    if (state.added) {
      if (state.id === this.asked.id) this.added = state.added;
      this.stale = true;
      this.announce();
      return;
    }
    if (state.begun) {
      this.begun = state.begun;
      this.record.clear();
      this.first = state;
    }
    if (this.added && this.added.time !== state.time) this.added = null;
    this.record.add(state);
    this.steps += state.done;
    const learned = state.loss < LEARNED && (state.linearLoss < LEARNED || state.linearDiverged);
    const settled = state.time >= MOST_STEPS || learned || (state.diverged && state.linearDiverged);
    if (settled && !this.settled) this.rested = performance.now();
    this.settled = settled;
    this.stale = true;
    if (settled) this.announce();
    this.train();
  }

  frame() {
    if (!this.now) return;
    this.due = true;
    this.train();
    if (this.playing && this.settled && this.tour.length && performance.now() - this.rested > REST_MS) {
      const next = this.tour[(this.tour.indexOf(this.settings.width) + 1) % this.tour.length];
      this.choose({ width: next }, false);
    }
    if (this.stale || this.player.isSlow) this.draw();
    this.stale = false;
  }

  // Request the steps of one frame, at most once per frame, or immediately if the worker is slower.
  train() {
    if (!this.due || !this.playing || this.settled || this.player.busy) return;
    this.due = false;
    const { time } = this.newest;
    this.player.advance(this.settings.speed || (time < SINGLE_STEPS ? 1 : Math.max(1, Math.round(PACE * time))));
  }

  draw() {
    const { controls, words } = this;
    const theme = themeOf(controls.root, this.data.colors), scheme = schemeOf(controls.root);
    if (controls.root.style.colorScheme !== scheme) controls.root.style.colorScheme = scheme;
    const points = pointsOf(this.settings);
    const chosen = controls.canvases.functions === controls.root.getRootNode().activeElement ? this.hand.chosen : -1;
    const { begun, now, record } = this;
    const added = this.shownSecond;
    const scene = { begun, now, added, history: record.history, points, chosen, words: words.drawn };
    this.plot = drawFunctions(controls.canvases.functions, theme, scene);
    for (const [name, draw] of Object.entries(DRAW)) {
      if (controls.canvases[name]) draw(controls.canvases[name], theme, scene);
    }
    controls.showLines(added !== null);
    controls.playing(this.playing && !this.settled);
    controls.verdict.text = this.sentence();
    controls.showStage(record);
    if (controls.canvases.change) {
      controls.canvases.difference.number.textContent = percent(now.linearDiverged ? Infinity : difference(this.begun, now).share);
      controls.canvases.change.number.textContent = percent(now.change);
      controls.canvases.losses.number.textContent = scientific(now.loss);
    }
    this.frames++;
    this.paintedAt ??= performance.now();
  }

  // The second task, if it was trained as long as the state on screen.
  get shownSecond() {
    return this.added?.time === this.now.time ? this.added : null;
  }

  sentence() {
    if (this.begun.id !== this.asked.id && this.player.isSlow) return this.words.verdicts.waiting;
    if (this.shownSecond) return addingSentence(this.words.verdicts, this.begun, this.shownSecond);
    return sentences(this.words.verdicts, this.begun, this.now, this.first);
  }

  // For screen readers, once the network has settled.
  announce() {
    if (this.now && (!this.playing || this.settled)) this.controls.status.textContent = this.sentence();
  }

  // An update from the server: colors of another theme, or the settings of another URL.
  update(data) {
    const opened = data.version !== this.data.version, before = this.data.settings;
    const isKept = this.data.inURL && (this.settings !== before || same(data.settings, before));
    this.data = data;
    this.stale = true;
    if (isKept) { // started before the server knew its settings
      if (!same(data.settings, this.settings)) data.send(this.settings);
    } else if (opened) {
      this.tour = data.tour ?? [];
      this.settings = data.settings;
      this.controls.show(this.settings);
      this.restart();
    }
  }

  close() {
    super.close();
    this.player.close();
  }
}

function same(one, other) {
  return Object.keys(one).every((name) => JSON.stringify(one[name]) === JSON.stringify(other[name]));
}

// The data of a panel without a server: its settings are read from the URL and written there, beside other parameters.
function inURL(data) {
  const { defaults } = data;
  const asked = new URLSearchParams(location.search);
  const send = (settings) => {
    const query = new URLSearchParams(location.search);
    for (const name of Object.keys(defaults)) query.delete(name);
    for (const [name, text] of Object.entries(textsOf(settings, defaults))) query.set(name, text);
    history.replaceState(history.state, "", query.size ? `?${query}` : location.pathname);
  };
  return { ...data, inURL: true, settings: settingsFrom(Object.fromEntries(asked), defaults), send };
}

export default function live({ parentElement, data, setStateValue }) {
  const send = data.sends ? (settings) => setStateValue("settings", settings) : data.send;
  return mount(Live, parentElement, { ...data, send });
}

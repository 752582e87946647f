// Buttons, sliders, choosers and canvases: plain elements of the page.
import { CHOICES, RATES, TOUR, WIDTHS, positionOf, widthAt } from "./settings.js";
import { filled, longest } from "./verdict.js";

export const PARTS = ["functions", "difference", "kernel", "neurons", "change", "losses"];
const ABOVE_EACH_OTHER = 2; // the first parts share the stage slider and an axis over x
const BUTTONS = ["play", "step", "restart", "seed", "second"];
const LINES = ["network", "linear", "start"];
const ADDED_LINES = ["start", "first", "second", "summed", "together"]; // after the second task
const ADDED_NETWORKS = ["first", "second", "together"]; // in the color of the network

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A sentence in a paragraph with space for its longest version: nothing below it moves as it changes.
export class Sentence {
  constructor(longest) {
    this.span = element("span");
    this.whole = element("p", { class: "verdict", "data-longest": longest }, this.span);
  }

  get text() {
    return this.span.textContent;
  }

  set text(words) {
    this.span.textContent = words;
  }
}

export function slider(name, words, range, moved) {
  const input = element("input", { type: "range", id: `live-${name}`, ...range });
  const value = element("output", { for: `live-${name}` });
  const track = element("span", { class: "track" }, input);
  const label = element("label", { for: `live-${name}` }, words.controls[name]);
  input.addEventListener("input", () => moved(Number(input.value), false));
  input.addEventListener("change", () => moved(Number(input.value), true));
  return { input, value, track, whole: element("div", { class: `slider ${name}` }, label, track, value) };
}

export function widthSlider(words, changed) {
  const range = { min: 0, max: positionOf(WIDTHS.most), step: 1 };
  return slider("width", words, range, (at, done) => changed({ width: widthAt(at) }, done));
}

// Legend: each curve's name beside its stroke.
export function legend(words, colors, names = LINES) {
  const rows = names.map((name) => {
    const sample = element("span", { class: `sample ${name}` });
    const color = ADDED_NETWORKS.includes(name) ? colors.network : colors[name];
    if (color) sample.style.borderColor = color;
    return element("span", {}, sample, words.drawn[name]);
  });
  return element("div", { class: "legend" }, ...rows);
}

export function set({ input, value }, position, words, spoken) {
  input.value = position;
  value.textContent = words;
  input.setAttribute("aria-valuetext", spoken);
}

// All elements of a form, "page" or "small". Callbacks: changed(settings, done), pressed(button), staged(index).
export class Controls {
  constructor({ form, words, colors, changed, pressed, explained, staged }) {
    this.words = words;
    const small = form === "small";
    this.buttons = Object.fromEntries(
      (small ? ["play", "restart"] : BUTTONS).map((name) => [name, this.button(name, () => pressed(name))]),
    );
    this.width = widthSlider(words, changed);
    this.rate = slider("rate", words, { min: RATES.least, max: RATES.most, step: RATES.step }, (rate, done) =>
      changed({ rate }, done));
    const mark = element("span", { class: "critical", "aria-hidden": "true" }, words.controls.critical);
    mark.style.left = `${(100 * (RATES.critical - RATES.least)) / (RATES.most - RATES.least)}%`;
    this.rate.track.append(mark);
    this.stage = slider("stage", words, { min: 0, max: 1, step: 1 }, staged);
    this.choices = Object.fromEntries(Object.keys(CHOICES).map((name) => [name, this.chooser(name, changed)]));
    this.verdict = new Sentence(longest(words.verdicts));
    this.status = element("p", { class: "unseen", role: "status" });
    this.canvases = {};
    const parts = (small ? PARTS.slice(0, 1) : PARTS).map((name) => this.part(name, small, explained));
    this.legends = { alone: legend(words, colors), added: legend(words, colors, ADDED_LINES) };
    this.legends.added.append(element("span", {}, words.drawn.error));
    const main = element("div", { class: "main" }, ...Object.values(this.legends), ...parts.splice(0, ABOVE_EACH_OTHER),
      ...(small ? [] : [this.stage.whole]));
    const touched = window.matchMedia("(hover: none) and (pointer: coarse)").matches; // no keyboard hints without a keyboard
    this.help = touched ? words.controls.note : `${words.controls.note} ${words.controls.keys}`;
    this.note = element("p", { class: "note" }, this.help);
    const bar = element("div", { class: "bar" }, element("div", { class: "buttons" }, ...Object.values(this.buttons)),
      this.width.whole, ...(small ? [] : [this.rate.whole]));
    const { layers, bottleneck, speed, ...few } = Object.fromEntries(
      Object.entries(this.choices).map(([name, { whole }]) => [name, whole]));
    this.more = element("details", {}, element("summary", {}, words.controls.more),
      element("div", { class: "choices" }, layers, bottleneck, speed));
    const choices = element("div", { class: "choices" }, ...Object.values(few), this.more);
    this.tour = this.guide(pressed);
    this.root = element("div", { class: "live", "data-form": form }, ...(small ? [] : [this.tour.whole]), bar,
      ...(small ? [] : [choices]), this.verdict.whole, element("div", { class: "panels" }, main, ...parts),
      ...(small ? [] : [this.note]), this.status);
  }

  button(name, pressed) {
    const button = element("button", { type: "button", "data-do": name }, this.words.controls[name]);
    button.addEventListener("click", pressed);
    return button;
  }

  // The guided tour: a sentence with its number, and buttons for the next step.
  guide(pressed) {
    const text = element("span", { class: "tour-text" });
    const buttons = Object.fromEntries(
      ["begin", "back", "next", "end"].map((name) => [name, this.button(name, () => pressed(name))]));
    return { text, buttons, whole: element("div", { class: "tour" }, text, ...Object.values(buttons)) };
  }

  chooser(name, changed) {
    const select = element("select", { id: `live-${name}` });
    for (const option of CHOICES[name]) {
      select.append(element("option", { value: option }, this.words.choices[name][option]));
    }
    select.addEventListener("change", () => {
      const chosen = CHOICES[name].find((option) => String(option) === select.value);
      changed({ [name]: chosen }, true);
    });
    const label = element("label", { for: `live-${name}` }, this.words.controls[name]);
    return { select, whole: element("div", { class: "choice" }, label, select) };
  }

  // A picture with its title; hovering over it or choosing the title explains it.
  part(name, small, explained) {
    const { title, text } = this.words.parts[name];
    const canvas = element("canvas", { role: "img", "aria-label": `${title}. ${text}` });
    const number = element("span", { class: "number" });
    this.canvases[name] = canvas;
    canvas.number = number;
    if (small) return element("figure", { class: name }, canvas);
    const button = element("button", { type: "button", class: "what" }, title);
    canvas.heading = button;
    const figure = element("figure", { class: name }, element("figcaption", {}, button, number), canvas);
    for (const event of ["pointerenter", "focusin", "click"]) figure.addEventListener(event, () => explained(text));
    figure.addEventListener("pointerleave", () => explained(this.help));
    figure.addEventListener("focusout", () => explained(this.help));
    return figure;
  }

  // Show the settings in every control.
  show(settings) {
    const width = settings.width.toLocaleString("en-US");
    set(this.width, positionOf(settings.width), `m = ${width}`, width);
    set(this.rate, settings.rate, `c = ${settings.rate.toFixed(2)}`, settings.rate.toFixed(2));
    for (const [name, { select }] of Object.entries(this.choices)) select.value = String(settings[name]);
    const own = this.choices.target.select.querySelector('[value="own"]');
    own.disabled = settings.target !== "own";
    if (settings.layers > 1 || settings.bottleneck || settings.speed) this.more.open = true; // in the format of a link
    const { text, buttons } = this.tour, at = settings.tour, count = TOUR.length;
    text.textContent = at ? `${at}/${count} ${this.words.tour[TOUR[at - 1][0]]}` : "";
    buttons.begin.hidden = at > 0;
    buttons.back.hidden = at < 2;
    buttons.next.hidden = at === 0 || at === count;
    buttons.end.hidden = at === 0;
  }

  // The slider over the stages of this run.
  showStage({ states, shown, now }) {
    this.stage.input.max = Math.max(states.length - 1, 1);
    const steps = `${now.time.toLocaleString("en-US")} ${this.words.drawn.steps}`;
    set(this.stage, shown ?? this.stage.input.max, steps, steps);
  }

  // Name the lines of both tasks and their sum, or those of one network and its linear model.
  showLines(hasAdded) {
    this.legends.alone.hidden = hasAdded;
    this.legends.added.hidden = !hasAdded;
    const { heading } = this.canvases.functions; // a small form has none
    if (heading) heading.textContent = hasAdded ? this.words.drawn.tasks : this.words.parts.functions.title;
  }

  playing(isPlaying) {
    this.buttons.play.textContent = this.words.controls[isPlaying ? "pause" : "play"];
  }
}

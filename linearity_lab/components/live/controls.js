// What can be pressed, slid and chosen, and where the pictures stand: plain elements of the page.
import { CHOICES, RATES, WIDTHS, positionOf, widthAt } from "./settings.js";

export const PARTS = ["functions", "kernel", "neurons", "change", "losses"];
const BUTTONS = ["play", "step", "restart", "seed"];

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// All elements of a form, "page" or "small"; changed(settings, done) and pressed(button) are told what a person does.
export class Controls {
  constructor({ form, words, changed, pressed, explained }) {
    this.words = words;
    const small = form === "small";
    this.buttons = Object.fromEntries(
      (small ? ["play", "restart"] : BUTTONS).map((name) => {
        const button = element("button", { type: "button", "data-do": name }, words.controls[name]);
        button.addEventListener("click", () => pressed(name));
        return [name, button];
      }),
    );
    const last = positionOf(WIDTHS.most);
    this.width = this.slider("width", { min: 0, max: last, step: 1 }, (at, done) => changed({ width: widthAt(at) }, done));
    this.rate = this.slider("rate", { min: RATES.least, max: RATES.most, step: RATES.step }, (rate, done) =>
      changed({ rate }, done));
    const mark = element("span", { class: "critical", "aria-hidden": "true" }, words.controls.critical);
    mark.style.left = `${(100 * (RATES.critical - RATES.least)) / (RATES.most - RATES.least)}%`;
    this.rate.track.append(mark);
    this.choices = Object.fromEntries(Object.keys(CHOICES).map((name) => [name, this.chooser(name, changed)]));
    this.verdict = element("p", { class: "verdict" });
    this.told = element("p", { class: "unseen", role: "status" });
    this.canvases = {};
    const parts = (small ? PARTS.slice(0, 1) : PARTS).map((name) => this.part(name, small, explained));
    const touched = window.matchMedia("(hover: none) and (pointer: coarse)").matches; // names no keys where none are
    this.help = touched ? words.controls.note : `${words.controls.note} ${words.controls.keys}`;
    this.note = element("p", { class: "note" }, this.help);
    const bar = element("div", { class: "bar" }, element("div", { class: "buttons" }, ...Object.values(this.buttons)),
      this.width.whole, ...(small ? [] : [this.rate.whole]));
    const { layers, bottleneck, ...few } = Object.fromEntries(
      Object.entries(this.choices).map(([name, { whole }]) => [name, whole]));
    this.more = element("details", {}, element("summary", {}, words.controls.more),
      element("div", { class: "choices" }, layers, bottleneck));
    const choices = element("div", { class: "choices" }, ...Object.values(few), this.more);
    this.root = element("div", { class: "live", "data-form": form }, bar, ...(small ? [] : [choices]), this.verdict,
      element("div", { class: "panels" }, ...parts), ...(small ? [] : [this.note]), this.told);
  }

  slider(name, range, moved) {
    const input = element("input", { type: "range", id: `live-${name}`, ...range });
    const value = element("output", { for: `live-${name}` });
    const track = element("span", { class: "track" }, input);
    const label = element("label", { for: `live-${name}` }, this.words.controls[name]);
    input.addEventListener("input", () => moved(Number(input.value), false));
    input.addEventListener("change", () => moved(Number(input.value), true));
    return { input, value, track, whole: element("div", { class: "slider" }, label, track, value) };
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

  // A picture with its title; whoever points at it or chooses the title reads what it is.
  part(name, small, explained) {
    const { title, text } = this.words.parts[name];
    const canvas = element("canvas", { role: "img", "aria-label": `${title}. ${text}` });
    const number = element("span", { class: "number" });
    this.canvases[name] = canvas;
    canvas.number = number;
    if (small) return element("figure", { class: name }, canvas);
    const button = element("button", { type: "button", class: "what" }, title);
    const figure = element("figure", { class: name }, element("figcaption", {}, button, number), canvas);
    for (const event of ["pointerenter", "focusin", "click"]) figure.addEventListener(event, () => explained(text));
    figure.addEventListener("pointerleave", () => explained(this.help));
    figure.addEventListener("focusout", () => explained(this.help));
    return figure;
  }

  // Let every control say what is set.
  show(settings) {
    const width = settings.width.toLocaleString("en-US");
    set(this.width, positionOf(settings.width), `m = ${width}`, width);
    set(this.rate, settings.rate, `c = ${settings.rate.toFixed(2)}`, settings.rate.toFixed(2));
    for (const [name, { select }] of Object.entries(this.choices)) select.value = String(settings[name]);
    const own = this.choices.target.select.querySelector('[value="own"]');
    own.disabled = settings.target !== "own";
    if (settings.layers > 1 || settings.bottleneck) this.more.open = true; // as a link has it
  }

  playing(isPlaying) {
    this.buttons.play.textContent = this.words.controls[isPlaying ? "pause" : "play"];
  }
}

function set({ input, value }, position, words, spoken) {
  input.value = position;
  value.textContent = words;
  input.setAttribute("aria-valuetext", spoken);
}

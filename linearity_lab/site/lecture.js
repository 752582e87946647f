// The lecture as a page: each step asks for a choice or a drawn line, then shows its figure.
/* global lab, sketch */
"use strict";

const COLUMNS = 33; // as in sketch.js
const lectureData = JSON.parse(document.getElementById("data").textContent);
const predicted = new Map(); // step → whether its choice was right

function fill(template, values) {
  return template.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

// Formatted as in charts/axes.py.
function signed(value) {
  return (Number(value.toFixed(2)) + 0).toFixed(2).replace("-", "−");
}

function twoDigits(value) {
  return Number(value.toPrecision(2)).toLocaleString("en-US", { maximumFractionDigits: 1 });
}

function power(letter, exponent) {
  return `<math><msup><mi>${letter}</mi><mn>${exponent}</mn></msup></math>`;
}

// Least squares over the columns, as on the server.
function slope(heights, [first, end]) {
  const middle = (COLUMNS - 1) / 2;
  const moment = heights.reduce((sum, each, column) => sum + (column - middle) * each, 0);
  const square = heights.reduce((sum, _, column) => sum + (column - middle) ** 2, 0);
  return (moment / square) * ((COLUMNS - 1) / (end - first));
}

function nearest(exponents, exponent) {
  const known = exponents.flatMap((each, index) => (each === null ? [] : [[Math.abs(each - exponent), index]]));
  return known.reduce((best, each) => (each[0] < best[0] ? each : best))[1];
}

// The words of drawing.line_words.
function lineWords({ words, law, letter, exponents, choices, end, measured, last }, exponent, height) {
  const choice = choices[nearest(exponents, exponent)];
  const text = fill(words.drawn, { drawn: power(letter, signed(exponent)), choice });
  if (!law) return text;
  const [fitted, interval] = law;
  const apart = Math.abs(exponent - fitted);
  const verdict = interval === null ? "unknown interval" : apart <= interval ? "inside" : "outside";
  const ratio = 10 ** height / end;
  return `${text} ${fill(words[verdict], {
    measured, by: apart.toFixed(2), letter: power(letter, "").replace(/<\/?m(sup|n)>/g, ""), last,
    factor: twoDigits(Math.max(ratio, 1 / ratio)), way: ratio > 1 ? "high" : "low",
  })}`;
}

class Step {
  constructor(section) {
    this.section = section;
    this.name = section.id;
    this.props = lectureData.steps[this.name];
    this.place = section.querySelector(".place");
    const list = section.querySelector(".choices");
    const items = [...list.children];
    for (let left = items.length; left > 0; left--) { // every order is equally likely
      list.append(items.splice(Math.floor(Math.random() * left), 1)[0]);
    }
    this.buttons = [...section.querySelectorAll(".choice")];
    for (const button of this.buttons) {
      button.addEventListener("click", () => this.answer(Number(button.dataset.choice)));
    }
    section.querySelector(".show").addEventListener("click", () => this.answer(null));
    lab.whenNear(section, () => this.begin());
  }

  async begin() {
    this.data = await lab.data(`lecture.${this.name}`);
    if (this.isKnown) {
      this.show(this.data.start);
      return;
    }
    await lab.draw(this.place, this.data.veiled);
    if (this.props.line && !this.isKnown) this.letDraw();
  }

  letDraw() {
    const host = this.section.querySelector(".sketch-place");
    const inside = host.attachShadow({ mode: "open" }); // its style names plain elements
    inside.innerHTML = `<style>${lectureData.sketch.css}</style>${lectureData.sketch.html}`;
    const close = sketch({
      parentElement: inside,
      data: this.props.line.props,
      setTriggerValue: (_, heights) => this.takeLine(heights),
    });
    this.closeSketch = () => {
      close();
      host.remove();
    };
  }

  takeLine(heights) {
    const { line } = this.props;
    const ends = line.props.ends;
    const exponent = slope(heights, ends);
    const x = heights.map((_, column) => 10 ** (ends[0] + ((ends[1] - ends[0]) * column) / (COLUMNS - 1)));
    this.line = { exponent, heights, x };
    this.answer(nearest(line.exponents, exponent));
  }

  // The chosen option; null requests the answer.
  answer(chosen) {
    if (this.isKnown) return;
    this.isKnown = true;
    const { right, verdicts, drawn, why, terms, line } = this.props;
    const isRight = chosen === right;
    predicted.set(this.name, isRight);
    this.closeSketch?.();
    for (const button of this.buttons) {
      const index = Number(button.dataset.choice);
      button.disabled = true;
      button.classList.toggle("right", index === right);
      button.classList.toggle("wrong", index === chosen && !isRight);
    }
    const find = (selector) => this.section.querySelector(selector);
    find(".show").remove();
    find(".asks").hidden = true;
    find(".claim").hidden = false;
    find(".ask strong").textContent = "Predicted.";
    const verdict = this.line && !isRight ? drawn : verdicts[chosen === null ? "None" : chosen];
    const compared = this.line ? `<p>${lineWords(line, this.line.exponent, this.line.heights.at(-1))}</p>` : "";
    const kind = chosen === null || isRight ? "right" : "wrong";
    find(".answer").innerHTML =
      `<p class="verdict ${kind}">${verdict}</p>${compared}${why}<p class="terms">${terms}</p>`;
    if (this.data) this.show(this.data.start);
    const hits = [...predicted.values()].filter(Boolean).length;
    document.querySelector(".score").textContent =
      `You predicted ${hits} of ${Object.keys(lectureData.steps).length} figures.`;
  }

  show(start) {
    lab.options(this.section.querySelector(".options"), this.data, (index) => this.draw(index));
    return this.draw(start);
  }

  draw(index) {
    const [chart] = this.data.options[index].charts;
    return lab.draw(this.place, this.line && index === this.data.start ? this.withLine(chart) : chart);
  }

  // As drawing.with_line does: in the color of guides, with space for it.
  withLine(chart) {
    const { exponent, heights, x } = this.line;
    const figure = structuredClone(chart.figure);
    const { trace } = this.props.line;
    const name = trace.name.replace("0.00", signed(exponent));
    figure.data.push({ ...trace, x, y: heights.map((each) => 10 ** each), name });
    const { range } = figure.layout.yaxis;
    figure.layout.yaxis.range = [
      Math.min(range[0], Math.min(...heights) - 0.05), Math.max(range[1], Math.max(...heights) + 0.05)];
    return { ...chart, figure };
  }
}

for (const section of document.querySelectorAll(".step")) new Step(section);

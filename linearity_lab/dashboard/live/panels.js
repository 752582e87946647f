// The pictures: both functions, their difference, the kernel, its change, the losses, how far neurons move.
import { Plot, decades, scientific } from "./plot.js";
import { HEIGHT, REACH } from "./settings.js";

const [POINT_RADIUS, SMALL_POINT_RADIUS] = [7, 4.5];
const SMALL = 260; // pixels, half of a phone
const NARROW = 500; // pixels, as on a phone
const LINEAR_DASH = [9, 7];
const LEFT = 52; // of all pictures over x, so that their axes agree
const MANY_NEURONS = 500; // above, shading in cells of some pixels replaces dots
const CELL = 7;
const HEADROOM = 1.15; // of the scale, for a kernel that grows
const CHANGE_DECADES = [-4, 1];
const LOSS_DECADES = [-6, 1];
// Cividis (Nuñez, Anderton & Renslow 2018), the scale of every kernel in the lab.
const CIVIDIS = [[0, 34, 78], [56, 72, 108], [112, 113, 115], [169, 157, 113], [230, 207, 84], [254, 232, 56]];

export function drawFunctions(canvas, theme, { begun, now, added, points, chosen, words }) {
  const plot = new Plot(canvas, theme, canvas.clientWidth < NARROW ? 13 : 15);
  plot.frame({ left: LEFT, right: 12, top: 8, bottom: 26 }, [-REACH, REACH], [-heightOf(added), heightOf(added)]);
  const small = plot.width < SMALL, radius = small ? SMALL_POINT_RADIUS : POINT_RADIUS;
  plot.axes((small ? [-2, 0, 2] : [-3, -2, -1, 0, 1, 2, 3]).map(tick), [-1, 0, 1].map(tick));
  const { pen } = plot;
  plot.clip();
  const through = (values) => begun.grid.map((x, i) => [plot.x(x), plot.y(clamped(values[i], 40 * HEIGHT))]);
  const smooth = begun.grid.length < 60;
  plot.curve(through(begun.startCurve), theme.middle, 1.5, [2, 4], smooth);
  if (added) {
    drawAdded(plot, theme, through, added, now, smooth);
  } else {
    plot.curve(through(now.curve), theme.network, 4.5, [], smooth);
    if (!now.linearDiverged) plot.curve(through(now.linearCurve), theme.linear, 3, LINEAR_DASH, smooth);
  }
  points.forEach(([x, y], at) => {
    pen.beginPath();
    pen.arc(plot.x(x), plot.y(y), radius, 0, 2 * Math.PI);
    pen.fillStyle = theme.ink;
    pen.fill();
    pen.lineWidth = at === chosen ? 4 : 1.5;
    pen.strokeStyle = at === chosen ? theme.linear : theme.ground;
    pen.stroke();
  });
  pen.restore();
  plot.label(words.output, plot.box.left + 6, plot.box.top + 16, "left");
  if (!small) plot.words(words.input, plot.x(2.5), plot.box.bottom + plot.letters + 3, "center");
  return plot;
}

// The usual height, or more if the sum of two tasks leaves it; an extrapolation far beyond is cut.
function heightOf(added) {
  if (!added) return HEIGHT;
  const highest = Math.max(...added.summed.map(Math.abs), ...added.both.map(Math.abs));
  return Math.min(Math.max(HEIGHT, 1.05 * highest), 3 * HEIGHT);
}

// Both tasks thin, the sum of their changes thick, and on it the network with both changes; rings mark the second task.
function drawAdded(plot, theme, through, added, now, smooth) {
  plot.curve(through(now.curve), theme.network, 1.5, [], smooth);
  plot.curve(through(added.second), theme.network, 1.5, [6, 3], smooth);
  plot.curve(through(added.summed), theme.middle, 7, [], smooth);
  plot.curve(through(added.both), theme.network, 3.5, [], smooth);
  const { pen } = plot;
  for (const [x, y] of added.points) {
    pen.beginPath();
    pen.arc(plot.x(x), plot.y(y), SMALL_POINT_RADIUS, 0, 2 * Math.PI);
    pen.lineWidth = 2;
    pen.strokeStyle = theme.ink;
    pen.stroke();
  }
}

const DIFFERENCE = 1; // end of the axis of the difference, the same at every width: our choice

// F − F_lin below the curves, on an axis of its own; thin lines mark the range of the training points.
export function drawDifference(canvas, theme, { begun, now, words }) {
  const plot = new Plot(canvas, theme);
  const values = now.curve.map((value, i) => value - now.linearCurve[i]);
  const top = DIFFERENCE;
  plot.frame({ left: LEFT, right: 12, top: 8, bottom: 8 }, [-REACH, REACH], [-top, top]);
  plot.axes([-3, -2, -1, 0, 1, 2, 3].map((value) => [value, ""]), [-top, 0, top].map((value) => [value, short(value)]));
  if (now.linearDiverged) {
    plot.label(words.diverged, plot.box.left + 6, plot.box.top + 16, "left");
    return;
  }
  const path = Array.from(values, (value, i) => [plot.x(begun.grid[i]), plot.y(clamped(value, top))]);
  const { pen } = plot;
  pen.beginPath();
  pen.moveTo(path[0][0], plot.y(0));
  for (const [x, y] of path) pen.lineTo(x, y);
  pen.lineTo(path.at(-1)[0], plot.y(0));
  pen.globalAlpha = 0.25;
  pen.fillStyle = theme.ink;
  pen.fill();
  pen.globalAlpha = 1;
  plot.curve(path, theme.ink, 2);
  for (const [x] of [begun.points[0], begun.points.at(-1)]) {
    plot.curve([[plot.x(x), plot.box.top], [plot.x(x), plot.box.bottom]], theme.middle, 1, [2, 4]);
  }
}

export function drawKernel(canvas, theme, { begun, now, words }) {
  const plot = new Plot(canvas, theme);
  const n = begun.points.length, gap = 14, top = 20, scale = 34;
  const side = Math.min((plot.width - gap) / 2, plot.height - top - scale);
  const most = Math.max(...begun.startKernel), least = Math.min(...begun.startKernel);
  const upper = least + (HEADROOM * (most - least) || 1);
  const left = (plot.width - 2 * side - gap) / 2;
  [[begun.startKernel, words.start], [now.kernel, words.now]].forEach(([kernel, title], at) => {
    const from = left + at * (side + gap);
    plot.words(title, from + side / 2, 14, "center");
    const cell = side / n;
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < n; j++) {
        plot.pen.fillStyle = heat((kernel[i * n + j] - least) / (upper - least));
        const [x, y] = [from + j * cell, top + i * cell].map(Math.floor);
        plot.pen.fillRect(x, y, Math.floor(from + (j + 1) * cell) - x, Math.floor(top + (i + 1) * cell) - y);
      }
    }
  });
  const high = top + side + 8, wide = 2 * side + gap, bands = 64;
  for (let band = 0; band < bands; band++) {
    plot.pen.fillStyle = heat((band + 0.5) / bands);
    plot.pen.fillRect(left + (band * wide) / bands, high, wide / bands + 1, 8);
  }
  plot.words(short(least), left, high + 23, "left");
  plot.words(short(upper), left + wide, high + 23, "right");
}

export function drawChange(canvas, theme, { history, now, words }) {
  const plot = overTime(canvas, theme, history, now, CHANGE_DECADES, words);
  plot.clip();
  plot.curve(path(plot, history, "change"), theme.ink, 3);
  plot.pen.restore();
  plot.label("ΔK", plot.box.left + 6, plot.box.top + 14, "left");
}

export function drawLosses(canvas, theme, { history, now, words }) {
  const worst = Math.max(...history.map((each) => Math.max(each.loss, finite(each.linearLoss))), 1);
  const top = Math.min(Math.max(LOSS_DECADES[1], Math.ceil(Math.log10(worst))), 8);
  const plot = overTime(canvas, theme, history, now, [LOSS_DECADES[0], top], words);
  plot.clip();
  plot.curve(path(plot, history, "loss"), theme.network, 4);
  plot.curve(path(plot, history, "linearLoss"), theme.linear, 2.5, LINEAR_DASH);
  plot.pen.restore();
  plot.label(words.loss, plot.box.left + 6, plot.box.top + 14, "left");
}

// Axes over the logarithm of the step; both are logarithmic. A line marks the stage on screen.
function overTime(canvas, theme, history, now, up, words) {
  const plot = new Plot(canvas, theme);
  const last = Math.max(2, Math.log10(history.at(-1).time + 1));
  plot.frame({ left: LEFT, right: 10, top: 8, bottom: 24 }, [0, last], up);
  plot.axes(decades(0, last), decades(up[0], up[1], 4));
  if (now.time > 0 && now.time < history.at(-1).time) {
    const x = plot.x(Math.log10(now.time));
    plot.curve([[x, plot.box.top], [x, plot.box.bottom]], theme.middle, 1.5);
  }
  plot.label(words.step, plot.box.right - 2, plot.box.bottom - 6, "right");
  return plot;
}

function path(plot, history, name) {
  return history
    .filter((each) => each.time > 0 && each[name] > 0)
    .map((each) => [plot.x(Math.log10(each.time)), plot.y(Math.log10(Math.min(each[name], 1e30)))]);
}

export function drawNeurons(canvas, theme, { begun, now, words }) {
  const plot = new Plot(canvas, theme);
  const start = begun.startNeurons, here = now.neurons, m = here.length / 2;
  let most = 3.8;
  for (let k = 0; k < here.length; k++) most = Math.max(most, Math.min(Math.abs(here[k]), 12));
  plot.frame({ left: 30, right: 8, top: 8, bottom: 24 }, [-most, most], [-most, most]);
  plot.axes([-3, 0, 3].map(tick), [-3, 0, 3].map(tick));
  plot.clip();
  const { pen } = plot;
  const paths = Math.min(m, m > MANY_NEURONS ? 200 : m), size = Math.max(2, 11 - 0.9 * Math.log2(paths));
  if (m > MANY_NEURONS) shadeDensity(plot, here, theme.network);
  else dots(plot, start, m, size, theme.middle);
  pen.beginPath();
  for (let k = 0; k < paths; k++) {
    plot.line(plot.x(start[2 * k]), plot.y(start[2 * k + 1]), plot.x(here[2 * k]), plot.y(here[2 * k + 1]));
  }
  pen.strokeStyle = theme.network;
  pen.lineWidth = m > 300 ? 1 : 2;
  pen.stroke();
  dots(plot, here, paths, size, theme.network);
  pen.restore();
  if (m > MANY_NEURONS) {
    const text = words.density.replace("{count}", m.toLocaleString("en-US"));
    plot.label(text, plot.box.right - 4, plot.box.top + 14, "right");
  }
  plot.label(words.weight, plot.box.right - 4, plot.box.bottom - 6, "right");
  plot.label(words.bias, plot.box.left + 5, plot.box.top + 14, "left");
}

function dots({ pen, x, y }, places, count, size, color) {
  pen.fillStyle = color;
  pen.beginPath();
  for (let k = 0; k < count; k++) {
    const across = x(places[2 * k]), up = y(places[2 * k + 1]);
    if (size < 5) pen.rect(across - size / 2, up - size / 2, size, size); // a round one would look the same
    else pen.moveTo(across + size / 2, up), pen.arc(across, up, size / 2, 0, 2 * Math.PI);
  }
  pen.fill();
}

// How many neurons are in each cell, as the strength of one color.
function shadeDensity({ pen, x, y }, places, color) {
  const cells = new Map();
  for (let k = 0; k < places.length / 2; k++) {
    const cell = [x(places[2 * k]), y(places[2 * k + 1])].map((pixel) => Math.floor(pixel / CELL)).join();
    cells.set(cell, (cells.get(cell) ?? 0) + 1);
  }
  const most = Math.max(...cells.values());
  pen.fillStyle = color;
  for (const [cell, count] of cells) {
    const [column, row] = cell.split(",").map(Number);
    pen.globalAlpha = 0.55 * Math.sqrt(count / most);
    pen.fillRect(column * CELL, row * CELL, CELL, CELL);
  }
  pen.globalAlpha = 1;
}

// A number of a color scale in at most four characters.
function short(value) {
  return Math.abs(value) >= 1e4 ? scientific(Math.abs(value)).replace(/^/, value < 0 ? "−" : "") : String(Number(value.toPrecision(2))).replace("-", "−");
}

function tick(value) {
  return [value, String(value).replace("-", "−")];
}

function finite(value) {
  return Number.isFinite(value) ? value : 1e30;
}

function clamped(value, most) {
  return Math.min(Math.max(value, -most), most);
}

function heat(share) {
  const at = Math.min(Math.max(share, 0), 0.9999) * (CIVIDIS.length - 1);
  const below = CIVIDIS[Math.floor(at)], above = CIVIDIS[Math.floor(at) + 1], part = at % 1;
  return `rgb(${below.map((value, k) => Math.round(value + part * (above[k] - value))).join()})`;
}

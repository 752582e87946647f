// The five pictures: both functions, the kernel, its change, the losses, the neurons' moves.
import { Plot, decades } from "./plot.js";
import { HEIGHT, REACH } from "./settings.js";

export const POINT_RADIUS = 7;
const NARROW = 500; // pixels, as on a phone
const LINEAR_DASH = [9, 7];
const ROOM = 1.15; // of the scale, for a kernel that grows
const CHANGE_DECADES = [-4, 1];
const LOSS_DECADES = [-6, 1];
// Cividis (Nuñez, Anderton & Renslow 2018), the scale of every kernel in the lab.
const CIVIDIS = [[0, 34, 78], [56, 72, 108], [112, 113, 115], [169, 157, 113], [230, 207, 84], [254, 232, 56]];

export function drawFunctions(canvas, theme, { begun, now, points, chosen, words }) {
  const plot = new Plot(canvas, theme, canvas.clientWidth < NARROW ? 13 : 15);
  plot.frame({ left: 34, right: 12, top: 10, bottom: 26 }, [-REACH, REACH], [-HEIGHT, HEIGHT]);
  plot.axes([-3, -2, -1, 0, 1, 2, 3].map(tick), [-1, 0, 1].map(tick));
  const { pen } = plot;
  plot.clip();
  const through = (values) => begun.grid.map((x, i) => [plot.x(x), plot.y(clamped(values[i], 40 * HEIGHT))]);
  const smooth = begun.grid.length < 60;
  plot.curve(through(begun.startCurve), theme.middle, 1.5, [2, 4], smooth);
  plot.curve(through(now.curve), theme.network, 4.5, [], smooth);
  if (!now.linearDiverged) plot.curve(through(now.linearCurve), theme.linear, 3, LINEAR_DASH, smooth);
  points.forEach(([x, y], at) => {
    pen.beginPath();
    pen.arc(plot.x(x), plot.y(y), POINT_RADIUS, 0, 2 * Math.PI);
    pen.fillStyle = theme.ink;
    pen.fill();
    pen.lineWidth = at === chosen ? 4 : 1.5;
    pen.strokeStyle = at === chosen ? theme.linear : theme.ground;
    pen.stroke();
  });
  pen.restore();
  legend(plot, theme, words);
  return plot;
}

function legend(plot, theme, words) {
  const { pen } = plot, [sample, apart] = plot.width < NARROW ? [22, 10] : [34, 22];
  const rows = [
    [words.network, theme.network, 4.5, []],
    [words.linear, theme.linear, 3, LINEAR_DASH],
    [words.start, theme.middle, 1.5, [2, 4]],
  ];
  const room = rows.reduce((sum, [text]) => sum + sample + 8 + apart + pen.measureText(text).width, 0);
  pen.globalAlpha = 0.8;
  pen.fillStyle = theme.ground;
  pen.fillRect(plot.box.left + 4, plot.box.top + 3, room - 10, 24);
  pen.globalAlpha = 1;
  let x = plot.box.left + 10;
  for (const [text, color, width, dash] of rows) {
    plot.curve([[x, 24], [x + sample, 24]], color, width, dash);
    plot.words(text, x + sample + 8, 29);
    x += sample + 8 + pen.measureText(text).width + apart;
  }
}

export function drawKernel(canvas, theme, { begun, now, words }) {
  const plot = new Plot(canvas, theme);
  const n = begun.points.length, gap = 14, top = 20;
  const side = Math.min((plot.width - gap) / 2, plot.height - top);
  const most = Math.max(...begun.startKernel), least = Math.min(...begun.startKernel);
  const left = (plot.width - 2 * side - gap) / 2;
  [[begun.startKernel, words.start], [now.kernel, words.now]].forEach(([kernel, title], at) => {
    const from = left + at * (side + gap);
    plot.words(title, from + side / 2, 14, "center");
    const cell = side / n;
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < n; j++) {
        plot.pen.fillStyle = heat((kernel[i * n + j] - least) / (ROOM * (most - least) || 1));
        const [x, y] = [from + j * cell, top + i * cell].map(Math.floor);
        plot.pen.fillRect(x, y, Math.floor(from + (j + 1) * cell) - x, Math.floor(top + (i + 1) * cell) - y);
      }
    }
  });
}

export function drawChange(canvas, theme, { history }) {
  const plot = overTime(canvas, theme, history, CHANGE_DECADES);
  plot.clip();
  plot.curve(path(plot, history, "change"), theme.ink, 3);
  plot.pen.restore();
}

export function drawLosses(canvas, theme, { history }) {
  const worst = Math.max(...history.map((each) => Math.max(each.loss, finite(each.linearLoss))), 1);
  const top = Math.min(Math.max(LOSS_DECADES[1], Math.ceil(Math.log10(worst))), 8);
  const plot = overTime(canvas, theme, history, [LOSS_DECADES[0], top]);
  plot.clip();
  plot.curve(path(plot, history, "loss"), theme.network, 4);
  plot.curve(path(plot, history, "linearLoss"), theme.linear, 2.5, LINEAR_DASH);
  plot.pen.restore();
}

// Axes over the logarithm of the step; both are logarithmic.
function overTime(canvas, theme, history, up) {
  const plot = new Plot(canvas, theme);
  const last = Math.max(2, Math.log10(history.at(-1).time + 1));
  plot.frame({ left: 40, right: 10, top: 8, bottom: 24 }, [0, last], up);
  plot.axes(decades(0, last), decades(up[0], up[1], 4));
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
  const size = Math.max(2, 11 - 0.9 * Math.log2(m));
  const dots = (places, color) => {
    pen.fillStyle = color;
    pen.beginPath();
    for (let k = 0; k < m; k++) {
      const x = plot.x(places[2 * k]), y = plot.y(places[2 * k + 1]);
      if (size < 5) pen.rect(x - size / 2, y - size / 2, size, size); // a round one would look the same
      else pen.moveTo(x + size / 2, y), pen.arc(x, y, size / 2, 0, 2 * Math.PI);
    }
    pen.fill();
  };
  dots(start, theme.middle);
  pen.beginPath();
  for (let k = 0; k < m; k++) {
    plot.line(plot.x(start[2 * k]), plot.y(start[2 * k + 1]), plot.x(here[2 * k]), plot.y(here[2 * k + 1]));
  }
  pen.strokeStyle = theme.network;
  pen.lineWidth = m > 300 ? 1 : 2;
  pen.stroke();
  dots(here, theme.network);
  pen.restore();
  plot.label(words.weight, plot.box.right - 4, plot.box.bottom - 6, "right");
  plot.label(words.bias, plot.box.left + 5, plot.box.top + 14, "left");
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

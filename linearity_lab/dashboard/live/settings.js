// Settings with their bounds, and the training points.

export const WIDTHS = { least: 4, most: 4096, octave: 8 }; // positions of the slider for each doubling
export const RATES = { least: 0.1, most: 4, step: 0.05, critical: 2 };
// CHOICES, the options of each setting, are those of settings.py: source.py writes them in front.
export const REACH = 3; // the curves are drawn on [−3, 3]
export const HEIGHT = 1.6;
export const MOST_POINTS = 30;
// Changes of each step of the guided tour to the default settings.
export const TOUR = [
  ["narrow", { width: 4 }],
  ["wider", { width: 64 }],
  ["wide", { width: 4096 }],
  ["nonlinear", { width: 1024, output: "swish" }],
  ["fast", { width: 1024, rate: 2.5 }],
  ["bottleneck", { width: 1024, layers: 2, bottleneck: 1 }],
];
const START_POINTS = 12;
const POINT_REACH = 2;
// Above this many weights between two layers the curves are drawn through fewer points.
const MANY_WEIGHTS = 2 ** 20 - 1;

const SHAPES = {
  sine: (x) => Math.sin(2 * x),
  step: (x) => (x < 0 ? -0.8 : 0.8),
  bump: (x) => 2 * Math.exp(-4 * x * x) - 1,
  "two waves": (x) => 0.7 * Math.sin(2 * x) + 0.3 * Math.cos(6 * x),
  zigzag: (x) => 1 - 2 * Math.abs((((x + 2) % 2) + 2) % 2 - 1),
};
// Range of an output function: swish is never below −0.28.
const FITTED = { linear: (y) => y, tanh: (y) => 0.9 * y, swish: (y) => 0.5 + 0.5 * y };

export function widthAt(position) {
  return Math.round(WIDTHS.least * 2 ** (position / WIDTHS.octave));
}

export function positionOf(width) {
  return Math.round(WIDTHS.octave * Math.log2(width / WIDTHS.least));
}

// The points (x, y), ascending in x: of a target, or custom.
export function pointsOf(settings) {
  if (settings.target === "own") return settings.points;
  return Array.from({ length: START_POINTS }, (_, i) => {
    const x = POINT_REACH * ((2 * i) / (START_POINTS - 1) - 1);
    return [x, FITTED[settings.output](SHAPES[settings.target](x))];
  });
}

// Valid points: within the picture, rounded to two digits, ascending, one to thirty.
export function tidied(points) {
  const inside = (value, most) => Math.round(100 * Math.min(Math.max(value, -most), most)) / 100;
  return points
    .map(([x, y]) => [inside(x, REACH), inside(y, HEIGHT)])
    .sort(([a], [b]) => a - b)
    .slice(0, MOST_POINTS);
}

export function hiddenWidths({ width, layers, bottleneck }) {
  const narrow = bottleneck ? [bottleneck] : [];
  return layers === 1 ? [width, ...narrow] : [width, ...narrow, width];
}

// Setup message of a worker.
export function setup(settings) {
  const hidden = hiddenWidths(settings);
  const largest = Math.max(...hidden.slice(1).map((m, at) => m * hidden[at]), 0);
  const intervals = largest > MANY_WEIGHTS ? 32 : 96;
  const grid = Array.from({ length: intervals + 1 }, (_, i) => REACH * ((2 * i) / intervals - 1));
  return { ...settings, hidden, points: pointsOf(settings), grid };
}

// Parse settings from the texts of a URL; invalid ones keep their defaults.
export function settingsFrom(texts, defaults) {
  const found = { ...defaults };
  const number = (name, least, most) => {
    const value = Number(texts[name]);
    if (texts[name] && value >= least && value <= most) found[name] = value;
  };
  number("rate", RATES.least, RATES.most);
  for (const [name, least, most] of [["width", WIDTHS.least, WIDTHS.most], ["seed", 0, 2 ** 31 - 1], ["tour", 0, TOUR.length]]) {
    number(name, least, most);
    found[name] = Math.round(found[name]);
  }
  for (const [name, options] of Object.entries(CHOICES)) {
    const option = options.find((each) => String(each) === texts[name]);
    if (option !== undefined && option !== "own") found[name] = option;
  }
  const points = (texts.points || "").split(",").map((pair) => pair.split(":").map(Number));
  if (texts.points && points.every((pair) => pair.length === 2 && pair.every(Number.isFinite))) {
    found.points = tidied(points);
    found.target = "own";
  }
  return found;
}

// URL texts of the settings that differ from the defaults.
export function textsOf(settings, defaults) {
  const found = {};
  for (const [name, value] of Object.entries(settings)) {
    if (name === "points" || value === defaults[name]) continue;
    if (name !== "target" || value !== "own") found[name] = String(value);
  }
  if (settings.target === "own") found.points = settings.points.map((pair) => pair.join(":")).join(",");
  return found;
}

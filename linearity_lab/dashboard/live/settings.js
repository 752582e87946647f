// Settings with their bounds, and the training points. FACTS are those of settings.py: source.py writes them in front.

const [leastWidth, mostWidth] = FACTS.widths;
const [leastRate, mostRate] = FACTS.rates;
export const WIDTHS = { least: leastWidth, most: mostWidth, octave: 8 }; // positions of the slider for each doubling
export const RATES = { least: leastRate, most: mostRate, step: 0.05, critical: 2 };
export const CHOICES = FACTS.choices;
export const REACH = FACTS.reach; // the curves are drawn on [−REACH, REACH]
export const HEIGHT = FACTS.height;
export const MOST_POINTS = FACTS.mostPoints;
// [name, changes to the default settings] of each step of the guided tour.
export const TOUR = FACTS.tour;
// Above this many weights between two layers the curves are drawn through fewer points.
const MANY_WEIGHTS = 2 ** 20 - 1;

export function widthAt(position) {
  return Math.round(WIDTHS.least * 2 ** (position / WIDTHS.octave));
}

export function positionOf(width) {
  return Math.round(WIDTHS.octave * Math.log2(width / WIDTHS.least));
}

// The points (x, y), ascending in x: of a target, or custom.
export function pointsOf(settings) {
  if (settings.target === "own") return settings.points;
  const [scale, shift] = FACTS.fits[settings.output];
  const values = FACTS.targets[settings.target];
  return FACTS.places.map((x, i) => [x, scale * values[i] + shift]);
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
  for (const [name, least, most] of [["width", WIDTHS.least, WIDTHS.most], ["seed", 0, FACTS.maxSeed], ["tour", 0, TOUR.length]]) {
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

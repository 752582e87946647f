// One sentence from two numbers: the difference of the functions and the kernel change.

const SAME = 0.03, CLOSE = 0.12; // largest |F − F_lin| as a share of the range of F: our choice
const UNMOVED = 0.05; // ΔK below which the kernel counts as unchanged: our choice
const WIDE = 512;
const AGREE = ["same", "moved", "near"]; // sentences of functions that agree on the data
const STABLE = 2; // the curvature c below which a loss no longer rises

// The name of the sentence for a state, and the numbers in it.
export function verdict(begun, now, first) {
  const { share: gap, at, outside } = difference(begun, now);
  const numbers = {
    width: begun.width.toLocaleString("en-US"),
    change: percent(now.change),
    gap: percent(gap),
    outside: percent(outside),
    place: begun.grid[at].toLocaleString("en-US", { maximumFractionDigits: 1 }).replace("-", "−"),
    rate: now.rate.toFixed(2),
    output: begun.output,
  };
  let name = "different";
  if (now.time === 0) name = "start";
  else if (now.diverged) name = "gone";
  else if (now.linearDiverged || (begun.rate > 2 && now.linearLoss > first.linearLoss)) {
    const falls = now.loss < first.loss;
    if (falls && now.rate < STABLE) name = "caught";
    else name = falls ? "returning" : "catapult";
  } else if (gap < SAME) name = now.change < UNMOVED ? "same" : "moved";
  else if (gap < CLOSE) name = "near";
  else if (begun.output !== "linear" && begun.width >= WIDE) name = "output";
  else if (begun.bottleneck && begun.width >= WIDE) name = "narrow";
  return { name, numbers, parts: AGREE.includes(name) && outside > Math.max(CLOSE, 2 * gap) ? [name, "beyond"] : [name] };
}

// The whole verdict: its sentence, and one on extrapolation where only that differs.
export function sentences(words, begun, now, first) {
  const { parts, numbers } = verdict(begun, now, first);
  return parts.map((part) => filled(words[part], numbers)).join(" ");
}

// Numbers as wide as they usually get, for the space of a sentence.
const WIDE_NUMBERS = {
  width: "4,096", change: "0.044%", gap: "0.044%", outside: "444%", place: "−4.4", rate: "4.44", output: "softplus", error: "0.044%",
};

// The longest of all sentences with such numbers.
export function longest(words) {
  const { beyond, ...others } = words;
  const all = Object.entries(others).map(([name, text]) => {
    const whole = AGREE.includes(name) ? `${text} ${beyond}` : text;
    return filled(whole, WIDE_NUMBERS);
  });
  return all.reduce((one, other) => (other.length > one.length ? other : one));
}

const ADDS = 0.1, PARTLY = 0.5; // largest errors E of these sentences, as in linearity reports: our choice

// The sentence on two tasks.
export function addingSentence(words, begun, { error, time }) {
  const numbers = { width: begun.width.toLocaleString("en-US"), error: percent(error) };
  let name = "apart";
  if (time === 0 || Number.isNaN(error)) name = "untrained";
  else if (!Number.isFinite(error)) name = "gone";
  else if (error <= ADDS) name = "adds";
  else if (error <= PARTLY) name = "partly";
  return filled(words[name], numbers);
}

// The largest |F − F_lin| on the range of the training points, as a share of the range of F there, with the index of
// that input; `outside` is the largest one on the other plotted inputs, in the same unit.
export function difference({ grid, points }, { curve, linearCurve }) {
  const step = grid[1] - grid[0], places = points.map(([x]) => x);
  const [from, to] = [Math.min(...places) - step / 2, Math.max(...places) + step / 2];
  let apart = 0, beyond = 0, at = 0, least = Infinity, most = -Infinity;
  curve.forEach((value, i) => {
    const gap = Math.abs(value - linearCurve[i]);
    if (grid[i] < from || grid[i] > to) {
      beyond = Math.max(beyond, gap);
      return;
    }
    if (gap > apart) [apart, at] = [gap, i];
    least = Math.min(least, value);
    most = Math.max(most, value);
  });
  const share = (gap) => gap && (most > least ? gap / (most - least) : Infinity);
  return { share: share(apart), at, outside: share(beyond) };
}

export function percent(share) {
  if (!Number.isFinite(share)) return "∞";
  const value = 100 * share;
  const digits = value < 0.1 ? 3 : value < 1 ? 2 : value < 10 ? 1 : 0;
  return `${value.toLocaleString("en-US", { maximumFractionDigits: digits, minimumFractionDigits: value ? digits : 0 })}%`;
}

export function filled(text, numbers) {
  return text.replace(/\{(\w+)\}/g, (_, name) => numbers[name]);
}

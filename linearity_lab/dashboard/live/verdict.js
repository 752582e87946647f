// One sentence from two numbers: the difference of the functions and the kernel change.

const SAME = 0.03, CLOSE = 0.12; // largest |F − F_lin| as a share of the range of F: our choice
const UNMOVED = 0.05; // ΔK below which the kernel counts as unchanged: our choice
const WIDE = 512;

// The name of the sentence for a state, and the numbers in it.
export function verdict(begun, now, first) {
  const { share: gap, at } = difference(now);
  const numbers = {
    width: begun.width.toLocaleString("en-US"),
    change: percent(now.change),
    gap: percent(gap),
    place: begun.grid[at].toLocaleString("en-US", { maximumFractionDigits: 1 }).replace("-", "−"),
    rate: now.rate.toFixed(2),
    output: begun.output,
  };
  let name = "different";
  if (now.time === 0) name = "start";
  else if (now.diverged) name = "gone";
  else if (now.linearDiverged || (begun.rate > 2 && now.linearLoss > first.linearLoss)) {
    name = now.loss < first.loss ? "caught" : "catapult";
  } else if (gap < SAME) name = now.change < UNMOVED ? "same" : "moved";
  else if (gap < CLOSE) name = "near";
  else if (begun.output !== "linear" && begun.width >= WIDE) name = "output";
  else if (begun.bottleneck && begun.width >= WIDE) name = "narrow";
  return { name, numbers };
}

// The largest |F − F_lin| on the plotted inputs, as a share of the range of F there, and the index of that input.
export function difference({ curve, linearCurve }) {
  let apart = 0, at = 0, least = Infinity, most = -Infinity;
  curve.forEach((value, i) => {
    const gap = Math.abs(value - linearCurve[i]);
    if (gap > apart) [apart, at] = [gap, i];
    least = Math.min(least, value);
    most = Math.max(most, value);
  });
  const share = apart && (most > least ? apart / (most - least) : Infinity);
  return { share, at };
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

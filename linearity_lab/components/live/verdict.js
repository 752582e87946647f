// What is seen, in one sentence.

const SAME = 0.02, CLOSE = 0.2; // shares by which kernel or function have moved away
const WIDE = 512;

// The name of the sentence for a state, and the numbers in it.
export function verdict(begun, now, first) {
  const gap = distance(now.outputs, now.linear, begun);
  const numbers = {
    width: begun.width.toLocaleString("en-US"),
    change: percent(now.change),
    gap: percent(gap),
    rate: now.rate.toFixed(2),
    output: begun.output,
  };
  const away = Math.max(now.change, gap);
  let name = "left";
  if (now.time === 0) name = "start";
  else if (now.diverged) name = "gone";
  else if (now.linearDiverged || (begun.rate > 2 && now.linearLoss > first.linearLoss)) {
    name = now.loss < first.loss ? "caught" : "catapult";
  } else if (away < SAME) name = "same";
  else if (away < CLOSE) name = "near";
  else if (begun.output !== "linear" && begun.width >= WIDE) name = "output";
  else if (begun.bottleneck && begun.width >= WIDE) name = "narrow";
  return { name, numbers };
}

// How far the network's outputs are from its linear model's, as a share of how far they have come.
function distance(outputs, linear, begun) {
  let apart = 0, come = 0;
  outputs.forEach((value, i) => {
    apart += (value - linear[i]) ** 2;
    come += (value - begun.startOutputs[i]) ** 2;
  });
  return come > 0 ? Math.sqrt(apart / come) : 0;
}

export function percent(share) {
  if (!Number.isFinite(share)) return "∞";
  const value = 100 * share;
  const digits = value < 0.1 ? 3 : value < 1 ? 2 : value < 10 ? 1 : 0;
  return `${value.toLocaleString("en-US", { maximumFractionDigits: digits, minimumFractionDigits: value ? digits : 0 })} %`;
}

export function filled(text, numbers) {
  return text.replace(/\{(\w+)\}/g, (_, name) => numbers[name]);
}

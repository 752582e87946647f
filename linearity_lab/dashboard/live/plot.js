// A canvas in the page's units and colors, with axes.

// "dark" if the text is bright, for elements that the browser draws itself, such as sliders.
export function schemeOf(element) {
  const [red, green, blue] = (getComputedStyle(element).color.match(/[\d.]+/g) ?? []).map(Number);
  return red + green + blue > 384 ? "dark" : "light";
}

// Text, background and line colors of the page, and the colors of the two models.
export function themeOf(element, colors) {
  const style = getComputedStyle(element);
  const ink = style.color;
  return {
    ink,
    ground: style.getPropertyValue("--live-ground").trim() || "transparent",
    faint: `color-mix(in srgb, ${ink} 16%, transparent)`,
    middle: `color-mix(in srgb, ${ink} 55%, transparent)`,
    font: style.fontFamily,
    ...colors,
  };
}

export class Plot {
  constructor(canvas, theme, letters = 14) {
    const ratio = window.devicePixelRatio || 1;
    this.width = canvas.clientWidth;
    this.height = canvas.clientHeight;
    const wide = Math.round(this.width * ratio), high = Math.round(this.height * ratio);
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
    }
    this.pen = canvas.getContext("2d");
    this.theme = theme;
    this.letters = letters;
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.pen.clearRect(0, 0, this.width, this.height);
    this.pen.font = `${letters}px ${theme.font}`;
    this.pen.lineJoin = "round";
    this.box = { left: 0, right: this.width, top: 0, bottom: this.height };
  }

  // Margins for axes, and the scales: ranges are [from, to].
  frame({ left, right, top, bottom }, across, up) {
    this.box = { left, right: this.width - right, top, bottom: this.height - bottom };
    const { box } = this;
    this.x = (value) => box.left + ((value - across[0]) / (across[1] - across[0])) * (box.right - box.left);
    this.y = (value) => box.bottom - ((value - up[0]) / (up[1] - up[0])) * (box.bottom - box.top);
    this.across = (pixel) => across[0] + ((pixel - box.left) / (box.right - box.left)) * (across[1] - across[0]);
    this.up = (pixel) => up[0] + ((box.bottom - pixel) / (box.bottom - box.top)) * (up[1] - up[0]);
  }

  // Ticks are [value, words].
  axes(across, up) {
    const { pen, box, theme } = this;
    pen.strokeStyle = theme.faint;
    pen.lineWidth = 1;
    pen.beginPath();
    for (const [value] of across) this.line(this.x(value), box.top, this.x(value), box.bottom);
    for (const [value] of up) this.line(box.left, this.y(value), box.right, this.y(value));
    pen.stroke();
    for (const [value, words] of across) this.words(words, this.x(value), box.bottom + this.letters + 3, "center");
    for (const [value, words] of up) this.words(words, box.left - 6, this.y(value) + this.letters / 3, "right");
  }

  line(x1, y1, x2, y2) {
    this.pen.moveTo(x1, y1);
    this.pen.lineTo(x2, y2);
  }

  // A dot or a square, as in the charts.
  mark([x, y], color, symbol, size = 10) {
    const { pen } = this;
    pen.fillStyle = color;
    pen.beginPath();
    if (symbol === "square") pen.rect(x - size / 2, y - size / 2, size, size);
    else pen.arc(x, y, size / 2 + 0.5, 0, 2 * Math.PI);
    pen.fill();
  }

  words(text, x, y, align = "left", color = this.theme.ink) {
    this.pen.fillStyle = color;
    this.pen.textAlign = align;
    this.pen.fillText(text, x, y);
  }

  // Text with a halo, legible above other marks.
  label(text, x, y, align) {
    const { pen, theme } = this;
    pen.textAlign = align;
    pen.strokeStyle = theme.ground;
    pen.lineWidth = 4;
    pen.strokeText(text, x, y);
    this.words(text, x, y, align);
  }

  clip() {
    const { pen, box } = this;
    pen.save();
    pen.beginPath();
    pen.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
    pen.clip();
  }

  // A curve through (x, y) in pixels; few points are joined smoothly.
  curve(points, color, width, dash = [], smooth = false) {
    const { pen } = this;
    pen.strokeStyle = color;
    pen.lineWidth = width;
    pen.setLineDash(dash);
    pen.beginPath();
    points.forEach(([x, y], at) => {
      if (at === 0) pen.moveTo(x, y);
      else if (!smooth) pen.lineTo(x, y);
      else {
        const [x0, y0] = points[at - 1], before = points[Math.max(at - 2, 0)];
        const after = points[Math.min(at + 1, points.length - 1)];
        pen.bezierCurveTo(
          x0 + (x - before[0]) / 6, y0 + (y - before[1]) / 6, x - (after[0] - x0) / 6, y - (after[1] - y0) / 6, x, y);
      }
    });
    pen.stroke();
    pen.setLineDash([]);
  }
}

// Ticks at powers of ten from 10^low to 10^high, at most about `most` of them.
export function decades(low, high, most = 5) {
  const step = Math.max(1, Math.ceil((high - low) / most));
  const found = [];
  for (let power = Math.ceil(low); power <= high; power++) {
    if (power % step === 0) found.push([power, `10${superscript(power)}`]);
  }
  return found;
}

function superscript(number) {
  return String(number).replace(/./g, (sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(sign)]));
}

// A positive number as 1.2·10⁻³.
export function scientific(value) {
  const [digits, power] = value.toExponential(1).split("e");
  return Number.isFinite(value) ? `${digits}·10${superscript(Number(power))}` : "∞";
}

// Key P: the figure in sight, alone on the whole screen, with letters in proportion to it. P or Escape ends this.
const DRAWN_HEIGHT = 520; // pixels of the largest figure before scaling: its letters are then 2.4% of the screen's height
const FIGURE_SHARE = 0.88; // of the height; the sentence above has the rest

export class Present {
  constructor() {
    this.heard = (event) => this.key(event);
    this.resized = () => this.draw();
    this.left = () => { if (!document.fullscreenElement) this.close(); };
    document.addEventListener("keydown", this.heard);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || writes(event.target)) return;
    if (event.key.toLowerCase() === "p") {
      if (this.stage) this.end();
      else this.begin();
    } else if (event.key === "Escape" && this.stage) this.end();
  }

  begin() {
    const plot = inSight();
    if (!plot || !window.Plotly) return;
    this.plot = plot;
    const { backgroundColor, color } = getComputedStyle(document.querySelector('[data-testid="stApp"]'));
    const sentence = document.querySelector("p.finding");
    const head = Object.assign(document.createElement("p"), { className: "presented-words" });
    if (sentence && isFirst(plot)) head.replaceChildren(...[...sentence.childNodes].map((each) => each.cloneNode(true)));
    this.frame = Object.assign(document.createElement("div"), { className: "presented-figure" });
    this.stage = Object.assign(document.createElement("div"), { className: "presented", tabIndex: -1 });
    this.stage.setAttribute("role", "dialog");
    this.stage.setAttribute("aria-label", "Figure on the whole screen. Escape ends this.");
    Object.assign(this.stage.style, { backgroundColor, color });
    this.stage.append(head, this.frame);
    document.body.append(this.stage);
    this.before = document.activeElement;
    this.stage.focus();
    addEventListener("resize", this.resized);
    document.addEventListener("fullscreenchange", this.left);
    this.draw();
    this.stage.requestFullscreen?.().catch(() => {}); // refused: the page's own area is used
  }

  // A copy of the figure, drawn small and enlarged as a whole.
  draw() {
    const wide = innerWidth, high = FIGURE_SHARE * innerHeight;
    const { data, layout } = this.plot;
    const height = Math.min(layout.height ?? DRAWN_HEIGHT, DRAWN_HEIGHT);
    const scale = high / height;
    const copied = structuredClone({ data, layout });
    Object.assign(copied.layout, { width: wide / scale, height, autosize: false, meta: {} });
    Object.assign(this.frame.style, { transform: `scale(${scale})`, width: `${wide / scale}px`, height: `${height}px` });
    window.Plotly.react(this.frame, copied.data, copied.layout, { displayModeBar: false, responsive: false });
  }

  end() {
    if (document.fullscreenElement) document.exitFullscreen(); // then `left` closes
    else this.close();
  }

  close() {
    if (!this.stage) return;
    removeEventListener("resize", this.resized);
    document.removeEventListener("fullscreenchange", this.left);
    window.Plotly.purge(this.frame);
    this.stage.remove();
    this.stage = null;
    this.before?.focus?.();
  }

  stop() {
    this.close();
    document.removeEventListener("keydown", this.heard);
  }
}

function writes(target) {
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName) && target.type !== "range";
}

function isFirst(plot) {
  return plot === document.querySelector(".js-plotly-plot");
}

// The figure under the pointer, or the one with the largest part of its area on the screen.
function inSight() {
  const plots = [...document.querySelectorAll(".js-plotly-plot")].filter((each) => each.layout);
  const seen = (plot) => {
    const { top, bottom, width } = plot.getBoundingClientRect();
    return width * Math.max(0, Math.min(bottom, innerHeight) - Math.max(top, 0));
  };
  const largest = plots.reduce((best, plot) => (seen(plot) > seen(best) ? plot : best), plots[0]);
  return plots.find((plot) => plot.matches(":hover")) ?? largest;
}

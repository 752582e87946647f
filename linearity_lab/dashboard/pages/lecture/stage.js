// A presented step fits on the screen: the style sheet scales letters with it, and this scales what CSS cannot.
// Figures are drawn for the first size below and enlarged, so that their letters grow too. Words that are too long for
// the screen shrink, and so do formulas that are too wide for their column.
const ROOT = 16.6, FIGURE_HEIGHT = 477; // pixels of letters and of figures on a screen of 1280 × 720
const LEAST_HEIGHT = 200; // of a figure
const LEAST_SIZE = 0.6, STEP = 0.96; // of the letters of long words
const PHONE = 640; // narrower screens scroll

export class Stage {
  constructor() {
    this.changed = () => { cancelAnimationFrame(this.frame); this.frame = requestAnimationFrame(() => this.fit()); };
  }

  show(isPresented) {
    const isOn = isPresented && innerWidth > PHONE;
    if (isOn === Boolean(this.watched)) return this.changed();
    if (!isOn) return this.close();
    addEventListener("resize", this.changed);
    this.watched = new MutationObserver(this.changed);
    this.watched.observe(block(), { childList: true, subtree: true, characterData: true });
    document.fonts?.ready.then(this.changed);
    this.changed();
  }

  fit() {
    const page = block();
    if (!page || !this.watched) return;
    const words = page.querySelector(".st-key-words-step"), foot = page.querySelector(".st-key-foot-step");
    if (!words || !foot) return;
    const end = foot.getBoundingClientRect().top;
    page.querySelectorAll(".st-key-figure-step .js-plotly-plot").forEach((plot) => enlarge(plot, end));
    let size = 1;
    words.style.zoom = size;
    words.querySelectorAll(".katex-display").forEach(shrink);
    const height = () => words.getBoundingClientRect().height;
    const room = end - words.getBoundingClientRect().top;
    while (height() > room && size > LEAST_SIZE) words.style.zoom = size *= STEP;
  }

  close() {
    removeEventListener("resize", this.changed);
    this.watched?.disconnect();
    this.watched = null;
    const page = block();
    for (const words of page?.querySelectorAll(".st-key-words-step") ?? []) words.style.zoom = "";
    for (const plot of page?.querySelectorAll(".js-plotly-plot") ?? []) plot.style.transform = "";
  }
}

function block() {
  return document.querySelector('[data-testid="stMainBlockContainer"]');
}

// Streamlit draws a figure in pixels of the screen. It is drawn again for a small screen, above the foot at `end`, and
// enlarged as a whole.
function enlarge(plot, end) {
  const scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / ROOT;
  const width = Math.round(plot.closest('[data-testid="stPlotlyChart"]').clientWidth / scale);
  if (!plot.layout || !window.Plotly || !width) return;
  const room = Math.floor((end - plot.getBoundingClientRect().top) / scale);
  const height = Math.max(LEAST_HEIGHT, Math.min(FIGURE_HEIGHT, room));
  const isDrawn = Math.abs(plot.layout.width - width) < 2 && Math.abs(plot.layout.height - height) < 2;
  if (!isDrawn) window.Plotly.relayout(plot, { autosize: false, width, height });
  Object.assign(plot.style, { transform: `scale(${scale})`, transformOrigin: "0 0" });
}

// The parts of a formula are in one line, which may be wider than its column.
function shrink(formula) {
  formula.style.fontSize = "";
  const right = formula.closest('[data-testid="stMarkdownContainer"], [data-testid="stMarkdown"]').getBoundingClientRect().right;
  const { left } = formula.getBoundingClientRect();
  const parts = [...formula.querySelectorAll(".katex-html .base")].map((each) => each.getBoundingClientRect().right);
  const share = (right - left) / (Math.max(...parts) - left);
  if (share < 1) formula.style.fontSize = `${Math.floor(100 * share)}%`;
}

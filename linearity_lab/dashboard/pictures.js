// A row for each figure of the page with a button per format, which saves the figure as the page shows it.
const FORMATS = ["png", "svg"];

export default function pictures({ parentElement, data }) {
  const list = parentElement.querySelector("ul");
  const rows = JSON.stringify(data.figures);
  if (list.dataset.rows === rows) return; // a running page redraws itself, and a focused button stays
  list.dataset.rows = rows;
  list.replaceChildren(...data.figures.map(({ key, title }) => {
    const row = document.createElement("li");
    const name = document.createElement("span");
    name.textContent = title;
    row.append(name, ...FORMATS.map((format) => button(key, title, format, parentElement)));
    return row;
  }));
}

function button(key, title, format, parentElement) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = format.toUpperCase();
  made.setAttribute("aria-label", `${made.textContent}: ${title}`);
  made.addEventListener("click", () => {
    const saved = save(key, format);
    parentElement.querySelector("[role=status]").textContent = saved ? "" : `Not on the screen now: ${title}`;
  });
  return made;
}

// Plotly is not a global of the page, so this clicks its camera button with another format.
function save(key, format) {
  const figure = document.querySelector(`.st-key-${CSS.escape(key)} .js-plotly-plot`);
  const camera = figure?._fullLayout?._modeBar?.buttons.flat().find((each) => each.name === "toImage");
  if (!camera) return false;
  addEventListener("click", keepOpen, true);
  const { width, height } = figure._fullLayout;
  // The file does not contain the page's font, so text is measured in the font of its display.
  const font = { ...figure.layout.font, family: "sans-serif" };
  // It also lacks the style sheet, which darkens Streamlit's gray text.
  const words = getComputedStyle(document.querySelector('[data-testid="stApp"]')).color;
  const written = JSON.stringify(figure.layout.template).replaceAll(figure._fullLayout.font.color, words);
  const options = { ...figure._context.toImageButtonOptions, format };
  camera.click({
    data: figure.data,
    layout: { ...figure.layout, template: JSON.parse(written), font, width, height },
    _context: { ...figure._context, toImageButtonOptions: options },
  });
  return true;
}

// Plotly saves by clicking a link outside the menu, which would close the menu.
function keepOpen(event) {
  if (!event.target.download) return;
  event.stopImmediatePropagation();
  removeEventListener("click", keepOpen, true);
}

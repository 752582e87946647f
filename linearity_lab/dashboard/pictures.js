// A row for each figure of the page with a button per format, which saves the figure as the page shows it,
// and one that copies its address.
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
    const saves = FORMATS.map((format) => button(format.toUpperCase(), title, () => save(key, format), parentElement));
    row.append(name, ...saves, button("Link", title, () => copyLink(key), parentElement));
    return row;
  }));
}

// `act` returns its message; null where the figure is not on the screen.
function button(label, title, act, parentElement) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = label;
  made.setAttribute("aria-label", `${label}: ${title}`);
  made.addEventListener("click", () => {
    parentElement.querySelector("[role=status]").textContent = act() ?? `Not on the screen now: ${title}`;
  });
  return made;
}

// The address of the page with this figure's tab open.
function copyLink(key) {
  const figure = document.querySelector(`.st-key-${CSS.escape(key)} .js-plotly-plot`);
  if (!figure) return null;
  const panel = figure.closest('[role="tabpanel"]');
  const tab = panel && document.getElementById(panel.getAttribute("aria-labelledby"));
  const address = new URL(location.href);
  if (tab) address.searchParams.set("tab", tab.textContent.trim());
  else address.searchParams.delete("tab");
  navigator.clipboard?.writeText(address.href);
  return `Link: ${address.href}`;
}

// Plotly is not a global of the page, so this clicks its camera button with another format.
function save(key, format) {
  const figure = document.querySelector(`.st-key-${CSS.escape(key)} .js-plotly-plot`);
  const camera = figure?._fullLayout?._modeBar?.buttons.flat().find((each) => each.name === "toImage");
  if (!camera) return null;
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
  return "";
}

// Plotly saves by clicking a link outside the menu, which would close the menu.
function keepOpen(event) {
  if (!event.target.download) return;
  event.stopImmediatePropagation();
  removeEventListener("click", keepOpen, true);
}

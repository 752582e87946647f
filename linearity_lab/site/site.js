// Shared by all pages of the site: theme, figures drawn when they become visible, and their files.
/* global Plotly, home, inURL, live, root */
"use strict";

// Text color in files; on the screen the style sheet sets it.
const GRID = "rgba(127, 138, 153, 0.28)";
const INK = "#1b2430";
const AXIS = { gridcolor: GRID, zeroline: false, linecolor: GRID, automargin: true, title: { standoff: 12 } };
const TEMPLATE = {
  layout: {
    font: { color: INK, family: "system-ui, sans-serif" }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    xaxis: AXIS, yaxis: AXIS, modebar: { bgcolor: "rgba(0,0,0,0)", activecolor: "#4a8fd0" }, hoverlabel: { font: { family: "system-ui, sans-serif" } },
  },
};
const LEAST_FRAMED = 260; // pixels of a figure in a frame
const NEAR = "600px"; // figures are drawn at this distance below the window
const loaded = new Map(); // file → promise
const taken = new Map(); // name → data

const lab = {
  config: {},
  isFramed: root.classList.contains("framed"),

  // Called by a figure's data file, since a page opened from a disk can load only scripts.
  take(name, data) { taken.set(name, data); },

  script(file) {
    if (!loaded.has(file)) loaded.set(file, new Promise((resolve, reject) => {
      const made = document.createElement("script");
      Object.assign(made, { src: document.body.dataset.up + file, onload: resolve, onerror: reject });
      document.head.append(made);
    }));
    return loaded.get(file);
  },

  async data(name) {
    await lab.script(`data/${name}.js`);
    return taken.get(name);
  },

  element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  },

  // Draw a figure with its caption, in place of an earlier one.
  async draw(place, chart) {
    const { data, layout, frames } = structuredClone(chart.figure);
    if (lab.isFramed) layout.height = LEAST_FRAMED;
    if (!place.firstChild) {
      place.append(lab.element("div", { class: "plot", role: "group" }), lab.element("p", { class: "caption" }));
    }
    const [plot, caption] = place.children;
    plot.setAttribute("aria-label", chart.alt);
    plot.style.minHeight = `${layout.height}px`;
    caption.innerHTML = chart.caption.join("<br>");
    place.chart = chart;
    await lab.script("plotly.js");
    if (place.chart !== chart) return; // the choice has changed meanwhile
    const config = { ...lab.config, responsive: true, displayModeBar: lab.isFramed ? false : "hover" };
    if (frames?.length && plot.data) Plotly.purge(plot); // remove the previous figure's
    await Plotly.react(plot, { data, layout: { ...layout, template: TEMPLATE }, frames, config });
    place.dataset.drawn = "";
  },

  // The choice above a figure, if any.
  options(group, { options, start }, chosen) {
    if (options.length < 2) return;
    group.replaceChildren(...options.map(({ words }, index) => {
      const button = lab.element("button", { type: "button", "aria-pressed": String(index === start) });
      button.innerHTML = words;
      button.addEventListener("click", () => {
        for (const each of group.children) each.setAttribute("aria-pressed", String(each === button));
        chosen(index);
      });
      return button;
    }));
  },

  whenNear(element, act) {
    const sight = new IntersectionObserver((seen) => {
      if (!seen.at(-1).isIntersecting) return;
      sight.disconnect();
      act();
    }, { rootMargin: NEAR });
    sight.observe(element);
  },

  async save(place, format, name) {
    const { data, layout } = structuredClone(place.chart.figure);
    const { width, height } = place.firstChild.getBoundingClientRect();
    const font = { ...layout.font, family: "sans-serif" }; // fonts of the file, which contains none
    const whole = { ...layout, template: TEMPLATE, font, paper_bgcolor: "#ffffff", autosize: false, width, height };
    await Plotly.downloadImage({ data, layout: whole }, { format, width, height, scale: 2, filename: name });
  },
};

const theme = {
  wanted: matchMedia("(prefers-color-scheme: dark)"),
  get isDark() { return root.dataset.theme ? root.dataset.theme === "dark" : theme.wanted.matches; },

  show(button) {
    button.hidden = false;
    button.setAttribute("aria-label", theme.isDark ? "Light theme" : "Dark theme");
    for (const each of document.querySelectorAll(".live")) (each.live ?? each.home).stale = true; // pictures on canvases
  },

  begin() {
    const button = document.querySelector("button.theme");
    button.addEventListener("click", () => {
      root.dataset.theme = theme.isDark ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch { /* a browser without storage */ }
      theme.show(button);
    });
    theme.wanted.addEventListener("change", () => theme.show(button));
    theme.show(button);
  },
};

// The page of one figure: its charts, the choice above them, its files, its numbers, and its frame.
async function showOne() {
  const places = [...document.querySelectorAll(".place[data-chart]")];
  const name = places[0].dataset.figure;
  const all = await lab.data(name);
  const draw = async (index) => {
    await Promise.all(places.map((place, at) => lab.draw(place, all.options[index].charts[at])));
    if (lab.isFramed) fit(places);
  };
  lab.options(document.querySelector(".options"), all, draw);
  for (const button of document.querySelectorAll("button.save")) button.addEventListener("click", () => {
    places.forEach((place, at) => lab.save(place, button.dataset.format, places.length > 1 ? `${name}-${at + 1}` : name));
  });
  const frame = document.getElementById("frame");
  const { title, height } = frame.dataset;
  const made = lab.element("iframe", { src: location.href.split(/[?#]/)[0], title, width: "100%", height, loading: "lazy" });
  frame.value = made.outerHTML;
  document.querySelector("button.copy").addEventListener("click", ({ target }) => {
    frame.select();
    navigator.clipboard?.writeText(frame.value).then(() => { target.textContent = "Copied"; });
  });
  document.querySelector(".numbers").addEventListener("toggle", ({ target }) => {
    target.querySelector(".tables").replaceChildren(...places.map((place) => table(place.chart.table)));
  });
  await draw(all.start);
  if (lab.isFramed) addEventListener("resize", () => fit(places));
}

// In a frame the figures fill the height that their text leaves.
function fit(places) {
  const plots = places.map((place) => place.firstChild);
  const high = plots.reduce((sum, each) => sum + each.offsetHeight, 0);
  const left = innerHeight - (document.querySelector("main").offsetHeight - high);
  for (const each of plots) {
    each.style.minHeight = "";
    Plotly.relayout(each, { height: Math.max(LEAST_FRAMED, Math.floor(left / plots.length)) });
  }
}

function table({ columns, rows }) {
  const cell = (value) => lab.element("td", {}, value === null ? "–" : String(value));
  const head = lab.element("tr", {}, ...columns.map((name) => lab.element("th", { scope: "col" }, name)));
  const body = rows.map((row) => lab.element("tr", {}, ...row.map(cell)));
  const made = lab.element("table", {}, lab.element("thead", {}, head), lab.element("tbody", {}, ...body));
  return lab.element("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": "The numbers" }, made);
}

// The entries that contain all words of the search.
function search() {
  const field = document.getElementById("search");
  const entries = [...document.querySelectorAll("[data-search]")];
  const look = () => {
    const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const each of entries) each.hidden = !wanted.every((word) => each.dataset.search.includes(word));
    const count = entries.filter((each) => !each.hidden).length;
    document.querySelector(".search output").textContent = `${count} ${count === 1 ? "word" : "words"}`;
  };
  field.addEventListener("input", look);
  look();
}

// Content wider than its container scrolls and can be focused by the keyboard.
function letScroll() {
  for (const each of document.querySelectorAll(".formulas")) {
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
    else each.removeAttribute("tabindex");
  }
}

document.addEventListener("DOMContentLoaded", () => {
  letScroll();
  addEventListener("resize", letScroll);
  const place = document.querySelector(".live-place");
  if (place) {
    const data = JSON.parse(document.getElementById("data").textContent);
    if (data.home) home({ parentElement: place, data: data.home });
    else live({ parentElement: place, data: inURL(data.live) });
  }
  if (document.querySelector(".place[data-chart]")) showOne();
  if (document.getElementById("search")) search();
  theme.begin();
});

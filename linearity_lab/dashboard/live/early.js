// Starts a page before Streamlit's scripts have loaded, above their page; the component takes it over.
/* global EARLY, element */
const LEAST_MS = 30; // between two frames, to leave time for the page's scripts
const EMBED_OPTIONS = ["embed", "dark_theme", "light_theme"]; // Streamlit's options in the URL of an embedded page

function beginEarly(Kind, data) {
  if ("early" in window) return; // the component was faster
  const asked = new URLSearchParams(location.search);
  const options = EMBED_OPTIONS.filter((name) => asked.get(name) === "true" || asked.getAll("embed_options").includes(name));
  const page = element("div", { class: ["early", ...options].join(" ") }, element("h1", {}, EARLY.title));
  if (EARLY.words) {
    page.append(element("p"));
    page.lastChild.innerHTML = EARLY.words;
  }
  page.append(element("div"));
  const place = page.lastChild.attachShadow({ mode: "open" });
  place.append(element("style", {}, EARLY.style));
  document.body.append(page);
  const panel = new Kind(place, data, LEAST_MS);
  window.early = { page, panel };
  document.addEventListener("click", ({ target }) => page.contains(target) || page.remove()); // such as on the menu
}

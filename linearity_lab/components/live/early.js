// Home begins here before Streamlit's scripts have loaded, above the page that they build; its component takes it over.
/* global EARLY, Home, element */
const LEAST_MS = 50; // from frame to frame, as the scripts of the page want to run, too
const page = element("div", { class: "early" }, element("h1", {}, EARLY.title), element("p"), element("div"));
page.children[1].innerHTML = EARLY.words;

if (!("early" in window)) { // else the component was faster
  const place = page.lastChild.attachShadow({ mode: "open" });
  place.append(element("style", {}, EARLY.style));
  document.body.append(page);
  window.early = { page, home: new Home(place, EARLY.data, LEAST_MS) };
  document.addEventListener("click", ({ target }) => page.contains(target) || page.remove()); // such as on the menu
}

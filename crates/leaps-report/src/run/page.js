
// Sliders turn the pages of their albums. Everything listens on the document, and looks again when parts of the page are exchanged.
(() => {
  "use strict";
  document.documentElement.classList.add("js");
  const places = new Map();
  const turn = (slider) => {
    const pages = document.getElementById(slider.dataset.slides)?.children ?? [];
    for (const [number, page] of [...pages].entries()) {
      page.classList.toggle("shown", number === Number(slider.value));
    }
    const label = pages[slider.value]?.dataset.label ?? "";
    slider.setAttribute("aria-valuetext", label);
    const output = slider.parentElement.querySelector("output");
    if (output && output.textContent !== label) output.textContent = label;
  };
  const look = () => {
    for (const slider of document.querySelectorAll("input[data-slides]")) {
      if (places.has(slider.id)) slider.value = places.get(slider.id);
      turn(slider);
    }
  };
  document.addEventListener("input", (event) => {
    const slider = event.target;
    if (!(slider instanceof HTMLInputElement) || !slider.dataset.slides) return;
    places.set(slider.id, slider.value);
    turn(slider);
  });
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
})();

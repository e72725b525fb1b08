// The page of a run that goes on: its line of numbers, and everything in it, are renewed when the server says so.
(() => {
  "use strict";
  const line = document.getElementById("live");
  const events = new EventSource("events?page=" + line.dataset.page);
  let last = line.textContent;
  events.addEventListener("status", (event) => {
    last = JSON.parse(event.data).words;
    line.textContent = last;
  });
  events.addEventListener("page", async () => {
    const answer = await fetch("part", { cache: "no-store" });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = document.querySelector("main");
    // What the reader has unfolded stays so.
    const open = [...main.querySelectorAll("details")].map((details) => details.open);
    main.replaceChildren(...fresh.body.childNodes);
    [...main.querySelectorAll("details")].forEach((details, number) => {
      details.open = open[number] ?? details.open;
    });
  });
  events.addEventListener("open", () => { line.textContent = last; });
  events.addEventListener("error", () => {
    line.textContent = last + " (no connection to leaps serve)";
  });
})();

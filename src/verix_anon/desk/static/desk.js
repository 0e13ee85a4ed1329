"use strict";
// The pages work without this; it shows progress as it comes, takes dropped files, and asks for
// warnings while a form is edited. Whatever it puts into a page is text or the desk's own HTML.

const csrf = () => document.querySelector("meta[name=csrf]").content;

function watch(panel) {
  const events = new EventSource(panel.dataset.events);
  const bar = panel.querySelector("[data-progress]");
  const stage = panel.querySelector("[data-stage]");
  events.addEventListener("progress", (event) => {
    const found = JSON.parse(event.data);
    if (stage.textContent !== found.stage) stage.textContent = found.stage;
    if (found.total > 1) bar.value = (100 * found.done) / found.total;
    else bar.removeAttribute("value");
  });
  events.addEventListener("end", (event) => {
    events.close();
    const then = JSON.parse(event.data).then;
    if (then) location.assign(then);
    else location.reload();
  });
  addEventListener("pagehide", () => events.close());
}

for (const panel of document.querySelectorAll("[data-events]")) watch(panel);

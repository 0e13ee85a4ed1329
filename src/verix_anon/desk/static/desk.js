"use strict";
// The pages work without this; it shows progress as it comes, takes dropped files, and asks for
// warnings while a form is edited. Whatever it puts into a page is text or the desk's own HTML.

// What is being edited is nobody's to throw away.
let isEdited = false;
addEventListener("input", () => { isEdited = true; });

const csrf = () => document.querySelector("meta[name=csrf]").content;

function watch(panel) {
  const bar = panel.querySelector("[data-progress]");
  const stage = panel.querySelector("[data-stage]");
  const show = (event) => {
    const found = JSON.parse(event.data);
    if (stage.textContent !== found.stage) stage.textContent = found.stage;
    if (found.total > 1) bar.value = (100 * found.done) / found.total;
    else bar.removeAttribute("value");
  };
  let events = null;
  const close = () => {
    if (events) events.close();
    events = null;
  };
  const end = (event) => {
    close();
    document.removeEventListener("visibilitychange", follow);
    const then = JSON.parse(event.data).then;
    // Not a reload: the page may be the answer to a form, which would be sent again.
    const href = then || panel.dataset.here + location.search;
    if (isEdited) offer(href, then ? panel.dataset.done : panel.dataset.failed);
    else location.assign(href);
  };
  // The part of the panel that is read aloud when it changes becomes all of it.
  const offer = (href, text) => {
    const link = document.createElement("a");
    const said = panel.querySelector("[role=status]");
    link.href = href;
    link.textContent = text;
    said.replaceChildren(link);
    panel.replaceChildren(said);
    panel.removeAttribute("aria-labelledby");
    delete panel.dataset.events;
  };
  // A browser has six connections to a server, so only tabs that somebody sees take one.
  const follow = () => {
    close();
    if (document.hidden) return;
    events = new EventSource(panel.dataset.events);
    events.addEventListener("progress", show);
    events.addEventListener("end", end);
  };
  document.addEventListener("visibilitychange", follow);
  addEventListener("pagehide", close);
  follow();
}

for (const panel of document.querySelectorAll("[data-events]")) watch(panel);

// What a form of choices would show, without a reload: the parts of the same page that depend on
// them.
function refresh(form) {
  let last = 0;
  form.addEventListener("change", async (event) => {
    if (event.target.type === "file") return;
    const mine = ++last;
    const query = new URLSearchParams(new FormData(form));
    for (const name of ["csrf", "digest"]) query.delete(name);
    history.replaceState(null, "", "?" + query);
    const answer = await fetch("?" + query);
    const text = await answer.text();
    if (!answer.ok || mine !== last) return;
    const found = new DOMParser().parseFromString(text, "text/html");
    for (const part of form.dataset.refresh.split(" ")) {
      const now = found.querySelector(part);
      document.querySelector(part).replaceChildren(...(now ? now.childNodes : []));
    }
  });
}

// Each part of the answer takes the place of the part of the page with its id. An answer may take
// seconds, so the form is sent again only when the last answer is here.
function advise(form) {
  let isAsking = false, isOutdated = false;
  const ask = async () => {
    isOutdated = isAsking;
    if (isAsking) return;
    isAsking = true;
    try {
      const answer = await fetch(form.dataset.advice, {
        method: "POST",
        body: new URLSearchParams(new FormData(form)),
      });
      const text = await answer.text();
      if (!answer.ok || isOutdated) return;
      const found = new DOMParser().parseFromString(text, "text/html");
      for (const part of found.querySelectorAll("[id]")) {
        document.getElementById(part.id)?.replaceChildren(...part.childNodes);
      }
    } finally {
      isAsking = false;
      if (isOutdated) ask();
    }
  };
  form.addEventListener("change", ask);
  if ("atOnce" in form.dataset) ask();
}

// Sort a table by its columns, and show only some of its rows.
function tool(table) {
  const rows = [...table.tBodies[0].rows];
  const role = (row) => row.querySelector(".role select");
  const value = (row, by) => {
    if (by === "role") return role(row).selectedIndex;
    return by === "name" ? row.dataset.name : Number(row.dataset[by]);
  };
  const filter = document.querySelector("[data-filter]");
  const wanted = document.querySelector("[data-filter-role]");
  const show = () => {
    for (const row of rows) {
      const isNamed = row.dataset.name.includes(filter.value.toLowerCase());
      row.hidden = !isNamed || (wanted.value !== "" && role(row).value !== wanted.value);
    }
  };
  filter.addEventListener("input", (event) => { event.stopPropagation(); show(); });
  wanted.addEventListener("input", (event) => { event.stopPropagation(); show(); });
  document.querySelector("[data-tools]").hidden = false;
  for (const head of table.querySelectorAll("[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const by = head.dataset.sort;
      rows.sort((a, b) => {
        const [x, y] = [value(a, by), value(b, by)];
        return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
      });
      table.tBodies[0].append(...rows);
    });
  }
}

function upload(zone) {
  const status = zone.querySelector("[data-upload-status]");
  const bar = zone.querySelector("progress");
  const send = (file) => {
    const request = new XMLHttpRequest();
    request.open("PUT", zone.dataset.upload + "?name=" + encodeURIComponent(file.name));
    request.setRequestHeader("X-Verix-Csrf", csrf());
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.addEventListener("progress", (event) => {
      bar.hidden = false;
      if (event.lengthComputable) bar.value = (100 * event.loaded) / event.total;
    });
    request.addEventListener("loadend", () => {
      bar.hidden = true;
      let found = {};
      try { found = JSON.parse(request.responseText); } catch { /* said below */ }
      if (found.table) location.assign("?table=" + encodeURIComponent(found.table));
      else status.textContent = found.problem || zone.dataset.failed;
    });
    status.textContent = file.name;
    request.send(file);
  };
  zone.hidden = false;
  zone.querySelector("input[type=file]").addEventListener("change", (event) => {
    if (event.target.files.length) send(event.target.files[0]);
  });
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer.files.length) send(event.dataTransfer.files[0]);
  });
}

for (const form of document.querySelectorAll("[data-refresh]")) refresh(form);
for (const form of document.querySelectorAll("[data-advice]")) advise(form);
for (const table of document.querySelectorAll("[data-sorted]")) tool(table);
for (const zone of document.querySelectorAll("[data-upload]")) upload(zone);

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
  const working = form.parentElement.querySelector("[data-working]");
  const ask = async () => {
    if (working && !working.childElementCount) working.textContent = working.dataset.working;
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

// Groups of a column's values. A value is dragged onto another one, or it is picked up and put down
// by click or by key, or two lists say where it goes. A group holds two values or more.
function grouping(dialog) {
  const part = Object.fromEntries([...dialog.querySelectorAll("[data-part]")].map((one) => [one.dataset.part, one]));
  const words = dialog.dataset;
  const shownAtMost = 5;
  let opener = null, picked = null, dragged = null;

  const chipsIn = (box) => [...box.querySelectorAll("[role=button]")];
  const groups = () => [...part.boxes.children].filter((box) => box !== part.alone);
  const all = () => chipsIn(part.boxes).sort((a, b) => a.dataset.at - b.dataset.at);
  const isAlone = (chip) => part.alone.contains(chip);

  const add = (box, chip) => {
    const item = chip.parentElement;
    const list = box.querySelector("ul");
    const next = chipsIn(list).find((other) => Number(other.dataset.at) > Number(chip.dataset.at));
    list.insertBefore(item, next ? next.parentElement : null);
  };
  const open = () => part.boxes.appendChild(part.template.content.firstElementChild.cloneNode(true));

  // The names of the groups, and the lists of what may go where.
  const refresh = () => {
    const taken = new Set(chipsIn(part.alone).map((chip) => chip.dataset.value));
    groups().forEach((box, i) => {
      const values = chipsIn(box).map((chip) => chip.dataset.value);
      let name = values.slice(0, shownAtMost).join(", ");
      if (values.length > shownAtMost) name += ", +" + (values.length - shownAtMost);
      while (taken.has(name)) name += "\u2026";
      taken.add(name);
      box.dataset.name = name;
      box.querySelector("h3").textContent = words.group + " " + (i + 1);
      box.querySelector("bdi").textContent = name;
    });
    const [what, where] = [part.what.value, part.where.value];
    part.what.replaceChildren(...all().map((chip) => new Option(chip.dataset.value, chip.dataset.at)));
    if (part.what.querySelector(`[value="${what}"]`)) part.what.value = what;
    part.where.replaceChildren(
      ...groups().map((box, i) => new Option(box.querySelector("h3").textContent, "group-" + i))
        .filter((each, i) => !groups()[i].querySelector(`[data-at="${part.what.value}"]`)),
      ...chipsIn(part.alone).filter((chip) => chip.dataset.at !== part.what.value)
        .map((chip) => new Option(chip.dataset.value, chip.dataset.at)),
      new Option(part.alone.querySelector("h3").textContent, "alone"),
    );
    if (part.where.querySelector(`[value="${where}"]`)) part.where.value = where;
    part.leave.hidden = !picked || isAlone(picked);
  };
  const pick = (chip) => {
    if (picked) picked.setAttribute("aria-pressed", "false");
    picked = chip;
    if (chip) {
      chip.setAttribute("aria-pressed", "true");
      part.said.textContent = words.picked.replace("{value}", () => chip.dataset.value);
    }
    part.leave.hidden = !chip || isAlone(chip);
  };
  // To another value or to a box.
  const put = (chip, target) => {
    pick(null);
    let box = target.closest(".box");
    if (target !== chip && target !== box && box === part.alone) {
      box = open();
      add(box, target);
    }
    add(box, chip);
    for (const each of groups()) {
      const left = chipsIn(each);
      if (left.length > 1) continue;
      for (const one of left) add(part.alone, one);
      each.remove();
    }
    refresh();
    const name = chip.closest(".box").dataset.name;
    const said = isAlone(chip) ? words.left : words.joined.replace("{group}", () => name);
    part.said.textContent = said.replace("{value}", () => chip.dataset.value);
  };
  const press = (chip) => {
    if (picked && picked !== chip) {
      const moved = picked;
      put(moved, chip);
      moved.focus();
    } else pick(picked ? null : chip);
  };
  const fill = (rows) => {
    for (const box of groups()) box.remove();
    part.alone.querySelector("ul").replaceChildren();
    const boxes = new Map();
    const share = new Intl.NumberFormat(document.documentElement.lang, { style: "percent", maximumFractionDigits: 1 });
    rows.forEach(([value, portion, name], i) => {
      const item = document.createElement("li");
      const chip = document.createElement("span");
      const small = document.createElement("small");
      Object.assign(chip.dataset, { value, at: i });
      chip.tabIndex = 0;
      chip.draggable = true;
      chip.setAttribute("role", "button");
      chip.setAttribute("aria-pressed", "false");
      small.textContent = share.format(portion);
      chip.append(value, " ", small);
      item.append(chip);
      const isGrouped = rows.some((other) => other[2] === name && other[0] !== value);
      if (isGrouped && !boxes.has(name)) boxes.set(name, open());
      (boxes.get(name) || part.alone).querySelector("ul").append(item);
    });
    picked = null;
    refresh();
  };
  // An answer in JSON, or the sentence that the desk says about a mistake.
  const ask = async (url, options) => {
    const problem = document.createElement("p");
    problem.className = "problem";
    problem.textContent = words.failed;
    part.problem.replaceChildren();
    try {
      const answer = await fetch(url, options);
      if (answer.ok) return await answer.json();
      const found = new DOMParser().parseFromString(await answer.text(), "text/html");
      problem.textContent = found.querySelector("main .problem")?.textContent || words.failed;
    } catch { /* the desk has ended */ }
    part.problem.append(problem);
    return null;
  };
  const listOf = (button) => document.getElementById("hierarchy-" + button.dataset.row);

  for (const button of document.querySelectorAll("[data-groups]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      opener = button;
      const column = decodeURIComponent(button.dataset.groups);
      const query = new URLSearchParams({ column, hierarchy: listOf(button).value });
      part.column.textContent = column;
      part.said.textContent = "";
      const rows = await ask(words.url + "?" + query);
      fill(rows || []);
      part.save.disabled = !rows;
      dialog.showModal();
    });
  }
  dialog.addEventListener("click", (event) => {
    const chip = event.target.closest("[role=button]");
    if (chip) press(chip);
  });
  dialog.addEventListener("keydown", (event) => {
    const chip = event.target.closest("[role=button]");
    if (!chip || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    press(chip);
  });
  dialog.addEventListener("cancel", (event) => {
    if (!picked) return;
    event.preventDefault();
    pick(null);
    part.said.textContent = "";
  });
  dialog.addEventListener("input", (event) => event.stopPropagation());
  dialog.addEventListener("dragstart", (event) => {
    dragged = event.target.closest("[role=button]");
    event.dataTransfer.setData("text/plain", dragged.dataset.value);
  });
  const over = (event) => {
    const box = dragged && event.target.closest(".box");
    for (const each of part.boxes.children) each.classList.toggle("over", each === box);
    return box;
  };
  dialog.addEventListener("dragover", (event) => { if (over(event)) event.preventDefault(); });
  dialog.addEventListener("drop", (event) => {
    const box = over(event);
    if (!box) return;
    event.preventDefault();
    put(dragged, event.target.closest("[role=button]") || box);
  });
  dialog.addEventListener("dragend", () => {
    dragged = null;
    for (const each of part.boxes.children) each.classList.remove("over");
  });
  part.leave.addEventListener("click", () => {
    const moved = picked;
    put(moved, part.alone);
    moved.focus();
  });
  part.what.addEventListener("change", refresh);
  part.move.addEventListener("click", () => {
    const chip = all()[part.what.value];
    const where = part.where.value;
    if (where === "alone") put(chip, part.alone);
    else put(chip, where.startsWith("group-") ? groups()[where.slice("group-".length)] : all()[where]);
  });
  part.close.addEventListener("click", () => dialog.close());
  part.save.addEventListener("click", async () => {
    const list = listOf(opener);
    if (groups().length) {
      const body = new URLSearchParams({ csrf: csrf(), column: decodeURIComponent(opener.dataset.groups) });
      for (const chip of all()) {
        body.append("value", chip.dataset.value);
        body.append("group", chip.closest(".box").dataset.name || chip.dataset.value);
      }
      const found = await ask(words.url, { method: "POST", body });
      if (!found) return;
      const known = [...list.options].find((each) => each.value === found.hierarchy);
      const own = known || list.appendChild(new Option("", found.hierarchy));
      const first = chipsIn(groups()[0])[0];
      own.textContent = `${words.own}: ${first.dataset.value} \u2192 ${groups()[0].dataset.name}`;
      list.value = found.hierarchy;
      // The groups stand in the order of the values, and no column may have both.
      document.getElementById("order-" + opener.dataset.row).value = "";
    } else list.value = "";
    isEdited = true;
    dialog.close();
    list.dispatchEvent(new Event("change", { bubbles: true }));
    list.focus();
  });
}

for (const form of document.querySelectorAll("[data-refresh]")) refresh(form);
for (const form of document.querySelectorAll("[data-advice]")) advise(form);
for (const table of document.querySelectorAll("[data-sorted]")) tool(table);
for (const zone of document.querySelectorAll("[data-upload]")) upload(zone);
for (const dialog of document.querySelectorAll("dialog.groups")) grouping(dialog);

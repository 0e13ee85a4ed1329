// The page: it takes files, asks check.js, and says the answers. It writes text alone, never markup.
"use strict";
(() => {
  const { Refused, checkProof, checkReceipt, checkSeries, kindOf, parseJson, readKeys, sha256, toHex } = checker;
  const SLICE = 4 << 20;
  const MOST = 1 << 30;
  const MOST_JSON = 64 << 20;
  const DELIVERED = ["delivery.json", "leaves.parquet", "nodes.parquet", "records.parquet"];
  // A Map: an object would also have a value for "constructor" and "__proto__".
  const FORMATS = new Map([["verix/proof/1", "proof"], ["verix/series/1", "log"], ["verix/keys/1", "key"]]);
  const at = (id) => document.getElementById(id);
  const files = [];
  /** The texts of each language, put here from the catalogues by __init__.py. */
  const catalogue = {catalogue};
  const asked = (navigator.language ?? "").split("-")[0];
  let language = Object.hasOwn(catalogue, asked) ? asked : "en";
  let turn = 0;
  let reading = Promise.resolve();

  const say = (code, values = {}) => inWords({ ...values, code }, catalogue[language]);

  function made(name, words, attributes = {}) {
    const element = document.createElement(name);
    if (words !== undefined) element.textContent = words;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }

  // ---- Files -------------------------------------------------------------------------------------------------

  /** The kind of a file, from its form alone; whether it is a good one is asked later. */
  function kindOfBytes(bytes) {
    if (bytes.length > MOST_JSON) return "file";
    const first = Math.max(0, bytes.findIndex((byte) => byte > 32));
    const start = new TextDecoder("latin1").decode(bytes.subarray(first, first + 100));
    if (start.startsWith("-----BEGIN")) return "key";
    if (!/^(\u00ef\u00bb\u00bf)?\s*\{/.test(start)) return "file";
    try {
      const { value } = parseJson(bytes);
      if (value.has("payloadType") && value.has("signatures")) return "envelope";
      return FORMATS.get(value.get("format")) ?? "file";
    } catch {
      // A damaged proof is still shown as a proof, and refused as one.
      const written = new TextDecoder().decode(bytes);
      const named = [...FORMATS.keys()].find((name) => new RegExp(`"format"\\s*:\\s*"${name}"`).test(written));
      return FORMATS.get(named) ?? (/"payloadType"\s*:/.test(written) ? "envelope" : "file");
    }
  }

  async function read(blob) {
    if (blob.size > MOST) throw new Refused("page-large", { file: blob.name, limit: MOST >> 20 });
    const bytes = new Uint8Array(blob.size);
    // Once at least: a folder has no bytes on some systems, and cannot be read.
    for (let i = 0; i === 0 || i < blob.size; i += SLICE) {
      bytes.set(new Uint8Array(await blob.slice(i, i + SLICE).arrayBuffer()), i);
      const share = Math.min(1, (i + SLICE) / blob.size);
      at("bar").value = share;
      at("busy").textContent = say("page-reading", { file: blob.name, percent: Math.floor(100 * share) });
    }
    return bytes;
  }

  async function add(blobs) {
    for (const blob of blobs) {
      at("bar").hidden = false;
      const file = { label: blob.name, kind: "file", role: null };
      try {
        file.bytes = await read(blob);
        file.kind = kindOfBytes(file.bytes);
        if (file.kind === "key") file.names = (await readKeys([file])).map((key) => key.keyid);
        if (file.kind === "file") {
          at("bar").removeAttribute("value");
          at("busy").textContent = say("page-hashing", { file: blob.name });
          file.sha256 = toHex(await sha256(file.bytes));
          if (file.bytes.length > MOST_JSON) delete file.bytes;
        }
      } catch (error) {
        // It stays in the list with the reason, and the files after it are read.
        file.trouble = error.reason ?? { code: "page-unread", file: blob.name };
      }
      files.push(file);
      at("busy").textContent = "";
      at("bar").hidden = true;
    }
    await show();
  }

  /** Whose key it is: what the reader said, or a guess that the reader sees and can change. */
  function roleOf(file) {
    if (file.role !== null) return file.role;
    if (/provider/i.test(file.label)) return "provider";
    if (/owner/i.test(file.label)) return "owner";
    const kinds = files.map((each) => each.kind);
    return kinds.includes("log") && !kinds.includes("envelope") && !kinds.includes("proof") ? "owner" : "provider";
  }

  function showFiles() {
    at("list").replaceChildren(
      ...files.map((file, i) => {
        const item = made("li");
        const what = made("span", undefined, { class: "what" });
        what.append(made("strong", inWordsOf(file.label)), ` — ${say(`kind-${file.kind}`)}`);
        for (const keyid of file.names ?? []) what.append(made("br"), made("span", keyid, { class: "mono" }));
        if (file.trouble) what.append(made("br"), inWords(file.trouble, catalogue[language]));
        item.append(what);
        if (file.kind === "key" && !file.trouble) {
          const label = made("label", `${say("page-whose")} `);
          const select = made("select");
          for (const role of ["provider", "owner"]) {
            const option = made("option", say(`page-${role}`), { value: role });
            option.selected = roleOf(file) === role;
            select.append(option);
          }
          select.addEventListener("change", () => {
            file.role = select.value;
            show();
          });
          label.append(select);
          item.append(label);
        }
        const remove = made("button", say("page-remove"), {
          type: "button",
          "aria-label": say("page-remove-what", { file: file.label }),
        });
        remove.addEventListener("click", () => {
          files.splice(i, 1);
          show();
          at("files").focus();
        });
        item.append(remove);
        return item;
      }),
    );
  }

  const inWordsOf = (label) => say("one-value", { column: "", least: label }).replace(/^: /, "");

  // ---- Answers -----------------------------------------------------------------------------------------------

  /** Every question that these files ask, with its answer: { about, file, answer } or { about, file, missing }. */
  async function answers() {
    const now = Date.now();
    const of = (kind) => files.filter((file) => file.kind === kind && !file.trouble);
    const keys = of("key");
    const provider = keys.filter((file) => roleOf(file) === "provider");
    const owner = keys.filter((file) => roleOf(file) === "owner");
    const typed = (id, name = id) => (at(id).value.trim() === "" ? {} : { [name]: at(id).value });
    const all = keys.length > 0 ? await readKeys(keys) : [];
    const envelopes = { receipt: [], verdict: [] };
    for (const file of of("envelope")) {
      const kind = (await kindOf(file.bytes, all, now)) ?? (/verdict|urteil/i.test(file.label) ? "verdict" : "receipt");
      envelopes[kind].push(file);
    }
    const [receipt] = envelopes.receipt;
    const [verdict] = envelopes.verdict;
    const [log] = of("log");
    const found = [];
    const plain = of("file");
    const isNamed = (file) => DELIVERED.includes(file.label) || (file.label === "verdict.json" && verdict !== undefined);
    const compared = receipt || verdict ? plain.filter(isNamed) : [];

    for (const file of of("proof")) {
      const signed = receipt && provider.length > 0 ? { receipt: receipt.bytes, keys: provider } : {};
      const asked = { proof: file.bytes, now, ...signed, ...typed("root"), ...typed("tracker") };
      if (asked.receipt === undefined && asked.root === undefined) {
        found.push({ about: "about-proof", file: file.label, missing: { code: "needs-root" } });
      } else found.push({ about: "about-proof", file: file.label, answer: await checkProof(asked) });
    }
    for (const [i, each] of [...envelopes.receipt.keys(), ...(receipt ? [] : envelopes.verdict.keys())].entries()) {
      const one = envelopes.receipt[i];
      const other = one ? verdict : envelopes.verdict[each];
      const file = (one ?? other).label;
      if (one && provider.length === 0) found.push({ about: "about-file", file, missing: { code: "needs-provider-key" } });
      if (other && owner.length === 0) {
        found.push({ about: "about-file", file: other.label, missing: { code: "needs-owner-key" } });
      }
      const asked = { now, files: compared.map((plainFile) => ({ ...plainFile, name: plainFile.label })), ...typed("root") };
      if (one && provider.length > 0) Object.assign(asked, { receipt: one.bytes, keys: provider });
      if (other && owner.length > 0) Object.assign(asked, { verdict: other.bytes, ownerKeys: owner });
      if (asked.receipt || asked.verdict) found.push({ about: "about-signed", answer: await checkReceipt(asked) });
    }
    for (const each of of("log")) {
      const named = each === log ? plain.filter((file) => !compared.includes(file)) : [];
      const asked = { log: each.bytes, keys: owner, files: named, now, ...typed("head") };
      found.push({ about: "about-log", file: each.label, answer: await checkSeries(asked) });
    }
    for (const file of log ? [] : plain.filter((each) => !compared.includes(each))) {
      found.push({ about: "about-file", file: file.label, missing: { code: "needs-names", sha256: file.sha256 } });
    }
    return found;
  }

  const DAY = { day: 86400000, s: 1000, ms: 1, us: 0.001 };
  function shownValue(column, value) {
    if (column.kind === "rank") return say("place", { place: Math.floor(value) + 1, size: column.size });
    if (column.kind === "categorical") return column.categories[Math.floor(value)];
    if (column.kind !== "datetime") return String(value);
    const date = new Date(value * DAY[column.unit]);
    return Number.isNaN(date.getTime()) ? String(value) : date.toISOString().slice(0, column.unit === "day" ? 10 : 23);
  }

  function listOf(sentences) {
    const list = made("ul");
    list.append(...sentences.map((sentence) => made("li", sentence)));
    return list;
  }

  function details(title, ...inside) {
    const element = made("details");
    element.append(made("summary", title), ...inside);
    return element;
  }

  function classOf(proof) {
    const { quasi } = proof.contract;
    const splits = [...proof.path].reverse().map(({ column, threshold, side }) =>
      say(side === "left" ? "at-most" : "more-than", {
        column: quasi[column].name,
        value: shownValue(quasi[column], threshold),
      }),
    );
    const bounds = quasi.map((column, i) => {
      const [least, most] = proof.bounds[i].map((value) => shownValue(column, value));
      return say(least === most ? "one-value" : "range", { column: column.name, least, most });
    });
    const parts = splits.length > 0 ? [made("p", say("class-splits")), listOf(splits)] : [];
    return details(say("class"), ...parts, made("p", say("class-bounds")), listOf(bounds));
  }

  function card({ about, file, answer, missing }) {
    const outcome = missing ? "missing" : answer.ok ? "yes" : "no";
    const judged = answer?.facts.verdict?.outcome ?? "VERIFIED";
    // A good signature under a bad verdict is not good news.
    const look = outcome === "yes" && judged !== "VERIFIED" ? "missing" : outcome;
    const element = made("article", undefined, { class: look });
    const said = about === "about-signed" && outcome === "yes" ? "signed-yes" : outcome;
    element.append(made("h3", say(about, { file })), made("p", say(said), { class: "outcome" }));
    if (answer?.facts.verdict) element.append(made("p", say(`outcome-${judged}`)));
    if (missing) {
      element.append(made("p", inWords(missing, catalogue[language])));
      return element;
    }
    const words = (sentences) => listOf(sentences.map((sentence) => inWords(sentence, catalogue[language])));
    if (answer.problems.length > 0) element.append(words(answer.problems));
    if (answer.shown.length > 0) element.append(details(say("why"), words(answer.shown)));
    if (answer.ok && answer.facts.proof) element.append(classOf(answer.facts.proof));
    if (answer.open.length > 0) {
      const open = details(say("not-known"), words(answer.open));
      open.open = answer.ok;
      element.append(open);
    }
    return element;
  }

  async function show() {
    turn += 1;
    const own = turn;
    document.documentElement.lang = language;
    document.title = say("page-title");
    at("languages").setAttribute("aria-label", say("page-choose"));
    for (const element of document.querySelectorAll("[data-text]")) element.textContent = say(element.dataset.text);
    for (const button of document.querySelectorAll("[data-language]")) {
      button.setAttribute("aria-pressed", String(button.dataset.language === language));
    }
    showFiles();
    let cards;
    try {
      cards = (await answers()).map(card);
    } catch (error) {
      if (!error.reason) throw error;
      // What the reader typed or trusts cannot be used, so there is no answer.
      cards = [made("p", inWords(error.reason, catalogue[language]), { class: "outcome" })];
    }
    if (own !== turn) return; // Something was dropped or typed in the meantime.
    at("cards").replaceChildren(...(cards.length > 0 ? cards : [made("p", say("page-nothing"))]));
  }

  const queue = (list) => {
    const blobs = [...list]; // The list is emptied with its field.
    reading = reading.catch(() => {}).then(() => add(blobs));
  };
  at("files").addEventListener("change", (event) => {
    queue(event.target.files);
    event.target.value = "";
  });
  for (const name of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(name, (event) => {
      event.preventDefault();
      at("drop").classList.toggle("over", name === "dragover");
      if (name === "drop") queue(event.dataTransfer.files);
    });
  }
  for (const id of ["root", "tracker", "head"]) at(id).addEventListener("input", show);
  for (const each of Object.keys(catalogue)) {
    const button = made("button", catalogue[each].language, { type: "button", lang: each, "data-language": each });
    button.addEventListener("click", () => {
      language = each;
      show();
    });
    at("languages").append(button);
  }
  // A browser opens every closed part before it prints, so that paper shows what is one level down.
  window.addEventListener("beforeprint", () => {
    for (const element of document.querySelectorAll("article details")) element.open = true;
  });
  show();
})();

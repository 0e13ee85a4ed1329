// Answers a question as checker.mjs does, { words, files: { name: base64 } }, with the files in memory: the
// exit code. It runs in node and in the page of a browser alike.
"use strict";
globalThis.ask = async ({ words, files }, now) => {
  const bytesOf = (word) => Uint8Array.from(atob(files[/^\{(.*)\}$/.exec(word)[1]]), (c) => c.charCodeAt(0));
  const [group, , path, ...rest] = words;
  const asked = { now };
  const lists = { key: "keys", "owner-key": "ownerKeys", file: "files" };
  for (let i = 0; i < rest.length; i += 2) {
    const name = rest[i].slice(2);
    const word = rest[i + 1];
    if (name === "file") {
      const [label, place] = word.includes("=") ? word.split("=") : [word, word];
      (asked.files ??= []).push({ name: label, label, bytes: bytesOf(place) });
    } else if (lists[name]) (asked[lists[name]] ??= []).push({ bytes: bytesOf(word) });
    else if (name === "since") asked.head = word;
    else asked[name] = name === "receipt" || name === "verdict" ? bytesOf(word) : word;
  }
  const { checkProof, checkReceipt, checkSeries, Mistake } = checker;
  try {
    const main = bytesOf(path);
    if (group === "prove") return (await checkProof({ ...asked, proof: main })).ok ? 0 : 1;
    if (group === "receipt") return (await checkReceipt({ ...asked, receipt: main })).ok ? 0 : 1;
    return (await checkSeries({ ...asked, log: main })).ok ? 0 : 1;
  } catch (error) {
    if (error instanceof Mistake) return 2;
    return `a stray error: ${error.stack}`;
  }
};
globalThis.askAll = async (questions, now) => {
  const found = [];
  for (const question of questions) found.push(await ask(question, now));
  return found;
};

// The checker of check.html for a terminal, with the words of `verix-anon prove check`, `receipt check`
// and `series check`:
//
//   node checker.mjs prove check PROOF [--root HEX] [--receipt FILE --key FILE]... [--tracker HEX]
//   node checker.mjs receipt check RECEIPT --key FILE... [--verdict FILE --owner-key FILE...] [--root HEX]
//                                  [--file NAME=PATH]...
//   node checker.mjs series check LOG [--since HEAD] [--file PATH]... [--key FILE]...
//
// It prints JSON. Exit codes: 0 all of it is so, 1 something is not, 2 a mistake of the caller's.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const checker = require("./check.js");
const { inWords } = require("./words.js");
// The section [check] of the English catalogue. Its lines are `code = "text"`, with strings as in JSON.
const [, section] = readFileSync(new URL("../texts/en.toml", import.meta.url), "utf8").split("\n[check]\n");
const lines = section.split("\n[")[0].matchAll(/^([\w-]+) = (".*")$/gm);
const texts = Object.fromEntries([...lines].map(([, code, text]) => [code, JSON.parse(text)]));

const LISTS = ["key", "owner-key", "file"];
const OPTIONS = {
  prove: ["root", "receipt", "key", "tracker"],
  receipt: ["key", "verdict", "owner-key", "root", "file"],
  series: ["since", "file", "key"],
};

class Usage extends Error {}

function read(path) {
  try {
    return new Uint8Array(readFileSync(path));
  } catch (error) {
    throw new Usage(`${path} cannot be read (${error.code})`);
  }
}

function parsed(words) {
  const [group, verb, ...rest] = words;
  if (!Object.hasOwn(OPTIONS, group ?? "") || verb !== "check") throw new Usage("say prove, receipt or series check");
  const given = { key: [], "owner-key": [], file: [] };
  let path;
  for (let i = 0; i < rest.length; i += 1) {
    const name = rest[i].startsWith("--") ? rest[i].slice(2) : null;
    if (name === null && path === undefined) path = rest[i];
    else if (OPTIONS[group].includes(name) && i + 1 < rest.length) {
      i += 1;
      if (LISTS.includes(name)) given[name].push(rest[i]);
      else given[name] = rest[i];
    } else throw new Usage(`${rest[i]} is not known here, or its value is missing`);
  }
  if (path === undefined) throw new Usage("name the file to check");
  return { group, path, given };
}

function pair(word) {
  const at = word.indexOf("=");
  if (at < 1 || at === word.length - 1) throw new Usage("--file takes NAME=PATH");
  return { name: word.slice(0, at), label: word.slice(at + 1), bytes: read(word.slice(at + 1)) };
}

const files = (paths) => paths.map((path) => ({ bytes: read(path) }));
const maybe = (name, value, made = (found) => found) => (value === undefined ? {} : { [name]: made(value) });

async function answered({ group, path, given }) {
  const now = Date.now();
  const keys = files(given.key);
  const { root, tracker } = given;
  if (group === "prove") {
    const receipt = maybe("receipt", given.receipt, read);
    return checker.checkProof({ proof: read(path), keys, now, ...receipt, ...maybe("root", root), ...maybe("tracker", tracker) });
  }
  if (group === "series") {
    const named = given.file.map((each) => ({ label: each, bytes: read(each) }));
    return checker.checkSeries({ log: read(path), keys, now, files: named, ...maybe("head", given.since) });
  }
  if (keys.length === 0) throw new Usage("--key is missing");
  const ownerKeys = files(given["owner-key"]);
  if ((given.verdict === undefined) !== (ownerKeys.length === 0)) throw new Usage("--verdict and --owner-key belong together");
  return checker.checkReceipt({
    ...{ receipt: read(path), keys, now, ownerKeys, files: given.file.map(pair) },
    ...maybe("verdict", given.verdict, read),
    ...maybe("root", root),
  });
}

try {
  const answer = await answered(parsed(process.argv.slice(2)));
  const words = (sentences) => sentences.map((each) => ({ ...each, text: inWords(each, texts) }));
  const { ok, problems, shown, open } = answer;
  const said = { ok, problems: words(problems), shown: words(shown), not_shown: words(open) };
  console.log(JSON.stringify(said, null, 1));
  process.exitCode = ok ? 0 : 1;
} catch (error) {
  if (!(error instanceof checker.Mistake || error instanceof Usage)) throw error;
  console.log(error instanceof Usage ? error.message : inWords(error.reason, texts));
  process.exitCode = 2;
}

// Puts the codes of check.js in words. `texts` are those of a language: the section [check] of its catalogue.
"use strict";

/** A sentence of an answer in words. Values are shown without what would turn or hide text. */
function inWords(sentence, texts) {
  const visible = (value) => [...String(value)].map((c) => (c !== " " && /[\p{C}\p{Z}]/u.test(c) ? "\ufffd" : c)).join("");
  const filled = texts[sentence.code].replace(/\{(\w+)\}/g, (_, name) => visible(sentence[name] ?? ""));
  return (sentence.in === undefined ? filled : `${texts[`in-${sentence.in}`]}: ${filled}`).trim();
}
if (typeof module === "object") module.exports = { inWords };

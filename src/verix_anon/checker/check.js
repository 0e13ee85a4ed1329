// What third parties check: proofs of inclusion, receipts, signed verdicts. Written from docs/spec.md
// (§3, §6.2, §8.5, §14, §15), not from the Python: where the two disagree, one of them is wrong.
//
// It uses the engine's own SHA-256 and Ed25519 (WebCrypto) and nothing else. It reads no clock, no file and no
// network: the caller gives bytes and the time. An answer is { ok, problems, shown, open, facts }. Its sentences
// are codes with values, such as { code: "other-root" }; words.js puts them in words.
"use strict";
const checker = (() => {
  const utf8 = new TextEncoder();
  const subtle = globalThis.crypto.subtle;
  const MAX_PROOF = 16 << 20;
  const MAX_ENVELOPE = 1 << 16;
  const MAX_KEYS = 1 << 20;
  const MAX_KEY = 1 << 14;
  const MAX_INT = 2 ** 53 - 1;
  const EXACT = 2 ** 53;
  const MAX_INT_31 = 2 ** 31 - 1;

  /** The input is not so, or not what it should be: an answer, with exit code 1. */
  class Refused extends Error {
    constructor(code, values = {}) {
      super(code);
      this.reason = { code, ...values };
    }
  }
  /** What the caller trusts, or asks for, cannot be used: no answer, exit code 2. */
  class Mistake extends Refused {}

  // ---- Strict JSON -------------------------------------------------------------------------------------------
  // JSON.parse takes the last of two equal keys and forgets how a number was written, so it cannot be used.

  /** A number as it was written. */
  class Written {
    constructor(text) {
      this.text = text;
    }
  }

  const MAX_DEPTH_JSON = 64;
  const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
  const PLAIN = /[^"\\\u0000-\u001f]*/y;
  const ESCAPES = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

  /** Objects become Maps, numbers stay as written; throws Refused("not-json"). */
  function parseJson(bytes) {
    let text;
    try {
      // A byte order mark is kept, and refused below as what it is: a character before the value.
      text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      throw new Refused("not-json");
    }
    let at = 0;
    const bad = () => new Refused("not-json");
    const space = () => {
      while (at < text.length && " \t\n\r".includes(text[at])) at += 1;
    };
    const take = (what) => {
      if (!text.startsWith(what, at)) throw bad();
      at += what.length;
    };
    function string() {
      take('"');
      let found = "";
      for (;;) {
        PLAIN.lastIndex = at;
        const plain = PLAIN.exec(text)[0];
        found += plain;
        at += plain.length;
        if (text[at] === '"') {
          at += 1;
          return found;
        }
        take("\\");
        const letter = text[at];
        at += 1;
        if (letter === "u") {
          const digits = text.slice(at, at + 4);
          if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw bad();
          found += String.fromCharCode(parseInt(digits, 16));
          at += 4;
        } else if (letter !== undefined && Object.hasOwn(ESCAPES, letter)) {
          found += ESCAPES[letter];
        } else throw bad();
      }
    }
    function object(depth) {
      const found = new Map();
      take("{");
      space();
      if (text[at] === "}") {
        at += 1;
        return found;
      }
      for (;;) {
        space();
        const name = string();
        if (found.has(name)) throw new Refused("twice");
        space();
        take(":");
        found.set(name, value(depth));
        if (text[at] === "}") {
          at += 1;
          return found;
        }
        take(",");
      }
    }
    function list(depth) {
      const found = [];
      take("[");
      space();
      if (text[at] === "]") {
        at += 1;
        return found;
      }
      for (;;) {
        found.push(value(depth));
        if (text[at] === "]") {
          at += 1;
          return found;
        }
        take(",");
      }
    }
    function value(depth) {
      if (depth > MAX_DEPTH_JSON) throw bad();
      space();
      let found;
      const first = text[at];
      if (first === "{") found = object(depth + 1);
      else if (first === "[") found = list(depth + 1);
      else if (first === '"') found = string();
      else if (first === "t") take("true"), (found = true);
      else if (first === "f") take("false"), (found = false);
      else if (first === "n") take("null"), (found = null);
      else {
        NUMBER.lastIndex = at;
        const match = NUMBER.exec(text);
        if (match === null) throw bad();
        at += match[0].length;
        found = new Written(match[0]);
      }
      space();
      return found;
    }
    const found = value(0);
    if (at !== text.length) throw bad();
    return { value: found, text };
  }

  /** RFC 8785: keys by UTF-16 code units, numbers as ECMAScript writes them, no white space. */
  function canonical(value) {
    if (value instanceof Written) return String(Number(value.text));
    if (value instanceof Map) {
      const names = [...value.keys()].sort((a, b) => (a < b ? -1 : 1));
      return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value.get(name))}`).join(",")}}`;
    }
    if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
    return JSON.stringify(value);
  }

  // ---- Fields of an object, by their types -------------------------------------------------------------------

  const wrong = (field) => new Refused("field", { field });

  function only(value, names, optional = []) {
    if (!(value instanceof Map)) throw wrong("{}");
    for (const name of names) if (!value.has(name)) throw wrong(name);
    for (const name of value.keys()) if (!names.includes(name) && !optional.includes(name)) throw wrong(name);
    return value;
  }
  function text(value, name) {
    const found = value.get(name);
    if (typeof found !== "string") throw wrong(name);
    return found;
  }
  function choice(value, name, words) {
    if (!words.includes(value.get(name))) throw wrong(name);
    return value.get(name);
  }
  function list(value, name) {
    if (!Array.isArray(value.get(name))) throw wrong(name);
    return value.get(name);
  }
  /** An integer: neither a fraction nor an exponent. -0 is 0, where the canonical form is not asked for. */
  function whole(value, name, least, most) {
    const found = value.get(name);
    if (!(found instanceof Written) || !/^-?[0-9]+$/.test(found.text)) throw wrong(name);
    const number = Number(found.text);
    // Rounding cannot bring a number from outside inside: no limit is beyond 2^53 - 1.
    if (!(number >= least && number <= most)) throw wrong(name);
    return number + 0;
  }
  function finite(value, name) {
    const found = value.get(name);
    if (!(found instanceof Written) || !Number.isFinite(Number(found.text))) throw wrong(name);
    return Number(found.text);
  }
  function digest(value, name) {
    const found = text(value, name);
    if (!/^[0-9a-f]{64}$/.test(found)) throw wrong(name);
    return found;
  }
  const isPrintable = (word) => ![...word].some((c) => c !== " " && /[\p{C}\p{Z}]/u.test(c));
  function word(value, name) {
    const found = text(value, name);
    if ([...found].length > 64 || !isPrintable(found)) throw wrong(name);
    return found;
  }
  const TIME = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:Z|\+00:00)$/;
  /** Microseconds since 1970 as a BigInt; null if it is not a time in UTC. */
  function moment(written) {
    const match = TIME.exec(written);
    if (match === null) return null;
    const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number);
    const date = new Date(0);
    date.setUTCFullYear(year, month - 1, day);
    date.setUTCHours(hour, minute, second);
    const fits = [
      [year >= 1, true],
      [date.getUTCMonth() + 1, month],
      [date.getUTCDate(), day],
      [hour < 24 && minute < 60 && second < 60, true],
    ].every(([a, b]) => a === b);
    return fits ? BigInt(date.getTime()) * 1000n + BigInt((match[7] ?? "").padEnd(6, "0")) : null;
  }
  function time(value, name) {
    const found = text(value, name);
    if (moment(found) === null) throw wrong(name);
    return found;
  }

  // ---- Bytes and digests -------------------------------------------------------------------------------------

  const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const fromHex = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const sha256 = async (bytes) => new Uint8Array(await subtle.digest("SHA-256", bytes));

  /** Lays bytes out one after the other; every number is little-endian. */
  class Layout {
    constructor(size) {
      this.view = new DataView(new ArrayBuffer(size));
      this.at = 0;
    }
    u8(value) {
      this.view.setUint8(this.at, value);
      this.at += 1;
      return this;
    }
    u32(value) {
      this.view.setUint32(this.at, value, true);
      this.at += 4;
      return this;
    }
    u64(value) {
      return this.u32(value % 2 ** 32).u32(Math.floor(value / 2 ** 32));
    }
    f64(value) {
      this.view.setFloat64(this.at, value + 0, true);
      this.at += 8;
      return this;
    }
    hex(value) {
      for (let i = 0; i < value.length; i += 2) this.u8(parseInt(value.slice(i, i + 2), 16));
      return this;
    }
    async digest() {
      return toHex(await sha256(this.view.buffer));
    }
  }

  const digestOfFile = async (file) => file.sha256 ?? toHex(await sha256(file.bytes));

  /** A root or a tracker that somebody typed. */
  function typed(value, code) {
    // White space as Unicode has it; trim() would take a byte order mark for some, too.
    const found = (value ?? "").replace(/^[\p{Z}\t-\r\x1c-\x1f\x85]+|[\p{Z}\t-\r\x1c-\x1f\x85]+$/gu, "");
    if (!/^[0-9a-fA-F]{64}$/.test(found)) throw new Mistake(code);
    return found.toLowerCase();
  }

  // ---- The contract (§3) -------------------------------------------------------------------------------------

  const EXTRAS = { numeric: [], datetime: ["unit"], categorical: ["categories"], rank: ["size"] };

  function readColumn(value) {
    if (!(value instanceof Map)) throw wrong("columns");
    const kind = choice(value, "kind", Object.keys(EXTRAS));
    only(value, ["name", "role", "kind", ...EXTRAS[kind]], ["weight"]);
    const column = { name: text(value, "name"), role: choice(value, "role", ["quasi", "target"]), kind };
    if (!column.name.isWellFormed() || ["row", "tracker", "leaf"].includes(column.name)) throw wrong("name");
    if (kind === "categorical") {
      column.categories = list(value, "categories");
      const labels = column.categories;
      const areText = labels.every((label) => typeof label === "string" && label.isWellFormed());
      if (!areText || labels.length === 0 || new Set(labels).size !== labels.length) throw wrong("categories");
      column.size = labels.length;
    }
    if (kind === "datetime") column.unit = choice(value, "unit", ["day", "s", "ms", "us"]);
    if (kind === "rank") column.size = whole(value, "size", 1, MAX_INT_31);
    if (value.has("weight")) {
      column.weight = whole(value, "weight", 1, Math.floor(2 ** 52 / Math.max(1, (column.size ?? 1) - 1)));
    }
    if (column.role === "target" && (column.size !== 2 || column.weight !== undefined)) throw wrong("target");
    return column;
  }

  function readContract(value) {
    const names = ["format", "submission_id", "k", "min_leaf", "max_depth", "rule", "commitment", "columns"];
    only(value, names);
    choice(value, "format", ["verix/contract/2"]);
    if (!/^[0-9a-f]{32}$/.test(text(value, "submission_id"))) throw wrong("submission_id");
    const k = whole(value, "k", 2, MAX_INT_31);
    const contract = {
      k,
      minLeaf: whole(value, "min_leaf", k, MAX_INT_31),
      maxDepth: whole(value, "max_depth", 1, 50),
      rule: choice(value, "rule", ["variance-reduction", "importance-spread"]),
      commitment: choice(value, "commitment", ["binding", "paper"]),
      columns: list(value, "columns").map(readColumn),
    };
    const { columns } = contract;
    if (new Set(columns.map((column) => column.name)).size !== columns.length) throw wrong("name");
    contract.quasi = columns.filter((column) => column.role === "quasi");
    const coded = columns.filter((column) => column.kind === "rank").length;
    const targets = columns.length - contract.quasi.length;
    const weighted = contract.quasi.filter((column) => column.weight !== undefined).length;
    if (contract.quasi.length === 0 || (coded > 0 && coded < columns.length)) throw wrong("columns");
    const isSpread = contract.rule === "importance-spread";
    const fits = isSpread
      ? targets === 0 && weighted === columns.length && coded === columns.length
      : targets === 1 && weighted === 0;
    if (!fits) throw wrong("rule");
    if (contract.commitment === "paper") {
      if (coded > 0 || contract.quasi.some((column) => /[|:,]/.test(column.name))) throw wrong("commitment");
    }
    return contract;
  }

  // ---- Proofs of inclusion (§14) -----------------------------------------------------------------------------

  function readProof(bytes) {
    if (bytes.length > MAX_PROOF) throw new Refused("too-large", { limit: MAX_PROOF });
    const { value, text: written } = parseJson(bytes);
    if (!(value instanceof Map)) throw new Refused("not-a-proof");
    if (value.get("format") !== "verix/proof/1") throw new Refused("not-a-proof");
    only(value, ["format", "root", "submission", "contract", "tracker", "count", "bounds", "members", "path"]);
    const proof = {
      root: digest(value, "root"),
      submission: digest(value, "submission"),
      contract: readContract(value.get("contract")),
      tracker: digest(value, "tracker"),
      count: whole(value, "count", 0, MAX_INT),
      bounds: list(value, "bounds").map((each) => {
        only(each, ["min", "max"]);
        return [finite(each, "min"), finite(each, "max")];
      }),
      members: list(value, "members").map((each) => {
        only(each, ["row", "tracker"]);
        return { row: whole(each, "row", 0, MAX_INT), tracker: digest(each, "tracker") };
      }),
      path: list(value, "path").map((each) => {
        only(each, ["column", "threshold", "side", "sibling"]);
        return {
          column: whole(each, "column", 0, MAX_INT_31),
          threshold: finite(each, "threshold"),
          side: choice(each, "side", ["left", "right"]),
          sibling: digest(each, "sibling"),
        };
      }),
    };
    if (canonical(value) !== written) throw new Refused("not-canonical");
    proof.contractBytes = utf8.encode(canonical(value.get("contract")));
    return proof;
  }

  /** The root that follows from the leaf and the path (§6.2). */
  async function rootOf(proof) {
    const leaf = new Layout(9 + 16 * proof.bounds.length + 40 * proof.members.length).u8(0).u64(proof.count);
    for (const [least, most] of proof.bounds) leaf.f64(least).f64(most);
    for (const member of proof.members) leaf.u64(member.row).hex(member.tracker);
    let top = await leaf.digest();
    for (const turn of proof.path) {
      const sides = turn.side === "left" ? [top, turn.sibling] : [turn.sibling, top];
      top = await new Layout(77).u8(1).u32(turn.column).f64(turn.threshold).hex(sides[0]).hex(sides[1]).digest();
    }
    proof.contractDigest = toHex(await sha256(proof.contractBytes));
    return new Layout(97).u8(3).hex(proof.contractDigest).hex(proof.submission).hex(top).digest();
  }

  function canHave(column, values) {
    if (!values.every(Number.isFinite)) return false;
    if (column.size !== undefined) return values.every((v) => Number.isInteger(v) && v >= 0 && v < column.size);
    return column.kind !== "datetime" || values.every((v) => Number.isInteger(v) && Math.abs(v) <= EXACT);
  }

  async function holds(proof, root, tracker) {
    const { contract, members } = proof;
    const require = (isSo, code, values) => {
      if (!isSo) throw new Refused(code, values);
    };
    // 1
    require(proof.root === root, "other-root");
    require(tracker === null || proof.tracker === tracker, "other-tracker");
    // 2
    require(contract.commitment === "binding", "paper-commitment");
    require(proof.bounds.length === contract.quasi.length, "bounds-count");
    require(proof.path.every((turn) => turn.column < contract.quasi.length), "unknown-column");
    require(proof.path.length <= contract.maxDepth, "too-deep");
    // 3
    require((await rootOf(proof)) === proof.root, "root-does-not-follow");
    // 4
    require(proof.count === members.length, "count", { count: proof.count, found: members.length });
    require(proof.count >= contract.minLeaf, "too-few", { count: proof.count, least: contract.minLeaf });
    require(members.every(({ row }, i) => i === 0 || members[i - 1].row < row), "rows");
    require(new Set(members.map((member) => member.tracker)).size === members.length, "tracker-twice");
    contract.quasi.forEach((column, i) => {
      const [least, most] = proof.bounds[i];
      require(least <= most && canHave(column, [least, most]), "bounds", { column: column.name });
    });
    for (const turn of proof.path) {
      const column = contract.quasi[turn.column];
      require(canHave(column, [turn.threshold]), "threshold", { column: column.name });
    }
    // 5
    require(members.some((member) => member.tracker === proof.tracker), "not-a-member");
    // 6
    for (const turn of proof.path) {
      const [least, most] = proof.bounds[turn.column];
      const isOnSide = turn.side === "left" ? most <= turn.threshold : least > turn.threshold;
      require(isOnSide, "wrong-side", { column: contract.quasi[turn.column].name });
    }
  }

  // ---- Keys and envelopes (§8.5) -----------------------------------------------------------------------------

  const FIELD = 2n ** 255n - 19n;
  const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
  const EIGHTHS = [
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  ];
  const littleEndian = (bytes) => BigInt(`0x${toHex(Uint8Array.from(bytes).reverse())}`);
  const SMALL_ORDER = [0n, 1n, FIELD - 1n, ...EIGHTHS.map((hex) => littleEndian(fromHex(hex)))];
  const DER = fromHex("302a300506032b6570032100");
  const PEM = /^-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/= \t\r\n\f\v]*)-----END PUBLIC KEY-----/;

  /** A key from PEM, with its name; throws Mistake. */
  async function readPem(pem) {
    if (pem.includes("PRIVATE KEY-----")) throw new Mistake("private-key");
    // The first block counts, whatever it is: another program might find another one.
    const written = (PEM.exec(pem.slice(Math.max(0, pem.indexOf("-----BEGIN"))))?.[1] ?? "").replace(/\s/g, "");
    const der = fromBase64(written);
    if (der === null || der.length !== 44 || !DER.every((byte, i) => byte === der[i])) throw new Mistake("not-a-key");
    if (btoa(String.fromCharCode(...der)) !== written) throw new Mistake("not-a-key");
    const raw = der.slice(12);
    const y = littleEndian(raw) % 2n ** 255n;
    if (y >= FIELD) throw new Mistake("key-encoding");
    if (SMALL_ORDER.includes(y)) throw new Mistake("key-small-order");
    return { raw, keyid: toHex(await sha256(der)) };
  }

  const PINNED_TIMES = ["pinned", "not_before", "not_after", "revoked"];

  async function readPinned(value) {
    only(value, ["keyid", "public", "name"], [...PINNED_TIMES, "reason"]);
    const key = await readPem(text(value, "public"));
    if (text(value, "keyid") !== key.keyid) throw new Mistake("keyid");
    key.name = text(value, "name");
    key.reason = (value.get("reason") ?? null) === null ? "" : text(value, "reason");
    for (const line of [key.name, key.reason]) {
      if ([...line].length > 200 || !isPrintable(line)) throw wrong("name");
    }
    for (const name of PINNED_TIMES) {
      // A field that is null is one that is missing.
      if ((value.get(name) ?? null) !== null) key[name] = time(value, name);
    }
    if (key.not_before && key.not_after && moment(key.not_before) > moment(key.not_after)) throw wrong("not_after");
    return key;
  }

  /** The keys of files, each a public key in PEM or a file of pinned keys. */
  async function readKeys(files) {
    const found = [];
    for (const { bytes } of files) {
      if (bytes.length > MAX_KEYS) throw new Mistake("not-a-key");
      const start = new TextDecoder("latin1").decode(bytes).replace(/^[ \t\r\n\f\v]+/, "");
      if (start.startsWith("-----BEGIN")) {
        if (bytes.length > MAX_KEY) throw new Mistake("not-a-key");
        found.push({ ...(await readPem(start)), name: "", reason: "" });
        continue;
      }
      try {
        const { value } = parseJson(bytes);
        only(value, ["format", "keys"]);
        choice(value, "format", ["verix/keys/1"]);
        const pinned = await Promise.all(list(value, "keys").map(readPinned));
        if (pinned.length === 0) throw new Mistake("no-key");
        found.push(...pinned);
      } catch (error) {
        if (error instanceof Mistake || !(error instanceof Refused)) throw error;
        throw new Mistake("not-a-key");
      }
    }
    return found;
  }

  /** Why a pinned key does not count now; null if it does. */
  function refusal(pinned, now) {
    if (pinned.revoked) return { code: "key-revoked", keyid: pinned.keyid, when: pinned.revoked, why: pinned.reason };
    if (pinned.not_before && now < moment(pinned.not_before)) {
      return { code: "key-early", keyid: pinned.keyid, when: pinned.not_before };
    }
    if (pinned.not_after && now > moment(pinned.not_after)) {
      return { code: "key-late", keyid: pinned.keyid, when: pinned.not_after };
    }
    return null;
  }

  /** What is revoked in one place is revoked; else a key counts if one of its entries lets it. */
  function refusalOf(keyid, keys, now) {
    const entries = keys.filter((key) => key.keyid === keyid);
    const revoked = entries.filter((key) => key.revoked);
    const refusals = (revoked.length ? revoked : entries).map((key) => refusal(key, now));
    return refusals.includes(null) ? null : refusals[0];
  }

  /** Base64 in either alphabet, with padding; null if it is not. The last bits, which no byte has, may be any. */
  function fromBase64(written) {
    const standard = written.replaceAll("-", "+").replaceAll("_", "/");
    if (standard.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(standard)) return null;
    return Uint8Array.from(atob(standard), (c) => c.charCodeAt(0));
  }

  function base64(value, name) {
    const found = fromBase64(text(value, name));
    if (found === null) throw wrong(name);
    return found;
  }

  const PAYLOAD_TYPE = "application/vnd.in-toto+json";

  function readEnvelope(value) {
    only(value, ["payload", "payloadType", "signatures"]);
    choice(value, "payloadType", [PAYLOAD_TYPE]);
    const given = list(value, "signatures");
    if (given.length < 1 || given.length > 16) throw wrong("signatures");
    const signatures = new Map();
    for (const each of given) {
      only(each, ["sig"], ["keyid"]);
      const keyid = (each.get("keyid") ?? null) === null ? "" : text(each, "keyid");
      const signature = base64(each, "sig");
      if (signatures.has(keyid)) throw new Refused("signed-twice");
      if (keyid !== "") signatures.set(keyid, signature);
    }
    return { payload: base64(value, "payload"), signatures };
  }

  async function hasSigned(key, signature, payload) {
    if (signature.length !== 64 || littleEndian(signature.slice(32)) >= ORDER) return false;
    const head = utf8.encode(`DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} `);
    const signed = new Uint8Array(head.length + payload.length);
    signed.set(head);
    signed.set(payload, head.length);
    let imported;
    try {
      imported = await subtle.importKey("raw", key.raw, { name: "Ed25519" }, false, ["verify"]);
    } catch (error) {
      if (error.name === "NotSupportedError") throw new Mistake("no-ed25519");
      return false; // These bytes are not a point.
    }
    return subtle.verify({ name: "Ed25519" }, imported, signature, signed);
  }

  function envelopeIn(bytes) {
    if (bytes.length > MAX_ENVELOPE) throw new Refused("too-large", { limit: MAX_ENVELOPE });
    return parseJson(bytes).value;
  }

  /** The payload, and the keys that count and have signed it. It is not parsed before. */
  async function openEnvelope(value, keys, now) {
    const { payload, signatures } = readEnvelope(value);
    const distinct = new Map(keys.map((key) => [key.keyid, key]));
    const signers = [];
    const refusals = [];
    for (const [keyid, signature] of signatures) {
      if (!distinct.has(keyid)) continue;
      const why = refusalOf(keyid, keys, now);
      if (why !== null) refusals.push(why);
      else if (await hasSigned(distinct.get(keyid), signature, payload)) {
        const name = keys.find((key) => key.keyid === keyid && key.name)?.name ?? "";
        signers.push({ keyid, name });
      }
    }
    if (signers.length === 0) {
      const error = new Refused("not-signed");
      error.more = refusals;
      throw error;
    }
    return { payload, signers };
  }

  // ---- Statements (§8.5) -------------------------------------------------------------------------------------

  const DELIVERED = ["delivery.json", "leaves.parquet", "nodes.parquet", "records.parquet"];

  function readStatement(payload, kind, needed = "root") {
    const { value } = parseJson(payload);
    only(value, ["_type", "subject", "predicateType", "predicate"]);
    choice(value, "_type", ["https://in-toto.io/Statement/v1"]);
    choice(value, "predicateType", [kind]);
    const subjects = new Map();
    for (const each of list(value, "subject")) {
      only(each, ["name", "digest"]);
      only(each.get("digest"), ["sha256"]);
      const name = word(each, "name");
      if (subjects.has(name)) throw wrong("subject");
      subjects.set(name, digest(each.get("digest"), "sha256"));
    }
    if (subjects.size > 16 || !subjects.has(needed)) throw wrong("subject");
    return { subjects, said: value.get("predicate") };
  }

  function readReceipt(payload) {
    const { subjects, said } = readStatement(payload, "urn:verix:receipt:1");
    const counts = ["rows", "leaves", "nodes"];
    only(said, ["contract", "submission", "engine", "version", "began", "finished", ...counts]);
    const names = [...DELIVERED, "root"];
    if (subjects.size !== names.length || !names.every((name) => subjects.has(name))) throw wrong("subject");
    const root = subjects.get("root");
    subjects.delete("root");
    const found = { root, files: subjects, contract: digest(said, "contract"), submission: digest(said, "submission") };
    for (const name of ["engine", "version"]) found[name] = word(said, name);
    for (const name of counts) found[name] = whole(said, name, 0, 2 ** 32 - 1);
    for (const name of ["began", "finished"]) found[name] = time(said, name);
    return found;
  }

  function readVerdict(payload) {
    const { subjects, said } = readStatement(payload, "urn:verix:verdict:1");
    if (!subjects.has("verdict.json")) throw wrong("subject");
    only(said, ["contract", "submission", "outcome", "profile", "findings", "version", "time"]);
    const root = subjects.get("root");
    const file = subjects.get("verdict.json");
    subjects.delete("root");
    subjects.delete("verdict.json");
    const findings = list(said, "findings").map((each) => {
      only(each, ["layer", "status", "decides"]);
      choice(each, "decides", [true, false]);
      return { layer: word(each, "layer"), status: word(each, "status"), decides: each.get("decides") };
    });
    const deciding = findings.filter((each) => each.decides).map((each) => each.status);
    const passed = deciding.length > 0 && deciding.every((status) => status === "pass");
    const outcome = deciding.includes("fail") ? "VIOLATION" : passed ? "VERIFIED" : "INCONCLUSIVE";
    const found = {
      ...{ root, file, files: subjects, findings },
      ...{ contract: digest(said, "contract"), submission: digest(said, "submission") },
      ...{ outcome: word(said, "outcome"), profile: word(said, "profile") },
      ...{ version: word(said, "version"), time: time(said, "time") },
    };
    if (found.outcome !== outcome) throw new Refused("outcome", { said: found.outcome, follows: outcome });
    return found;
  }

  function readHead(payload) {
    const { subjects, said } = readStatement(payload, "urn:verix:series:1", "head");
    if (subjects.size !== 1) throw wrong("subject");
    only(said, ["size"]);
    return { hash: subjects.get("head"), size: whole(said, "size", 0, MAX_INT) };
  }

  const sameFiles = (a, b) => a.size === b.size && [...a].every(([name, sha]) => b.get(name) === sha);

  /** What a key that counts has signed; what is wrong with it is noted in the answer. */
  async function signedBy(bytes, keys, now, read, what, answer, open = envelopeIn) {
    try {
      const { payload, signers } = await openEnvelope(open(bytes), keys, now);
      const said = read(payload);
      said.signers = signers;
      return said;
    } catch (error) {
      if (!(error instanceof Refused) || error instanceof Mistake) throw error;
      answer.problems.push({ ...error.reason, in: what }, ...(error.more ?? []));
      return null;
    }
  }

  const newAnswer = () => ({ ok: false, problems: [], shown: [], open: [], facts: {} });
  const nameSigners = (said) => said.signers.map(({ keyid, name }) => (name ? `${keyid} (${name})` : keyid)).join(", ");

  // ---- The questions -----------------------------------------------------------------------------------------

  /**
   * Who vouches for a delivery: the provider by its receipt, the owner by its verdict.
   *
   * asked: { receipt, keys, verdict?, ownerKeys?, root?, files?, now }: bytes, lists of { bytes }, and `files` a list of
   * files. There may be a verdict without a receipt: then it says only what the owner signed. A file is one of { name, label, bytes } or { name, label, sha256 }. `now` is in milliseconds since 1970.
   */
  async function checkReceipt(asked) {
    const answer = newAnswer();
    const now = BigInt(Math.floor(asked.now)) * 1000n;
    let receipt = null;
    if (asked.receipt !== undefined) {
      const keys = await readKeys(asked.keys);
      receipt = await signedBy(asked.receipt, keys, now, readReceipt, "receipt", answer);
    }
    if (receipt !== null) {
      const { root, contract, submission, rows, leaves, began, finished, engine, version } = receipt;
      const values = { root, contract, submission, rows, leaves, began, finished, engine, version };
      answer.shown.push({ code: "receipt-says", signer: nameSigners(receipt), ...values });
    }
    let verdict = null;
    if (asked.verdict !== undefined) {
      const ownerKeys = await readKeys(asked.ownerKeys);
      verdict = await signedBy(asked.verdict, ownerKeys, now, readVerdict, "verdict", answer);
    }
    if (verdict !== null) {
      const { outcome, profile, version, time: when, findings } = verdict;
      const decided = findings.filter((each) => each.decides).map((each) => `${each.layer} ${each.status}`);
      const values = { outcome, profile, version, when, decided: decided.join(", ") || "—" };
      answer.shown.push({ code: "verdict-says", signer: nameSigners(verdict), ...values });
    }
    if (receipt !== null && verdict !== null) {
      const isSame = sameFiles(receipt.files, verdict.files);
      const isAbout = ["root", "contract", "submission"].every((name) => receipt[name] === verdict[name]);
      if (isSame && isAbout) answer.shown.push({ code: "same-delivery" });
      else answer.problems.push({ code: "other-delivery" });
    }
    if (asked.root !== undefined) {
      const root = typed(asked.root, "root-form");
      if (receipt !== null && receipt.root !== root) answer.problems.push({ code: "receipt-other-root" });
      else if (receipt !== null) answer.shown.push({ code: "root-asked" });
    }
    for (const file of asked.files ?? []) await compareFile(file, receipt, verdict, answer);
    answer.open.push({ code: verdict === null ? "open-right" : "open-right-by-word" });
    answer.open.push({ code: "open-when" }, { code: "open-who" }, { code: "open-records" });
    const compared = (asked.files ?? []).map((file) => file.name);
    const others = receipt === null ? [] : DELIVERED.filter((name) => !compared.includes(name));
    if (others.length > 0) answer.open.push({ code: "open-files", files: others.join(", ") });
    answer.ok = answer.shown.length > 0 && answer.problems.length === 0;
    answer.facts = { receipt, verdict };
    return answer;
  }

  /** What signed words are, "receipt" or "verdict"; null if none of the keys that count has signed them. */
  async function kindOf(bytes, keys, now) {
    try {
      const { payload } = await openEnvelope(envelopeIn(bytes), keys, BigInt(Math.floor(now)) * 1000n);
      return parseJson(payload).value.get("predicateType") === "urn:verix:verdict:1" ? "verdict" : "receipt";
    } catch {
      return null;
    }
  }

  async function compareFile(file, receipt, verdict, answer) {
    const sha = await digestOfFile(file);
    const isVerdict = file.name === "verdict.json" && verdict !== null;
    const signed = isVerdict ? verdict.file : receipt?.files.get(file.name);
    const values = { file: file.label, name: file.name, sha256: sha };
    if (signed === undefined) answer.problems.push({ code: "file-unnamed", ...values });
    else if (signed !== sha) answer.problems.push({ code: "file-other", ...values });
    else {
      answer.shown.push({ code: "file-same", ...values });
      if (file.name === "delivery.json" && receipt !== null && !headerAgrees(file.bytes, receipt)) {
        answer.problems.push({ code: "header-contradicts", file: file.label });
      }
    }
  }

  /** A signer whose receipt and delivery.json differ contradicts itself. */
  function headerAgrees(bytes, receipt) {
    try {
      if (bytes.length > MAX_ENVELOPE) return false;
      const { value } = parseJson(bytes);
      return ["root", "contract", "submission"].every((name) => digest(value, name) === receipt[name]);
    } catch {
      return false;
    }
  }

  /**
   * Whether a proof of inclusion holds.
   *
   * asked: { proof, root?, tracker?, receipt?, keys?, now }: the root is given, or comes from a receipt that counts.
   */
  async function checkProof(asked) {
    const answer = newAnswer();
    if ((asked.receipt === undefined) !== ((asked.keys ?? []).length === 0)) throw new Mistake("receipt-and-key");
    let receipt = null;
    if (asked.receipt !== undefined) {
      const { receipt: bytes, keys, root, now } = asked;
      const signed = await checkReceipt({ receipt: bytes, keys, now, ...(root === undefined ? {} : { root }) });
      if (!signed.ok) return { ...answer, problems: signed.problems };
      receipt = signed.facts.receipt;
      answer.shown.push(...signed.shown);
    } else if (asked.root === undefined) throw new Mistake("no-root");
    const root = receipt === null ? typed(asked.root, "root-form") : receipt.root;
    const tracker = asked.tracker === undefined ? null : typed(asked.tracker, "tracker-form");
    try {
      const proof = readProof(asked.proof);
      await holds(proof, root, tracker);
      const agrees = receipt === null
        || (receipt.contract === proof.contractDigest && receipt.submission === proof.submission);
      if (!agrees) throw new Refused("receipt-other-contract");
      answer.ok = true;
      answer.facts = { proof };
      const values = { root, tracker: proof.tracker, count: proof.count, least: proof.contract.minLeaf };
      answer.shown.unshift({ code: "proof-holds", ...values });
      answer.open.push(...["whose", "values", "planted", "tree", "published"].map((name) => ({ code: `open-${name}` })));
      if (receipt === null) answer.open.push({ code: "open-root" });
    } catch (error) {
      if (!(error instanceof Refused) || error instanceof Mistake) throw error;
      answer.problems.push({ ...error.reason, in: "proof" });
    }
    return answer;
  }

  // ---- The log of a series (§15) -----------------------------------------------------------------------------

  const MAX_ENTRIES = 1 << 16;
  const MAX_LOG = 64 << 20;
  const HEAD = /^[ \t\r\n]*(0|[1-9][0-9]{0,5}):([0-9a-f]{64})[ \t\r\n]*$/;

  function readLog(bytes) {
    if (bytes.length > MAX_LOG) throw new Refused("too-large", { limit: MAX_LOG });
    const { value } = parseJson(bytes);
    if (!(value instanceof Map) || value.get("format") !== "verix/series/1") throw new Refused("not-a-log");
    only(value, ["format", "entries", "size", "head"], ["signature"]);
    const entries = list(value, "entries");
    if (entries.length > MAX_ENTRIES) throw wrong("entries");
    entries.forEach((each, i) => {
      const digests = ["contract", "submission", "root", "cells", "file"];
      only(each, ["number", "time", ...digests]);
      whole(each, "number", i + 1, i + 1);
      time(each, "time");
      for (const name of digests) digest(each, name);
    });
    const signature = value.get("signature");
    if (signature !== undefined) {
      const { signatures } = readEnvelope(signature);
      if (![...signatures.keys()].every((keyid) => keyid.isWellFormed())) throw wrong("signature");
      const { length } = utf8.encode(canonical(signature));
      if (length > MAX_ENVELOPE) throw new Refused("too-large", { limit: MAX_ENVELOPE });
    }
    return { entries, signature, size: whole(value, "size", 0, MAX_INT), head: digest(value, "head") };
  }

  /** The Merkle Tree Hash of RFC 9162, §2.1.1, of these entries. */
  async function treeHash(entries) {
    if (entries.length === 0) return toHex(await sha256(new Uint8Array()));
    let level = await Promise.all(
      entries.map((entry) => {
        const data = utf8.encode(canonical(entry));
        const leaf = new Uint8Array(1 + data.length);
        leaf.set(data, 1);
        return sha256(leaf);
      }),
    );
    while (level.length > 1) {
      const above = [];
      for (let i = 0; i + 1 < level.length; i += 2) {
        const node = new Uint8Array(65);
        node[0] = 1;
        node.set(level[i], 1);
        node.set(level[i + 1], 33);
        above.push(sha256(node));
      }
      // The last of an odd number goes up as it is: that splits at the largest power of two.
      if (level.length % 2 === 1) above.push(level.at(-1));
      level = await Promise.all(above);
    }
    return toHex(level[0]);
  }

  /**
   * Whether a log is whole, continues an older head, names a file, and was signed.
   *
   * asked: { log, head?, files?, keys?, now }: `head` is a text such as "3:0a1b…", `files` as for checkReceipt.
   */
  async function checkSeries(asked) {
    const answer = newAnswer();
    const keys = await readKeys(asked.keys ?? []);
    const older = asked.head === undefined ? null : HEAD.exec(asked.head);
    if (asked.head !== undefined && older === null) throw new Mistake("head-form");
    let log;
    try {
      log = readLog(asked.log);
      if (log.size !== log.entries.length || log.head !== (await treeHash(log.entries))) {
        throw new Refused("log-changed");
      }
    } catch (error) {
      if (!(error instanceof Refused) || error instanceof Mistake) throw error;
      answer.problems.push({ ...error.reason, in: "log" });
      return answer;
    }
    answer.shown.push({ code: "log-whole", size: log.size, head: `${log.size}:${log.head}` });
    if (older !== null) {
      const size = Number(older[1]);
      if (size > log.size) answer.problems.push({ code: "log-shorter", size: log.size, older: size });
      else if ((await treeHash(log.entries.slice(0, size))) !== older[2]) {
        answer.problems.push({ code: "log-forked", older: size });
      } else answer.shown.push({ code: "log-continues", older: size });
    } else answer.open.push({ code: "open-head" });
    for (const file of asked.files ?? []) {
      const sha = await digestOfFile(file);
      const entry = log.entries.find((each) => each.get("file") === sha);
      const values = { file: file.label, sha256: sha };
      if (entry === undefined) answer.problems.push({ code: "log-no-file", ...values });
      else {
        const [number, when] = [entry.get("number").text, entry.get("time")];
        answer.shown.push({ code: "log-has-file", number, when, root: entry.get("root"), ...values });
      }
    }
    if (keys.length > 0 && log.signature === undefined) answer.problems.push({ code: "log-unsigned" });
    else if (keys.length > 0) {
      const now = BigInt(Math.floor(asked.now)) * 1000n;
      const signed = await signedBy(log.signature, keys, now, readHead, "signed-head", answer, (read) => read);
      if (signed !== null && (signed.hash !== log.head || signed.size !== log.size)) {
        answer.problems.push({ code: "other-head" });
      } else if (signed !== null) answer.shown.push({ code: "log-signed", signer: nameSigners(signed) });
    } else answer.open.push({ code: "open-signer" });
    answer.open.push({ code: "open-who" }, { code: "open-other-logs" }, { code: "open-safe" });
    answer.ok = answer.problems.length === 0;
    answer.facts = { log };
    return answer;
  }

  return { Mistake, Refused, checkProof, checkReceipt, checkSeries, kindOf, parseJson, readKeys, sha256, toHex };
})();
if (typeof module === "object") module.exports = checker;

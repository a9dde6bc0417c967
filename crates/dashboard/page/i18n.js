// The page's languages. The server's own sentences about rollouts come with codes, so that they are translated, too; its answers to
// why, and whatever comes from the cluster, are shown as they are.
import en from "./en.js";
import zh from "./zh.js";
import zhSentences from "./zh_sentences.js";

const TABLES = { en, zh };
const SENTENCES = { zh: zhSentences };
const STORED = "kennel-language";

export const LANGUAGES = [
  ["en", "English"],
  ["zh", "中文"],
];

let language = preferred();
let numbers = new Intl.NumberFormat(language);
document.documentElement.lang = locale();

function preferred() {
  const stored = localStorage.getItem(STORED);
  if (stored in TABLES) {
    return stored;
  }
  const first = navigator.languages.find((tag) => tag.slice(0, 2) in TABLES);
  return first ? first.slice(0, 2) : "en";
}

export function locale() {
  return language === "zh" ? "zh-CN" : "en";
}

export function currentLanguage() {
  return language;
}

export function setLanguage(next) {
  language = next in TABLES ? next : "en";
  localStorage.setItem(STORED, language);
  numbers = new Intl.NumberFormat(language);
  document.documentElement.lang = locale();
}

// The text of a key, with `{name}` filled in from `values`. An entry of two texts is for one and for several, by `values.n`.
export function t(key, values = {}) {
  let entry = TABLES[language][key] ?? TABLES.en[key];
  if (entry === undefined) {
    return key;
  }
  if (Array.isArray(entry)) {
    entry = values.n === 1 ? entry[0] : entry[1];
  }
  return filled(entry, values);
}

function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name];
    return typeof value === "number" ? number(value) : String(value ?? "");
  });
}

// A sentence of the server by its code and values, else its English text.
export function sentence(said, text) {
  const entry = SENTENCES[language]?.[said?.code];
  return entry === undefined ? text : filled(entry, said.values);
}

// Why a cell is as it is, from its code, such as `restarts:3`.
export function reasonText(code) {
  const [name, n] = (code ?? "").split(":");
  return name === "" ? "" : t(`reason.${name}`, { n: Number(n) });
}

// A word of the server, such as a phase, in the page's language; as it is if the page does not know it.
export function word(group, value) {
  if (!value) {
    return "";
  }
  return TABLES[language][`${group}.${value}`] ?? TABLES.en[`${group}.${value}`] ?? value;
}

// What the server says of a rollout, after the reason that a person gave for pausing it, unless that is in it.
export function withReason({ message, said, paused }) {
  const known = paused === undefined || paused === "" || message.includes(paused);
  const text = sentence(said, message);
  return known ? text : t("pausedBecause", { reason: paused, message: text });
}

export function number(value) {
  return numbers.format(value);
}

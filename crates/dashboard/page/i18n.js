// The page's languages. What the server sends, such as the answers of `kennel why`, is shown as it is.
import en from "./en.js";
import zh from "./zh.js";

const TABLES = { en, zh };
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
  return entry.replace(/\{(\w+)\}/g, (_, name) => {
    const value = values[name];
    return typeof value === "number" ? number(value) : String(value ?? "");
  });
}

// A word of the server, such as a phase, in the page's language; as it is if the page does not know it.
export function word(group, value) {
  if (!value) {
    return "";
  }
  return TABLES[language][`${group}.${value}`] ?? TABLES.en[`${group}.${value}`] ?? value;
}

// What the server says of a rollout, after the reason that a person gave for pausing it, unless that is in it.
export function withReason({ message, paused }) {
  const known = paused === undefined || paused === "" || message.includes(paused);
  return known ? message : t("pausedBecause", { reason: paused, message });
}

export function number(value) {
  return numbers.format(value);
}

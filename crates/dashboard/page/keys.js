// The list of keys, and whether those that are single characters count: they get in the way of people who dictate.
import { h } from "./dom.js";
import { t } from "./i18n.js";

const STORED = "kennel-single-keys";
const KEYS = [
  [["/"], "keys.search"],
  [["←", "↑", "→", "↓"], "keys.move"],
  [["Home", "End"], "keys.row"],
  [["PageUp", "PageDown"], "keys.group"],
  [["n", "p"], "keys.problem"],
  [["Esc"], "keys.close"],
  [["?"], "keys.help"],
];

export function singleKeys() {
  return localStorage.getItem(STORED) !== "off";
}

export function showKeys() {
  const rows = KEYS.flatMap(([keys, text]) => [
    h(
      "dt",
      {},
      keys.map((key) => h("kbd", {}, key)),
    ),
    h("dd", {}, t(text)),
  ]);
  const choice = h("input", { type: "checkbox", checked: singleKeys() });
  choice.addEventListener("change", () => localStorage.setItem(STORED, choice.checked ? "on" : "off"));
  const dialog = h(
    "dialog",
    { class: "keys", "aria-labelledby": "keys-title" },
    h("h2", { id: "keys-title" }, t("keys")),
    h("dl", {}, rows),
    h("label", { class: "choice" }, choice, t("singleKeys")),
    h("form", { method: "dialog" }, h("button", { class: "primary", autofocus: true }, t("close"))),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

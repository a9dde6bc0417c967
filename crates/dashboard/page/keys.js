// The list of keys.
import { h } from "./dom.js";
import { t } from "./i18n.js";

const KEYS = [
  [["/"], "keys.search"],
  [["←", "↑", "→", "↓"], "keys.move"],
  [["Home", "End"], "keys.row"],
  [["PageUp", "PageDown"], "keys.group"],
  [["n", "p"], "keys.problem"],
  [["Esc"], "keys.close"],
  [["?"], "keys.help"],
];

export function showKeys() {
  const rows = KEYS.flatMap(([keys, text]) => [
    h(
      "dt",
      {},
      keys.map((key) => h("kbd", {}, key)),
    ),
    h("dd", {}, t(text)),
  ]);
  const dialog = h(
    "dialog",
    { class: "keys", "aria-labelledby": "keys-title" },
    h("h2", { id: "keys-title" }, t("keys")),
    h("dl", {}, rows),
    h("form", { method: "dialog" }, h("button", { class: "primary" }, t("close"))),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

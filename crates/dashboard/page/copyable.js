// A command with a button that copies it.
import { announce, h, setText } from "./dom.js";
import { t } from "./i18n.js";

const SAID_MS = 1_500;

export function copyable(command) {
  const label = h("span", {}, t("copy"));
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(command);
      setText(label, t("copied"));
      announce(t("copied"));
    } catch {
      // Without a secure context there is no clipboard: the text can be selected.
      getSelection().selectAllChildren(text);
      setText(label, t("selected"));
    }
    setTimeout(() => setText(label, t("copy")), SAID_MS);
  };
  const text = h("code", {}, command);
  return h(
    "div",
    { class: "command" },
    text,
    h("button", { class: "small", "aria-label": t("copyCommand", { command }), onclick: copy }, label),
  );
}

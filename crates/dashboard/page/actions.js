// The buttons that change a rollout. Each shows first what it will do, from a fresh look at the cluster.
import { get, post } from "./api.js";
import { announce, h, replace, setAttribute } from "./dom.js";
import { copyable } from "./copyable.js";
import { sentence, t } from "./i18n.js";

// The order of the buttons.
const VERBS = ["promote", "promoteFull", "resume", "retry", "pause", "abort", "undo"];
// What stands out when a rollout waits for a person. After a failure nothing does: there is no usual answer.
const USUAL = new Set(["promote", "resume"]);
const GRAVE = new Set(["abort", "undo", "promoteFull"]);

export class Actions {
  #view;

  constructor(view) {
    this.#view = view;
    this.buttons = VERBS.map((verb) =>
      h("button", { class: GRAVE.has(verb) ? "grave" : "", onclick: () => this.#ask(verb) }, t(`verb.${verb}`)),
    );
    this.element = h("div", { class: "actions", role: "group", "aria-label": t("actions"), hidden: true }, this.buttons);
  }

  update() {
    const { rollout, allowChanges } = this.#view;
    setAttribute(this.element, "hidden", !allowChanges || rollout === null);
    const actions = new Map((rollout?.actions ?? []).map((action) => [action.verb, action]));
    const waits = rollout?.outcome === "waiting" || rollout?.paused !== undefined;
    VERBS.forEach((verb, index) => {
      const button = this.buttons[index];
      const action = actions.get(verb);
      const possible = action?.possible === true;
      // A button that has the focus stays, or the keyboard would lose its place.
      setAttribute(button, "hidden", !possible && document.activeElement !== button);
      setAttribute(button, "aria-disabled", possible ? null : "true");
      setAttribute(button, "title", action && sentence(action.said, action.effect));
      button.classList.toggle("primary", possible && waits && USUAL.has(verb));
    });
  }

  async #ask(verb) {
    const { path } = this.#view;
    const dialog = h("dialog", { class: "action", "aria-labelledby": "action-title" });
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    this.#write(dialog, verb, h("p", { class: "faint" }, t("loading")), null);
    dialog.showModal();
    try {
      const preview = await get(`${path}/rollout/preview?verb=${verb}`);
      this.#preview(dialog, verb, preview);
    } catch (failure) {
      this.#write(dialog, verb, h("p", { class: "failure" }, failure.message), null);
    }
  }

  #preview(dialog, verb, preview) {
    const reason =
      verb === "pause" && preview.possible
        ? h("input", { type: "text", id: "reason", autocomplete: "off", maxlength: "200" })
        : null;
    const annotations = Object.entries(preview.annotations ?? {});
    const content = [
      h("p", { class: "effect" }, sentence(preview.said, preview.effect)),
      reason && h("label", { class: "reason-field" }, h("span", {}, t("reason")), reason),
      annotations.length > 0 &&
        h(
          "details",
          {},
          h("summary", {}, t("whatIsWritten")),
          h("pre", {}, annotations.map(([key, value]) => (value === null ? `- ${key}` : `+ ${key}: ${value}`)).join("\n")),
        ),
      h("h3", {}, t("sameInTerminal")),
      copyable(preview.command),
    ];
    const act = () => this.#act(dialog, verb, preview.target, reason?.value.trim());
    this.#write(dialog, verb, content, preview.possible ? act : null);
    reason?.focus();
  }

  async #act(dialog, verb, target, reason) {
    const body = { verb };
    if (target) {
      body.target = target;
    }
    if (reason) {
      body.reason = reason;
    }
    dialog.querySelectorAll("button").forEach((button) => setAttribute(button, "disabled", true));
    try {
      const done = await post(`${this.#view.path}/rollout`, body);
      const effect = sentence(done.said, done.effect);
      this.#write(dialog, verb, h("p", { class: "done", role: "status" }, effect), null);
      announce(effect);
    } catch (failure) {
      this.#write(dialog, verb, h("p", { class: "failure", role: "alert" }, failure.message), null);
    }
  }

  // `act` is what the button of the verb does; without it there is nothing but closing.
  #write(dialog, verb, content, act) {
    const { namespace, name } = this.#view;
    const close = h("button", { class: act ? "" : "primary", onclick: () => dialog.close() }, act ? t("cancel") : t("close"));
    const go = act && h("button", { class: GRAVE.has(verb) ? "primary grave" : "primary", onclick: act }, t(`verb.${verb}`));
    replace(
      dialog,
      h("h2", { id: "action-title" }, t(`verb.${verb}`), h("span", { class: "faint" }, ` ${namespace} / ${name}`)),
      content,
      h("div", { class: "dialog-buttons" }, close, go),
    );
    close.focus();
  }
}

// What a node says when the mouse points at it: its state at once, and after a moment what `kennel why` says.
import { get, nodePath } from "./api.js";
import { debounce, h, replace, setAttribute } from "./dom.js";
import { t } from "./i18n.js";
import { glyph } from "./states.js";

const ASK_AFTER_MS = 220;
const KEPT_MS = 5_000;
const MARGIN = 12;

export class Tooltip {
  #view;
  #name = "";
  #answers = new Map();
  #ask = debounce(ASK_AFTER_MS, (name) => this.#fetch(name));

  constructor(view) {
    this.#view = view;
    this.element = h("div", { class: "tooltip", hidden: true, "aria-hidden": "true" });
  }

  destroy() {
    this.#ask.cancel();
    this.#name = "";
  }

  show(name, box) {
    this.#name = name;
    this.#ask.cancel();
    if (name === "") {
      setAttribute(this.element, "hidden", true);
      return;
    }
    this.#write(this.#known(name));
    this.#place(box);
    if (!this.#known(name)) {
      this.#ask(name);
    }
    this.box = box;
  }

  #known(name) {
    const kept = this.#answers.get(name);
    return kept && performance.now() - kept.at < KEPT_MS ? kept.message : null;
  }

  async #fetch(name) {
    try {
      const { answer } = await get(`${nodePath(this.#view.namespace, this.#view.name, name)}/why`);
      this.#answers.clear();
      this.#answers.set(name, { message: answer.message, at: performance.now() });
      if (this.#name === name) {
        this.#write(answer.message);
        this.#place(this.box);
      }
    } catch {
      // The panel of a selected node says what is wrong.
    }
  }

  #write(message) {
    const { fleet } = this.#view;
    const index = fleet.indexOf(this.#name);
    const state = fleet.stateName(index);
    const group = fleet.groupName(index);
    const reason = fleet.reason(index);
    replace(
      this.element,
      h("div", { class: "tooltip-head" }, state && glyph(state), h("b", {}, this.#name)),
      h("div", { class: "faint" }, [t(`state.${state ?? "gone"}`), reason, group].filter(Boolean).join(" · ")),
      message && h("div", {}, message),
    );
  }

  #place(box) {
    setAttribute(this.element, "hidden", false);
    const [cell, own] = [box.getBoundingClientRect(), this.element.getBoundingClientRect()];
    const left = Math.min(cell.right + MARGIN, innerWidth - own.width - MARGIN);
    const below = cell.bottom + MARGIN;
    const top = below + own.height > innerHeight ? cell.top - own.height - MARGIN : below;
    this.element.style.transform = `translate(${Math.max(MARGIN, left)}px, ${Math.max(MARGIN, top)}px)`;
  }
}

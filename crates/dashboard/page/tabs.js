// Tabs, as the ARIA practices have them: one tab stop, arrow keys move between tabs.
import { h, setAttribute } from "./dom.js";

// `panels` are {key, label, element, onShow}. `onChange(key)` tells which one is shown.
export class Tabs {
  #panels;
  #onChange;

  constructor(label, panels, first, onChange) {
    this.#panels = panels;
    this.#onChange = onChange;
    this.tabs = panels.map(({ key, label: text }) =>
      h(
        "button",
        {
          role: "tab",
          id: `tab-${key}`,
          "aria-controls": `panel-${key}`,
          onclick: () => this.choose(key),
          onkeydown: (event) => this.#key(event),
        },
        h("span", {}, text),
        h("b", { class: "badge", hidden: true }),
      ),
    );
    this.bodies = panels.map(({ key, element }) =>
      h("div", { role: "tabpanel", id: `panel-${key}`, "aria-labelledby": `tab-${key}`, tabindex: "0" }, element),
    );
    this.element = h("div", { class: "tabs" }, h("div", { role: "tablist", "aria-label": label }, this.tabs), this.bodies);
    this.#show(panels.some(({ key }) => key === first) ? first : panels[0].key);
  }

  choose(key) {
    this.#show(key);
    this.#onChange(key);
  }

  badge(key, text) {
    const badge = this.tabs[this.#panels.findIndex((panel) => panel.key === key)].lastChild;
    setAttribute(badge, "hidden", text === "");
    if (badge.textContent !== text) {
      badge.textContent = text;
    }
  }

  #show(key) {
    this.chosen = key;
    this.#panels.forEach((panel, index) => {
      const chosen = panel.key === key;
      setAttribute(this.tabs[index], "aria-selected", String(chosen));
      setAttribute(this.tabs[index], "tabindex", chosen ? "0" : "-1");
      setAttribute(this.bodies[index], "hidden", !chosen);
      if (chosen) {
        panel.onShow?.();
      }
    });
  }

  #key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) {
      return;
    }
    event.preventDefault();
    const from = this.#panels.findIndex(({ key }) => key === this.chosen);
    const to = (from + step + this.#panels.length) % this.#panels.length;
    this.choose(this.#panels[to].key);
    this.tabs[to].focus();
  }
}

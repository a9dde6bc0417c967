// Beside the picture while no node is selected: problems, events, history, and what changed.
import { h, setAttribute } from "./dom.js";
import { Changes } from "./changes.js";
import { EventList } from "./event_list.js";
import { History } from "./history.js";
import { number, t } from "./i18n.js";
import { Problems } from "./problems.js";
import { Tabs } from "./tabs.js";

export class SidePanel {
  #target = null;

  constructor(view) {
    this.view = view;
    const isShown = (key) => () => this.tabs?.chosen === key && !this.element.hidden;
    const count = (problems) => this.tabs?.badge("problems", problems > 0 ? number(problems) : "");
    this.problems = new Problems(view, count, isShown("problems"));
    this.events = new EventList(isShown("events"));
    this.changes = new Changes(view);
    this.history = new History(view, (from, to) => {
      this.changes.compare(from, to);
      this.tabs.choose("changes");
    });
    const panels = [
      { key: "problems", label: t("problems"), element: this.problems.element, onShow: () => this.problems.show() },
      { key: "events", label: t("events"), element: this.events.element, onShow: () => this.events.show() },
      { key: "history", label: t("history"), element: this.history.element, onShow: () => this.history.load() },
      { key: "changes", label: t("changes"), element: this.changes.element, onShow: () => this.changes.load() },
    ];
    this.tabs = new Tabs(t("details"), panels, view.tab, (key) => view.setTab(key));
    this.element = h("div", { class: "side" }, this.tabs.element);
  }

  // A rollout that moved on has another history, and maybe another target.
  rollout() {
    const { rollout } = this.view;
    this.problems.rollout();
    const now = [rollout.target, rollout.phase, rollout.stage?.index].join(" ");
    if (this.#target !== null && this.#target !== now) {
      this.history.stale();
      this.changes.stale();
      this.reload();
    }
    this.#target = now;
  }

  // Hidden while a node is selected.
  setVisible(visible) {
    setAttribute(this.element, "hidden", !visible);
    this.problems.show();
    this.events.show();
  }

  tick() {
    this.events.tick();
  }

  destroy() {
    this.history.destroy();
  }

  // Asks again for what is out of date, or could not be read.
  reload() {
    if (this.tabs.chosen === "history") {
      this.history.load();
    } else if (this.tabs.chosen === "changes") {
      this.changes.load();
    }
  }
}

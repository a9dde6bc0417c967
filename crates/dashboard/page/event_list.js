// The DaemonSet's newest events. Those about single pods come by the hundred, and are shown only on request.
import { h, keyed, setAttribute, setText } from "./dom.js";
import { t } from "./i18n.js";
import { ago, moment } from "./time.js";

const ABOUT_PODS = new Set(["SuccessfulCreate", "SuccessfulDelete"]);

export class EventList {
  #events = [];
  #isShown;

  // `isShown()` says whether the list can be seen.
  constructor(isShown) {
    this.#isShown = isShown;
    this.list = h("ul", { class: "events" });
    this.none = h("p", { class: "empty" }, t("noEvents"));
    this.pods = h("input", { type: "checkbox", onchange: () => this.#write() });
    this.element = h("div", {}, h("label", { class: "choice" }, this.pods, t("podEvents")), this.none, this.list);
  }

  update(events) {
    this.#events = events;
    this.show();
  }

  // It can be seen again.
  show() {
    if (this.#isShown()) {
      this.#write();
    }
  }

  // Once a second: how long ago each was.
  tick() {
    if (this.#isShown()) {
      for (const element of this.list.children) {
        writeTime(element);
      }
    }
  }

  #write() {
    const shown = this.#events.filter(({ reason }) => this.pods.checked || !ABOUT_PODS.has(reason));
    setAttribute(this.none, "hidden", shown.length > 0);
    keyed(
      this.list,
      shown,
      (event) => event.uid,
      create,
      (element, event) => {
        const [head, message] = element.children;
        setAttribute(element, "data-type", event.type);
        setText(head.children[0], event.reason);
        setText(head.children[1], event.count > 1 ? `× ${event.count}` : "");
        setText(message, event.message);
        element.last = event.last;
        writeTime(element);
      },
    );
  }
}

function writeTime(element) {
  const time = element.querySelector("time");
  setText(time, ago(element.last));
  setAttribute(time, "title", moment(element.last));
}

function create() {
  const head = h("div", { class: "event-head" }, h("b"), h("span", { class: "faint" }), h("time", { class: "faint" }));
  return h("li", {}, head, h("p"));
}

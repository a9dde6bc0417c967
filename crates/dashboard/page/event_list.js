// The DaemonSet's newest events. Those about single pods come by the hundred, and are shown only on request.
import { h, keyed, setAttribute, setText } from "./dom.js";
import { t } from "./i18n.js";
import { ago, moment } from "./time.js";

const ABOUT_PODS = new Set(["SuccessfulCreate", "SuccessfulDelete"]);

export class EventList {
  #events = [];
  #shown = [];

  constructor() {
    this.list = h("ul", { class: "events" });
    this.none = h("p", { class: "empty" }, t("noEvents"));
    this.pods = h("input", { type: "checkbox", onchange: () => this.#write() });
    this.element = h("div", {}, h("label", { class: "choice" }, this.pods, t("podEvents")), this.none, this.list);
  }

  update(events) {
    this.#events = events;
    this.#write();
  }

  tick() {
    this.#shown.forEach((event, index) => {
      const time = this.list.children[index]?.querySelector("time");
      if (time) {
        setText(time, ago(event.last));
        setAttribute(time, "title", moment(event.last));
      }
    });
  }

  #write() {
    this.#shown = this.#events.filter(({ reason }) => this.pods.checked || !ABOUT_PODS.has(reason));
    setAttribute(this.none, "hidden", this.#shown.length > 0);
    keyed(this.list, this.#shown, keyOf, create, (element, event) => {
      const [head, message] = element.children;
      setAttribute(element, "data-type", event.type);
      setText(head.children[0], event.reason);
      setText(head.children[1], event.count > 1 ? `× ${event.count}` : "");
      setText(message, event.message);
    });
    this.tick();
  }
}

function create() {
  const head = h("div", { class: "event-head" }, h("b"), h("span", { class: "faint" }), h("time", { class: "faint" }));
  return h("li", {}, head, h("p"));
}

// Two events of one reason differ in their message.
function keyOf(event) {
  return `${event.reason} ${event.message}`;
}

// The DaemonSet's newest events.
import { h, keyed, setAttribute, setText } from "./dom.js";
import { t } from "./i18n.js";
import { ago, moment } from "./time.js";

export class EventList {
  #events = [];

  constructor() {
    this.list = h("ul", { class: "events" });
    this.none = h("p", { class: "empty" }, t("noEvents"));
    this.element = h("div", {}, this.none, this.list);
  }

  update(events) {
    this.#events = events;
    setAttribute(this.none, "hidden", events.length > 0);
    const create = () =>
      h(
        "li",
        {},
        h("div", { class: "event-head" }, h("b"), h("span", { class: "faint" }), h("time", { class: "faint" })),
        h("p"),
      );
    keyed(this.list, events, keyOf, create, (element, event) => {
      const [head, message] = element.children;
      setAttribute(element, "data-type", event.type);
      setText(head.children[0], event.reason);
      setText(head.children[1], event.count > 1 ? `× ${event.count}` : "");
      setText(message, event.message);
    });
    this.tick();
  }

  tick() {
    this.#events.forEach((event, index) => {
      const time = this.list.children[index]?.querySelector("time");
      if (time) {
        setText(time, ago(event.last));
        setAttribute(time, "title", moment(event.last));
      }
    });
  }
}

// Two events of one reason differ in their message.
function keyOf(event) {
  return `${event.reason} ${event.message}`;
}

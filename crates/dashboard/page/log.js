// The log of a pod: its last lines, and those that follow.
import { h, replace, setAttribute, setText } from "./dom.js";
import { t } from "./i18n.js";

// Older lines leave the page: a log has no end, and memory has one.
const LINES_MAX = 2_000;
const TAIL = 200;
// This close to its end the view follows.
const BOTTOM = 24;

export class Log {
  #source = null;
  #path = "";
  #lines = 0;

  constructor() {
    const again = () => this.#connect(this.containers.value, this.previous.checked);
    this.containers = h("select", { "aria-label": t("container"), onchange: again });
    this.previous = h("input", { type: "checkbox", onchange: again });
    this.wrap = h("input", {
      type: "checkbox",
      checked: true,
      onchange: () => setAttribute(this.text, "data-wrap", this.wrap.checked),
    });
    this.state = h("span", { class: "faint", role: "status" });
    this.text = h("pre", { class: "log-lines long", role: "region", tabindex: "0", "aria-label": t("log"), "data-wrap": true });
    this.element = h(
      "div",
      { class: "block log", hidden: true },
      h(
        "div",
        { class: "tools" },
        h("h3", {}, t("log")),
        this.containers,
        h("label", {}, this.previous, t("previousContainer")),
        h("label", {}, this.wrap, t("wrapLines")),
        h(
          "button",
          { class: "quiet icon", "aria-label": t("closeLog"), title: t("closeLog"), onclick: () => this.close() },
          h("span", { "aria-hidden": "true" }, "✕"),
        ),
      ),
      this.text,
      this.state,
    );
  }

  open(path) {
    this.#path = path;
    this.previous.checked = false;
    replace(this.containers);
    setAttribute(this.element, "hidden", false);
    this.#connect("", false);
    this.element.scrollIntoView({ block: "nearest" });
  }

  close() {
    this.#source?.close();
    this.#source = null;
    setAttribute(this.element, "hidden", true);
  }

  #connect(container, previous) {
    this.#source?.close();
    this.#lines = 0;
    replace(this.text);
    setText(this.state, t("loading"));
    const query = new URLSearchParams({ tail: String(TAIL) });
    if (container) {
      query.set("container", container);
    }
    query.set(previous ? "previous" : "follow", "1");
    const source = new EventSource(`${this.#path}?${query}`);
    this.#source = source;
    source.addEventListener("lines", (event) => this.#add(JSON.parse(event.data), previous));
    source.addEventListener("end", (event) => {
      source.close();
      setText(this.state, JSON.parse(event.data).why ?? (this.#lines === 0 ? t("logEmpty") : t("logEnd")));
    });
    // The browser would begin again, and show the lines twice.
    source.onerror = () => {
      source.close();
      setText(this.state, t("logLost"));
    };
  }

  #add({ source, lines }, previous) {
    if (source && this.containers.options.length === 0) {
      replace(
        this.containers,
        source.containers.map((name) => h("option", { value: name, selected: name === source.container }, name)),
      );
    }
    const { text } = this;
    const following = text.scrollHeight - text.scrollTop - text.clientHeight < BOTTOM;
    text.append(...lines.map((line) => h("span", { class: "log-line" }, `${line}\n`)));
    this.#lines += lines.length;
    while (text.childElementCount > LINES_MAX) {
      text.firstChild.remove();
    }
    if (following) {
      text.scrollTop = text.scrollHeight;
    }
    setText(this.state, previous ? "" : t("following"));
  }
}

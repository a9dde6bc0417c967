// The log of a pod: its last lines, and those that follow.
import { h, replace, setAttribute, setText } from "./dom.js";
import { t } from "./i18n.js";

// Older lines leave the page: a log has no end, and memory has one.
const LINES_MAX = 2_000;
const TAIL = 200;
// This close to its end the view follows.
const BOTTOM = 24;
// The pauses before a log that broke off is opened again.
const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 15_000;

export class Log {
  #source = null;
  #path = "";
  #lines = 0;
  #query = "";
  #follows = false;
  // It could be read since it was asked for.
  #opened = false;
  #delay = RETRY_FIRST_MS;
  #timer = 0;

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
    this.again = h("button", { class: "small", hidden: true, onclick: () => this.#open() }, t("openLogAgain"));
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
      h("p", { class: "tools" }, this.state, this.again),
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
    this.#stop();
    setAttribute(this.element, "hidden", true);
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }

  #connect(container, previous) {
    replace(this.text);
    this.#opened = false;
    this.#follows = !previous;
    this.#delay = RETRY_FIRST_MS;
    const query = new URLSearchParams({ tail: String(TAIL) });
    if (container) {
      query.set("container", container);
    }
    query.set(previous ? "previous" : "follow", "1");
    this.#query = String(query);
    this.#open();
  }

  // What is shown stays until the log comes again: the last lines, and those that follow.
  #open() {
    this.#stop();
    this.#say(t("loading"), false);
    const source = new EventSource(`${this.#path}?${this.#query}`);
    this.#source = source;
    source.addEventListener("lines", (event) => this.#add(JSON.parse(event.data)));
    source.addEventListener("end", (event) => {
      source.close();
      const { why } = JSON.parse(event.data);
      if (why) {
        this.#broken(why);
      } else {
        this.#say(this.#lines === 0 ? t("logEmpty") : t("logEnd"), this.#follows);
      }
    });
    source.onerror = () => {
      // The browser would begin again, and show the lines twice.
      source.close();
      this.#broken(t("logLost"));
    };
  }

  // A log that was followed goes on as soon as it can be read again.
  #broken(why) {
    const retries = this.#follows && this.#opened;
    this.#say(retries ? `${why} ${t("logRetries")}` : why, true);
    if (retries) {
      this.#timer = setTimeout(() => this.#open(), this.#delay);
      this.#delay = Math.min(2 * this.#delay, RETRY_MAX_MS);
    }
  }

  #say(text, offersAgain) {
    setText(this.state, text);
    setAttribute(this.again, "hidden", !offersAgain);
  }

  #add({ source, lines }) {
    if (source) {
      this.#opened = true;
      this.#lines = 0;
      replace(this.text);
    }
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
    if (lines.length > 0) {
      this.#delay = RETRY_FIRST_MS;
    }
    while (text.childElementCount > LINES_MAX) {
      text.firstChild.remove();
    }
    if (following) {
      text.scrollTop = text.scrollHeight;
    }
    this.#say(this.#follows ? t("following") : "", false);
  }
}

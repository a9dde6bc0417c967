// The selected node: what `kennel why` says, what to type, the pods and the log.
import { get, nodePath } from "./api.js";
import { copyable } from "./copyable.js";
import { debounce, h, replace, setAttribute, setText } from "./dom.js";
import { t, word } from "./i18n.js";
import { Log } from "./log.js";
import { href } from "./routes.js";
import { glyph } from "./states.js";
import { ago, duration, secondsSince } from "./time.js";

// Held arrow keys pass many nodes: only the one where they stop is asked for.
const SETTLE_MS = 180;
// A node whose cell changes is asked for again, not more often than this.
const AGAIN_MS = 1_000;

export class NodePanel {
  #view;
  #node = "";
  #answer = null;
  #ask = debounce(SETTLE_MS, () => this.#load());
  #askAgain = debounce(AGAIN_MS, () => this.#load());

  constructor(view) {
    this.#view = view;
    this.heading = h("h2", { tabindex: "-1" });
    this.state = h("div", { class: "node-state" });
    this.body = h("div", { class: "node-body" });
    this.log = new Log();
    this.close = h(
      "button",
      { class: "quiet icon", "aria-label": t("close"), title: t("close"), onclick: () => view.select("") },
      h("span", { "aria-hidden": "true" }, "✕"),
    );
    this.element = h(
      "section",
      { class: "node-panel", "aria-label": t("selectedNode"), hidden: true },
      h("div", { class: "node-head" }, this.heading, this.close),
      this.state,
      this.body,
      this.log.element,
    );
  }

  destroy() {
    this.hide();
  }

  hide() {
    this.#node = "";
    this.#ask.cancel();
    this.#askAgain.cancel();
    this.log.close();
    setAttribute(this.element, "hidden", true);
  }

  show(node, settle) {
    this.#node = node;
    this.#answer = null;
    this.log.close();
    setAttribute(this.element, "hidden", false);
    setText(this.heading, node);
    this.#writeState();
    setAttribute(this.body, "aria-busy", "true");
    if (settle) {
      this.#ask();
    } else {
      this.#load();
    }
  }

  // The node's cell has changed.
  stale() {
    this.#writeState();
    this.#askAgain();
  }

  tick() {
    if (this.#answer?.since && this.since) {
      setText(this.since, t("sinceTime", { time: duration(secondsSince(this.#answer.since) ?? 0) }));
    }
  }

  async #load() {
    const node = this.#node;
    const { namespace, name } = this.#view;
    this.#ask.cancel();
    try {
      const why = await get(`${nodePath(namespace, name, node)}/why`);
      if (node === this.#node) {
        this.#write(why);
      }
    } catch (failure) {
      if (node === this.#node) {
        replace(this.body, h("p", { class: "failure" }, failure.message));
      }
    }
    if (node === this.#node) {
      setAttribute(this.body, "aria-busy", null);
    }
  }

  #writeState() {
    const { fleet } = this.#view;
    const index = fleet === null ? -1 : fleet.indexOf(this.#node);
    const state = fleet?.stateName(index);
    const group = fleet?.groupName(index);
    replace(
      this.state,
      state && h("span", { class: `state-tag state-${state}` }, glyph(state), t(`state.${state}`)),
      group && h("span", { class: "faint" }, group),
      h("a", { href: href.node(this.#node) }, t("openNode")),
    );
  }

  #write({ answer, commands, unreadable = [] }) {
    this.#answer = answer;
    this.since = h("span", { class: "faint" });
    const log = answer.log;
    const further = commands.filter((command) => command !== answer.remedy);
    replace(
      this.body,
      h("p", { class: "why-message", "data-verdict": answer.verdict }, answer.message),
      h(
        "p",
        { class: "faint facts" },
        h("span", {}, word("whyVerdict", answer.verdict)),
        answer.place && h("span", {}, t("place", { n: answer.place })),
        this.since,
      ),
      (answer.remarks ?? []).map((remark) => h("p", { class: "remark" }, remark)),
      unreadable.map((text) => h("p", { class: "failure" }, text)),
      log?.lines &&
        block(
          t("lastLines", { container: log.container }),
          h(
            "pre",
            { class: "log-lines", role: "region", tabindex: "0", "aria-label": t("lastLines", { container: log.container }) },
            log.lines.join("\n"),
          ),
        ),
      answer.remedy && block(t("remedy"), copyable(answer.remedy)),
      (answer.pods ?? []).length > 0 &&
        block(
          t("pods"),
          answer.pods.map((pod) => this.#pod(pod)),
        ),
      further.length > 0 && block(t("commands"), further.map(copyable)),
      (answer.checks ?? []).length > 0 &&
        h("details", { class: "checks" }, h("summary", {}, t("checks")), answer.checks.map(check)),
    );
    this.tick();
  }

  #pod(pod) {
    const flags = [
      word("podPhase", pod.phase),
      pod.terminating && t("terminating"),
      pod.updated ? t("updated") : t("notUpdated"),
      ago(pod.created),
    ];
    const open = () => {
      const { namespace, name } = this.#view;
      this.log.open(`${nodePath(namespace, name, this.#node)}/logs`);
    };
    return h(
      "div",
      { class: "pod" },
      h("div", { class: "pod-head" }, h("code", {}, pod.name), h("button", { class: "small", onclick: open }, t("showLog"))),
      h("p", { class: "faint" }, flags.filter(Boolean).join(" · ")),
      h(
        "ul",
        { class: "containers" },
        pod.containers.map((container) =>
          h(
            "li",
            { "data-ready": container.ready },
            h("i", { "aria-hidden": "true" }, container.ready ? "✓" : "✗"),
            h("b", {}, container.name),
            container.init && h("span", { class: "tag" }, "init"),
            h("span", {}, container.state),
            container.restarts > 0 && h("span", { class: "restarts" }, t("restarts", { n: container.restarts })),
          ),
        ),
      ),
    );
  }
}

function block(title, ...content) {
  return h("section", { class: "block" }, h("h3", {}, title), content);
}

function check({ rule, holds, found }) {
  return h(
    "div",
    { class: "check", "data-holds": holds },
    h("i", { "aria-label": holds ? t("holds") : t("holdsNot"), role: "img" }, holds ? "✓" : "✗"),
    h("span", {}, h("b", {}, rule), h("span", { class: "faint" }, ` ${found}`)),
  );
}

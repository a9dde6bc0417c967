// One node: its daemons, its conditions, what it uses.
import { get } from "./api.js";
import { h, patch, replace, setAttribute } from "./dom.js";
import { t } from "./i18n.js";
import { href } from "./routes.js";
import { ago, moment } from "./time.js";

const AGAIN_MS = 5_000;
const GIB = 2 ** 30;
const MIB = 2 ** 20;
const KIB = 2 ** 10;
// Conditions for which `True` is good; for all others it is trouble.
const GOOD_IF_TRUE = new Set(["Ready"]);

export class NodeView {
  #app;
  #timer = 0;
  #destroyed = false;

  constructor(app, route) {
    this.#app = app;
    this.name = route.name;
    this.heading = h("h1", { tabindex: "-1" }, h("span", { class: "faint" }, `${t("node")} `), route.name);
    this.body = h("div", { class: "node-view-body" }, h("p", { class: "empty" }, t("loading")));
    this.element = h("div", { class: "node-view" }, h("div", { class: "title" }, this.heading), this.body);
    this.#load();
  }

  follow(route) {
    return route.view === "node" && route.name === this.name;
  }

  title() {
    return this.name;
  }

  retry() {
    this.#load();
  }

  destroy() {
    this.#destroyed = true;
    clearTimeout(this.#timer);
  }

  async #load() {
    clearTimeout(this.#timer);
    try {
      if (!document.hidden) {
        const node = await get(`/api/nodes/${encodeURIComponent(this.name)}`);
        if (!this.#destroyed) {
          this.#app.connection("live", null);
          this.#write(node);
        }
      }
    } catch (failure) {
      if (!this.#destroyed) {
        this.#fail(failure);
      }
      if (failure.status === 401) {
        return;
      }
    }
    if (!this.#destroyed) {
      this.#timer = setTimeout(() => this.#load(), AGAIN_MS);
    }
  }

  // Without an answer what was shown stays, and the header says from when it is. An answer that says no, such as that the node is
  // gone, replaces it.
  #fail(failure) {
    if (failure.status === 401) {
      this.#app.connection("signed-out", null);
    } else if (failure.status === 0) {
      this.#app.connection("lost", null, Date.now() + AGAIN_MS);
    } else if (failure.code === "TooMany") {
      this.#app.connection("lost", null, Date.now() + AGAIN_MS, failure.message);
    } else if (failure.status >= 500) {
      this.#app.connection("live", { connected: false, why: failure.message });
    } else {
      this.#app.connection("live", null);
      replace(this.body, h("p", { class: "failure" }, failure.message));
    }
  }

  #write(node) {
    const ready = node.ready ? t("ready") : t("notReady");
    const facts = [node.unschedulable && t("cordoned"), node.kubelet, node.created && `${t("created")} ${ago(node.created)}`];
    // In place: the focus and what is scrolled stay.
    patch(
      this.body,
      h(
        "p",
        { class: "facts" },
        h("span", { class: "outcome", "data-outcome": node.ready ? "complete" : "failed" }, ready),
        facts.filter(Boolean).map((fact) => h("span", {}, fact)),
      ),
      (node.unreadable ?? []).map((message) => h("p", { class: "failure" }, message)),
      h(
        "div",
        { class: "node-columns" },
        section(t("daemons"), daemons(node.daemons), "wide"),
        section(t("resources"), resources(node)),
        section(t("conditions"), conditions(node.conditions)),
        node.taints.length > 0 &&
          section(
            t("taints"),
            h(
              "ul",
              { class: "plain" },
              node.taints.map((taint) => h("li", {}, h("code", {}, taint))),
            ),
          ),
        section(
          t("labels"),
          h(
            "ul",
            { class: "plain labels" },
            Object.entries(node.labels).map(([key, value]) => h("li", {}, h("code", {}, `${key}=${value}`))),
          ),
        ),
      ),
    );
  }
}

function section(title, content, kind = "") {
  return h("section", { class: `card ${kind}` }, h("h2", {}, title), content);
}

function daemons(list) {
  if (list.length === 0) {
    return h("p", { class: "empty" }, t("noDaemons"));
  }
  const text = [t("daemonSet"), t("pod"), t("status")].map((name) => h("th", { scope: "col" }, name));
  const numbers = [t("restartsColumn"), t("cpu"), t("memory")].map((name) => h("th", { scope: "col", class: "number" }, name));
  const row = (daemon) =>
    h(
      "tr",
      { "data-ready": daemon.ready, "data-key": `${daemon.namespace}/${daemon.pod}` },
      h(
        "th",
        { scope: "row" },
        h(
          "a",
          { href: href.daemonSet(daemon.namespace, daemon.name) },
          h("span", { class: "faint" }, `${daemon.namespace} / `),
          daemon.name,
        ),
      ),
      h("td", {}, h("code", {}, daemon.pod)),
      h("td", {}, h("span", { class: "outcome", "data-outcome": daemon.ready ? "complete" : "failed" }, daemon.status)),
      h("td", { class: "number" }, String(daemon.restarts)),
      h("td", { class: "number" }, daemon.usage ? cpu(daemon.usage.cpuMillicores) : "–"),
      h("td", { class: "number" }, daemon.usage ? memory(daemon.usage.memoryBytes) : "–"),
    );
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": t("daemons") },
    h(
      "table",
      { class: "nodes" },
      h("caption", { class: "visually-hidden" }, t("daemons")),
      h("thead", {}, h("tr", {}, text, numbers)),
      h("tbody", {}, list.map(row)),
    ),
  );
}

function resources({ usage, allocatable }) {
  const meter = (name, used, all, text) => {
    const share = used === null || all === 0 ? 0 : Math.min(1, used / all);
    const fill = h("i");
    fill.style.width = `${(100 * share).toFixed(1)}%`;
    setAttribute(fill, "data-high", share > 0.85);
    return h(
      "div",
      { class: "meter" },
      h(
        "div",
        { class: "meter-head" },
        h("b", {}, name),
        h("span", {}, used === null ? t("ofAllocatable", { all: text(all) }) : t("usedOf", { used: text(used), all: text(all) })),
      ),
      h(
        "div",
        {
          class: "track",
          role: "meter",
          "aria-label": name,
          "aria-valuemin": "0",
          "aria-valuemax": "100",
          "aria-valuenow": Math.round(100 * share),
        },
        fill,
      ),
    );
  };
  return [
    meter(t("cpu"), usage?.cpuMillicores ?? null, allocatable.cpuMillicores, cpu),
    meter(t("memory"), usage?.memoryBytes ?? null, allocatable.memoryBytes, memory),
    !usage && h("p", { class: "faint" }, t("noMetrics")),
  ];
}

function conditions(list) {
  const entry = (condition) => {
    const good = condition.status === (GOOD_IF_TRUE.has(condition.type) ? "True" : "False");
    return h(
      "li",
      { "data-good": good },
      h(
        "div",
        { class: "event-head" },
        h("i", { "aria-hidden": "true" }, good ? "✓" : "✗"),
        h("b", {}, condition.type),
        h("span", {}, condition.status),
        condition.since && h("time", { class: "faint", title: moment(condition.since) }, ago(condition.since)),
      ),
      h("p", { class: "faint" }, [condition.reason, condition.message].filter(Boolean).join(": ")),
    );
  };
  return h("ul", { class: "conditions" }, list.map(entry));
}

function cpu(millicores) {
  return millicores >= 1000 ? `${(millicores / 1000).toFixed(1)}` : `${millicores}m`;
}

function memory(bytes) {
  if (bytes < MIB) {
    return `${Math.round(bytes / KIB)} KiB`;
  }
  return bytes >= GIB ? `${(bytes / GIB).toFixed(1)} GiB` : `${Math.round(bytes / MIB)} MiB`;
}

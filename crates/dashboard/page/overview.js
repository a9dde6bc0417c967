// All DaemonSets: a row each, the one with most trouble first.
import { bar, chips } from "./bar.js";
import { announce, h, keyed, replace, setAttribute, setText, throttle } from "./dom.js";
import { number, t, withReason, word } from "./i18n.js";
import { href } from "./routes.js";
import { Stream } from "./stream.js";
import { setServerTime } from "./time.js";

const TOLD = ["failed", "down", "updating"];
const ANNOUNCE_MS = 8_000;
// So many rows are shown at first; a cluster seldom has more.
const ROWS = 300;

export class Overview {
  #app;
  #rows = new Map();
  #status = null;
  #frame = 0;
  #order = [];
  #stream;
  #say = throttle(ANNOUNCE_MS, (text) => announce(text));

  constructor(app) {
    this.#app = app;
    this.#build();
    this.#stream = new Stream(
      "/api/overview",
      {
        overview: ({ rows }) => {
          this.#rows = new Map(rows.map((row) => [keyOf(row), row]));
          this.#draw();
        },
        change: ({ rows = [], removed = [] }) => {
          removed.forEach((key) => this.#rows.delete(keyOf(key)));
          rows.forEach((row) => this.#rows.set(keyOf(row), row));
          this.#draw();
        },
        status: (status) => {
          this.#status = status;
          setServerTime(status.now);
          app.connection("live", status);
        },
      },
      (state, ...details) => app.connection(state, this.#status, ...details),
    );
  }

  follow(route) {
    return route.view === "overview";
  }

  title() {
    return t("allDaemonSets");
  }

  retry() {
    this.#stream.retry();
  }

  destroy() {
    this.#stream.close();
    this.#say.cancel();
    cancelAnimationFrame(this.#frame);
  }

  #build() {
    this.search = h("input", {
      type: "search",
      placeholder: t("searchDaemonSets"),
      "aria-label": t("searchDaemonSets"),
      oninput: () => this.#draw(),
    });
    this.namespaces = h("select", { "aria-label": t("namespace"), onchange: () => this.#draw() });
    this.summary = h("p", { class: "summary" });
    this.more = h("button", { hidden: true, onclick: () => this.#showAll() });
    this.list = h("tbody");
    this.table = h(
      "table",
      { class: "rows" },
      h("caption", { class: "visually-hidden" }, t("allDaemonSets")),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["daemonSet", "nodesByState", "available", "stage", "verdict"].map((name) => h("th", { scope: "col" }, t(name))),
        ),
      ),
      this.list,
    );
    this.empty = h("p", { class: "empty" }, t("loading"));
    this.element = h(
      "div",
      { class: "overview" },
      h(
        "div",
        { class: "overview-head" },
        h("div", {}, h("h1", { tabindex: "-1" }, t("allDaemonSets")), this.summary),
        h("div", { class: "tools" }, this.search, this.namespaces),
      ),
      this.table,
      this.empty,
      this.more,
    );
    // Rows do not move while somebody points at them or is among them with the keyboard.
    const settle = () => requestAnimationFrame(() => this.#draw());
    this.table.addEventListener("pointerleave", settle);
    this.table.addEventListener("focusout", settle);
    this.limit = ROWS;
  }

  #showAll() {
    this.limit = Infinity;
    this.#draw();
  }

  #draw() {
    if (this.#frame === 0) {
      this.#frame = requestAnimationFrame(() => {
        this.#frame = 0;
        this.#write();
      });
    }
  }

  #write() {
    const rows = [...this.#rows.values()];
    this.#writeNamespaces(rows);
    const [namespace, words] = [this.namespaces.value, this.search.value.toLowerCase().split(/\s+/).filter(Boolean)];
    const wanted = (row) => {
      const text = `${row.namespace}/${row.name} ${row.phase} ${row.message} ${withReason(row)}`.toLowerCase();
      return (namespace === "" || row.namespace === namespace) && words.every((part) => text.includes(part));
    };
    const sorted = this.#sorted(rows.filter(wanted));
    keyed(this.list, sorted.slice(0, this.limit), keyOf, createRow, updateRow);
    const hidden = sorted.length - this.limit;
    setAttribute(this.more, "hidden", !(hidden > 0));
    setText(this.more, hidden > 0 ? t("showMore", { n: hidden }) : "");
    setAttribute(this.table, "hidden", sorted.length === 0);
    setAttribute(this.empty, "hidden", sorted.length > 0);
    setText(this.empty, rows.length === 0 ? t("noDaemonSets") : t("noMatch"));
    const troubled = rows.filter((row) => row.outcome === "failed" || row.counts.failed > 0).length;
    const rolling = rows.filter((row) => row.outcome === "progressing").length;
    const waiting = rows.filter((row) => row.outcome === "waiting").length;
    const parts = [t("daemonSets", { n: rows.length })];
    parts.push(troubled > 0 ? t("inTrouble", { n: troubled }) : t("noTrouble"));
    parts.push(...(rolling > 0 ? [t("rollingOut", { n: rolling })] : []));
    parts.push(...(waiting > 0 ? [t("waitingForPerson", { n: waiting })] : []));
    const text = parts.join(" · ");
    if (text !== this.summary.textContent) {
      setText(this.summary, text);
      this.#say(text);
    }
  }

  #sorted(rows) {
    const held =
      this.table.matches(":hover") || (this.table.contains(document.activeElement) && document.activeElement !== document.body);
    if (held) {
      const place = new Map(this.#order.map((key, index) => [key, index]));
      rows.sort((a, b) => (place.get(keyOf(a)) ?? Infinity) - (place.get(keyOf(b)) ?? Infinity) || byTrouble(a, b));
    } else {
      rows.sort(byTrouble);
    }
    this.#order = rows.map(keyOf);
    return rows;
  }

  #writeNamespaces(rows) {
    const names = [...new Set(rows.map((row) => row.namespace))].sort();
    if (names.join(" ") === this.namespaces.dataset.names) {
      return;
    }
    const chosen = this.namespaces.value;
    this.namespaces.dataset.names = names.join(" ");
    replace(
      this.namespaces,
      h("option", { value: "" }, t("allNamespaces")),
      names.map((name) => h("option", { value: name }, name)),
    );
    this.namespaces.value = names.includes(chosen) ? chosen : "";
  }
}

function keyOf({ namespace, name }) {
  return `${namespace}/${name}`;
}

function byTrouble(a, b) {
  return b.trouble - a.trouble || a.namespace.localeCompare(b.namespace) || a.name.localeCompare(b.name);
}

function createRow(row) {
  const [states, told, count, stage, outcome, message] = [
    bar(),
    chips(TOLD),
    h("b"),
    h("span"),
    h("span", { class: "outcome" }),
    h("span", { class: "message" }),
  ];
  const element = h(
    "tr",
    {},
    h(
      "th",
      { scope: "row" },
      h("a", { href: href.daemonSet(row.namespace, row.name) }, h("span", { class: "faint" }, `${row.namespace} / `), row.name),
    ),
    h("td", { class: "states" }, states, told),
    h("td", { class: "count" }, count),
    h("td", { class: "stage" }, h("span", { class: "narrow faint" }, `${t("stage")} `), stage),
    h("td", { class: "said" }, outcome, message),
  );
  element.parts = { states, told, count, stage, outcome, message };
  return element;
}

function updateRow(element, row) {
  const { states, told, count, stage, outcome, message } = element.parts;
  const { counts } = row;
  states.update(counts);
  told.update(counts);
  const fine = counts.new + counts.old + counts.waiting;
  setText(count, fine === row.desired ? number(row.desired) : `${number(fine)} / ${number(row.desired)}`);
  setAttribute(count, "title", t("availableWhy"));
  setAttribute(stage.parentElement, "data-none", !row.stage);
  setText(stage, row.stage ? `${row.stage.index} / ${row.stage.total}` : "–");
  setText(outcome, row.paused === undefined ? word("phase", row.phase) : t("paused"));
  setAttribute(outcome, "data-outcome", row.paused === undefined ? row.outcome : "waiting");
  setText(message, withReason(row));
  setAttribute(message, "title", withReason(row));
}

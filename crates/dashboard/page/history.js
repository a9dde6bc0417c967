// The revisions and what became of them, the newest first.
import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { t, word } from "./i18n.js";
import { ago, duration, moment, secondsSince } from "./time.js";

export class History {
  #view;
  #onCompare;
  #fresh = false;
  #destroyed = false;

  constructor(view, onCompare) {
    this.#view = view;
    this.#onCompare = onCompare;
    this.element = h("div", { class: "history" });
  }

  stale() {
    this.#fresh = false;
  }

  destroy() {
    this.#destroyed = true;
  }

  async load() {
    if (this.#fresh) {
      return;
    }
    this.#fresh = true;
    try {
      const { revisions } = await get(`${this.#view.path}/history`);
      if (!this.#destroyed) {
        this.#write([...revisions].reverse());
      }
    } catch (failure) {
      this.#fresh = false;
      replace(this.element, h("p", { class: "failure" }, failure.message));
    }
  }

  #write(revisions) {
    if (revisions.length === 0) {
      replace(this.element, h("p", { class: "empty" }, t("noHistory")));
      return;
    }
    replace(
      this.element,
      h(
        "ol",
        { class: "revision-list" },
        revisions.map((entry, index) => this.#entry(entry, revisions[index + 1])),
      ),
    );
  }

  #entry(entry, before) {
    const verdict = entry.verdict ?? "none";
    const compare = () => this.#onCompare(before.hash, entry.hash);
    const facts = [
      entry.created && `${t("created")} ${ago(entry.created)}`,
      entry.tookSeconds !== undefined && t("tookTime", { time: duration(entry.tookSeconds) }),
      entry.attempt > 1 && t("attempt", { n: entry.attempt }),
    ];
    return h(
      "li",
      { "data-verdict": verdict },
      h(
        "div",
        { class: "revision-head" },
        h("b", {}, `#${entry.revision}`),
        h("code", {}, entry.hash),
        h("span", { class: "outcome", "data-outcome": outcomeOf(verdict) }, word("verdict", verdict)),
        entry.target && h("span", { class: "tag" }, t("target")),
        before &&
          h(
            "button",
            { class: "link", onclick: compare, "aria-label": t("compareWith", { from: before.hash, to: entry.hash }) },
            t("compare"),
          ),
      ),
      h("p", { class: "faint", title: entry.created ? moment(entry.created) : null }, facts.filter(Boolean).join(" · ")),
      stageTimes(entry),
      entry.reason && h("p", { class: "why" }, entry.reason),
      entry.changeCause && h("p", { class: "cause" }, entry.changeCause),
    );
  }
}

function outcomeOf(verdict) {
  return { stable: "complete", failed: "failed", progressing: "progressing" }[verdict] ?? "none";
}

// How long each stage took, as a row of parts as wide as their time.
function stageTimes(entry) {
  const stages = entry.stages ?? [];
  if (stages.length === 0) {
    return null;
  }
  const part = (stage) => {
    const seconds = stage.tookSeconds ?? (entry.verdict === "progressing" ? secondsSince(stage.began) : null);
    const time = seconds === null ? "–" : duration(seconds);
    const element = h(
      "span",
      { "data-open": stage.ended === undefined, title: t("stageNumber", { n: stage.stage }) },
      h("b", {}, String(stage.stage)),
      ` ${time}`,
    );
    element.style.flexGrow = String(Math.max(1, seconds ?? 1));
    return element;
  };
  return h("div", { class: "stage-times" }, stages.map(part));
}

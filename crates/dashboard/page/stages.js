// The stages of the policy as a timeline, with the clock of the bake.
import { h, keyed, setAttribute, setText } from "./dom.js";
import { number, t } from "./i18n.js";
import { countdown, duration, moment, secondsSince, serverNow } from "./time.js";

// Rates below this many nodes a minute say nothing of an end.
const RATE_MIN = 0.5;

export class Stages {
  #view;

  constructor(view) {
    this.#view = view;
    this.list = h("ol", { class: "stages" });
    this.end = h("p", { class: "end" });
    this.element = h("section", { class: "timeline", "aria-label": t("stages"), hidden: true }, this.list, this.end);
  }

  update() {
    const { rollout } = this.#view;
    const stages = rollout?.stages ?? [];
    setAttribute(this.element, "hidden", stages.length === 0);
    keyed(
      this.list,
      stages,
      ({ stage }) => stage,
      create,
      (element, stage) => this.#write(element, stage),
    );
    this.#writeEnd();
  }

  // Once a second: the clocks.
  tick() {
    if (!this.element.hidden) {
      this.update();
    }
  }

  #write(element, stage) {
    const { name, policy, numbers, fill, clock, track } = element.parts;
    const present = stage.state === "present";
    setAttribute(element, "data-state", stage.state);
    setAttribute(element, "data-outcome", present ? this.#outcome() : null);
    setAttribute(element, "aria-current", present ? "step" : null);
    setText(name, t("stageNumber", { n: stage.stage }));
    setText(policy, stage.policy);
    const passed = stage.state === "passed-over";
    setText(numbers, passed ? t("passedOver") : t("stageReaches", { adds: stage.nodes, n: stage.reaches }));
    const share = this.#share(stage);
    // A transform needs no layout.
    const scale = `scaleX(${share.toFixed(3)})`;
    if (fill.style.transform !== scale) {
      fill.style.transform = scale;
    }
    setAttribute(track, "aria-valuenow", Math.round(100 * share));
    setText(clock, this.#clock(stage));
  }

  #outcome() {
    const { rollout } = this.#view;
    return rollout.paused === undefined ? rollout.outcome : "waiting";
  }

  // How much of a stage is done: its nodes, and then its bake.
  #share(stage) {
    const { rollout } = this.#view;
    if (stage.state !== "present") {
      return stage.state === "done" ? 1 : 0;
    }
    if (stage.bakeEnds) {
      const [began, ends] = [Date.parse(stage.bakeBegan), Date.parse(stage.bakeEnds)];
      return clamp((serverNow() - began) / Math.max(1, ends - began));
    }
    if (rollout.phase === "AwaitingPromotion") {
      return 1;
    }
    const before = stage.reaches - stage.nodes;
    return clamp((rollout.nodes.healthy - before) / Math.max(1, stage.nodes));
  }

  #clock(stage) {
    const { rollout } = this.#view;
    if (stage.state === "done") {
      const took = (Date.parse(stage.ended) - Date.parse(stage.began)) / 1000;
      return Number.isFinite(took) ? t("stageTook", { time: duration(took) }) : t("stageDone");
    }
    if (stage.state === "ahead") {
      const parts = [stage.bakeSeconds > 0 && t("bakes", { time: duration(stage.bakeSeconds) }), stage.manual && t("thenPerson")];
      return parts.filter(Boolean).join(t("comma")) || t("stageAhead");
    }
    if (stage.state === "passed-over") {
      return "";
    }
    if (stage.bakeEnds) {
      return t("bakeLeft", { time: countdown((Date.parse(stage.bakeEnds) - serverNow()) / 1000) });
    }
    const since = secondsSince(rollout.since);
    const time = since === null ? "" : duration(since);
    const keys = { AwaitingPromotion: "waitsSince", Paused: "pausedSince", Frozen: "pausedSince", PausedByHand: "pausedSince" };
    const key = rollout.paused === undefined ? (keys[rollout.phase] ?? "updatingSince") : "pausedSince";
    return t(key, { time, healthy: number(rollout.nodes.healthy), admitted: number(rollout.nodes.admitted) });
  }

  // The rate, when this stage's nodes will be done at that rate, and when the rollout can end.
  #writeEnd() {
    const { rollout, rate } = this.#view;
    const parts = [];
    const perMinute = rate.perMinute();
    const updating = rollout?.phase === "Updating" && rollout.paused === undefined;
    if (updating && perMinute !== null && perMinute >= RATE_MIN) {
      parts.push(t("rate", { n: Math.round(perMinute) }));
      const present = rollout.stages?.find((stage) => stage.state === "present");
      const left = present ? present.reaches - rollout.nodes.healthy : 0;
      if (left > 0) {
        parts.push(t("stageLeft", { time: duration((60 * left) / perMinute) }));
      }
    }
    const goesOn = ["Updating", "Baking"].includes(rollout?.phase) && rollout.paused === undefined;
    if (goesOn && rollout.earliestEnd) {
      parts.push(t("earliestEnd", { time: moment(rollout.earliestEnd) }));
    }
    setText(this.end, parts.join(" · "));
  }
}

function create() {
  const parts = {
    name: h("b"),
    policy: h("code"),
    numbers: h("span", { class: "faint" }),
    fill: h("i"),
    clock: h("span", { class: "clock" }),
  };
  parts.track = h(
    "div",
    { class: "track", role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100", "aria-label": t("progress") },
    parts.fill,
  );
  const element = h(
    "li",
    { class: "stage-step" },
    h("div", { class: "stage-name" }, parts.name, parts.policy),
    parts.track,
    h("div", { class: "stage-foot" }, parts.clock, parts.numbers),
  );
  element.parts = parts;
  return element;
}

function clamp(value) {
  return Math.min(1, Math.max(0, value));
}

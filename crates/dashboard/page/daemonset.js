// One DaemonSet: the stream, and the parts that show it.
import { Actions } from "./actions.js";
import { daemonSetPath } from "./api.js";
import { countsText } from "./bar.js";
import { announce, h, setAttribute, setText, throttle } from "./dom.js";
import { BY_STAGE, Fleet, UNGROUPED } from "./fleet.js";
import { t, withReason, word } from "./i18n.js";
import { NodePanel } from "./node_panel.js";
import { Rate } from "./rate.js";
import { href } from "./routes.js";
import { SidePanel } from "./side_panel.js";
import { Stages } from "./stages.js";
import { Stream } from "./stream.js";
import { onTheme } from "./theme.js";
import { duration, secondsSince, setServerTime } from "./time.js";
import { Toolbar } from "./toolbar.js";
import { Picture } from "./picture.js";

const ANNOUNCE_MS = 10_000;
// Numbers change at most so often: cells show the rest, and text costs a layout.
const COUNTS_MS = 250;

export class DaemonSetView {
  fleet = null;
  rollout = null;
  selected = "";
  rate = new Rate();
  #app;
  #status = null;
  #stream = null;
  #forget;
  #timer = 0;
  #countsAt = -Infinity;
  #above = new ResizeObserver(() => this.picture.rearrange());
  #say = throttle(ANNOUNCE_MS, () => announce(this.#spoken()));

  constructor(app, route) {
    this.#app = app;
    Object.assign(this, { namespace: route.namespace, name: route.name, group: route.group || BY_STAGE, tab: route.tab });
    this.path = daemonSetPath(route.namespace, route.name);
    this.#build();
    this.#forget = onTheme(() => this.picture.repaint(true));
    // What is above the picture decides how much room it has.
    this.#above.observe(this.stages.element);
    this.#above.observe(this.heading.parentElement.parentElement);
    this.#open();
    if (route.node) {
      this.select(route.node, "link");
    }
  }

  get allowChanges() {
    return this.#app.session?.allowChanges === true;
  }

  title() {
    return this.name;
  }

  // The address names the same DaemonSet: only what is selected differs.
  follow(route) {
    if (route.view !== "daemonset" || route.namespace !== this.namespace || route.name !== this.name) {
      return false;
    }
    const group = route.group || BY_STAGE;
    if (group !== this.group) {
      this.setGroup(group);
    }
    if (route.node !== this.selected) {
      this.select(route.node, "link");
    }
    return true;
  }

  retry() {
    this.#stream.retry();
  }

  sessionKnown() {
    this.actions.update();
  }

  destroy() {
    this.#stream.close();
    this.#forget();
    this.#above.disconnect();
    this.#say.cancel();
    clearTimeout(this.#timer);
    this.picture.destroy();
    this.nodePanel.destroy();
    this.side.destroy();
  }

  // Selects a node by its name, or none.
  select(node, how = "") {
    const before = this.selected;
    this.selected = node;
    this.picture.select(node, how);
    setAttribute(this.aside, "data-node", node === "" ? null : true);
    if (node === "") {
      this.nodePanel.hide();
    } else if (node !== before) {
      this.nodePanel.show(node, how === "keyboard");
    }
    this.side.setVisible(node === "");
    this.#writeAddress();
  }

  setGroup(label) {
    this.group = label;
    this.#open();
    this.#writeAddress();
  }

  setTab(tab) {
    this.tab = tab;
    this.#writeAddress();
  }

  key(event) {
    if (event.key === "Escape" && this.selected !== "") {
      this.select("");
      this.picture.focus();
    }
  }

  tick() {
    this.stages.tick();
    this.nodePanel.tick();
    this.side.tick();
    this.#writeSince();
  }

  #build() {
    this.heading = h("h1", { tabindex: "-1" }, h("span", { class: "faint" }, `${this.namespace} / `), this.name);
    this.outcome = h("span", { class: "outcome" });
    this.revisions = h("span", { class: "revisions" });
    this.message = h("p", { class: "message" }, t("loading"));
    this.actions = new Actions(this);
    this.stages = new Stages(this);
    this.toolbar = new Toolbar(this);
    this.picture = new Picture(this);
    this.side = new SidePanel(this);
    this.nodePanel = new NodePanel(this);
    this.aside = h("aside", { "aria-label": t("details") }, this.nodePanel.element, this.side.element);
    this.gone = h("p", { class: "banner", "data-state": "upstream", hidden: true }, t("daemonSetGone"));
    this.element = h(
      "div",
      { class: "daemonset" },
      h(
        "div",
        { class: "title" },
        h(
          "div",
          { class: "title-text" },
          h("div", { class: "title-line" }, this.heading, this.outcome, this.revisions),
          this.message,
        ),
        this.actions.element,
      ),
      this.gone,
      this.stages.element,
      h(
        "div",
        { class: "columns" },
        h("section", { class: "left", "aria-label": t("nodes") }, this.toolbar.element, this.picture.element),
        this.aside,
      ),
    );
  }

  #open() {
    this.#stream?.close();
    const query = this.group === UNGROUPED ? "" : `?group=${encodeURIComponent(this.group)}`;
    this.#stream = new Stream(
      `${this.path}/stream${query}`,
      {
        picture: (picture) => this.#picture(picture),
        delta: (delta) => this.#delta(delta),
        rollout: (rollout) => this.#rollout(rollout),
        events: ({ events }) => this.side.events.update(events),
        status: (status) => this.#connection(status),
      },
      (state, ...details) => this.#app.connection(state, this.#status, ...details),
    );
  }

  #connection(status) {
    this.#status = status;
    setServerTime(status.now);
    setAttribute(this.gone, "hidden", !status.gone);
    if (status.gone) {
      setText(this.message, "");
    }
    this.#app.connection("live", status);
    if (status.connected) {
      this.side.reload();
    }
  }

  #picture(picture) {
    this.fleet = new Fleet(picture);
    this.rate.restart();
    this.toolbar.picture();
    this.picture.show(this.fleet);
    if (this.selected !== "") {
      this.picture.select(this.selected, "");
      this.nodePanel.stale();
    }
    this.#writeCounts();
  }

  #delta(delta) {
    if (this.fleet === null) {
      return;
    }
    const { changed, arrangement } = this.fleet.apply(delta);
    this.rate.changed(this.fleet, changed);
    this.picture.changed(changed, arrangement);
    if (this.selected !== "" && changed.includes(this.fleet.indexOf(this.selected))) {
      this.nodePanel.stale();
    }
    this.#countsChanged();
  }

  #rollout(rollout) {
    this.rollout = rollout;
    setServerTime(rollout.now);
    const paused = rollout.paused !== undefined;
    setText(this.outcome, paused ? t("paused") : word("phase", rollout.phase));
    setAttribute(this.outcome, "data-outcome", paused ? "waiting" : rollout.outcome);
    setText(this.message, withReason(rollout));
    this.#writeSince();
    this.stages.update();
    this.actions.update();
    this.side.rollout();
    const mark = { failed: "✗ ", waiting: "● " }[paused ? "waiting" : rollout.outcome] ?? "";
    document.title = `${mark}${this.name} · Kennel`;
    this.#say();
  }

  #writeSince() {
    const { rollout } = this;
    if (rollout === null) {
      return;
    }
    const parts = [rollout.target];
    if (rollout.stable && rollout.stable !== rollout.target) {
      parts.push(t("stableIs", { hash: rollout.stable }));
    }
    if (rollout.attempt > 1) {
      parts.push(t("attempt", { n: rollout.attempt }));
    }
    if (rollout.since && rollout.outcome !== "complete") {
      parts.push(t("phaseSince", { phase: word("phase", rollout.phase), time: duration(secondsSince(rollout.since) ?? 0) }));
    }
    setText(this.revisions, parts.filter(Boolean).join(" · "));
  }

  // In the frame of the delta, unless that is too soon: a frame of its own would cost as much again.
  #countsChanged() {
    const wait = this.#countsAt + COUNTS_MS - performance.now();
    if (wait <= 0) {
      this.#writeCounts();
    } else if (this.#timer === 0) {
      this.#timer = setTimeout(() => this.#writeCounts(), wait);
    }
  }

  #writeCounts() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#countsAt = performance.now();
    this.toolbar.counts();
    this.side.problems.counts();
    this.picture.label(`${t("pictureOf", { n: this.fleet.size })}: ${countsText(this.fleet.counts)}`);
  }

  #spoken() {
    const counts = this.fleet === null ? "" : countsText(this.fleet.counts);
    return `${withReason(this.rollout)}. ${counts}`;
  }

  #writeAddress() {
    const { node, group, tab } = { node: this.selected, group: this.group === BY_STAGE ? "" : this.group, tab: this.tab };
    history.replaceState(null, "", href.daemonSet(this.namespace, this.name, { node, group, tab }));
  }
}

// The bar at the top: where one is, whether the data is live, language and colours; and the banner below it when the data is not
// up to date.
import { h, replace, setAttribute, setText, svg } from "./dom.js";
import { LANGUAGES, currentLanguage, setLanguage, t } from "./i18n.js";
import { showKeys } from "./keys.js";
import { href } from "./routes.js";
import { currentTheme, nextTheme } from "./theme.js";
import { moment, serverNow } from "./time.js";

// What comes and goes within this time is not worth a banner.
const GRACE_MS = 1_500;

export class Header {
  #options;
  #state = "connecting";
  #status = null;
  #retryAt = 0;
  #liveAt = serverNow();
  #badSince = 0;
  #why;

  constructor(options) {
    this.#options = options;
    this.element = h("div", { class: "top" });
    this.rebuild();
  }

  rebuild() {
    this.#crumbs = h("nav", { class: "crumbs", "aria-label": t("nav") });
    this.#light = h("span", { class: "light" }, h("i", { "aria-hidden": "true" }), h("span"));
    this.#cluster = h("span", { class: "cluster" });
    this.#mode = h("span", { class: "mode", hidden: true });
    this.#message = h("span");
    this.#retry = h("button", { class: "small", onclick: () => this.#options.onRetry() }, t("retryNow"));
    this.#banner = h("div", { class: "banner", role: "status", hidden: true }, this.#message, this.#retry);
    replace(
      this.element,
      h(
        "header",
        { class: "bar" },
        h("a", { class: "brand", href: href.overview(), "aria-label": t("brand") }, mark(), h("span", {}, "Kennel")),
        this.#crumbs,
        this.#light,
        h(
          "div",
          { class: "bar-end" },
          this.#cluster,
          this.#mode,
          language(this.#options.onLanguage),
          themeButton(),
          keysButton(),
        ),
      ),
      this.#banner,
    );
    this.#show();
  }

  #crumbs;
  #light;
  #cluster;
  #mode;
  #banner;
  #message;
  #retry;

  session(session) {
    setText(this.#cluster, session.context ?? session.server);
    setAttribute(this.#cluster, "title", `${session.server}\nkennel ${session.version}`);
    setAttribute(this.#mode, "hidden", false);
    setText(this.#mode, session.allowChanges ? t("changesAllowed") : t("readOnly"));
    setAttribute(this.#mode, "title", session.allowChanges ? t("changesAllowedWhy") : t("readOnlyWhy"));
  }

  path(route) {
    const all = h("a", { href: href.overview() }, t("allDaemonSets"));
    const here = (...children) => h("span", { "aria-current": "page" }, children);
    const parts = {
      overview: () => [here(t("allDaemonSets"))],
      daemonset: () => [all, here(h("span", { class: "faint" }, `${route.namespace} / `), route.name)],
      node: () => [all, here(h("span", { class: "faint" }, `${t("node")} `), route.name)],
    };
    replace(
      this.#crumbs,
      parts[route.view]().flatMap((part, i) => (i ? [h("span", { class: "sep", "aria-hidden": "true" }, "›"), part] : [part])),
    );
  }

  connection(state, status, retryAt, why) {
    const good = this.#isGood();
    this.#state = state;
    this.#status = status;
    this.#retryAt = retryAt ?? 0;
    this.#why = why;
    if (this.#isGood()) {
      this.#liveAt = serverNow();
      this.#badSince = 0;
    } else if (good || this.#badSince === 0) {
      this.#badSince = Date.now();
    }
    this.#show();
  }

  tick() {
    this.#show();
  }

  #isGood() {
    return this.#state === "live" && this.#status?.connected !== false;
  }

  #show() {
    const upstream = this.#state === "live" && this.#status?.connected === false;
    const light = this.#isGood() ? "live" : upstream ? "upstream" : this.#state;
    setAttribute(this.#light, "data-state", light);
    setText(this.#light.lastChild, t(`connection.${light}`));
    if (this.#isGood()) {
      this.#liveAt = serverNow();
    }
    const lasts = this.#badSince > 0 && Date.now() - this.#badSince > GRACE_MS;
    const notes = this.#isGood() ? (this.#status?.notes ?? []) : [];
    const visible = light === "signed-out" || lasts || notes.length > 0;
    setAttribute(this.#banner, "hidden", !visible);
    setAttribute(this.#banner, "data-state", notes.length > 0 ? "notes" : light);
    setAttribute(this.#retry, "hidden", light !== "lost");
    if (visible) {
      setText(this.#message, notes.length > 0 ? notes.join(" · ") : this.#text(light));
    }
  }

  #text(light) {
    const time = moment(this.#liveAt);
    const seconds = Math.max(0, Math.ceil((this.#retryAt - Date.now()) / 1000));
    return {
      connecting: t("banner.connecting", { time }),
      lost: this.#why ? t("banner.refused", { why: this.#why, n: seconds }) : t("banner.lost", { time, n: seconds }),
      upstream: t("banner.upstream", { time, why: this.#status?.why ?? "" }),
      "signed-out": t("banner.signedOut"),
    }[light];
  }
}

function mark() {
  const cells = [0, 1, 2].flatMap((row) => [0, 1, 2].map((column) => [row, column]));
  const cell = ([row, column]) =>
    svg("rect", { x: 1 + 6 * column, y: 1 + 6 * row, width: 5, height: 5, rx: 1, class: row + column > 2 ? "later" : "now" });
  return svg("svg", { viewBox: "0 0 19 19", width: 19, height: 19, class: "mark", "aria-hidden": "true" }, cells.map(cell));
}

function language(onLanguage) {
  const change = (event) => {
    setLanguage(event.target.value);
    onLanguage();
  };
  const options = LANGUAGES.map(([code, name]) =>
    h("option", { value: code, selected: code === currentLanguage(), lang: code }, name),
  );
  return h("select", { class: "quiet", "aria-label": t("language"), onchange: change }, options);
}

function themeButton() {
  const label = () => t("theme", { theme: t(`theme.${currentTheme()}`) });
  const icon = svg(
    "svg",
    { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" },
    svg("circle", { cx: 8, cy: 8, r: 6, class: "ring" }),
    svg("path", { d: "M8 2a6 6 0 0 1 0 12Z", class: "half" }),
  );
  const button = h("button", { class: "quiet icon", "aria-label": label(), title: label() }, icon);
  button.addEventListener("click", () => {
    nextTheme();
    button.setAttribute("aria-label", label());
    button.title = label();
  });
  return button;
}

function keysButton() {
  return h("button", { class: "quiet icon", "aria-label": `? ${t("keys")}`, title: t("keys"), onclick: showKeys }, "?");
}

// Times and durations as people read them, by the server's clock: a laptop's own may be wrong.
import { locale, t } from "./i18n.js";

let offset = 0;

// `now` is RFC 3339.
export function setServerTime(now) {
  const time = Date.parse(now);
  if (Number.isFinite(time)) {
    offset = time - Date.now();
  }
}

export function serverNow() {
  return Date.now() + offset;
}

export function secondsSince(time) {
  const parsed = Date.parse(time);
  return Number.isFinite(parsed) ? Math.max(0, (serverNow() - parsed) / 1000) : null;
}

// As `kubectl` writes ages: `8s`, `4m30s`, `2h`, `3d`.
export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const parts = [
    [86400, "d"],
    [3600, "h"],
    [60, "m"],
    [1, "s"],
  ];
  const first = parts.findIndex(([size]) => whole >= size);
  if (first === -1) {
    return "0s";
  }
  const [size, unit] = parts[first];
  const count = Math.floor(whole / size);
  const rest = whole - count * size;
  const next = parts[first + 1];
  const fine = next && count < 10 ? Math.floor(rest / next[0]) : 0;
  return fine > 0 ? `${count}${unit}${fine}${next[1]}` : `${count}${unit}`;
}

// A clock that counts down: `4:05`, `1:04:05`.
export function countdown(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  const two = (value) => String(value).padStart(2, "0");
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

export function ago(time) {
  const seconds = secondsSince(time);
  return seconds === null ? "" : t("ago", { time: duration(seconds) });
}

// A moment of today is a time, another one a date and a time.
export function moment(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) {
    return "";
  }
  const { time: clock, full } = formats();
  const isToday = date.toDateString() === new Date(serverNow()).toDateString();
  return (isToday ? clock : full).format(date);
}

const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
const known = new Map();

// The formats of the page's language: one takes longer to make than all times of a page to write.
function formats() {
  const language = locale();
  let found = known.get(language);
  if (found === undefined) {
    found = {
      time: new Intl.DateTimeFormat(language, CLOCK),
      full: new Intl.DateTimeFormat(language, { month: "short", day: "numeric", ...CLOCK }),
    };
    known.set(language, found);
  }
  return found;
}

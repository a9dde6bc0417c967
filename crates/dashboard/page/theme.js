// Light or dark: as the system has it, unless a person chose.
const STORED = "kennel-theme";
const THEMES = ["auto", "light", "dark"];
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set();

export function currentTheme() {
  const stored = localStorage.getItem(STORED);
  return THEMES.includes(stored) ? stored : "auto";
}

export function nextTheme() {
  const next = THEMES[(THEMES.indexOf(currentTheme()) + 1) % THEMES.length];
  localStorage.setItem(STORED, next);
  apply();
  return next;
}

// Calls `listener` after each change of the colours. Returns what takes it away again.
export function onTheme(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function apply() {
  const theme = currentTheme();
  if (theme === "auto") {
    delete document.documentElement.dataset.theme;
  } else {
    document.documentElement.dataset.theme = theme;
  }
  listeners.forEach((listener) => listener());
}

system.addEventListener("change", apply);
apply();

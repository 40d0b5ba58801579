/** What one person prefers, kept in the browser where it allows that. */
export interface Settings {
  theme: "auto" | "light" | "dark";
  letterKeys: boolean;
}

const KEY = "rperf-viewer";
const DEFAULTS: Settings = { theme: "auto", letterKeys: true };

export function loadSettings(): Settings {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return {
      theme: ["light", "dark"].includes(stored.theme) ? stored.theme : DEFAULTS.theme,
      letterKeys: stored.letterKeys !== false,
    };
  } catch {
    return DEFAULTS;
  }
}

export function saveSettings(settings: Settings) {
  try {
    localStorage.setItem(KEY, JSON.stringify(settings));
  } catch {
    // No storage on some file:// pages: the choice lasts as long as the page.
  }
}

/** Gives the page its colours; returns whether they are dark. */
export function applyTheme(settings: Settings): boolean {
  const dark = isDark(settings);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  return dark;
}

function isDark(settings: Settings): boolean {
  if (settings.theme !== "auto") return settings.theme === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

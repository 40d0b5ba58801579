import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Shell } from "./context.ts";
import { applyTheme, loadSettings, type Settings, saveSettings } from "./settings.ts";

/** What all pages have: settings, colours, a title, and an element whose text is said to people who hear the page. */
export function useNewShell(title: string) {
  const [settings, setSettings] = useState<Settings>(loadSettings);
  const [systemDark, setSystemDark] = useState(0);
  const live = useRef<HTMLDivElement>(null);
  const dark = applyTheme(settings);

  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setSystemDark(systemDark + 1);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, [systemDark]);
  useLayoutEffect(() => {
    document.title = `${title} – rperf`;
  }, [title]);

  const shell: Shell = useMemo(
    () => ({
      settings,
      dark,
      setSettings: (next) => {
        setSettings(next);
        saveSettings(next);
      },
      say: (text) => {
        if (live.current) live.current.textContent = text;
      },
    }),
    [settings, dark],
  );
  return { shell, live };
}

/** Keys that work wherever the focus is, but for fields that take text. */
export function useKeys({ settings }: Shell, actionOf: (key: string) => (() => void) | undefined) {
  // At once: a key may come before the first frame.
  useLayoutEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || !settings.letterKeys) return;
      if (target.closest?.("input, select, textarea, dialog, [role=menu]")) return;
      const action = actionOf(event.key);
      if (!action) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  });
}

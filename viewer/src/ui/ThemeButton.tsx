import { useShell } from "../app/context.ts";

/** Changes between light and dark colours. */
export function ThemeButton() {
  const { dark, settings, setSettings } = useShell();
  const words = dark ? "Light colours" : "Dark colours";
  return (
    <button
      type="button"
      aria-label={words}
      title={words}
      onClick={() => setSettings({ ...settings, theme: dark ? "light" : "dark" })}
    >
      {dark ? "☀" : "☾"}
    </button>
  );
}

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useShell } from "../app/context.ts";

const PAUSE_MS = 120;

interface Props {
  label: string;
  value: string;
  onSearch(text: string): void;
  /** What was found, or what is wrong. */
  words: string;
  isProblem?: boolean;
  children?: ComponentChildren;
}

/** A field that searches as somebody types. */
export function SearchBox({ label, value, onSearch, words, isProblem, children }: Props) {
  const { say } = useShell();
  const [text, setText] = useState(value);
  const timer = useRef(0);
  // What is being typed stays; a search from elsewhere (a link, "back") replaces it.
  const applied = useRef(value);
  useEffect(() => {
    if (value !== applied.current) setText(value);
    applied.current = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const apply = (search: string) => {
    clearTimeout(timer.current);
    const isNew = search !== applied.current;
    applied.current = search;
    if (isNew) onSearch(search);
  };
  useEffect(() => {
    if (words) say(words);
  }, [words]);
  return (
    <search class="search">
      <input
        id="search"
        type="search"
        aria-label={label}
        placeholder={`${label} ( / )`}
        value={text}
        maxLength={200}
        onInput={(event) => {
          const search = event.currentTarget.value;
          setText(search);
          clearTimeout(timer.current);
          timer.current = window.setTimeout(() => apply(search), PAUSE_MS);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") {
            apply(event.currentTarget.value);
            if (words) say(words);
          } else if (event.key === "Escape") {
            setText("");
            apply("");
          }
        }}
      />
      {children}
      <span class={isProblem ? "problem" : "muted"}>{words}</span>
    </search>
  );
}

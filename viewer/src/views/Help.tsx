import { useLayoutEffect, useRef } from "preact/hooks";
import { type Page, useShell } from "../app/context.ts";
import { formatWhen } from "../model/units.ts";

const KEYS: [string, string][] = [
  ["1 to 9, 0", "the first ten views; in the row of views, arrows go to all"],
  ["/", "search; N and Shift-N go from hit to hit in the flame graph"],
  ["arrows", "move between methods in a graph, rows in a table"],
  ["Enter", "zooms in, or opens a row"],
  ["Esc", "zooms out, closes what is open"],
  ["M", "a menu for the method: focus, ignore, hide, callers, source"],
  ["P", "puts the method in the middle: callers above, callees below"],
  ["I, F, S", "inverted, upwards, sandwich"],
  ["[ and ]", "the profile before and after, where there are several"],
  ["*", "in the call tree: opens the path where most of it goes"],
  ["N", "in the source: the next hot line"],
  ["?", "this page"],
];

const WORDS: [string, string][] = [
  ["self", "what a method took itself, without the methods that it called."],
  ["total", "what it took with all that it called. A method that calls itself counts once."],
  ["wall time", "time on the clock, waiting included. With several threads it is the sum of theirs."],
  ["CPU time", "time that a processor worked for it."],
  ["GVL", "the lock of Ruby's VM: one thread at a time runs Ruby code. GVL wait is time in line for it."],
  [
    "flame graph",
    "each box is a method, below the one that called it; the wider, the more it took. Left to right is no time.",
  ],
  [
    "typical",
    "requests that took as long as most of their endpoint: from the first quarter to the third (p25 to p75).",
  ],
  ["tail", "the slowest requests of an endpoint, one or two in a hundred (from p99)."],
  ["inverted", "begins with the methods that run, and shows below them who called."],
];

type Pairs = [string, string][];

/** What a page's help says. */
export interface HelpText {
  keys: Pairs;
  words: Pairs;
  /** What the page shows, and what is known of it. */
  subject: string;
  facts: Pairs;
}

/** The help of a profile's page. */
export function profileHelp({ view }: Page): HelpText {
  const { meta } = view.target.rows;
  const facts: Pairs = [
    ["program", meta.program ?? ""],
    ["begun", formatWhen(meta.startMs)],
    ["samples per second", meta.frequency === null ? "" : String(meta.frequency)],
    ...meta.comments.map((comment): [string, string] => ["note", comment]),
  ];
  return { keys: KEYS, words: WORDS, subject: "This profile", facts };
}

/** Keys, words, and what is known about what is shown. */
export function Help({ keys, words, subject, facts, onClose }: HelpText & { onClose(): void }) {
  const { settings, setSettings } = useShell();
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby="help-title" onClose={onClose}>
      <h2 id="help-title">Help</h2>
      <h3>Keys</h3>
      <dl>
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <label>
        <input
          type="checkbox"
          checked={settings.letterKeys}
          onChange={(event) => setSettings({ ...settings, letterKeys: event.currentTarget.checked })}
        />{" "}
        Keys that are a single letter, digit or sign are on
      </label>
      <h3>Words</h3>
      <dl>
        {words.map(([word, what]) => (
          <div key={word}>
            <dt>{word}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      {facts.length > 0 && (
        <>
          <h3>{subject}</h3>
          <dl>
            {facts
              .filter(([, value]) => value !== "")
              .map(([what, value]) => (
                <div key={`${what} ${value}`}>
                  <dt>{what}</dt>
                  <dd>{value}</dd>
                </div>
              ))}
          </dl>
        </>
      )}
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

import { useEffect, useRef, useState } from "preact/hooks";
import { usePage } from "../app/context.ts";
import { Session } from "../app/session.ts";
import { DataError } from "../format/error.ts";
import type { Server } from "../format/server.ts";

const REST_MS = 1000;
/** So many times as long as the last look took, there is none. */
const SHARE = 4;

const words = (error: unknown) => (error instanceof DataError ? error.message : `The page failed: ${String(error)}`);

interface Props {
  server: Server;
  follows: boolean;
  /** If it doesn't, why a snapshot stands in for what is live until there is any. */
  note: string;
}

/** Follows the program: while the page is visible, the view renews itself. */
export function Live({ server, follows, note }: Props) {
  const page = usePage();
  const latest = useRef(page);
  latest.current = page;
  const [paused, setPaused] = useState(false);
  const [ended, setEnded] = useState(false);
  const [problem, setProblem] = useState(note);
  const generation = useRef(0);

  useEffect(() => {
    if (paused || (!follows && !note)) return;
    let over = false;
    let timer = 0;
    const look = async () => {
      const began = performance.now();
      try {
        // What a menu or a dialog is about stays.
        if (document.visibilityState === "visible" && !document.querySelector("[role=menu], dialog[open]")) {
          const { generation: now, note: said, hasEnded } = await server.live();
          const file = now === generation.current ? null : await server.current();
          if (over) return;
          if (file && !follows) return latest.current.open(new Session(file), "");
          generation.current = now;
          if (file) latest.current.renew(new Session(file));
          setProblem(said);
          setEnded(hasEnded);
          if (hasEnded) return;
        }
      } catch (error) {
        if (over) return;
        setProblem(words(error));
      }
      timer = window.setTimeout(look, Math.max(REST_MS, SHARE * (performance.now() - began)));
    };
    look();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [paused, follows, server]);
  useEffect(() => page.say(problem), [problem]);

  const follow = async () => {
    try {
      page.open(new Session(await server.current()), "");
    } catch (error) {
      setProblem(words(error));
    }
  };
  return (
    <>
      {!ended && (
        <button type="button" onClick={() => (follows ? setPaused(!paused) : follow())}>
          {!follows ? "Live" : paused ? "Go on" : "Pause"}
        </button>
      )}
      {problem && <span class="problem">{problem}</span>}
    </>
  );
}

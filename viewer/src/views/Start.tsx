import { useEffect, useRef, useState } from "preact/hooks";
import { Session } from "../app/session.ts";
import { DataError } from "../format/error.ts";
import type { Server } from "../format/server.ts";
import { Notes } from "./ServerSnapshots.tsx";

interface Props {
  server: Server;
  /** The note says why it isn't what is live. */
  onOpen(session: Session, name: string, note: string): void;
}

/** A server's page before a profile is open: it opens what is live, or the newest snapshot. */
export function Start({ server, onOpen }: Props) {
  const [message, setMessage] = useState("Loading the newest snapshot…");
  const [canTake, setCanTake] = useState(false);
  const [notes, setNotes] = useState<string[]>([]);
  const timer = useRef(0);
  // The last one counts.
  const loads = useRef(0);
  const load = async (take: boolean) => {
    clearTimeout(timer.current);
    const number = ++loads.current;
    let goesOn = true;
    try {
      if (take) await server.take();
      const list = await server.list();
      const newest = list.snapshots[list.snapshots.length - 1];
      const live = server.isLive ? await server.live() : null;
      const isThere = live !== null && live.generation > 0;
      const note = live?.note ?? "";
      goesOn = !live?.hasEnded;
      const file = isThere ? await server.current() : newest && (await server.snapshot(newest.id));
      if (number !== loads.current) return;
      if (file) return onOpen(new Session(file), isThere ? "" : newest.title, isThere ? "" : note);
      setCanTake(list.canTake);
      setNotes(list.notes);
      setMessage(note || "There is no snapshot yet.");
    } catch (error) {
      if (number !== loads.current) return;
      setMessage(error instanceof DataError ? error.message : `The page failed: ${String(error)}`);
    }
    // A program that waits begins by itself.
    if (server.isLive && goesOn) timer.current = window.setTimeout(() => load(false), 1000);
  };
  useEffect(() => {
    load(false);
    return () => {
      loads.current++;
      clearTimeout(timer.current);
    };
  }, [server]);
  return (
    <main class="failed">
      <h1>rperf</h1>
      <p role="status">{message}</p>
      <Notes notes={notes} />
      {canTake && (
        <button type="button" onClick={() => load(true)}>
          Take a snapshot
        </button>
      )}{" "}
      <button type="button" onClick={() => load(false)}>
        Look again
      </button>
    </main>
  );
}

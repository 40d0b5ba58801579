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
  const over = useRef(false);
  const load = async (take: boolean) => {
    clearTimeout(timer.current);
    let goesOn = true;
    try {
      if (take) await server.take();
      const list = await server.list();
      const newest = list.snapshots[list.snapshots.length - 1];
      setCanTake(list.canTake);
      setNotes(list.notes);
      const live = server.isLive ? await server.live() : null;
      const isThere = live !== null && live.generation > 0;
      const note = live?.note ?? "";
      goesOn = !live?.hasEnded;
      if (isThere || newest) {
        const session = new Session(await (isThere ? server.current() : server.snapshot(newest.id)));
        if (!over.current) onOpen(session, isThere ? "" : newest.title, isThere ? "" : note);
        return;
      }
      setMessage(note || "There is no snapshot yet.");
    } catch (error) {
      setMessage(error instanceof DataError ? error.message : `The page failed: ${String(error)}`);
    }
    // A program that waits begins by itself.
    if (server.isLive && goesOn && !over.current) timer.current = window.setTimeout(() => load(false), 1000);
  };
  useEffect(() => {
    over.current = false;
    load(false);
    return () => {
      over.current = true;
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

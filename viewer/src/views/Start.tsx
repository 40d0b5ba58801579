import { useEffect, useRef, useState } from "preact/hooks";
import { Session } from "../app/session.ts";
import { DataError } from "../format/error.ts";
import type { Server } from "../format/server.ts";
import { Notes } from "./ServerSnapshots.tsx";

/** A server's page before a snapshot is open: it opens the newest one. */
export function Start({ server, onOpen }: { server: Server; onOpen(session: Session, name: string): void }) {
  const [message, setMessage] = useState("Loading the newest snapshot…");
  const [canTake, setCanTake] = useState(false);
  const [notes, setNotes] = useState<string[]>([]);
  const timer = useRef(0);
  const load = async (take: boolean) => {
    clearTimeout(timer.current);
    try {
      if (take) await server.take();
      const list = await server.list();
      const newest = list.snapshots[list.snapshots.length - 1];
      setCanTake(list.canTake);
      setNotes(list.notes);
      if (server.isLive) {
        const { generation, note } = await server.live();
        if (generation > 0) return onOpen(new Session(await server.current()), "");
        if (note) throw new DataError(note);
      }
      if (newest) onOpen(new Session(await server.snapshot(newest.id)), newest.title);
      else setMessage("There is no snapshot yet.");
      return;
    } catch (error) {
      setMessage(error instanceof DataError ? error.message : `The page failed: ${String(error)}`);
    }
    // A program that waits begins by itself.
    if (server.isLive) timer.current = window.setTimeout(() => load(false), 1000);
  };
  useEffect(() => {
    load(false);
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

import { useEffect, useRef, useState } from "preact/hooks";
import { usePage } from "../app/context.ts";
import { Session } from "../app/session.ts";
import type { ProfileFile } from "../format/decode.ts";
import { DataError } from "../format/error.ts";
import type { Server, Snapshot, SnapshotList } from "../format/server.ts";
import { formatCount, formatSize, formatTime, formatWhen } from "../model/units.ts";

const POLL_MS = 5000;

/** What the server has to say about its snapshots. */
export function Notes({ notes }: { notes: string[] }) {
  return (
    <>
      {notes.map((note) => (
        <p key={note}>{note}</p>
      ))}
    </>
  );
}

/** A server's snapshots: to take, to look at, to compare, to delete. */
export function ServerSnapshots({ server }: { server: Server }) {
  const { open, say } = usePage();
  const [list, setList] = useState<SnapshotList | null>(null);
  const [problem, setProblem] = useState("");
  const [paused, setPaused] = useState(false);
  const [busy, setBusy] = useState("");
  const [base, setBase] = useState("");
  const alive = useRef(true);

  const attempt = async (what: string, act: () => Promise<void>) => {
    setBusy(what);
    try {
      await act();
      if (alive.current) setProblem("");
    } catch (error) {
      if (alive.current) setProblem(error instanceof DataError ? error.message : "The page failed at that.");
    }
    if (alive.current) setBusy("");
  };
  const refresh = async () => {
    const next = await server.list();
    if (!alive.current) return next;
    setList(next);
    setBase((id) => (next.snapshots.some((snapshot) => snapshot.id === id) ? id : ""));
    return next;
  };
  const poll = () =>
    attempt("", async () => {
      await refresh();
    });
  useEffect(() => {
    alive.current = true;
    poll();
    return () => {
      alive.current = false;
    };
  }, [server]);
  useEffect(() => {
    if (paused) return;
    const timer = setInterval(() => {
      if (document.visibilityState === "visible" && busy === "") poll();
    }, POLL_MS);
    return () => clearInterval(timer);
  }, [paused, busy, server]);

  const show = (name: string, load: () => Promise<ProfileFile>) =>
    attempt(`Loading ${name}…`, async () => open(new Session(await load()), name));
  const take = () =>
    attempt("Taking a snapshot…", async () => {
      const id = await server.take();
      const taken = (await refresh()).snapshots.find((snapshot) => snapshot.id === id);
      say(`${taken?.title ?? "The snapshot"} was taken.`);
    });
  const remove = ({ id, title }: Snapshot) => {
    if (!confirm(`Delete ${title}?`)) return;
    attempt(`Deleting ${title}…`, async () => {
      await server.delete(id);
      await refresh();
      say(`${title} was deleted.`);
    });
  };
  const snapshots = list?.snapshots ?? [];
  const before = snapshots.find(({ id }) => id === base);
  return (
    <div class="view scroll" tabIndex={0} role="group" aria-label="Snapshots">
      <h2>Snapshots{list?.process ? ` of process ${list.process}` : ""}</h2>
      <div class="tools">
        {list?.canTake && (
          <button type="button" disabled={busy !== ""} onClick={take}>
            Take a snapshot
          </button>
        )}
        <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
          {paused ? "The list is paused" : "Pause the list"}
        </button>
        <span class="muted" role="status">
          {busy}
        </span>
      </div>
      <Notes notes={list?.notes ?? []} />
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {list && snapshots.length === 0 && <p class="empty">There is no snapshot yet.</p>}
      {snapshots.length > 0 && (
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">snapshot</th>
              <th scope="col">begun</th>
              <th scope="col" class="number">
                length
              </th>
              <th scope="col" class="number">
                samples
              </th>
              <th scope="col" class="number">
                size
              </th>
              <th scope="col">show</th>
              {(list?.canSave || list?.canDelete) && <th scope="col">keep or not</th>}
            </tr>
          </thead>
          <tbody>
            {[...snapshots].reverse().map((snapshot) => {
              const { id, title } = snapshot;
              return (
                <tr key={id}>
                  <Facts snapshot={snapshot} />
                  <td>
                    <button
                      type="button"
                      class="small"
                      aria-label={`show: ${title}`}
                      disabled={busy !== ""}
                      onClick={() => show(title, () => server.snapshot(id))}
                    >
                      show
                    </button>
                    {before === undefined || before.id === id ? (
                      <button
                        type="button"
                        class="small"
                        aria-label={before ? `${title} is before` : `${title} as before`}
                        onClick={() => setBase(before ? "" : id)}
                      >
                        {before ? "is before" : "as before"}
                      </button>
                    ) : (
                      <button
                        type="button"
                        class="small"
                        aria-label={`${title} as after`}
                        disabled={busy !== ""}
                        onClick={() => show(`${before.title} → ${title}`, () => server.diff(before.id, id))}
                      >
                        as after
                      </button>
                    )}
                  </td>
                  {(list?.canSave || list?.canDelete) && (
                    <td>
                      {list.canSave && (
                        <a class="small" href={server.fileAddress(id)} download="" aria-label={`save: ${title}`}>
                          save
                        </a>
                      )}
                      {list.canDelete && (
                        <button
                          type="button"
                          class="small"
                          aria-label={`delete: ${title}`}
                          disabled={busy !== ""}
                          onClick={() => remove(snapshot)}
                        >
                          delete
                        </button>
                      )}
                    </td>
                  )}
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </div>
  );
}

/** The cells that say what a snapshot is. */
function Facts({ snapshot }: { snapshot: Snapshot }) {
  const { title, startMs, durationNs, samples, bytes } = snapshot;
  return (
    <>
      <th scope="row" class="name">
        {title}
      </th>
      <td>{formatWhen(startMs)}</td>
      <td class="number">{durationNs === null ? "" : formatTime(durationNs)}</td>
      <td class="number">{samples === null ? "" : formatCount(samples)}</td>
      <td class="number">{bytes === null ? "" : formatSize(bytes)}</td>
    </>
  );
}

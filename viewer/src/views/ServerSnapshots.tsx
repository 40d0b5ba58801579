import { useEffect, useRef, useState } from "preact/hooks";
import { usePage } from "../app/context.ts";
import { Session } from "../app/session.ts";
import type { ProfileFile } from "../format/decode.ts";
import { DataError } from "../format/error.ts";
import type { Server, Snapshot, SnapshotList } from "../format/server.ts";
import { formatCount, formatSize, formatTime, formatWhen } from "../model/units.ts";
import { RowButton } from "../ui/RowButton.tsx";

const POLL_MS = 5000;
const NUMBERS = ["length", "samples", "size"];
const COLUMNS = ["snapshot", "begun", ...NUMBERS, "show", "keep"];

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
  const [lost, setLost] = useState("");
  const [paused, setPaused] = useState(false);
  const [busy, setBusy] = useState("");
  const [base, setBase] = useState("");
  const alive = useRef(true);

  const words = (error: unknown) => (error instanceof DataError ? error.message : "The page failed at that.");
  const attempt = async (what: string, act: () => Promise<void>) => {
    setBusy(what);
    setProblem("");
    try {
      await act();
    } catch (error) {
      if (alive.current) setProblem(words(error));
    }
    if (alive.current) setBusy("");
  };
  const refresh = async () => {
    const next = await server.list();
    if (!alive.current) return next;
    setList(next);
    setBase((id) => (next.snapshots.some((snapshot) => snapshot.id === id) ? id : ""));
    setLost("");
    return next;
  };
  // What an action had to say stays.
  const poll = () => refresh().catch((error) => alive.current && setLost(words(error)));
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
      {(problem || lost) && (
        <p class="problem" role="alert">
          {problem || lost}
        </p>
      )}
      {list && snapshots.length === 0 && <p class="empty">There is no snapshot yet.</p>}
      {snapshots.length > 0 && (
        <table class="plain">
          <thead>
            <tr>
              {COLUMNS.map((name) => (
                <th key={name} scope="col" class={NUMBERS.includes(name) ? "number" : ""}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {[...snapshots].reverse().map((snapshot) => {
              const { id, title } = snapshot;
              const isBusy = busy !== "";
              return (
                <tr key={id}>
                  <Facts snapshot={snapshot} />
                  <td>
                    <RowButton
                      label={`show: ${title}`}
                      disabled={isBusy}
                      onClick={() => show(title, () => server.snapshot(id))}
                    >
                      show
                    </RowButton>
                    {before === undefined ? (
                      <RowButton label={`${title} as base`} onClick={() => setBase(id)}>
                        as base
                      </RowButton>
                    ) : before.id === id ? (
                      <RowButton label={`${title} is base`} onClick={() => setBase("")}>
                        is base
                      </RowButton>
                    ) : (
                      <RowButton
                        label={`${title} as target`}
                        disabled={isBusy}
                        onClick={() => show(`${before.title} → ${title}`, () => server.diff(before.id, id))}
                      >
                        as target
                      </RowButton>
                    )}
                  </td>
                  <td>
                    {list?.canSave && (
                      <a class="small" href={server.fileAddress(id)} download="" aria-label={`save: ${title}`}>
                        save
                      </a>
                    )}
                    {list?.canDelete && (
                      <RowButton label={`delete: ${title}`} disabled={isBusy} onClick={() => remove(snapshot)}>
                        delete
                      </RowButton>
                    )}
                  </td>
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

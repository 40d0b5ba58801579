import { useEffect, useRef, useState } from "preact/hooks";
import { usePage } from "../app/context.ts";
import { Session } from "../app/session.ts";
import type { ProfileFile } from "../format/decode.ts";
import { DataError } from "../format/error.ts";
import type { Snapshot, SnapshotList } from "../format/server.ts";
import { formatCount, formatTime } from "../model/units.ts";

const POLL_MS = 5000;

/** The profiles to choose from, one to look at or two to compare: of this file, or of the server. */
export function SnapshotsView() {
  const { server } = usePage();
  return server ? <ServerSnapshots /> : <FileProfiles />;
}

function when(startMs: number | null): string {
  return startMs === null ? "" : new Date(startMs).toLocaleString();
}

function FileProfiles() {
  const { session, view, store } = usePage();
  const { target, base } = view.query;
  return (
    <div class="view scroll" tabIndex={0} role="group" aria-label="Profiles">
      <h2>Profiles in this file</h2>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">profile</th>
            <th scope="col">begun</th>
            <th scope="col" class="number">
              length
            </th>
            <th scope="col">show</th>
          </tr>
        </thead>
        <tbody>
          {session.file.profiles.map(({ meta }, i) => (
            <tr key={`${i} ${meta.title}`}>
              <th scope="row" class="name">
                {meta.title}
              </th>
              <td>{when(meta.startMs)}</td>
              <td class="number">{meta.durationNs === null ? "" : formatTime(meta.durationNs)}</td>
              <td>
                <button
                  type="button"
                  class="small"
                  disabled={i === target}
                  aria-label={`${i === target ? "shown" : "show"}: ${meta.title}`}
                  onClick={() => store.set({ profile: i, base: i === base ? -1 : (base ?? -1), zoom: [] })}
                >
                  {i === target ? "shown" : "show"}
                </button>
                <button
                  type="button"
                  class="small"
                  disabled={i === target}
                  aria-label={i === base ? "don't compare" : `compare with: ${meta.title}`}
                  onClick={() =>
                    store.set(i === base ? { base: -1 } : { base: i, view: "changes", colouring: "change" })
                  }
                >
                  {i === base ? "don't compare" : "compare with"}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ServerSnapshots() {
  const { server, open, say } = usePage();
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
    const next = await server?.list();
    if (next && alive.current) setList(next);
  };
  useEffect(() => {
    alive.current = true;
    attempt("", refresh);
    return () => {
      alive.current = false;
    };
  }, [server]);
  useEffect(() => {
    if (paused) return;
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") attempt("", refresh);
    }, POLL_MS);
    return () => clearInterval(timer);
  }, [paused, server]);

  const show = (file: Promise<ProfileFile> | undefined, name: string) =>
    attempt(`Loading ${name}…`, async () => {
      if (file) open(new Session(await file), name);
    });
  const snapshots: Snapshot[] = list?.snapshots ?? [];
  return (
    <div class="view scroll" tabIndex={0} role="group" aria-label="Snapshots">
      <h2>Snapshots</h2>
      <div class="tools">
        {list?.canTake && (
          <button
            type="button"
            disabled={busy !== ""}
            onClick={() =>
              attempt("Taking a snapshot…", async () => {
                const id = await server?.take();
                await refresh();
                say(`Snapshot ${id} was taken.`);
              })
            }
          >
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
              <th scope="col">show</th>
            </tr>
          </thead>
          <tbody>
            {[...snapshots].reverse().map((snapshot) => (
              <tr key={snapshot.id}>
                <th scope="row" class="name">
                  {snapshot.title}
                </th>
                <td>{when(snapshot.startMs)}</td>
                <td class="number">{snapshot.durationNs === null ? "" : formatTime(snapshot.durationNs)}</td>
                <td class="number">{snapshot.samples === null ? "" : formatCount(snapshot.samples)}</td>
                <td>
                  <button
                    type="button"
                    class="small"
                    aria-label={`show: ${snapshot.title}`}
                    disabled={busy !== ""}
                    onClick={() => show(server?.snapshot(snapshot.id), snapshot.title)}
                  >
                    show
                  </button>
                  {base === snapshot.id ? (
                    <button
                      type="button"
                      class="small"
                      aria-label={`${snapshot.title} is before`}
                      onClick={() => setBase("")}
                    >
                      is before
                    </button>
                  ) : base === "" ? (
                    <button
                      type="button"
                      class="small"
                      aria-label={`${snapshot.title} as before`}
                      onClick={() => setBase(snapshot.id)}
                    >
                      as before
                    </button>
                  ) : (
                    <button
                      type="button"
                      class="small"
                      aria-label={`${snapshot.title} as after`}
                      disabled={busy !== ""}
                      onClick={() => show(server?.diff(base, snapshot.id), `${base} → ${snapshot.title}`)}
                    >
                      as after
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

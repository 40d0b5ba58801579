import { render } from "preact";
import { HEAP_STATE } from "./app/heap_state.ts";
import { Session } from "./app/session.ts";
import { applyTheme, loadSettings } from "./app/settings.ts";
import { INITIAL, PROFILE_STATE } from "./app/state.ts";
import { Store } from "./app/store.ts";
import { decode } from "./format/decode.ts";
import { decompress, fromBase64 } from "./format/envelope.ts";
import { DataError } from "./format/error.ts";
import { type Heap, isHeap, readHeap } from "./format/heap.ts";
import { Server } from "./format/server.ts";
import { App } from "./views/App.tsx";
import { HeapApp, initialHeap } from "./views/heap/HeapApp.tsx";
import { Start } from "./views/Start.tsx";

const root = document.getElementById("app") as HTMLElement;
// The note for browsers without JavaScript.
root.replaceChildren();
applyTheme(loadSettings());

/** A page with its data needs no connection: it gives up the right to any. */
function forbidConnections() {
  const policy = document.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = "connect-src 'none'";
  document.head.append(policy);
}

function show(store: Store, session: Session, server: Server | null, snapshot: string, note = "") {
  const open = (next: Session, name: string) => {
    // A view that the new file has too is kept, so that two snapshots can be looked at in turn.
    const { view, group, inverted, type } = store.state;
    const kept = next.file.diff ? {} : { view: view === "snapshots" ? INITIAL.view : view, group, inverted, type };
    store.restart(next.initial, { ...next.initial, ...kept });
    show(store, next, server, name);
  };
  const renew = (next: Session) => show(store, next, server, snapshot);
  render(<App key={snapshot} {...{ store, session, server, snapshot, note, open, renew }} />, root);
}

function showHeap(heap: Heap) {
  const store = new Store(initialHeap(heap), HEAP_STATE);
  render(<HeapApp store={store} heap={heap} />, root);
}

async function start() {
  const block = document.getElementById("profile");
  const text = (block?.textContent ?? "").trim();
  // The text is large; it is not needed beside the decoded data.
  block?.remove();
  const server = Server.from(text);
  if (server) {
    const store = new Store(INITIAL, PROFILE_STATE);
    const open = (session: Session, name: string, note: string) => show(store, session, server, name, note);
    render(<Start server={server} onOpen={open} />, root);
    return;
  }
  forbidConnections();
  if (text === "" || text.startsWith("@")) {
    throw new DataError(
      "This is rperf's viewer without a profile. `rperf report --html -o report.html` makes a page with one.",
    );
  }
  const data = await decompress(fromBase64(text));
  if (isHeap(data)) {
    showHeap(readHeap(data));
    return;
  }
  const session = new Session(decode(data));
  // For the benchmark of the page.
  performance.mark("rperf-decoded");
  show(new Store(session.initial, PROFILE_STATE), session, null, "");
  requestAnimationFrame(() => setTimeout(() => performance.mark("rperf-shown")));
}

start().catch((error: unknown) => {
  const known = error instanceof DataError;
  const message = known
    ? error.message
    : `The page failed: ${String(error)}. Please report it with the browser's version.`;
  render(
    <main class="failed">
      <h1>rperf</h1>
      <p role="alert">{message}</p>
    </main>,
    root,
  );
});

import { fromHash, type State, toHash } from "./state.ts";

/** The state of the page, in step with the URL. */
export class Store {
  private current: State;
  private readonly listeners = new Set<() => void>();

  constructor(private initial: State) {
    this.current = fromHash(location.hash, initial);
    addEventListener("popstate", () => this.follow());
    addEventListener("hashchange", () => this.follow());
  }

  get state(): State {
    return this.current;
  }

  /** Sets some of the state. `quiet` changes leave no step for "back": typing, sorting. */
  set(change: Partial<State>, quiet = false) {
    this.current = { ...this.current, ...change };
    const hash = toHash(this.current, this.initial);
    const url = hash === "" ? location.pathname + location.search : `#${hash}`;
    try {
      if (quiet) history.replaceState(null, "", url);
      else history.pushState(null, "", url);
    } catch {
      // Some browsers allow few changes of a file's URL in a short time. The page works without.
    }
    this.tell();
  }

  /** Starts again with another file, whose defaults may differ. */
  restart(initial: State, change: Partial<State>) {
    this.initial = initial;
    this.set(change);
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private follow() {
    this.current = fromHash(location.hash, this.initial);
    this.tell();
  }

  private tell() {
    for (const listener of this.listeners) listener();
  }
}

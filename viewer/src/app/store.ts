import type { State } from "./state.ts";

/** How a state is written in the URL. */
export interface Codec<S> {
  toHash(state: S, initial: S): string;
  fromHash(hash: string, initial: S): S;
}

/** The state of the page, in step with the URL. */
export class Store<S extends object = State> {
  private current: S;
  private readonly listeners = new Set<() => void>();

  constructor(
    private initial: S,
    private readonly codec: Codec<S>,
  ) {
    this.current = codec.fromHash(location.hash, initial);
    addEventListener("popstate", () => this.follow());
    addEventListener("hashchange", () => this.follow());
  }

  get state(): S {
    return this.current;
  }

  /** Sets some of the state. `quiet` changes leave no step for "back": typing, sorting. */
  set(change: Partial<S>, quiet = false) {
    this.current = { ...this.current, ...change };
    const hash = this.codec.toHash(this.current, this.initial);
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
  restart(initial: S, change: Partial<S>) {
    this.initial = initial;
    this.set(change);
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private follow() {
    this.current = this.codec.fromHash(location.hash, this.initial);
    this.tell();
  }

  private tell() {
    for (const listener of this.listeners) listener();
  }
}

import { type Context, createContext } from "preact";
import { useContext, useLayoutEffect, useState } from "preact/hooks";
import type { Server } from "../format/server.ts";
import type { Found } from "../model/search.ts";
import type { View } from "../model/view.ts";
import type { Session } from "./session.ts";
import type { Settings } from "./settings.ts";
import type { State } from "./state.ts";
import type { Store } from "./store.ts";

/** What parts of all pages may use, whatever they show. */
export interface Shell {
  settings: Settings;
  dark: boolean;
  setSettings(settings: Settings): void;
  /** Says something to people who hear the page. */
  say(text: string): void;
}

/** What every part of a profile's page may use. */
export interface Page extends Shell {
  store: Store;
  session: Session;
  server: Server | null;
  state: State;
  view: View;
  /** The search's hits, if it has any. */
  found: Found | null;
  openMenu(menu: OpenMenu): void;
  /** Shows another file in place of this one: a snapshot, or what is live, which has no name. */
  open(session: Session, snapshot: string): void;
  /** Shows newer data in place of what is shown; all else stays. */
  renew(session: Session): void;
}

/** A menu about a method, at a place of the window. */
export interface OpenMenu {
  frame: number;
  x: number;
  y: number;
  /** Zooms to where the menu was opened, if it was opened there. */
  zoom?: () => void;
}

export const ShellContext = createContext<Shell | null>(null);
export const PageContext = createContext<Page | null>(null);

/** What a context has; outside of it there is nothing to show. */
export function useInside<T>(context: Context<T | null>): T {
  const inside = useContext(context);
  if (!inside) throw new Error("outside of the page");
  return inside;
}

export const useShell = () => useInside(ShellContext);
export const usePage = () => useInside(PageContext);

/** The store's state; the component is drawn again when it changes. */
export function useStore<S extends object>(store: Store<S>): S {
  const [state, setState] = useState(store.state);
  useLayoutEffect(() => {
    setState(store.state);
    return store.subscribe(() => setState(store.state));
  }, [store]);
  return state;
}

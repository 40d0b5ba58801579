import { createContext } from "preact";
import { useContext, useLayoutEffect, useState } from "preact/hooks";
import type { Server } from "../format/server.ts";
import type { Found } from "../model/search.ts";
import type { View } from "../model/view.ts";
import type { Session } from "./session.ts";
import type { Settings } from "./settings.ts";
import type { State } from "./state.ts";
import type { Store } from "./store.ts";

/** What every part of the page may use. */
export interface Page {
  store: Store;
  session: Session;
  server: Server | null;
  state: State;
  view: View;
  /** The search's hits, if it has any. */
  found: Found | null;
  settings: Settings;
  dark: boolean;
  setSettings(settings: Settings): void;
  /** Says something to people who hear the page. */
  say(text: string): void;
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

export const PageContext = createContext<Page | null>(null);

export function usePage(): Page {
  const page = useContext(PageContext);
  if (!page) throw new Error("outside of the page");
  return page;
}

/** The store's state; the component is drawn again when it changes. */
export function useStore(store: Store): State {
  const [state, setState] = useState(store.state);
  useLayoutEffect(() => {
    setState(store.state);
    return store.subscribe(() => setState(store.state));
  }, [store]);
  return state;
}

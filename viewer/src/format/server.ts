import { decode, type ProfileFile } from "./decode.ts";
import { decompress } from "./envelope.ts";
import { DataError } from "./error.ts";

export interface Snapshot {
  id: string;
  title: string;
  startMs: number | null;
  durationNs: number | null;
  samples: number | null;
  bytes: number | null;
}

export interface SnapshotList {
  snapshots: Snapshot[];
  canTake: boolean;
  canDelete: boolean;
  /** Whether each is there as a pprof file, too. */
  canSave: boolean;
  /** The number of the process whose snapshots these are. */
  process: number | null;
  /** What the server has to say about them, in sentences. */
  notes: string[];
}

const PATH = /^(\/(?!\/)|\.\/)[\w\-.~/%]*$/;
const ID = /^[\w-][\w.-]*$/;

/** What a server says of a program that runs. */
export interface LiveFacts {
  /** It increases with each change of the profile. */
  generation: number;
  /** What keeps it from changing; empty if nothing does. */
  note: string;
  hasEnded: boolean;
}

/** The server that the page was told of. Only its paths are ever asked. */
export class Server {
  /** Whether it has the profile of a running program as it is now: known from its first list on. */
  isLive = false;

  private constructor(private readonly base: string) {}

  /** From the text of the page's data block, which is `server:PATH`; null for anything else. */
  static from(text: string): Server | null {
    if (!text.startsWith("server:")) return null;
    const base = text.slice("server:".length);
    if (!PATH.test(base) || !base.endsWith("/")) {
      throw new DataError("The page was told a server's path that it doesn't accept.");
    }
    return new Server(base);
  }

  async list(): Promise<SnapshotList> {
    const json = await (await this.ask("snapshots.json")).json();
    const number = (value: unknown) => (typeof value === "number" && Number.isFinite(value) ? value : null);
    const list: unknown[] = Array.isArray(json?.snapshots) ? json.snapshots : [];
    const snapshots = list.flatMap((item): Snapshot[] => {
      const { id, title, start_ms, duration_ns, samples, bytes } = (item ?? {}) as Record<string, unknown>;
      if (typeof id !== "string" || !ID.test(id)) return [];
      return [
        {
          id,
          title: typeof title === "string" ? title : id,
          startMs: number(start_ms),
          durationNs: number(duration_ns),
          samples: number(samples),
          bytes: number(bytes),
        },
      ];
    });
    this.isLive = json?.is_live === true;
    const notes: unknown[] = Array.isArray(json?.notes) ? json.notes : [];
    return {
      snapshots,
      canTake: json?.can_take === true,
      canDelete: json?.can_delete === true,
      canSave: json?.can_save === true,
      process: number(json?.process),
      notes: notes.filter((note) => typeof note === "string"),
    };
  }

  /** Has the server look at the program. */
  async live(): Promise<LiveFacts> {
    const json = await (await this.ask("live.json")).json();
    return {
      generation: Number(json?.generation) || 0,
      note: typeof json?.note === "string" ? json.note : "",
      hasEnded: json?.has_ended === true,
    };
  }

  /** The profile as of its last look. */
  current(): Promise<ProfileFile> {
    return this.profile("live.rpv");
  }

  snapshot(id: string): Promise<ProfileFile> {
    return this.profile(`snapshots/${known(id)}.rpv`);
  }

  diff(base: string, target: string): Promise<ProfileFile> {
    return this.profile(`diff/${known(base)}/${known(target)}.rpv`);
  }

  async take(): Promise<string> {
    const json = await (await this.change("POST", "snapshots")).json();
    return known(String(json?.id));
  }

  async delete(id: string): Promise<void> {
    await this.change("DELETE", `snapshots/${known(id)}`);
  }

  /** Where a snapshot is as a pprof file. */
  fileAddress(id: string): string {
    return `${this.base}snapshots/${known(id)}.pb.gz`;
  }

  private change(method: string, path: string): Promise<Response> {
    return this.ask(path, { method, headers: { "X-Rperf": "1" } });
  }

  private async profile(path: string): Promise<ProfileFile> {
    const body = new Uint8Array(await (await this.ask(path)).arrayBuffer());
    return decode(await decompress(body));
  }

  private async ask(path: string, options: RequestInit = {}): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(this.base + path, { cache: "no-store", redirect: "error", ...options });
    } catch {
      throw new DataError("The server doesn't answer. Is the program still running?");
    }
    if (response.ok) return response;
    const line = (await response.text()).split("\n")[0].slice(0, 300);
    throw new DataError(`The server refused (${response.status})${line ? `: ${line}` : "."}`);
  }
}

function known(id: string): string {
  if (!ID.test(id)) throw new DataError("The server named a snapshot in a way that the page doesn't accept.");
  return id;
}

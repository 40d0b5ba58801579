import { usePage } from "../app/context.ts";
import type { State } from "../app/state.ts";
import { CLASSES, type Requests, type Slowest } from "../format/requests.ts";
import { hasGrown, LEAST_SHARE, mainHolders, mostlyIn, restOfWait } from "../model/causes.ts";
import { collectionsOf } from "../model/collections.ts";
import { type Filter, labelIs } from "../model/filters.ts";
import { type Place, placeWords } from "../model/places.ts";
import {
  allTimes,
  type EndpointTimes,
  FEW,
  foreignKeys,
  fullName,
  type Holder,
  hasEnough,
  holderShare,
  labelOf,
  PARTS,
  type Part,
  partShare,
  REQUEST,
  shownName,
  unknownShare,
  type Why,
  why,
} from "../model/requests.ts";
import { formatCount, formatShare, formatTime, formatWhen } from "../model/units.ts";
import { type Column, Table } from "../ui/Table.tsx";
import { MeansCells, PlainTable } from "./plain.tsx";
import { RequestOps } from "./RequestOps.tsx";

/** Words for a part, and the state whose colour it has. */
const PART_WORDS: Record<Part, { name: string; help: string; state: string }> = {
  running: { name: "running", help: "running code, with the GVL", state: "running" },
  gvlWait: { name: "GVL wait", help: "waiting for the GVL: another thread ran", state: "wait" },
  blocked: { name: "blocked", help: "waiting for I/O, sleep, a lock or another thread", state: "blocked" },
  gc: { name: "GC", help: "collecting garbage", state: "gc_mark" },
  suspended: { name: "suspended", help: "other fibers of the thread had control", state: "" },
};

/** The parts that the table of endpoints has, and those whose places are told: states first, then where they were. */
const SHARES: Part[] = ["running", "gvlWait", "blocked", "gc"];
const TOLD: Part[] = ["blocked", "running", "gc"];

/** Which requests are slow, and what these have that typical ones don't. */
export function RequestsView() {
  const { state, store, session, view } = usePage();
  const { requests } = view.target.rows;
  const all = session.kept("requests", () => allTimes(requests.all()));
  const current = all.find((it) => fullName(it.requests) === state.request) ?? all[0];
  return (
    <div class="view scroll pinned requests" tabIndex={0} role="group" aria-label="Requests">
      <p class="muted">
        By state, what the slowest requests of each endpoint (from p99) take longer than typical ones (p25 to p75).
        Those whose slowest requests cost most come first. Filters don't change these numbers.
      </p>
      <Table
        caption="Endpoints and jobs"
        columns={COLUMNS}
        rows={all}
        sort={state.requestSort}
        onSort={(requestSort) => store.set({ requestSort }, true)}
        name={(row) => shownName(row.requests)}
        nameTitle="endpoint"
        onOpen={(row) => store.set({ request: fullName(row.requests) })}
        isCurrent={(row) => row === current}
        empty="There are no requests."
      />
      {current && <Endpoint times={current} />}
    </div>
  );
}

const COLUMNS: Column<EndpointTimes>[] = [
  {
    key: "requests",
    title: "requests",
    numeric: true,
    value: ({ requests }) => requests.count,
    cell: ({ requests }) => formatCount(requests.count),
  },
  ...(["p50", "p95", "p99", "max"] as const).map(
    (key): Column<EndpointTimes> => ({
      key,
      title: key,
      help: key === "max" ? "the slowest request" : `of a hundred requests, ${key.slice(1)} took no longer`,
      numeric: true,
      value: ({ requests }) => requests[key],
      cell: ({ requests }) => formatTime(requests[key]),
    }),
  ),
  ...SHARES.map(
    (part): Column<EndpointTimes> => ({
      key: part,
      title: PART_WORDS[part].name,
      help: `the share in what the slowest requests take longer: ${PART_WORDS[part].help}`,
      numeric: true,
      value: (row) => (row.excess > 0 ? partShare(row, part) : -1),
      cell: (row) => (row.excess > 0 ? `${(100 * partShare(row, part)).toFixed(0)} %` : "–"),
    }),
  ),
];

/** The requests of an endpoint: how many of each class, and why those of the tail are slow. */
function Endpoint({ times }: { times: EndpointTimes }) {
  const { state, store, session, view } = usePage();
  const { requests } = times;
  const found = session.kept(`why ${fullName(requests)}`, () => why(view, requests));
  const { typical, tail } = requests.classes;
  const known = CLASSES.filter((name) => requests.classes[name].count > 0);
  const isEnough = hasEnough(requests);
  const theirs = useTheirs(requests);
  return (
    <section aria-label="Why its slow requests are slow">
      <h2 class="subject">{shownName(requests)}</h2>
      <p>
        {formatCount(requests.count)} request{requests.count === 1 ? "" : "s"}:{" "}
        {known.map((name) => `${formatCount(requests.classes[name].count)} ${name}`).join(", ")}. p50{" "}
        {formatTime(requests.p50)}, p95 {formatTime(requests.p95)}, p99 {formatTime(requests.p99)}, the slowest{" "}
        {formatTime(requests.max)}.
      </p>
      <div class="tools">
        <button type="button" disabled={tail.count === 0} onClick={() => theirs.open("tail")}>
          Flame graph of the tail
        </button>
        <button type="button" disabled={typical.count === 0} onClick={() => theirs.open("typical")}>
          Flame graph of typical ones
        </button>
        <button type="button" onClick={() => store.set({ filters: theirs.filters, zoom: [] })}>
          Only these requests, in all views
        </button>
        {state.filters.length > 0 && (
          <span class="muted">Methods and who had the GVL are of what passes the filters; the times are of all.</span>
        )}
      </div>
      {!isEnough && <p>{fewWords(requests)}</p>}
      {!isEnough && <SlowestTable requests={requests} />}
      {typical.count > 0 && tail.count > 0 && (
        <>
          <Parts why={found} />
          <Holders why={found} />
          {TOLD.map((part) => (
            <Sites key={part} why={found} part={part} />
          ))}
          {hasGrown(found, "gc") && <CollectionCauses requests={requests} />}
        </>
      )}
      <RequestOps requests={requests} onOpen={(method) => theirs.open(null, method)} />
      {isEnough && <SlowestTable requests={requests} />}
      {found.open > 0 && (
        <p class="muted">{formatTime(found.open)} of requests that had not ended, or had no room, are left out.</p>
      )}
    </section>
  );
}

function fewWords(requests: Requests): string {
  if (requests.classes.first.count === requests.count)
    return "No request was judged: the first 100 of an endpoint tell how long they usually take. The slowest ones:";
  const { count } = requests.classes.tail;
  return `The tail has ${formatCount(count)} request${count === 1 ? "" : "s"} only: from ${FEW} on the comparison can be relied on. The slowest ones:`;
}

/** The filters for an endpoint's requests, beside those that are on, and a way to the flame graph of one class or all. */
function useTheirs(requests: Requests) {
  const { state, store, session, view } = usePage();
  const own: Filter[] = [
    { kind: "tagfocus", text: labelIs(requests.key, requests.name) },
    ...foreignKeys(view, requests).map((key): Filter => ({ kind: "tagignore", text: `${key}=.*` })),
  ];
  const isOther = ({ kind, text }: Filter) => !own.some((it) => it.kind === kind && it.text === text);
  const filters = [...state.filters.filter(isOther), ...own];
  const open = (kind: "typical" | "tail" | null, method = -1, type = "wall") => {
    const others = filters.filter(({ kind, text }) => kind !== "tagfocus" || !text.startsWith("%latency="));
    const latency: Filter[] = kind ? [{ kind: "tagfocus", text: labelIs("%latency", kind) }] : [];
    store.set({ ...flame(view.file.frames, method), type: typeOf(type), filters: [...others, ...latency] });
  };
  const typeOf = (name: string) => (session.measured(state, name) >= 0 ? name : state.type);
  return { filters, open };
}

/** The upright flame graph, with a method that is outlined in it. */
function flame({ name, file }: { name: string[]; file: string[] }, method: number): Partial<State> {
  const shown: Partial<State> = { view: "flame", zoom: [], inverted: false, sandwich: false };
  return method < 0
    ? shown
    : { ...shown, method: `${name[method]}\t${file[method]}`, search: name[method], regexp: false };
}

/** States first: the stacks of a request that waits for others look innocent. */
function Parts({ why }: { why: Why }) {
  const { view } = usePage();
  const { times, objects } = why;
  const shown = PARTS.filter((part) => {
    const { typical, tail } = times.parts[part];
    return part !== "suspended" || typical !== 0 || tail !== 0;
  });
  return (
    <PlainTable
      caption="What a request took, in the mean"
      columns={["typical", "tail", "difference"]}
      name="per request, and where it grew most"
    >
      {shown.map((part) => (
        <tr key={part}>
          <MeansCells means={times.parts[part]} words={formatTime} />
          <th scope="row" class="name" title={PART_WORDS[part].help}>
            <span class={`swatch state-${PART_WORDS[part].state}`} aria-hidden="true" />{" "}
            <strong>{PART_WORDS[part].name}</strong>
            {hasGrown(why, part) && mostlyIn(view.file, why, part) && ", most of it in one request"}{" "}
            <Cause why={why} part={part} />
          </th>
        </tr>
      ))}
      {objects && (
        <tr>
          <MeansCells means={objects} words={formatCount} />
          <th scope="row" class="name">
            <strong>objects</strong> <span class="muted">that it made</span>
          </th>
        </tr>
      )}
    </PlainTable>
  );
}

/** Whose fault it is that a part grew. */
function Cause({ why, part }: { why: Why; part: Part }) {
  const { view } = usePage();
  if (!hasGrown(why, part)) return null;
  const { requests } = why.times;
  if (part !== "gvlWait") {
    const site = why.sites[part][0];
    return site ? <SitePlace requests={requests} place={site} /> : null;
  }
  const holders = mainHolders(view.file, why);
  if (holders.length === 0) return null;
  return (
    <>
      {holders.map((holder, i) => (
        <span key={holder.name}>
          <span class="muted">
            {i === 0 ? "had by" : "; by"} {holder.name} {formatShare(holderShare(why, holder), 1)}:
          </span>{" "}
          <BlamedPlace requests={requests} holder={holder} />
        </span>
      ))}
      {restOfWait(view.file, why).map(([share, words]) => (
        <span key={words} class="muted">
          ; {formatShare(share, 1)} {words}
        </span>
      ))}
    </>
  );
}

/** A place, which opens the flame graph of the tail. */
function SitePlace({ requests, place, type }: { requests: Requests; place: Place; type?: string }) {
  const theirs = useTheirs(requests);
  const open = (at: number) => theirs.open("tail", at, type);
  return <PlaceLink place={place} title="In the flame graph of the tail" onOpen={open} />;
}

/** A place, which opens the flame graph of who kept these requests waiting, or others. */
function BlamedPlace({ requests, holder }: { requests: Requests; holder: Holder }) {
  const { store, state, view } = usePage();
  const { label } = holder;
  if (holder.means) return <SitePlace requests={requests} place={holder} type="gvl_waited_for" />;
  const own: Filter[] = label ? [{ kind: "tagfocus", text: labelIs(...label) }] : [];
  const filters = [...state.filters.filter(({ text }) => text !== own[0]?.text), ...own];
  return (
    <PlaceLink
      place={holder}
      title="In the flame graph of who kept others waiting"
      onOpen={(at) => store.set({ ...flame(view.file.frames, at), type: "gvl_blame", filters })}
    />
  );
}

function PlaceLink({ place, title, onOpen }: { place: Place; title: string; onOpen(method: number): void }) {
  const { view } = usePage();
  const { name, at } = placeWords(view.file, place);
  const method = place.method >= 0 ? place.method : place.app;
  return (
    <>
      {method < 0 ? (
        <span>{name}</span>
      ) : (
        <button type="button" class="link" title={title} onClick={() => onOpen(method)}>
          {name}
        </button>
      )}
      {at !== "" && <span class="muted note">{at}</span>}
    </>
  );
}

function Holders({ why }: { why: Why }) {
  const { state, view } = usePage();
  if (!hasGrown(why, "gvlWait")) return null;
  if (!why.holders)
    return (
      <p class="muted">
        Who had the GVL meanwhile isn't known: it is with <code>--measure requests,blame</code>.
      </p>
    );
  if (why.holders.length === 0)
    return <p class="muted">Who had the GVL meanwhile isn't known: no sample fell into these waits.</p>;
  const rows = why.holders.filter((it) => holderShare(why, it) >= LEAST_SHARE);
  const unknown = untold(why);
  if (rows.length === 0 && unknown === null) return null;
  const areOwn = why.holders.some(({ means }) => means);
  const where = state.filters.length > 0 ? "all that passes the filters" : "the whole profile";
  return (
    <PlainTable
      caption={
        areOwn
          ? "Who had the GVL while these requests waited for it, per request, by samples"
          : `Who had the GVL while others waited for it, whoever they were, in ${where}`
      }
      columns={areOwn ? ["typical", "tail", "share"] : ["waits", "share"]}
      name="who, and where most of it"
    >
      {rows.map((holder) => (
        <tr key={holder.name}>
          {holder.means && <td class="number">{formatTime(holder.means.typical)}</td>}
          <td class="number">{formatTime(holder.means?.tail ?? holder.blame)}</td>
          <td class="number">{formatShare(holderShare(why, holder), 1)}</td>
          <th scope="row" class="name">
            <strong>{holder.name}</strong>{" "}
            {holder.name !== view.file.frames.name[holder.method] && (
              <BlamedPlace requests={why.times.requests} holder={holder} />
            )}
          </th>
        </tr>
      ))}
      {unknown !== null && (
        <tr>
          <td />
          <td />
          <td class="number">{formatShare(unknown, 1)}</td>
          <th scope="row" class="name">
            (not known: nobody, or many for a short time each)
          </th>
        </tr>
      )}
    </PlainTable>
  );
}

/** The share of a wait for the GVL of which it isn't known who had it, if that is worth telling. */
function untold(why: Why): number | null {
  const share = unknownShare(why);
  return share !== null && share >= LEAST_SHARE ? share : null;
}

/** Where a part grew, by samples. */
function Sites({ why, part }: { why: Why; part: Part }) {
  const sites = why.sites[part];
  if (!hasGrown(why, part) || sites.length === 0) return null;
  return (
    <PlainTable
      caption={`Where ${PART_WORDS[part].name} grew most per request, by samples`}
      columns={["typical", "tail", "difference"]}
      name="method, and the line that leads to it"
    >
      {sites.map((site) => (
        <tr key={`${site.method} ${site.app} ${site.line}`}>
          <MeansCells means={site.means} words={formatTime} />
          <th scope="row" class="name">
            <SitePlace requests={why.times.requests} place={site} />
          </th>
        </tr>
      ))}
    </PlainTable>
  );
}

/** Why collections ran in these requests. */
function CollectionCauses({ requests }: { requests: Requests }) {
  const { session, view } = usePage();
  const causes = session.kept(`collections ${fullName(requests)}`, () => collectionsOf(view, requests));
  if (causes.length === 0) return null;
  return (
    <PlainTable
      caption="Why these collections ran, per request, by samples"
      columns={["typical", "tail", "difference", "share"]}
      name="cause"
    >
      {causes.map(({ cause, means, share }) => (
        <tr key={cause}>
          <MeansCells means={means} words={formatTime} />
          <td class="number">{formatShare(share, 1)}</td>
          <th scope="row" class="name">
            {cause}
          </th>
        </tr>
      ))}
    </PlainTable>
  );
}

function SlowestTable({ requests }: { requests: Requests }) {
  if (requests.slowest.length === 0) return null;
  const columns = ["wall", ...SHARES.map((part) => PART_WORDS[part].name), "objects"];
  return (
    <PlainTable caption="The slowest requests" columns={columns} name="ended">
      {requests.slowest.map((it, i) => (
        <tr key={`${i} ${it.endedMs}`}>
          <td class="number">{formatTime(it.wall)}</td>
          {SHARES.map((part) => (
            <td key={part} class="number">
              {formatTime(it[part])}
            </td>
          ))}
          <td class="number">{formatCount(it.objects)}</td>
          <th scope="row">
            <RequestLink request={it} />
          </th>
        </tr>
      ))}
    </PlainTable>
  );
}

/** When a request ended; it opens the flame graph of its samples alone, if they are told apart. */
function RequestLink({ request }: { request: Slowest }) {
  const { store, state, view } = usePage();
  const label = labelOf(view.file, request);
  const when = formatWhen(request.endedMs);
  if (label === null) return <span>{when}</span>;
  const isOther = ({ kind, text }: Filter) => kind !== "tagfocus" || !text.startsWith(`${REQUEST}=`);
  const own: Filter = { kind: "tagfocus", text: labelIs(REQUEST, label) };
  const filters = [...state.filters.filter(isOther), own];
  const open = () => store.set({ ...flame(view.file.frames, -1), filters });
  return (
    <button type="button" class="link" title="In the flame graph, alone" onClick={open}>
      {when}
    </button>
  );
}

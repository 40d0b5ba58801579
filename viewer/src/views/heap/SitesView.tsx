import { useMemo } from "preact/hooks";
import type { CodePlace, Heap, HeapSite } from "../../format/heap.ts";
import { bytesBehindSites, CodeNames, siteRows } from "../../model/heap.ts";
import { counted, formatElapsed, formatShare, formatSize } from "../../model/units.ts";
import { Bar, type Column, number, Table } from "../../ui/Table.tsx";
import { useHeap } from "./context.ts";
import { Largest } from "./Largest.tsx";
import { Steps } from "./Steps.tsx";

/** Where the objects were made that are still there. */
export function SitesView() {
  const { heap, state, store } = useHeap();
  const { sites } = heap;
  const rows = useMemo(() => siteRows(heap, state.search), [heap, state.search]);
  const names = useMemo(() => new CodeNames(heap.sites?.rows ?? []), [heap]);
  if (!sites) return null;
  const all = sites.total.bytes;
  const columns: Column<HeapSite>[] = [
    {
      key: "bytes",
      title: "bytes",
      help: "of the objects that something still refers to, estimated",
      numeric: true,
      value: ({ bytes }) => bytes,
      cell: ({ bytes }) => <Bar share={bytes / all}>{formatSize(bytes)}</Bar>,
    },
    number("±", "one standard deviation of the bytes", ({ deviation }) => deviation, formatSize),
    number("objects", "how many there are, estimated", ({ objects }) => objects),
    number("median age", "half of the objects are older", ({ medianAgeNs }) => medianAgeNs, formatElapsed),
    words("class", ({ className }) => className),
    words("endpoint", ({ endpoint }) => endpoint),
  ];
  const site = sites.rows[state.site - 1];
  return (
    <div class="view">
      <Head heap={heap} />
      <Table
        caption="Retained by allocation site"
        columns={rows.some(({ endpoint }) => endpoint !== "") ? columns : columns.slice(0, -1)}
        rows={rows}
        sort={state.siteSort}
        onSort={(siteSort) => store.set({ siteSort }, true)}
        name={(row) => names.method(row)}
        nameTitle="site"
        note={(row) => names.note(row)}
        onOpen={(row) => store.set({ site: row === site ? 0 : sites.rows.indexOf(row) + 1 })}
        isCurrent={(row) => row === site}
        empty={state.search === "" ? "There are no samples." : "Nothing matches."}
      />
      <Largest count={sites.rows.length} words="sites" />
      {site && <Site site={site} names={names} />}
    </div>
  );
}

/** A column of names. */
function words<T>(key: string, value: (row: T) => string): Column<T> {
  return { key, title: key, value, cell: (row) => <span title={value(row)}>{value(row)}</span> };
}

/** What the samples stand for, and what they lack. */
function Head({ heap }: { heap: Heap }) {
  const { sites } = heap;
  if (!sites) return null;
  const behind = bytesBehindSites(heap);
  return (
    <>
      <p class="flags">
        {sites.ofClass !== null && (
          <>
            Only objects of <strong>{sites.ofClass}</strong>:{" "}
          </>
        )}
        estimated from {counted(sites.samples, "sample")} (1 of {formatSize(sites.bytesPerSample)} of slots) of a
        session that has run for {formatElapsed(sites.sessionNs)}: <strong>{formatSize(sites.total.bytes)}</strong> ±{" "}
        {formatSize(sites.deviation)}
        {behind !== null && ` of ${formatSize(behind)}`}, and older objects have no site.{" "}
        <span class="muted">A row opens to show how its objects are held.</span>
      </p>
      {sites.unreferencedSamples > 0 && (
        <p class="muted">
          Without {counted(sites.unreferencedSamples, "sample")} of objects that nothing refers to any more.
        </p>
      )}
      {sites.lostBytes > 0 && (
        <p class="loss">
          Without new objects with {formatSize(sites.lostBytes)} of slots, which couldn't be followed: too many were
          made between two safepoints.
        </p>
      )}
    </>
  );
}

/** All that is known of a site. */
function Site({ site, names }: { site: HeapSite; names: CodeNames }) {
  const full = ({ method, path, line }: CodePlace) => [method, line === 0 ? path : `${path}:${line}`].join(" ");
  return (
    <section class="detail" aria-label="How it is held" tabIndex={0}>
      <h2 class="subject">
        {names.method(site)} <span class="muted note">{site.className}</span>
      </h2>
      <p class="flags muted">
        {site.madeIn && `made in ${full(site.madeIn)}; `}
        {site.calledBy && `called by ${full(site.calledBy)}; `}
        {counted(site.samples, "sample")}, the oldest {formatElapsed(site.oldestNs)};{" "}
        {counted(site.medianCollections, "collection")} since half of them were made
      </p>
      {site.heldBy.length === 0 && <p class="muted">How the objects are held isn't known.</p>}
      <div class="ways">
        {site.heldBy.map(({ holder, steps, part }, i) => (
          <div key={i}>
            <h3>{formatShare(part, 1)} held by</h3>
            <Steps holder={holder} steps={steps} />
          </div>
        ))}
      </div>
    </section>
  );
}

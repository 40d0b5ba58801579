import { useLayoutEffect, useRef } from "preact/hooks";
import { usePage } from "../app/context.ts";
import { fileLines } from "../model/neighbours.ts";
import { formatShare, formatValue } from "../model/units.ts";
import { useVisibleRows } from "../ui/rows.ts";
import { MethodPicker } from "./MethodPicker.tsx";

const HEIGHT = 22;

interface Line {
  number: number;
  text: string;
  self: number;
  total: number;
}

/** A file's lines with their time in the margin. */
export function SourceView() {
  const { state, session, view, store } = usePage();
  const { frames } = view.tree;
  const method = session.method(state);
  const file = method < 0 ? "" : frames.file[method];
  if (file === "" || file.startsWith("<")) {
    const isFile = (frame: number) => frames.file[frame] !== "" && !frames.file[frame].startsWith("<");
    const question =
      method < 0 ? "Which method's lines do you want to see?" : "That method has no file. Which one else?";
    return <MethodPicker question={question} filter={isFile} />;
  }
  const text = view.file.sources.get(file);
  const lines = session.kept(`lines ${file}`, () => linesOf(file, view, text));
  return (
    <div class="view">
      <div class="tools">
        <strong class="subject" title={frames.path[method]}>
          {file}
        </strong>
        <span class="muted">
          {text === undefined
            ? "The report has no source text: lines with time only. `rperf report --source` embeds it."
            : "Each line with its own time, and with that of all it called."}
        </span>
        <button type="button" onClick={() => store.set({ view: "callers" })}>
          Callers and callees
        </button>
        <button type="button" onClick={() => store.set({ method: "" })}>
          Another file
        </button>
      </div>
      {lines.length === 0 ? (
        <p class="empty">No line of this file has a value in this view.</p>
      ) : (
        <SourceLines key={file} lines={lines} definition={frames.line[method]} />
      )}
    </div>
  );
}

function linesOf(file: string, view: ReturnType<typeof usePage>["view"], text: string | undefined): Line[] {
  const found = fileLines(view, file);
  const values = (number: number) => found.lines.get(number) ?? { self: 0, total: 0 };
  if (text === undefined) {
    return [...found.lines.keys()].sort((a, b) => a - b).map((number) => ({ number, text: "", ...values(number) }));
  }
  const texts = text.split("\n");
  if (texts[texts.length - 1] === "") texts.pop();
  while (texts.length < found.last && texts.length < 1e6) texts.push("(beyond the end of the file: it has changed)");
  return texts.map((line, i) => ({ number: i + 1, text: line, ...values(i + 1) }));
}

function SourceLines({ lines, definition }: { lines: Line[]; definition: number }) {
  const { view, settings } = usePage();
  const box = useRef<HTMLDivElement>(null);
  const type = view.file.valueTypes[view.query.type];
  const { first, last, before, after, reveal } = useVisibleRows(box, lines.length, HEIGHT);
  const hottest = Math.max(...lines.map(({ total }) => total));
  const hot = lines.map(({ self, total }, row) => ({ row, self, total })).filter(({ total }) => total > 0);
  hot.sort((a, b) => b.self - a.self || b.total - a.total);
  const at = useRef(-1);
  const show = (row: number) => {
    if (box.current) box.current.scrollTop = Math.max(0, row * HEIGHT - box.current.clientHeight / 3);
    reveal(row, HEIGHT);
  };
  useLayoutEffect(() => {
    const row = lines.findIndex(({ number }) => number >= definition);
    show(Math.max(0, row));
  }, []);
  const nextHot = () => {
    at.current = (at.current + 1) % hot.length;
    show(hot[at.current].row);
  };
  return (
    <>
      <div class="tools">
        <button type="button" onClick={nextHot} title="Goes from the hottest line to the next (N)">
          Next hot line
        </button>
      </div>
      <div
        ref={box}
        class="table-box source"
        tabIndex={0}
        onKeyDown={(event) => {
          if (event.key === "n" && settings.letterKeys) nextHot();
        }}
      >
        <table aria-rowcount={lines.length + 1}>
          <caption class="hidden-text">Source lines</caption>
          <thead>
            <tr aria-rowindex={1}>
              <th scope="col" class="number">
                self
              </th>
              <th scope="col" class="number">
                total
              </th>
              <th scope="col" class="number">
                %
              </th>
              <th scope="col" class="number">
                line
              </th>
              <th scope="col">source</th>
            </tr>
          </thead>
          <tbody>
            {before > 0 && <tr class="room" aria-hidden="true" style={{ height: `${before}px` }} />}
            {lines.slice(first, last).map((line, i) => {
              const heat = hottest > 0 ? line.total / hottest : 0;
              return (
                <tr
                  key={line.number}
                  aria-rowindex={first + i + 2}
                  class={heat >= 0.5 ? "hot" : heat >= 0.1 ? "warm" : ""}
                >
                  <td class="number">{line.self > 0 ? formatValue(line.self, type) : ""}</td>
                  <td class="number">{line.total > 0 ? formatValue(line.total, type) : ""}</td>
                  <td class="number">{line.total > 0 ? formatShare(line.total, view.target.sum) : ""}</td>
                  <td class="number muted">{line.number}</td>
                  <td class="code">{line.text}</td>
                </tr>
              );
            })}
            {after > 0 && <tr class="room" aria-hidden="true" style={{ height: `${after}px` }} />}
          </tbody>
        </table>
      </div>
    </>
  );
}

import type { ComponentChildren } from "preact";
import { excess, type Means } from "../model/requests.ts";

/** A table with a heading, in which names are as long as they are. */
export function PlainTable(props: { caption: string; columns: string[]; name: string; children: ComponentChildren }) {
  return (
    <div class="wide" tabIndex={0} role="group" aria-label={props.caption}>
      <table class="plain">
        <caption>{props.caption}</caption>
        <thead>
          <tr>
            {props.columns.map((title) => (
              <th key={title} scope="col" class="number">
                {title}
              </th>
            ))}
            {props.name !== "" && <th scope="col">{props.name}</th>}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}

const signed = (value: number, words: (value: number) => string) =>
  value === 0 ? words(0) : value < 0 ? `-${words(-value)}` : `+${words(value)}`;

/** What a typical request has, one of the tail, and the difference. */
export function MeansCells({ means, words }: { means: Means; words(value: number): string }) {
  return (
    <>
      <td class="number">{words(means.typical)}</td>
      <td class="number">{words(means.tail)}</td>
      <td class="number">{signed(excess(means), words)}</td>
    </>
  );
}

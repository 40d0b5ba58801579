import { usePage } from "../app/context.ts";
import { formatTime, formatWhen } from "../model/units.ts";
import { RowButton } from "../ui/RowButton.tsx";
import { ServerSnapshots } from "./ServerSnapshots.tsx";

/** The profiles to choose from, one to look at or two to compare: of this file, or of the server. */
export function SnapshotsView() {
  const { server } = usePage();
  return server ? <ServerSnapshots server={server} /> : <FileProfiles />;
}

function FileProfiles() {
  const { session, view, store } = usePage();
  const { target, base } = view.query;
  return (
    <div class="view scroll" tabIndex={0} role="group" aria-label="Profiles">
      <h2>Profiles in this file</h2>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">profile</th>
            <th scope="col">begun</th>
            <th scope="col" class="number">
              length
            </th>
            <th scope="col">show</th>
          </tr>
        </thead>
        <tbody>
          {session.file.profiles.map(({ meta }, i) => (
            <tr key={`${i} ${meta.title}`}>
              <th scope="row" class="name">
                {meta.title}
              </th>
              <td>{formatWhen(meta.startMs)}</td>
              <td class="number">{meta.durationNs === null ? "" : formatTime(meta.durationNs)}</td>
              <td>
                <RowButton
                  label={`${i === target ? "shown" : "show"}: ${meta.title}`}
                  disabled={i === target}
                  onClick={() => store.set({ profile: i, base: i === base ? -1 : (base ?? -1), zoom: [] })}
                >
                  {i === target ? "shown" : "show"}
                </RowButton>
                <RowButton
                  label={i === base ? "don't compare" : `compare with: ${meta.title}`}
                  disabled={i === target}
                  onClick={() =>
                    store.set(i === base ? { base: -1 } : { base: i, view: "changes", colouring: "change" })
                  }
                >
                  {i === base ? "don't compare" : "compare with"}
                </RowButton>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

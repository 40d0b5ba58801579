/** As many tabs have a digit; all are reached by arrows. */
const KEYS = 10;

interface Props<T extends string> {
  tabs: T[];
  current: T;
  title(name: T): string;
  onPick(name: T): void;
}

/** The row of views. What they show is in the element `panel`. */
export function Tabs<T extends string>({ tabs, current, title, onPick }: Props<T>) {
  const onKeyDown = (event: KeyboardEvent) => {
    const at = tabs.indexOf(current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const name = tabs[to % tabs.length];
    onPick(name);
    document.getElementById(`tab-${name}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Views" onKeyDown={onKeyDown}>
      {tabs.map((name, i) => (
        <button
          key={name}
          id={`tab-${name}`}
          type="button"
          role="tab"
          aria-selected={name === current}
          aria-controls="panel"
          tabIndex={name === current ? 0 : -1}
          title={i < KEYS ? `Key ${(i + 1) % 10}` : undefined}
          onClick={() => onPick(name)}
        >
          {title(name)}
        </button>
      ))}
    </div>
  );
}

/** The tab with this key: the tenth has the key 0. */
export function tabOfKey<T extends string>(tabs: T[], key: string): T | undefined {
  return /^\d$/.test(key) ? tabs[(Number(key) + 9) % 10] : undefined;
}

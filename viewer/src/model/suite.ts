import type { ProfileFile } from "../format/decode.ts";
import type { SuiteSums, SuiteTest } from "../format/suite.ts";
import { type Filter, labelIs } from "./filters.ts";

/** The labels of samples of tests: the test, and its file. */
export const EXAMPLE = "example";
export const GROUP = "group";

/** The label `example` of what runs beside the tests of a file. */
const HOOKS = "[hooks]";

/** The parts of a test's time, each with words, and the state whose colour it has. */
export const SUITE_STATES = [
  { key: "running", title: "running", help: "running code, with the GVL", state: "running" },
  { key: "gvlWait", title: "GVL wait", help: "waiting for the GVL: another thread ran", state: "wait" },
  { key: "blocked", title: "blocked", help: "waiting for I/O, sleep, a lock or another thread", state: "blocked" },
  { key: "gc", title: "GC", help: "collecting garbage", state: "gc_mark" },
  { key: "suspended", title: "suspended", help: "other fibers of the thread had control", state: "" },
] as const;

/** Those that this suite has: fibers are rare. */
export const statesOf = (total: SuiteSums) => SUITE_STATES.filter(({ key }) => key !== "suspended" || total[key] > 0);

/** The name of a test for people. */
export const testTitle = ({ name, title }: SuiteTest): string => (name === "" ? "(further tests)" : title || name);

/** What tells a test from others of the same title. */
export function testNote({ name, title, file }: SuiteTest): string {
  const id = title === "" ? "" : name;
  return id.startsWith(file) && id !== "" ? id : `${id} ${file}`.trim();
}

/** The values that a label has on samples. */
export function labelValues({ labelSets }: ProfileFile, key: string): Set<string> {
  return new Set(labelSets.flatMap((set) => set.filter(([name]) => name === key).map(([, value]) => value)));
}

/** The filters that are on, and one that keeps a test or a file in place of other such ones. */
export function withTest(filters: Filter[], key: string, value: string): Filter[] {
  return [...filters.filter(isOther), { kind: "tagfocus", text: labelIs(key, value) }];
}

/** The filters that are on, and those that keep all tests, without what runs beside them. */
export function withAllTests(filters: Filter[]): Filter[] {
  return [
    ...filters.filter(isOther),
    { kind: "tagfocus", text: `${EXAMPLE}=.` },
    { kind: "tagignore", text: labelIs(EXAMPLE, HOOKS) },
  ];
}

const isOther = ({ kind, text }: Filter): boolean =>
  !(kind === "tagfocus" && [EXAMPLE, GROUP].some((key) => text.startsWith(`${key}=`))) &&
  !(kind === "tagignore" && text === labelIs(EXAMPLE, HOOKS));

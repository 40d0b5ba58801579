import type { Columns } from "./columns.ts";
import { tooLarge } from "./error.ts";

/** What an entry took; times are in nanoseconds. */
export interface SuiteSums {
  count: number;
  wall: number;
  running: number;
  gvlWait: number;
  blocked: number;
  gc: number;
  suspended: number;
  /** Null if that isn't known of all runs. */
  objects: number | null;
}

/** All tests, and what runs beside them. */
export interface SuiteTotal extends SuiteSums {
  /** How many rows there are of each kind; the file has those with the most. */
  tests: number;
  files: number;
  factories: number;
  /** How often tests ran that have no row of their own. */
  withoutRow: number;
}

/** A test. */
export interface SuiteTest extends SuiteSums {
  /** Its id, which is the label `example` of its samples; empty for all of a file that have no row of their own. */
  name: string;
  /** What people call it; empty if it has no other name. */
  title: string;
  file: string;
}

export interface SuiteFile extends SuiteSums {
  name: string;
  /** What runs beside its tests. */
  hooks: number;
}

export interface SuiteFactory extends SuiteSums {
  /** Empty for all that have no row of their own. */
  name: string;
  /** Without the factories that it calls. */
  own: number;
  /** How often no other one called it. */
  topLevel: number;
}

/** The tests of a profile: the slowest first, as are files; of factories those with the most time of their own. */
export interface Suite {
  total: SuiteTotal;
  tests: SuiteTest[];
  files: SuiteFile[];
  factories: SuiteFactory[];
}

const SUMS = ["count", "wall", "running", "gvl_wait", "blocked", "gc", "suspended", "objects"];

/** As many rows as a table has at most. */
const MAX_ROWS = 1 << 14;

type Texts = (column: string, count: number) => string[];

/** The columns of one table. */
class SuiteColumns {
  private readonly columns: (Float64Array | null)[];
  private readonly texts: string[][];

  constructor(
    columns: Columns,
    table: string,
    readonly length: number,
    string: Texts,
    texts: string[],
    numbers: string[],
  ) {
    if (length > MAX_ROWS) throw tooLarge("has too many tests");
    this.columns = [...SUMS, ...numbers].map((name) => columns.values(`${table}/${name}`, length));
    this.texts = texts.map((name) =>
      columns.has(`${table}/${name}`) ? string(`${table}/${name}`, length) : new Array(length).fill(""),
    );
  }

  all<T>(row: (sums: SuiteSums, texts: string[], numbers: number[]) => T): T[] {
    return Array.from({ length: this.length }, (_, i) => {
      const values = this.columns.map((column) => column?.[i] ?? 0);
      const [count, wall, running, gvlWait, blocked, gc, suspended, objects, ...numbers] = values;
      const sums = { count, wall, running, gvlWait, blocked, gc, suspended, objects: objects < 0 ? null : objects };
      return row(
        sums,
        this.texts.map((column) => column[i]),
        numbers,
      );
    });
  }
}

/** The tests of a profile. They are columns until they are asked for. */
export class SuiteTable {
  /** Whether there are any. */
  readonly isThere: boolean;
  private readonly total: SuiteColumns;
  private readonly tests: SuiteColumns;
  private readonly files: SuiteColumns;
  private readonly factories: SuiteColumns;
  private made: Suite | null = null;

  constructor(columns: Columns, index: number, string: Texts) {
    this.isThere = columns.has(`suite/${index}/count`);
    const read = (name: string, key: string, texts: string[], numbers: string[]) => {
      const table = `${name}/${index}`;
      return new SuiteColumns(columns, table, columns.count(`${table}/${key}`), string, texts, numbers);
    };
    const kinds = ["tests", "files", "factories", "without_row"];
    this.total = new SuiteColumns(columns, `suite/${index}`, this.isThere ? 1 : 0, string, [], kinds);
    this.tests = read("tests", "name", ["name", "title", "file"], []);
    this.files = read("test_files", "name", ["name"], ["hooks"]);
    this.factories = read("factories", "name", ["name"], ["own", "top_level"]);
  }

  /** All of them; null without any. */
  suite(): Suite | null {
    this.made ??= this.make();
    return this.made;
  }

  private make(): Suite | null {
    const [total] = this.total.all((sums, _, [tests, files, factories, withoutRow]) => {
      return { ...sums, tests, files, factories, withoutRow };
    });
    if (!total) return null;
    return {
      total,
      tests: this.tests.all((sums, [name, title, file]) => ({ name, title, file, ...sums })),
      files: this.files.all((sums, [name], [hooks]) => ({ name, hooks, ...sums })),
      factories: this.factories.all((sums, [name], [own, topLevel]) => ({ name, own, topLevel, ...sums })),
    };
  }
}

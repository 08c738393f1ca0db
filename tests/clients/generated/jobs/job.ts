// The job that every generated client does: what it does is here, how is in the file of each generator.
// An entry and many are appended and read, a value is updated under its tag, a question is answered, commits are followed.

declare const process: { argv: string[]; exitCode: number };

export const SERVER = process.argv[2] ?? "http://127.0.0.1:8733";
// The document has it as one parameter, so each client encodes the slash.
export const PATH = "tasks/counts";

/** What a job found out. */
export interface Found {
  seqs: (number | undefined)[];
  items: unknown[];
  /** The status and the code of an update with a tag that is no longer current. */
  late: [number | undefined, unknown];
  value: unknown;
  answer: unknown;
  revisions: number[];
}

const EXPECTED: Found = {
  seqs: [1, 2, 3],
  items: [{ step: 1, note: { deep: [true] } }, { step: 2 }, { text: "three" }],
  late: [412, "precondition-failed"],
  value: { pages: 2 },
  answer: "The one on floor 3",
  revisions: [1, 2, 3, 4, 5, 6],
};

interface Page {
  events?: { revision: number }[];
  next: number;
  more: boolean;
}

/** The revisions of all commits, by pages: each has the cursor of the next one. */
export async function follow(read: (after: number) => Promise<Page | undefined>): Promise<number[]> {
  const revisions: number[] = [];
  for (let after = 0, more = true; more; ) {
    const page = await read(after);
    if (page === undefined) throw new Error(`no page of commits after ${after}`);
    revisions.push(...(page.events ?? []).map((event) => event.revision));
    ({ next: after, more } = page);
  }
  return revisions;
}

export async function report(name: string, job: (session: string) => Promise<Found>): Promise<void> {
  const [found, expected] = [await job(`generated-${name}`), EXPECTED].map((all) => JSON.stringify(all));
  if (found !== expected) throw new Error(`${name}: ${found} is not ${expected}`);
  console.log(`${name}: appends, reads, updates with a condition, answers, follows`);
}

/** Data that the page can't show. The message is a sentence for people. */
export class DataError extends Error {}

/** Data that whoever wrote it got wrong, or that was changed since. */
export function damaged(how: string): DataError {
  return new DataError(`The profile is damaged: ${how}. Make the report again.`);
}

/** Data that would take more memory than a page has. */
export function tooLarge(how: string): DataError {
  return new DataError(`The profile ${how}, more than a page can hold. Use \`rperf report --top\` instead.`);
}

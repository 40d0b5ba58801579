/** Data that the page can't show. The message is a sentence for people. */
export class DataError extends Error {}

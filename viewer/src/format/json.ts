/** What `JSON.parse` may return for an object. */
export type Json = { [key: string]: unknown };

export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

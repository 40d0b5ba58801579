// What build.mjs makes of elements: it is shorter than the runtime that TypeScript checks against.
export { Fragment, h } from "preact";

import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHash, INITIAL, type State, toHash } from "../src/app/state.ts";
import { random } from "./support/generate.ts";

test("the hash restores the state", () => {
  const state: State = {
    ...INITIAL,
    view: "top",
    profile: 1,
    base: 0,
    type: "cpu & more",
    filters: [
      { kind: "focus", text: "a=b&c#d" },
      { kind: "tagroot", text: "x,y" },
      { kind: "focus", text: "é" },
    ],
    search: "<script>",
    regexp: true,
    method: "A#b\ta.rb",
    zoom: [3, 0xffffffff, 0, 4000],
    inverted: true,
    colouring: "cpu",
    width: "both",
    sort: "-self",
  };
  assert.deepEqual(fromHash(`#${toHash(state, INITIAL)}`, INITIAL), state);
  assert.equal(toHash(INITIAL, INITIAL), "");
});

test("a default that is not the usual one can be changed and restored", () => {
  const initial: State = { ...INITIAL, base: 1, view: "changes", colouring: "change" };
  const state: State = { ...initial, base: -1, view: "flame", colouring: "category" };
  assert.deepEqual(fromHash(toHash(state, initial), initial), state);
});

test("any hash gives a valid state", () => {
  const next = random(5);
  const parts = [
    "view=",
    "zoom=",
    "&",
    "=",
    "%",
    "focus=(",
    "profile=",
    "-1",
    "9e9",
    "__proto__",
    "é",
    "#",
    ".",
    "tagfocus=a",
    "1",
  ];
  for (let round = 0; round < 2000; round++) {
    const hash = Array.from({ length: 8 }, () => parts[Math.floor(next() * parts.length)]).join("");
    const state = fromHash(hash, INITIAL);
    assert.deepEqual(Object.keys(state).sort(), Object.keys(INITIAL).sort());
    assert.ok(Number.isInteger(state.profile) && state.profile >= 0);
    assert.ok(state.zoom.every(Number.isInteger));
    for (const { text } of state.filters) new RegExp(text === "" ? "x" : text);
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  formatCount,
  formatDelta,
  formatRelative,
  formatShare,
  formatTime,
  formatValue,
  typeWords,
} from "../src/model/units.ts";

test("times have three digits and a unit that fits", () => {
  const cases: [number, string][] = [
    [0, "0 s"],
    [7, "7 ns"],
    [999, "999 ns"],
    [1500, "1.50 µs"],
    [999.7e6, "1.00 s"],
    [12.34e6, "12.3 ms"],
    [456e6, "456 ms"],
    [599e9, "599 s"],
    [600e9, "10.0 min"],
    [7300e9, "2 h"],
  ];
  for (const [ns, text] of cases) assert.equal(formatTime(ns), text);
});

test("values have the words that people use", () => {
  const words = (name: string) => typeWords({ name, unit: "nanoseconds" });
  assert.deepEqual(["wall", "gvl_blame", "gvl_waited_for", "call_time"].map(words), [
    "wall time",
    "blame for the GVL",
    "GVL: who kept requests waiting",
    "call time",
  ]);
});

test("values are shown by their unit", () => {
  assert.equal(formatValue(4711, { name: "samples", unit: "count" }), "4,711");
  assert.equal(formatValue(1536, { name: "alloc_space", unit: "bytes" }), "1.50 KB");
  assert.equal(formatValue(2, { name: "t", unit: "seconds" }), "2.00 s");
  assert.equal(formatValue(-3e6, { name: "wall", unit: "nanoseconds" }), "-3.00 ms");
  assert.equal(formatValue(1234567, { name: "x", unit: "widgets" }), "1,234,567 widgets");
  assert.equal(formatCount(1234.56), "1,234.6");
  assert.equal(formatCount(100), "100");
});

test("shares and changes", () => {
  assert.equal(formatShare(1, 3), "33.3 %");
  assert.equal(formatShare(1, 1000), "0.10 %");
  assert.equal(formatShare(1, 1e6), "< 0.01 %");
  assert.equal(formatShare(0, 0), "0 %");
  assert.equal(formatShare(5, 5), "100 %");
  assert.equal(formatRelative(10, 12), "+20 %");
  assert.equal(formatRelative(0, 12), "new");
  assert.equal(formatRelative(12, 0), "gone");
  assert.equal(formatDelta(1e6, { name: "wall", unit: "nanoseconds" }), "+1.00 ms");
});

import type { Row } from "./layout.ts";

export const ROW = 20;
const FONT = "12px ui-sans-serif, system-ui, sans-serif";
const MIN_TEXT = 28;

/** How a flame graph looks; a change of it needs no new layout. */
export interface Look {
  fill(box: number): string;
  text(box: number): string;
  /** Marks boxes that a search finds; null without a search. */
  isFound: ((box: number) => boolean) | null;
  cursor: number;
  hover: number;
  dark: boolean;
  /** Rows grow upwards: the root is at the bottom. */
  flipped: boolean;
}

/** Draws the visible rows of a flame graph on a canvas of the viewport's size. */
export class Painter {
  private readonly context: CanvasRenderingContext2D;
  private readonly widths = new Map<string, number>();

  constructor(private readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("no canvas");
    this.context = context;
  }

  paint(rows: Row[], width: number, height: number, scroll: number, look: Look) {
    const { canvas, context } = this;
    const ratio = Math.min(3, devicePixelRatio || 1);
    const [pixelWidth, pixelHeight] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (canvas.width !== pixelWidth || canvas.height !== pixelHeight) {
      canvas.width = pixelWidth;
      canvas.height = pixelHeight;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = look.dark ? "#16181c" : "#ffffff";
    context.fillRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = "middle";
    for (let depth = 0; depth < rows.length; depth++) {
      const y = rowTop(depth, rows.length, height, look.flipped) - scroll;
      if (y > -ROW && y < height) this.row(rows[depth], y, look);
    }
  }

  private row(row: Row, y: number, look: Look) {
    const { context } = this;
    const narrow = look.dark ? "#3a3d44" : "#d5d8dd";
    for (let i = 0; i < row.box.length; i++) {
      const box = row.box[i];
      const x = row.x[i];
      const width = row.width[i];
      const found = box >= 0 && look.isFound !== null && look.isFound(box);
      context.fillStyle = box < 0 ? narrow : look.fill(box);
      context.globalAlpha = look.isFound && !found ? 0.35 : 1;
      context.fillRect(x, y, width > 3 ? width - 1 : Math.max(width, 0.5), ROW - 1);
      if (box < 0 && width >= 100) {
        context.fillStyle = look.dark ? "#f5f5f5" : "#1a1a1a";
        context.fillText("too narrow to show", x + 3, y + ROW / 2);
      }
      if (box >= 0 && width >= MIN_TEXT) {
        context.fillStyle = look.dark ? "#f5f5f5" : "#1a1a1a";
        context.globalAlpha = look.isFound && !found ? 0.7 : 1;
        context.fillText(this.fit(look.text(box), width - 7), x + 3, y + ROW / 2);
      }
      context.globalAlpha = 1;
      if (found) this.outline(x, y, width, look.dark ? "#ffd54a" : "#7a0050", 2);
      if (box >= 0 && box === look.hover) this.outline(x, y, width, look.dark ? "#ffffff" : "#000000", 1);
      if (box >= 0 && box === look.cursor) this.outline(x, y, width, look.dark ? "#8ab4ff" : "#0b57d0", 3);
    }
  }

  private outline(x: number, y: number, width: number, colour: string, size: number) {
    if (width < 1) return;
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = size;
    context.strokeRect(x + size / 2, y + size / 2, Math.max(1, width - 1 - size), ROW - 1 - size);
  }

  /** As much of the text as has room. */
  private fit(text: string, room: number): string {
    const shown = text.length > 400 ? text.slice(0, 400) : text;
    const width = this.width(shown);
    if (width <= room) return shown;
    let length = Math.floor((shown.length * room) / width);
    while (length > 0 && this.width(`${shown.slice(0, length)}…`) > room) length -= Math.max(1, length >> 4);
    return length > 1 ? `${shown.slice(0, length)}…` : "";
  }

  private width(text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size > 50_000) this.widths.clear();
      width = this.context.measureText(text).width;
      this.widths.set(text, width);
    }
    return width;
  }
}

/** Where a row begins within the graph; a flipped graph that is lower than its window stands on its ground. */
export function rowTop(depth: number, rows: number, height: number, flipped: boolean): number {
  if (!flipped) return depth * ROW;
  return Math.max(height, rows * ROW) - (depth + 1) * ROW;
}

/** The row at `y` within the graph, or -1. */
export function rowAt(y: number, rows: number, height: number, flipped: boolean): number {
  const depth = flipped ? Math.ceil((Math.max(height, rows * ROW) - y) / ROW) - 1 : Math.floor(y / ROW);
  return depth >= 0 && depth < rows ? depth : -1;
}

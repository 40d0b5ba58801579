/** Colours of the boxes. Text on each of them has a contrast of 4.5 at least; test/colours.test.ts checks all. */

export type Rgb = [number, number, number];

/** Hue and saturation of each category. The app's own code is the strongest. */
const CATEGORY: Record<string, [hue: number, saturation: number]> = {
  app: [28, 0.88],
  gem: [205, 0.5],
  stdlib: [165, 0.42],
  c: [265, 0.38],
  native: [290, 0.25],
  gvl: [50, 0.22],
  gc: [340, 0.6],
  rperf: [85, 0.3],
  label: [220, 0.12],
};
const OTHER: [number, number] = [210, 0.1];
export const TINTS = 5;

export const TEXT: Record<"light" | "dark", Rgb> = { light: [26, 26, 26], dark: [245, 245, 245] };

/** The fill for a category; `tint` sets neighbours apart. */
export function categoryColour(category: string, tint: number, dark: boolean): Rgb {
  const [hue, saturation] = CATEGORY[category] ?? OTHER;
  const step = (tint % TINTS) / (TINTS - 1);
  return dark ? hsl(hue, saturation * 0.75, 0.24 + 0.1 * step) : hsl(hue, saturation, 0.68 + 0.14 * step);
}

/** From blue (less than before) over grey to orange (more): `change` goes from -1 to 1. */
export function changeColour(change: number, dark: boolean): Rgb {
  const size = Math.min(1, Math.abs(change));
  const hue = change < 0 ? 212 : 28;
  if (size === 0) return dark ? [58, 60, 64] : [222, 224, 227];
  return dark ? hsl(hue, 0.25 + 0.6 * size, 0.27 + 0.06 * size) : hsl(hue, 0.3 + 0.6 * size, 0.88 - 0.22 * size);
}

/** From pale blue (waits) to orange (uses the CPU): `share` goes from 0 to 1. */
export function cpuColour(share: number, dark: boolean): Rgb {
  return changeColour(2 * Math.min(1, Math.max(0, share)) - 1 || 1e-9, dark);
}

/** From the ground's colour to red: `heat` goes from 0 to 1. */
export function heatColour(heat: number, dark: boolean): Rgb {
  const [from, to]: [Rgb, Rgb] = dark
    ? [
        [32, 36, 42],
        [185, 50, 34],
      ]
    : [
        [255, 255, 255],
        [242, 101, 80],
      ];
  return from.map((part, i) => Math.round(part + (to[i] - part) * heat)) as Rgb;
}

/** The same tint for the methods of one class, in every run. */
export function tintOf(name: string): number {
  const end = name.search(/[#.](?!.*::)/);
  return hashOf(end > 0 ? name.slice(0, end) : name) % TINTS;
}

function hashOf(text: string): number {
  let hash = 7;
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) >>> 0;
  return hash;
}

/** The same colour for a class in every heap; `isRest` is of no class. */
export function classColour(name: string, isRest: boolean, dark: boolean): Rgb {
  if (isRest) return changeColour(0, dark);
  // The lower bits of similar names are similar.
  const hash = Math.imul(hashOf(name), 0x9e3779b1) >>> 8;
  const step = ((hash >> 5) % TINTS) / (TINTS - 1);
  const hue = 15 * (hash % 24);
  return dark ? hsl(hue, 0.42, 0.22 + 0.07 * step) : hsl(hue, 0.58, 0.74 + 0.1 * step);
}

export function css([red, green, blue]: Rgb): string {
  return `rgb(${red},${green},${blue})`;
}

function hsl(hue: number, saturation: number, lightness: number): Rgb {
  const spread = saturation * Math.min(lightness, 1 - lightness);
  const channel = (offset: number) => {
    const k = (offset + hue / 30) % 12;
    return Math.round(255 * (lightness - spread * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}

/** The contrast between two colours, as WCAG reckons it. */
export function contrast(one: Rgb, other: Rgb): number {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour: Rgb): number {
  const [red, green, blue] = colour.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

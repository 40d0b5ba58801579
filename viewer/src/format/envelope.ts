import { DataError, tooLarge } from "./error.ts";

const MAX_BASE64 = 200e6;
const MAX_BYTES = 1e9;

/** The bytes of a base64 text; blanks and line breaks are skipped. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  if (text.length > MAX_BASE64) {
    throw tooLarge("is larger than 200 MB");
  }
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  try {
    if (native) return native.call(Uint8Array, text);
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
    return bytes;
  } catch {
    throw new DataError(
      "The profile in this page is not valid base64. The file was changed or cut; make the report again.",
    );
  }
}

/** Unpacks gzip; what is not gzip is returned as it is. */
export async function decompress(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  if (typeof DecompressionStream === "undefined") {
    throw new DataError("This browser can't unpack the profile. Use Chromium 80, Firefox 113, Safari 16.4 or newer.");
  }
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      chunks.push(value);
      length += value.length;
      if (length > MAX_BYTES) break;
    }
  } catch {
    throw new DataError("The profile can't be unpacked. The file was changed or cut; make the report again.");
  }
  if (length > MAX_BYTES) {
    await reader.cancel();
    throw tooLarge("unpacks to more than 1 GB");
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

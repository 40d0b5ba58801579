import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

const SPARE = 12;

/** Which of many rows of equal height are in an element's window, and the room of those that aren't. */
export function useVisibleRows(element: RefObject<HTMLElement | null>, count: number, height: number) {
  const [scroll, setScroll] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const box = element.current;
    if (!box) return;
    const measure = () => setScroll({ top: box.scrollTop, height: box.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    box.addEventListener("scroll", measure, { passive: true });
    measure();
    return () => {
      observer.disconnect();
      box.removeEventListener("scroll", measure);
    };
  }, [element]);
  const first = Math.max(0, Math.min(count - 1, Math.floor(scroll.top / height)) - SPARE);
  const last = Math.min(count, Math.ceil((scroll.top + scroll.height) / height) + SPARE);
  const reveal = (row: number, head: number) => {
    const box = element.current;
    if (!box) return;
    const top = row * height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + height + head > box.scrollTop + box.clientHeight)
      box.scrollTop = top + height + head - box.clientHeight;
    setScroll({ top: box.scrollTop, height: box.clientHeight });
  };
  return { first, last, before: first * height, after: Math.max(0, count - last) * height, reveal };
}

import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

/** The inner size of an element, in pixels; 0 before it is known. */
export function useSize(element: RefObject<HTMLElement | null>) {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const box = element.current;
    if (!box) return;
    const measure = () => setSize({ width: box.clientWidth, height: box.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    measure();
    return () => observer.disconnect();
  }, [element]);
  return size;
}

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** Words beside a place of the window, such as the pointer. */
export function Tip({ x, y, children }: { x: number; y: number; children: ComponentChildren }) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const tip = element.current;
    if (!tip) return;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${y + 18 + height > innerHeight - 8 ? Math.max(4, y - height - 14) : y + 18}px`;
  });
  return (
    <div ref={element} class="tooltip" aria-hidden="true">
      {children}
    </div>
  );
}

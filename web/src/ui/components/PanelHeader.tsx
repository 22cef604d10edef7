import type { Drawer, Modal } from "@mantine/core";
import type { ComponentPropsWithoutRef } from "react";

interface PanelHeaderProps {
  part: typeof Modal | typeof Drawer;
  title: string;
  closeLabel: string;
}

/**
 * Show the header of a dialog or drawer as a `div`. The library would render a `header` element, which is a banner, and
 * a page may have only one banner.
 */
export function PanelHeader({ part: Part, title, closeLabel }: PanelHeaderProps) {
  return (
    <Part.Header renderRoot={(props: ComponentPropsWithoutRef<"div">) => <div {...props} />}>
      <Part.Title fw={600} dir="auto">
        {title}
      </Part.Title>
      <Part.CloseButton size={44} aria-label={closeLabel} />
    </Part.Header>
  );
}

/** The head of a dialog or drawer. The library's is a `header`, which a page has one of already. */

import type { Drawer, Modal } from "@mantine/core";
import type { ComponentPropsWithoutRef } from "react";

interface PanelHeaderProps {
  part: typeof Modal | typeof Drawer;
  title: string;
  close: string;
}

export function PanelHeader({ part: Part, title, close }: PanelHeaderProps) {
  return (
    <Part.Header renderRoot={(props: ComponentPropsWithoutRef<"div">) => <div {...props} />}>
      <Part.Title fw={600} dir="auto">
        {title}
      </Part.Title>
      <Part.CloseButton size={44} aria-label={close} />
    </Part.Header>
  );
}

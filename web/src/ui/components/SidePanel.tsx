/** What opens beside the conversation: it makes room where there is some; elsewhere it lies over it, on a phone as a sheet. */

import { Box, CloseButton, Drawer, Group, ScrollArea, Title } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useId, useLayoutEffect, useRef, type ReactNode } from "react";
import { PanelHeader } from "./PanelHeader.tsx";
import { useCloseRequest } from "../useCloseRequest.ts";
import classes from "./SidePanel.module.css";

interface SidePanelProps {
  title: string;
  /** The label of what closes it. */
  close: string;
  onClose: () => void;
  children: ReactNode;
}

export function SidePanel(props: SidePanelProps) {
  const roomy = useMediaQuery("(min-width: 75em)", false, { getInitialValueInEffect: false });
  return roomy ? <Panel {...props} /> : <Sheet {...props} />;
}

function Panel({ title, close, onClose, children }: SidePanelProps) {
  const panel = useRef<HTMLDivElement>(null);
  const id = useId();
  // By layout: when it goes, what is inside still has the focus.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const opened = panel.current;
    opened?.focus();
    return () => {
      // Who has gone on writing meanwhile is left where they are.
      if (opened?.contains(document.activeElement)) (before as HTMLElement | null)?.focus?.();
    };
  }, []);
  return (
    <Box
      ref={panel}
      className={classes["panel"]}
      role="dialog"
      aria-labelledby={id}
      tabIndex={-1}
      onKeyDown={(event) => event.key === "Escape" && onClose()}
    >
      <Group justify="space-between" wrap="nowrap" px="md" py="xs">
        <Title id={id} order={3} size="h5" dir="auto" miw={0}>
          {title}
        </Title>
        <CloseButton size={44} aria-label={close} onClick={onClose} />
      </Group>
      <ScrollArea flex={1} px="md" pb="md" viewportProps={{ tabIndex: 0 }}>
        {children}
      </ScrollArea>
    </Box>
  );
}

function Sheet({ title, close, onClose, children }: SidePanelProps) {
  useCloseRequest(true, onClose);
  const phone = useMediaQuery("(max-width: 48em)", true, { getInitialValueInEffect: false });
  return (
    <Drawer.Root opened onClose={onClose} position={phone ? "bottom" : "right"} size={phone ? "75%" : "lg"}>
      <Drawer.Overlay backgroundOpacity={phone ? 0.4 : 0.1} />
      <Drawer.Content>
        <PanelHeader part={Drawer} title={title} close={close} />
        <Drawer.Body>{children}</Drawer.Body>
      </Drawer.Content>
    </Drawer.Root>
  );
}

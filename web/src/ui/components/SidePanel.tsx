import { Box, CloseButton, Drawer, Group, ScrollArea, Title } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useId, useLayoutEffect, useRef, type ReactNode } from "react";
import { PanelHeader } from "./PanelHeader.tsx";
import { useCloseRequest } from "../useCloseRequest.ts";
import classes from "./SidePanel.module.css";

interface SidePanelProps {
  title: string;
  closeLabel: string;
  onClose: () => void;
  children: ReactNode;
}

/** Show a panel beside the chat on a wide screen, over the chat on a narrow screen, or at the bottom of a phone. */
export function SidePanel(props: SidePanelProps) {
  const isWide = useMediaQuery("(min-width: 75em)", false, { getInitialValueInEffect: false });
  return isWide ? <Panel {...props} /> : <Sheet {...props} />;
}

function Panel({ title, closeLabel, onClose, children }: SidePanelProps) {
  const panel = useRef<HTMLDivElement>(null);
  const id = useId();
  // A layout effect, because its cleanup runs before the panel is removed and must find out whether it has the focus.
  useLayoutEffect(() => {
    const opener = document.activeElement;
    const opened = panel.current;
    opened?.focus();
    return () => {
      // If the focus is outside the panel, the user has moved it, and it stays where it is.
      if (opened?.contains(document.activeElement)) (opener as HTMLElement | null)?.focus?.();
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
        <CloseButton size={44} aria-label={closeLabel} onClick={onClose} />
      </Group>
      <ScrollArea flex={1} px="md" pb="md" viewportProps={{ tabIndex: 0 }}>
        {children}
      </ScrollArea>
    </Box>
  );
}

function Sheet({ title, closeLabel, onClose, children }: SidePanelProps) {
  useCloseRequest(true, onClose);
  const phone = useMediaQuery("(max-width: 48em)", true, { getInitialValueInEffect: false });
  return (
    <Drawer.Root opened onClose={onClose} position={phone ? "bottom" : "right"} size={phone ? "75%" : "lg"}>
      <Drawer.Overlay backgroundOpacity={phone ? 0.4 : 0.1} />
      <Drawer.Content>
        <PanelHeader part={Drawer} title={title} closeLabel={closeLabel} />
        <Drawer.Body>{children}</Drawer.Body>
      </Drawer.Content>
    </Drawer.Root>
  );
}

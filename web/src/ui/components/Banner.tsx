import { Paper } from "@mantine/core";
import type { ReactNode } from "react";

/** Show a message about the app as a whole, above every page. */
export function Banner({ children }: { children: ReactNode }) {
  return (
    <Paper
      withBorder
      shadow="md"
      p="sm"
      pos="fixed"
      top={60}
      left={0}
      right={0}
      mx="auto"
      w="min(100% - 2rem, 28rem)"
      style={{ zIndex: "var(--mantine-z-index-max)" }}
    >
      {children}
    </Paper>
  );
}

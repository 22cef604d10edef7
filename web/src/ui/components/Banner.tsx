/** Something about the page as a whole that is said wherever one is, on small screens too. */

import { Paper } from "@mantine/core";
import type { ReactNode } from "react";

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

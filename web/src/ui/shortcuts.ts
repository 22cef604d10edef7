/** Keyboard shortcuts that work on every page. */

import { useHotkeys } from "@mantine/hooks";
import { useLocation } from "wouter";

/** The label of the modifier key on this device. */
export const MOD = /Mac|iPhone|iPad/u.test(navigator.userAgent) ? "⌘" : "Ctrl";

export function useShortcuts(open: (overlay: "search" | "shortcuts") => void): void {
  const [, navigate] = useLocation();
  const ignoredTags: string[] = []; // the shortcuts also work in text fields, which are ignored by default
  useHotkeys(
    [
      ["mod+K", () => open("search")],
      ["mod+N", () => navigate("/")],
      ["mod+J", () => navigate("/documents")],
    ],
    ignoredTags,
  );
  useHotkeys([["shift+?", () => open("shortcuts")]]);
}

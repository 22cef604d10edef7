/** The keys that work everywhere. */

import { useHotkeys } from "@mantine/hooks";
import { useLocation } from "wouter";

/** As it stands on the keyboard. */
export const MOD = /Mac|iPhone|iPad/u.test(navigator.userAgent) ? "⌘" : "Ctrl";

export function useShortcuts(open: (sheet: "find" | "keys") => void): void {
  const [, go] = useLocation();
  const anywhere: string[] = []; // also while writing
  useHotkeys(
    [
      ["mod+K", () => open("find")],
      ["mod+N", () => go("/")],
      ["mod+J", () => go("/documents")],
    ],
    anywhere,
  );
  useHotkeys([["shift+?", () => open("keys")]]);
}

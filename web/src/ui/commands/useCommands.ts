import { useMantineColorScheme } from "@mantine/core";
import { useLocation } from "wouter";
import { useDesk } from "../../client/backendClient.tsx";
import { words } from "../words.ts";
import { find } from "../words/find.ts";

interface Command {
  label: string;
  run: () => void;
}

/** What can be done from everywhere. */
export function useCommands(onKeys: () => void): Command[] {
  const { desk } = useDesk();
  const [, go] = useLocation();
  const { toggleColorScheme } = useMantineColorScheme();
  return [
    { label: words.places.newConversation, run: () => go("/") },
    { label: words.places.documents, run: () => go("/documents") },
    { label: words.places.projects, run: () => go("/projects") },
    { label: words.places.memory, run: () => go("/memory") },
    { label: words.places.settings, run: () => go("/settings") },
    { label: find.syncNow, run: () => void desk.syncNow() },
    { label: find.theme, run: toggleColorScheme },
    { label: find.keysTitle, run: onKeys },
  ];
}

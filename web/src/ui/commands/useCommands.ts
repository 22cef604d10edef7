import { useMantineColorScheme } from "@mantine/core";
import { useLocation } from "wouter";
import { useAccountApi } from "../../client/backendClient.tsx";
import { t } from "../../locale/t.ts";

interface Command {
  label: string;
  run: () => void;
}

/** What can be done from everywhere. */
export function useCommands(onKeys: () => void): Command[] {
  const { api } = useAccountApi();
  const [, go] = useLocation();
  const { toggleColorScheme } = useMantineColorScheme();
  return [
    { label: t("sidebar.newChat"), run: () => go("/") },
    { label: t("sidebar.documents"), run: () => go("/documents") },
    { label: t("sidebar.projects"), run: () => go("/projects") },
    { label: t("sidebar.memory"), run: () => go("/memory") },
    { label: t("sidebar.settings"), run: () => go("/settings") },
    { label: t("sync.now"), run: () => void api.syncNow() },
    { label: t("commands.theme"), run: toggleColorScheme },
    { label: t("shortcuts.title"), run: onKeys },
  ];
}

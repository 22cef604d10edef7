import { useMantineColorScheme } from "@mantine/core";
import { useLocation } from "wouter";
import { useAccountApi } from "../../client/backendClient.tsx";
import { t } from "../../locale/t.ts";

interface Command {
  label: string;
  run: () => void;
}

/** Return the commands of the command palette. */
export function useCommands(onShortcuts: () => void): Command[] {
  const { api } = useAccountApi();
  const [, navigate] = useLocation();
  const { toggleColorScheme } = useMantineColorScheme();
  return [
    { label: t("sidebar.newChat"), run: () => navigate("/") },
    { label: t("sidebar.documents"), run: () => navigate("/documents") },
    { label: t("sidebar.projects"), run: () => navigate("/projects") },
    { label: t("sidebar.memory"), run: () => navigate("/memory") },
    { label: t("sidebar.settings"), run: () => navigate("/settings") },
    { label: t("sync.now"), run: () => void api.syncNow() },
    { label: t("commands.theme"), run: toggleColorScheme },
    { label: t("shortcuts.title"), run: onShortcuts },
  ];
}

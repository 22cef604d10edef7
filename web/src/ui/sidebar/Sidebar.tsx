/** The left: where one can go. */

import { Box, Kbd, NavLink, Stack, Text } from "@mantine/core";
import { IconBrain, IconFiles, IconFolder, IconPlus, IconSearch, IconSettings } from "@tabler/icons-react";
import { Suspense } from "react";
import { Link, useRoute } from "wouter";
import { useAccountApi, useRows } from "../../client/backendClient.tsx";
import { MOD } from "../shortcuts.ts";
import classes from "./Sidebar.module.css";
import { SessionList } from "./SessionList.tsx";
import { UpdatePrompt } from "../UpdatePrompt.tsx";
import { part } from "../lazyComponent.ts";
import { t } from "../../locale/t.ts";

const SidebarProjects = part(() => import("./SidebarProjects.tsx"));

export function Sidebar({ onFind }: { onFind: () => void }) {
  const { account } = useAccountApi();
  const documents = useRows("documents", { selector: { syncError: { $exists: false } } }); // those that count
  return (
    <Stack component="nav" className={classes["places"]!} h="100%" gap={4} aria-label={t("app.menu")}>
      <NavLink
        component="button"
        label={t("sidebar.search")}
        leftSection={<IconSearch size={18} />}
        rightSection={<Kbd size="xs" visibleFrom="sm" aria-hidden>{`${MOD} K`}</Kbd>}
        onClick={onFind}
      />
      <Place to="/" label={t("sidebar.newChat")} icon={<IconPlus size={18} />} />
      <Place to="/projects" label={t("sidebar.projects")} icon={<IconFolder size={18} />} />
      <Box mah="35dvh" style={{ overflowY: "auto" }}>
        <Suspense>
          <SidebarProjects />
        </Suspense>
      </Box>
      <Text component="h2" size="xs" fw={600} c="dimmed" px="sm" pt="sm" m={0}>
        {t("sidebar.chats")}
      </Text>
      <SessionList />
      <UpdatePrompt />
      <Place
        to="/documents"
        label={t("sidebar.documents")}
        icon={<IconFiles size={18} />}
        aside={
          documents && t("sidebar.documentCount", { n: documents.length, limit: account.limits.documents })
        }
      />
      <Place to="/memory" label={t("sidebar.memory")} icon={<IconBrain size={18} />} />
      <Place to="/settings" label={t("sidebar.settings")} icon={<IconSettings size={18} />} />
    </Stack>
  );
}

interface PlaceProps {
  to: string;
  label: string;
  icon: React.ReactNode;
  aside?: React.ReactNode;
}

function Place({ to, label, icon, aside }: PlaceProps) {
  const [here] = useRoute(to);
  return (
    <NavLink
      component={Link}
      href={to}
      label={label}
      leftSection={icon}
      rightSection={aside && <Text size="xs">{aside}</Text>}
      active={here}
      color="gray"
      aria-current={here ? "page" : undefined}
      noWrap
    />
  );
}

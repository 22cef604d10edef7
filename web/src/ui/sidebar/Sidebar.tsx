import { Box, Kbd, NavLink, Stack, Text } from "@mantine/core";
import { IconBrain, IconFiles, IconFolder, IconPlus, IconSearch, IconSettings } from "@tabler/icons-react";
import { Suspense } from "react";
import { Link, useRoute } from "wouter";
import { useAccountApi, useRows } from "../../client/backendClient.tsx";
import { MOD } from "../shortcuts.ts";
import classes from "./Sidebar.module.css";
import { SessionList } from "./SessionList.tsx";
import { UpdatePrompt } from "../UpdatePrompt.tsx";
import { lazyComponent } from "../lazyComponent.ts";
import { t } from "../../locale/t.ts";

const SidebarProjects = lazyComponent(() => import("./SidebarProjects.tsx"));

/** Show the main navigation. */
export function Sidebar({ onSearch }: { onSearch: () => void }) {
  const { account } = useAccountApi();
  // Leave out rejected documents, because they do not count toward the limit.
  const documents = useRows("documents", { selector: { syncError: { $exists: false } } });
  return (
    <Stack component="nav" className={classes["sidebar"]!} h="100%" gap={4} aria-label={t("app.menu")}>
      <NavLink
        component="button"
        label={t("sidebar.search")}
        leftSection={<IconSearch size={18} />}
        rightSection={<Kbd size="xs" visibleFrom="sm" aria-hidden>{`${MOD} K`}</Kbd>}
        onClick={onSearch}
      />
      <PageLink to="/" label={t("sidebar.newChat")} icon={<IconPlus size={18} />} />
      <PageLink to="/projects" label={t("sidebar.projects")} icon={<IconFolder size={18} />} />
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
      <PageLink
        to="/documents"
        label={t("sidebar.documents")}
        icon={<IconFiles size={18} />}
        detail={
          documents && t("sidebar.documentCount", { n: documents.length, limit: account.limits.documents })
        }
      />
      <PageLink to="/memory" label={t("sidebar.memory")} icon={<IconBrain size={18} />} />
      <PageLink to="/settings" label={t("sidebar.settings")} icon={<IconSettings size={18} />} />
    </Stack>
  );
}

interface PageLinkProps {
  to: string;
  label: string;
  icon: React.ReactNode;
  detail?: React.ReactNode;
}

function PageLink({ to, label, icon, detail }: PageLinkProps) {
  const [isCurrent] = useRoute(to);
  return (
    <NavLink
      component={Link}
      href={to}
      label={label}
      leftSection={icon}
      rightSection={detail && <Text size="xs">{detail}</Text>}
      active={isCurrent}
      color="gray"
      aria-current={isCurrent ? "page" : undefined}
      noWrap
    />
  );
}

/** The left: where one can go. */

import { Box, Kbd, NavLink, Stack, Text } from "@mantine/core";
import { IconBrain, IconFiles, IconFolder, IconPlus, IconSearch, IconSettings } from "@tabler/icons-react";
import { Suspense } from "react";
import { Link, useRoute } from "wouter";
import { useDesk, useRows } from "../../client/backendClient.tsx";
import { MOD } from "../shortcuts.ts";
import classes from "./Sidebar.module.css";
import { SessionList } from "./SessionList.tsx";
import { UpdatePrompt } from "../UpdatePrompt.tsx";
import { words } from "../words.ts";
import { part } from "../lazyComponent.ts";

const SidebarProjects = part(() => import("./SidebarProjects.tsx"));

export function Sidebar({ onFind }: { onFind: () => void }) {
  const { account } = useDesk();
  const documents = useRows("documents", { selector: { syncError: { $exists: false } } }); // those that count
  return (
    <Stack component="nav" className={classes["places"]!} h="100%" gap={4} aria-label={words.places.menu}>
      <NavLink
        component="button"
        label={words.places.find}
        leftSection={<IconSearch size={18} />}
        rightSection={<Kbd size="xs" visibleFrom="sm" aria-hidden>{`${MOD} K`}</Kbd>}
        onClick={onFind}
      />
      <Place to="/" label={words.places.newConversation} icon={<IconPlus size={18} />} />
      <Place to="/projects" label={words.places.projects} icon={<IconFolder size={18} />} />
      <Box mah="35dvh" style={{ overflowY: "auto" }}>
        <Suspense>
          <SidebarProjects />
        </Suspense>
      </Box>
      <Text component="h2" size="xs" fw={600} c="dimmed" px="sm" pt="sm" m={0}>
        {words.places.conversations}
      </Text>
      <SessionList />
      <UpdatePrompt />
      <Place
        to="/documents"
        label={words.places.documents}
        icon={<IconFiles size={18} />}
        aside={documents && words.places.documentsOf(documents.length, account.limits.documents)}
      />
      <Place to="/memory" label={words.places.memory} icon={<IconBrain size={18} />} />
      <Place to="/settings" label={words.places.settings} icon={<IconSettings size={18} />} />
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

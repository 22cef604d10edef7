import { Group, Text } from "@mantine/core";
import {
  IconAlertTriangle,
  IconBulb,
  IconFilePlus,
  IconFileText,
  IconMessage,
  IconPencil,
  IconPlayerPlay,
  IconSearch,
  IconTerminal2,
} from "@tabler/icons-react";
import type { ObservationKind } from "../../core/agents/observations.ts";
import { t } from "../../locale/t.ts";

const ICONS = {
  edit: IconPencil,
  write: IconFilePlus,
  read: IconFileText,
  command: IconTerminal2,
  search: IconSearch,
  error: IconAlertTriangle,
  decision: IconBulb,
  prompt: IconMessage,
  session: IconPlayerPlay,
} satisfies Record<ObservationKind, unknown>;

/** Show the kind of a step, as an icon with its name. */
export function KindIcon({ kind }: { kind: ObservationKind }) {
  const Icon = ICONS[kind];
  return (
    <Group component="span" gap={6} wrap="nowrap" flex="none">
      <Icon size={16} aria-hidden />
      <Text span size="sm" fw={600}>
        {t(`agents.kind.${kind}`)}
      </Text>
    </Group>
  );
}

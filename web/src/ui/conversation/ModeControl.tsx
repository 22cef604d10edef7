/** How the conversation answers: freely, or from its documents alone. */

import { SegmentedControl } from "@mantine/core";
import type { SessionDoc } from "../../core/schema/rows.ts";
import { useDesk } from "../../client/backendClient.tsx";
import { words } from "../words.ts";

export default function ModeControl({ sessionId, mode }: { sessionId: string; mode: SessionDoc["mode"] }) {
  const { desk, account } = useDesk();
  const { analysis, authoritative, authoritativeHint, authoritativeTier, mode: label } = words.conversation;
  const allowed = account.limits.authoritative;
  return (
    <SegmentedControl
      size="xs"
      style={{ flexShrink: 0 }}
      aria-label={label}
      title={allowed ? authoritativeHint : authoritativeTier}
      value={mode}
      disabled={!allowed}
      onChange={(value) => void desk.changeSession(sessionId, { mode: value as typeof mode })}
      data={[
        { value: "analysis", label: analysis },
        { value: "authoritative", label: authoritative },
      ]}
    />
  );
}

import { SegmentedControl } from "@mantine/core";
import type { SessionDoc } from "../../core/schema/rows.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { t } from "../../locale/t.ts";

/** Choose whether a chat is answered from all knowledge or from documents only. */
export default function ModeControl({ sessionId, mode }: { sessionId: string; mode: SessionDoc["mode"] }) {
  const { api, account } = useAccountApi();
  const allowed = account.limits.authoritative;
  return (
    <SegmentedControl
      size="xs"
      style={{ flexShrink: 0 }}
      aria-label={t("chat.answerFrom")}
      title={t(allowed ? "chat.answerFromHint" : "chat.answerFromTier")}
      value={mode}
      disabled={!allowed}
      onChange={(value) => void api.changeSession(sessionId, { mode: value as typeof mode })}
      data={[
        { value: "analysis", label: t("chat.answerFromAll") },
        { value: "authoritative", label: t("chat.answerFromDocuments") },
      ]}
    />
  );
}

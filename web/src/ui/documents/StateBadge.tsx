import { Badge, Progress } from "@mantine/core";
import type { DocumentState } from "../../core/documents/documentList.ts";
import { t } from "../../locale/t.ts";

const COLORS = { reading: "gray", embedding: "gray", failed: "red", refused: "orange" } as const;

/** Show the state of a document that is not ready. */
export function StateBadge({ state }: { state: DocumentState }) {
  if (state.kind === "ready") return null;
  const label =
    state.kind === "embedding"
      ? t("documents.state.embedding", { done: state.done, total: state.of })
      : t(`documents.state.${state.kind}`);
  return (
    <>
      <Badge variant="default" tt="none" color={COLORS[state.kind]}>
        {label}
      </Badge>
      {state.kind === "embedding" && (
        <Progress w={96} size="sm" value={(100 * state.done) / Math.max(1, state.of)} aria-label={label} />
      )}
    </>
  );
}

import { Skeleton, Stack, VisuallyHidden } from "@mantine/core";
import { t } from "../../locale/t.ts";

/** Show a placeholder for the list of documents while the list loads. */
export function DocumentListSkeleton() {
  return (
    <Stack role="status">
      <VisuallyHidden>{t("documents.loading")}</VisuallyHidden>
      <Skeleton h={20} maw={320} />
      {Array.from({ length: 6 }, (_, index) => (
        <Skeleton key={index} h={64} />
      ))}
    </Stack>
  );
}

/** The shape of the list until it is read. */

import { Skeleton, Stack, VisuallyHidden } from "@mantine/core";
import { t } from "../../locale/t.ts";

export function DocumentListSkeleton() {
  return (
    <Stack role="status">
      <VisuallyHidden>{t("documents.loading")}</VisuallyHidden>
      <Skeleton h={20} maw={320} />
      {Array.from({ length: 6 }, (_, at) => (
        <Skeleton key={at} h={64} />
      ))}
    </Stack>
  );
}

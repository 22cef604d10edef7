/** The shape of the list until it is read. */

import { Skeleton, Stack, VisuallyHidden } from "@mantine/core";
import { documents as words } from "../words/documents.ts";

export function DocumentListSkeleton() {
  return (
    <Stack role="status">
      <VisuallyHidden>{words.loading}</VisuallyHidden>
      <Skeleton h={20} maw={320} />
      {Array.from({ length: 6 }, (_, at) => (
        <Skeleton key={at} h={64} />
      ))}
    </Stack>
  );
}

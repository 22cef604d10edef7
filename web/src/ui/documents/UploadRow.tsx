import { Anchor, Box, Button, CloseButton, Group, Progress, Text } from "@mantine/core";
import { Link } from "wouter";
import { isFinished, isUnfinished, mayRetry, type Task } from "../../core/documents/uploadTask.ts";
import { useAccountApi } from "../../client/backendClient.tsx";
import { t } from "../../locale/t.ts";
import { stageLabel } from "./uploadText.ts";

/** Show the progress of a file that is being added. */
export function UploadRow({ task }: { task: Task }) {
  const { api } = useAccountApi();
  const { id, name, stage, documentId } = task;
  const label = stageLabel(task);
  return (
    <Box component="li" py={4}>
      <Group wrap="nowrap" gap="xs" justify="space-between" mih={44}>
        <Box miw={0} flex={1}>
          {stage === "done" && documentId ? (
            <Anchor
              component={Link}
              href={`/documents/${documentId}`}
              size="sm"
              dir="auto"
              truncate
              display="block"
            >
              {name}
            </Anchor>
          ) : (
            <Text size="sm" truncate dir="auto">
              {name}
            </Text>
          )}
          <Text size="xs" c={stage === "failed" ? "red" : "dimmed"}>
            {label}
          </Text>
        </Box>
        {(isUnfinished(task) || mayRetry(task)) && (
          <Button
            size="sm"
            variant="default"
            aria-label={t("common.actionOn", { action: t("common.retry"), name })}
            onClick={() => void api.retryUpload(id)}
          >
            {t("common.retry")}
          </Button>
        )}
        {!isFinished(task) && (
          <CloseButton
            size={44}
            aria-label={t("uploads.cancel", { name })}
            onClick={() => void api.cancelUpload(id)}
          />
        )}
      </Group>
      {"of" in task && task.of > 0 && (
        <Progress size="xs" value={(100 * task.done) / task.of} aria-label={`${name}: ${label}`} />
      )}
    </Box>
  );
}

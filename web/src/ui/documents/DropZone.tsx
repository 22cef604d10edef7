import { Center, Portal, Text } from "@mantine/core";
import { useRoute } from "wouter";
import { useAccountApi, useUploads, useAnswerDrafts } from "../../client/backendClient.tsx";
import classes from "./documents.module.css";
import { UploadTray } from "./UploadTray.tsx";
import { useFileDrop } from "./useFileDrop.ts";
import { t } from "../../locale/t.ts";

/** Accept files that are dropped anywhere on the page, and show the progress of all uploads. */
export default function DropZone() {
  const { api } = useAccountApi();
  const tasks = useUploads() ?? [];
  // Computed here and not in the tray, which is mounted only while there are uploads.
  const isAnswering = Object.keys(useAnswerDrafts() ?? {}).length > 0;
  const [inSession, session] = useRoute<{ id: string }>("/s/:id");
  const isDragging = useFileDrop((files) => void api.addFiles(files, inSession ? session.id : null));
  return (
    <>
      {isDragging && (
        <Portal>
          <Center className={classes.drop}>
            <Text size="xl" fw={600}>
              {inSession ? t("uploads.dropIntoChat") : t("uploads.drop")}
            </Text>
          </Center>
        </Portal>
      )}
      {tasks.length > 0 && <UploadTray tasks={tasks} isAnswering={isAnswering} />}
    </>
  );
}

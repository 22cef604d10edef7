/** Files that are dropped anywhere, and what becomes of those that are on their way. */

import { Center, Portal, Text } from "@mantine/core";
import { useRoute } from "wouter";
import { useAccountApi, useUploads, useAnswerDrafts } from "../../client/backendClient.tsx";
import classes from "./documents.module.css";
import { UploadTray } from "./UploadTray.tsx";
import { useFileDrop } from "./useFileDrop.ts";
import { t } from "../../locale/t.ts";

export default function DropZone() {
  const { api } = useAccountApi();
  const tasks = useUploads() ?? [];
  const isAnswering = Object.keys(useAnswerDrafts() ?? {}).length > 0; // known here before there is a tray
  const [inSession, session] = useRoute<{ id: string }>("/s/:id");
  const over = useFileDrop((files) => void api.addFiles(files, inSession ? session.id : null));
  return (
    <>
      {over && (
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

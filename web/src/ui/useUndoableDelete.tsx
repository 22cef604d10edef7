import { Button, Group, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useLocation } from "wouter";
import { setPendingDelete } from "./pendingDeletes.ts";
import { notifyError } from "./notify.ts";
import { t } from "../locale/t.ts";

const UNDO_MS = 7_000;

interface UndoableDelete {
  id: string;
  /** Sentence that names the deleted item. */
  message: string;
  /** Path of the item's page. `redirect` is the path of the page to show instead. */
  path?: string;
  redirect?: string;
  commit: () => Promise<void>;
}

/** Return a function that deletes an item after a notice with an "Undo" button has closed. */
export function useUndoableDelete(): (item: UndoableDelete) => void {
  const [location, navigate] = useLocation();
  return ({ id, message, path, redirect = "/", commit }) => {
    const wasOpen = location === path;
    let isUndone = false;
    setPendingDelete(id, true);
    if (wasOpen) navigate(redirect);
    const undo = () => {
      isUndone = true;
      notifications.hide(id);
      if (wasOpen) navigate(path!);
    };
    const end = async () => isUndone || commit().catch(notifyError);
    notifications.show({
      id,
      autoClose: UNDO_MS,
      withCloseButton: false,
      // A notice stays open under a pointer and behind other notices. "Undo" works until it closes.
      onClose: () => void end().finally(() => setPendingDelete(id, false)),
      message: (
        <Group justify="space-between" wrap="nowrap">
          <Text size="sm">{message}</Text>
          {/* A long message must not shrink the button. */}
          <Button size="compact-md" variant="light" flex="none" onClick={undo}>
            {t("common.undo")}
          </Button>
        </Group>
      ),
    });
  };
}

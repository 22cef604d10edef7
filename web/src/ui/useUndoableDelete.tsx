import { Button, Group, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useLocation } from "wouter";
import { setPendingDelete } from "./pendingDeletes.ts";
import { notifyError } from "./notify.ts";
import { t } from "../locale/t.ts";

const UNDO_MS = 7_000;

interface UndoableDelete {
  id: string;
  /** Sentence of the notice, which names the item. */
  message: string;
  /** Path of the item's page, if it has one. If that page is open, the page at `redirect` is opened instead. */
  path?: string;
  redirect?: string;
  commit: () => Promise<void>;
}

/** Return a function that shows a notice with an "Undo" button, and deletes the item when the notice closes. */
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
      // Delete the item when the notice closes and not after a fixed time: a notice stays open under the pointer.
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

/** Deletes something, with a while to think again. */

import { Button, Group, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useLocation } from "wouter";
import { setPending } from "./pendingDeletes.ts";
import { tellError } from "./notify.ts";
import { t } from "../locale/t.ts";

const UNDO_MS = 7_000;

interface Undoable {
  id: string;
  /** What is being deleted, in a sentence. */
  message: string;
  /** Where it is shown, and where to go from there. */
  address?: string;
  away?: string;
  commit: () => Promise<void>;
}

export function useUndoable(): (undoable: Undoable) => void {
  const [location, go] = useLocation();
  return ({ id, message, address, away = "/", commit }) => {
    const wasOpen = location === address;
    let isWanted = true;
    setPending(id, true);
    if (wasOpen) go(away);
    const bringBack = () => {
      isWanted = false;
      notifications.hide(id);
      if (wasOpen) go(address!);
    };
    const end = async () => isWanted && commit().catch(tellError);
    notifications.show({
      id,
      autoClose: UNDO_MS,
      withCloseButton: false,
      // As long as "Undo" is there it undoes: the notice waits under a pointer, and behind other notices.
      onClose: () => void end().finally(() => setPending(id, false)),
      message: (
        <Group justify="space-between" wrap="nowrap">
          <Text size="sm">{message}</Text>
          {/* It is whole, however long the message is. */}
          <Button size="compact-md" variant="light" flex="none" onClick={bringBack}>
            {t("common.undo")}
          </Button>
        </Group>
      ),
    });
  };
}

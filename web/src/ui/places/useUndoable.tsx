/** Deletes something, with a while to think again. */

import { Button, Group, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useLocation } from "wouter";
import { words } from "../words.ts";
import { deleteSoon, PATIENCE_MS, undo } from "./pending.ts";

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
    deleteSoon(id, commit);
    if (wasOpen) go(away);
    const bringBack = () => {
      undo(id);
      notifications.hide(id);
      if (wasOpen) go(address!);
    };
    notifications.show({
      id,
      autoClose: PATIENCE_MS,
      withCloseButton: false,
      message: (
        <Group justify="space-between" wrap="nowrap">
          <Text size="sm">{message}</Text>
          <Button size="compact-md" variant="light" onClick={bringBack}>
            {words.places.undo}
          </Button>
        </Group>
      ),
    });
  };
}

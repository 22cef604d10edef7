import { Button, Group, Modal, Stack } from "@mantine/core";
import type { ReactNode } from "react";
import { PanelHeader } from "./PanelHeader.tsx";
import { useCloseRequest } from "../useCloseRequest.ts";

interface Props {
  opened: boolean;
  title: string;
  /** Labels of the two buttons. */
  cancel: string;
  confirm: string;
  onConfirm: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** Ask for confirmation before a deletion. The cancel button has the focus, so that Enter does not delete anything. */
export function ConfirmDialog({ opened, title, cancel, confirm, onConfirm, onClose, children }: Props) {
  useCloseRequest(opened, onClose);
  return (
    <Modal.Root opened={opened} onClose={onClose} centered>
      <Modal.Overlay />
      <Modal.Content>
        <PanelHeader part={Modal} title={title} closeLabel={cancel} />
        <Modal.Body>
          <Stack>
            {children}
            <Group justify="end">
              <Button variant="default" onClick={onClose} data-autofocus>
                {cancel}
              </Button>
              <Button variant="light" color="red" onClick={onConfirm}>
                {confirm}
              </Button>
            </Group>
          </Stack>
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}

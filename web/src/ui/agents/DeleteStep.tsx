/** Asks before something that an agent did is deleted: there is no way back. */

import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { headOf, type Observation } from "../../model/observations.ts";
import { PanelHeader } from "../documents/PanelHeader.tsx";
import { agents } from "../words/agents.ts";

const words = agents.deletion;

interface Props {
  /** Undefined: nothing is asked. */
  step: Observation | undefined;
  onConfirm: (step: Observation) => void;
  onClose: () => void;
}

export function DeleteStep({ step, onConfirm, onClose }: Props) {
  return (
    <Modal.Root opened={step !== undefined} onClose={onClose} centered>
      <Modal.Overlay />
      <Modal.Content>
        <PanelHeader part={Modal} title={words.title} close={words.cancel} />
        <Modal.Body>
          <Stack>
            <Text ff="monospace" size="sm" lineClamp={3} dir="auto">
              {step && headOf(step)}
            </Text>
            <Text size="sm">{words.goes}</Text>
            <Group justify="end">
              <Button variant="default" onClick={onClose} data-autofocus>
                {words.cancel}
              </Button>
              <Button variant="light" color="red" onClick={() => step && onConfirm(step)}>
                {words.confirm}
              </Button>
            </Group>
          </Stack>
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}

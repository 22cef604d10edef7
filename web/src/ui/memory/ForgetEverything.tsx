/** "Forget everything": typed to be meant, done by the server, told by a receipt. */

import { Alert, Button, Group, Modal, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useDesk, useSync } from "../../client/backendClient.tsx";
import { leaveTo } from "../leaveAccount.ts";
import { Section } from "../components/Section.tsx";
import { memory as words } from "../words/memory.ts";
import { forget, keptReceipt, putAway, useForgetProgress, type Done } from "./forgetProgress.ts";

export function ForgetEverything() {
  const { desk, account } = useDesk();
  const { userId } = account;
  const kind = useSync()?.kind;
  const answers = kind === "live";
  const [typed, setTyped] = useState("");
  const [kept, setKept] = useState(() => keptReceipt(userId));
  const { busy, problem, done } = useForgetProgress();
  const meant = typed.trim().toLowerCase() === words.sentence;

  /** Nothing is left here to go back to: the page begins anew. */
  function startAfresh() {
    leaveTo("/");
    putAway(userId);
  }

  function close() {
    putAway(userId);
    setKept(undefined);
  }

  return (
    <Section title={words.forget} hint={words.forgetHint}>
      {!answers && <Text size="sm">{words.forgetAway(kind)}</Text>}
      {problem && (
        <Alert color="red" role="alert">
          {problem}
        </Alert>
      )}
      <Group align="end">
        <TextInput
          label={words.forgetType}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          autoComplete="off"
          flex={1}
          miw="min(100%, 14rem)"
        />
        <Button
          color="red"
          disabled={!meant || !answers}
          loading={busy}
          onClick={() => void forget(desk, userId)}
        >
          {words.forget}
        </Button>
      </Group>
      <Text size="sm" role="status">
        {busy && words.forgetting}
      </Text>
      {done && <Told {...done} button={words.startAfresh} onClose={startAfresh} />}
      {!done && kept && <Told {...kept} button={words.putAway} onClose={close} />}
    </Section>
  );
}

interface Props extends Done {
  button: string;
  onClose(): void;
}

function Told({ receipt, here, button, onClose }: Props) {
  return (
    <Modal
      attributes={{ header: { role: "none" } }}
      opened
      onClose={onClose}
      title={words.receiptTitle}
      withCloseButton={false}
      centered
    >
      <Text>
        {words.receipt(receipt)} {words[here]}
      </Text>
      <Button mt="md" onClick={onClose} data-autofocus>
        {button}
      </Button>
    </Modal>
  );
}

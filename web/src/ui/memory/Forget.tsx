/** "Forget everything": typed to be meant, done by the server, told by a receipt. */

import { Alert, Button, Group, Modal, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { isCoded } from "../../model/coded.ts";
import type { Receipt } from "../../services/forget.ts";
import { useDesk, useSync } from "../desk.tsx";
import { leaveTo, useForgettingHere, wipe } from "../leaving.ts";
import { said } from "../said.ts";
import { Section } from "../Section.tsx";
import { memory as words } from "../words/memory.ts";

interface Done {
  receipt: Receipt;
  /** What is said of this device. */
  here: string;
}

export function Forget() {
  const { desk } = useDesk();
  const answers = useSync()?.kind === "live";
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [done, setDone] = useState<Done>();
  useForgettingHere(busy || problem !== undefined || done !== undefined);
  const meant = typed.trim().toLowerCase() === words.sentence;

  async function forget() {
    setBusy(true);
    setProblem(undefined);
    try {
      const receipt = await desk.forgetEverything();
      // Whatever holds the device up: the server has erased, and this is told once.
      const here = await wipe(desk, "/sign-in").then(() => words.isClean, unclean);
      setDone({ receipt, here });
    } catch (error) {
      setProblem(said(error));
    }
    setBusy(false);
  }

  return (
    <Section title={words.forget} hint={words.forgetHint}>
      {!answers && <Text size="sm">{words.forgetOffline}</Text>}
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
        <Button color="red" disabled={!meant || !answers} loading={busy} onClick={() => void forget()}>
          {words.forget}
        </Button>
      </Group>
      <Text size="sm" role="status">
        {busy && words.forgetting}
      </Text>
      {done && <Told {...done} />}
    </Section>
  );
}

/** Closing the other tab helps only where one is open. */
function unclean(error: unknown): string {
  console.error(error);
  return isCoded(error, "OPEN_ELSEWHERE") ? words.isOpenElsewhere : words.isNotClean;
}

/** Nothing is left here to go back to: the page begins anew. */
function Told({ receipt, here }: Done) {
  const startAfresh = () => leaveTo("/");
  return (
    <Modal
      attributes={{ header: { role: "none" } }}
      opened
      onClose={startAfresh}
      title={words.receiptTitle}
      withCloseButton={false}
      centered
    >
      <Text>
        {words.receipt(receipt)} {here}
      </Text>
      <Button mt="md" onClick={startAfresh} data-autofocus>
        {words.startAfresh}
      </Button>
    </Modal>
  );
}

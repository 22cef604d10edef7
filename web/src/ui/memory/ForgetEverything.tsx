/** "Forget everything": typed to be meant, done by the server, told by a receipt. */

import { Alert, Button, Group, Modal, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useAccountApi, useSync } from "../../client/backendClient.tsx";
import { leaveTo } from "../leaveAccount.ts";
import { Section } from "../components/Section.tsx";
import { forget, keptReceipt, putAway, useForgetProgress, type Done } from "./forgetProgress.ts";
import { bytes, dateTime } from "../../locale/format.ts";
import type { ErasureReceipt } from "../../backend/account/forgetEverything.ts";
import { t } from "../../locale/t.ts";

export function ForgetEverything() {
  const { api, account } = useAccountApi();
  const { userId } = account;
  const kind = useSync()?.kind;
  const answers = kind === "live";
  const [typed, setTyped] = useState("");
  const [kept, setKept] = useState(() => keptReceipt(userId));
  const { busy, problem, done } = useForgetProgress();
  const meant = typed.trim().toLowerCase() === t("memory.forgetPhrase");

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
    <Section title={t("memory.forget")} hint={t("memory.forgetHint")}>
      {!answers && (
        <Text size="sm">{t(kind === "signed-out" ? "memory.forgetSignedOut" : "memory.forgetOffline")}</Text>
      )}
      {problem && (
        <Alert color="red" role="alert">
          {problem}
        </Alert>
      )}
      <Group align="end">
        <TextInput
          label={t("memory.forgetType", { phrase: t("memory.forgetPhrase") })}
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
          onClick={() => void forget(api, userId)}
        >
          {t("memory.forget")}
        </Button>
      </Group>
      <Text size="sm" role="status">
        {busy && t("memory.forgetting")}
      </Text>
      {done && <Told {...done} button={t("memory.startOver")} onClose={startAfresh} />}
      {!done && kept && <Told {...kept} button={t("common.close")} onClose={close} />}
    </Section>
  );
}

function receiptText({ rows, files, bytes: size, at, leftovers }: ErasureReceipt): string {
  return t("memory.receipt", { rows, files, size: bytes(size), when: dateTime(at), leftovers });
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
      title={t("memory.receiptTitle")}
      withCloseButton={false}
      centered
    >
      <Text>
        {receiptText(receipt)} {t(`memory.device.${here}`)}
      </Text>
      <Button mt="md" onClick={onClose} data-autofocus>
        {button}
      </Button>
    </Modal>
  );
}

import { Alert, Button, Group, Modal, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useAccountApi, useSync } from "../../client/backendClient.tsx";
import { openInAllTabs } from "../leaveAccount.ts";
import { Section } from "../components/Section.tsx";
import {
  dismissReceipt,
  forget,
  storedReceipt,
  useForgetProgress,
  type ForgetResult,
} from "./forgetProgress.ts";
import { bytes, dateTime } from "../../locale/format.ts";
import type { ErasureReceipt } from "../../backend/api.ts";
import { t } from "../../locale/t.ts";

/**
 * Show the form for "forget everything". The user types a phrase to confirm, the server erases the data, and the page
 * shows the receipt.
 */
export function ForgetEverything() {
  const { api, account } = useAccountApi();
  const { userId } = account;
  const kind = useSync()?.kind;
  const isOnline = kind === "live";
  const [typed, setTyped] = useState("");
  const [previousResult, setPreviousResult] = useState(() => storedReceipt(userId));
  const { busy, problem, result } = useForgetProgress();
  const isConfirmed = typed.trim().toLowerCase() === t("memory.forgetPhrase");

  /** Load the start page in all tabs, because they may still show erased data. */
  function startOver() {
    openInAllTabs("/");
    dismissReceipt(userId);
  }

  function close() {
    dismissReceipt(userId);
    setPreviousResult(undefined);
  }

  return (
    <Section title={t("memory.forget")} hint={t("memory.forgetHint")}>
      {!isOnline && (
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
          disabled={!isConfirmed || !isOnline}
          loading={busy}
          onClick={() => void forget(api, userId)}
        >
          {t("memory.forget")}
        </Button>
      </Group>
      <Text size="sm" role="status">
        {busy && t("memory.forgetting")}
      </Text>
      {result && <ReceiptDialog {...result} button={t("memory.startOver")} onClose={startOver} />}
      {!result && previousResult && (
        <ReceiptDialog {...previousResult} button={t("common.close")} onClose={close} />
      )}
    </Section>
  );
}

function receiptText({ rows, files, bytes: size, at, leftovers }: ErasureReceipt): string {
  return t("memory.receipt", { rows, files, size: bytes(size), when: dateTime(at), leftovers });
}

interface ReceiptDialogProps extends ForgetResult {
  button: string;
  onClose(): void;
}

function ReceiptDialog({ receipt, here: deviceState, button, onClose }: ReceiptDialogProps) {
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
        {receiptText(receipt)} {t(`memory.device.${deviceState}`)}
      </Text>
      <Button mt="md" onClick={onClose} data-autofocus>
        {button}
      </Button>
    </Modal>
  );
}

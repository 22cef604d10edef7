/** Signing out asks what becomes of this device, and names what would be lost. */

import { Alert, Button, Group, Modal, Radio, Stack } from "@mantine/core";
import { useState } from "react";
import {
  useAccountApi,
  useWaitingFiles,
  useConflictLosers,
  useRejectedRows,
  useSync,
} from "../../client/backendClient.tsx";
import { leaveTo, wipe } from "../leaveAccount.ts";
import { said } from "../errorMessage.ts";
import { list } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

const AFTERWARDS = "/sign-in";

export function SignOut({ onClose }: { onClose: () => void }) {
  const { api } = useAccountApi();
  const [sync, refused, files, lost] = [useSync(), useRejectedRows(), useWaitingFiles(), useConflictLosers()];
  const isKnown = sync && sync.kind !== "starting" && refused && files && lost;
  const loss = unsyncedData(
    (sync?.waiting ?? 0) + (refused?.length ?? 0),
    files?.length ?? 0,
    lost?.length ?? 0,
  );
  const [then, setThen] = useState("keep");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [isOut, setOut] = useState(false);
  const wiping = then === "wipe";

  async function signOut() {
    setBusy(true);
    setProblem(undefined);
    try {
      await api.signOut(); // while the server does not answer, nothing changes, here or in another tab
      setOut(true);
      if (wiping) {
        await wipe(api, AFTERWARDS);
      } else {
        await api.close();
      }
      leaveTo(AFTERWARDS);
    } catch (error) {
      setProblem(said(error));
      setBusy(false);
    }
  }

  /** Whoever is signed out has nothing to go back to: what was open here is closed. */
  const leave = isOut ? () => leaveTo(AFTERWARDS) : onClose;
  const cancel = busy ? () => {} : leave; // who leaves while it wipes ends the wiping
  return (
    <Modal
      opened
      onClose={cancel}
      attributes={{ header: { role: "none" } }} // no second banner on the page
      title={t("settings.signOutTitle")}
      closeButtonProps={{ "aria-label": t("common.cancel"), disabled: busy }}
    >
      <Stack>
        <Radio.Group value={then} onChange={setThen} aria-label={t("settings.signOutTitle")}>
          <Stack gap="sm">
            <Radio
              value="keep"
              label={t("settings.signOutKeep")}
              description={t("settings.signOutKeepHint")}
            />
            <Radio
              value="wipe"
              label={t("settings.signOutWipe")}
              description={t("settings.signOutWipeHint")}
            />
          </Stack>
        </Radio.Group>
        {wiping && (loss || !isKnown) && (
          <Alert color="orange">{[loss, isKnown ? "" : t("settings.unsynced.unknown")].join(" ")}</Alert>
        )}
        {problem && (
          <Alert color="red" role="alert">
            {problem}
          </Alert>
        )}
        <Group justify="flex-end">
          <Button variant="default" disabled={busy} onClick={cancel}>
            {t("common.cancel")}
          </Button>
          <Button {...(wiping ? { color: "red" } : {})} loading={busy} onClick={() => void signOut()}>
            {t("settings.signOut")}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

/** Return what is on this device only, or "" if there is nothing. */
function unsyncedData(changes: number, files: number, replaced: number): string {
  const lost = [
    changes && t("settings.unsynced.changes", { n: changes }),
    files && t("settings.unsynced.files", { n: files }),
    replaced && t("settings.unsynced.replaced", { n: replaced }),
  ].filter((text) => text !== 0);
  return lost.length > 0 ? t("settings.unsynced.lost", { list: list(lost) }) : "";
}

import { Alert, Button, Group, Modal, Radio, Stack } from "@mantine/core";
import { useState } from "react";
import {
  useAccountApi,
  useWaitingFiles,
  useConflictLosers,
  useRejectedRows,
  useSync,
} from "../../client/backendClient.tsx";
import { openInAllTabs, wipe } from "../leaveAccount.ts";
import { errorMessage } from "../errorMessage.ts";
import { list } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

const SIGN_IN_PATH = "/sign-in";

/** Show the dialog for signing out. The user chooses whether to keep the data on this device. Warn about lost data. */
export function SignOut({ onClose }: { onClose: () => void }) {
  const { api } = useAccountApi();
  const [sync, refused, files, lost] = [useSync(), useRejectedRows(), useWaitingFiles(), useConflictLosers()];
  const isLossKnown = sync && sync.kind !== "starting" && refused && files && lost;
  const loss = unsyncedData(
    (sync?.waiting ?? 0) + (refused?.length ?? 0),
    files?.length ?? 0,
    lost?.length ?? 0,
  );
  const [choice, setChoice] = useState("keep");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [isSignedOut, setSignedOut] = useState(false);
  const isWiping = choice === "wipe";

  async function signOut() {
    setBusy(true);
    setProblem(undefined);
    try {
      await api.signOut(); // before anything else: it throws without the server, and then all tabs stay signed in
      setSignedOut(true);
      if (isWiping) {
        await wipe(api, SIGN_IN_PATH);
      } else {
        await api.close();
      }
      openInAllTabs(SIGN_IN_PATH);
    } catch (error) {
      setProblem(errorMessage(error));
      setBusy(false);
    }
  }

  // Once the user is signed out, the account may be closed, so closing the dialog opens the sign-in page.
  const close = isSignedOut ? () => openInAllTabs(SIGN_IN_PATH) : onClose;
  // Do not close the dialog while it signs out: leaving the page would interrupt the deletion.
  const cancel = busy ? () => {} : close;
  return (
    <Modal
      opened
      onClose={cancel}
      attributes={{ header: { role: "none" } }} // a `header` element would be a second banner of the page
      title={t("settings.signOutTitle")}
      closeButtonProps={{ "aria-label": t("common.cancel"), disabled: busy }}
    >
      <Stack>
        <Radio.Group value={choice} onChange={setChoice} aria-label={t("settings.signOutTitle")}>
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
        {isWiping && (loss || !isLossKnown) && (
          <Alert color="orange">{[loss, isLossKnown ? "" : t("settings.unsynced.unknown")].join(" ")}</Alert>
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
          <Button {...(isWiping ? { color: "red" } : {})} loading={busy} onClick={() => void signOut()}>
            {t("settings.signOut")}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

/** Return a text about the data that is only on this device, or "" if there is none. */
function unsyncedData(changes: number, files: number, replaced: number): string {
  const lost = [
    changes && t("settings.unsynced.changes", { n: changes }),
    files && t("settings.unsynced.files", { n: files }),
    replaced && t("settings.unsynced.replaced", { n: replaced }),
  ].filter((text) => text !== 0);
  return lost.length > 0 ? t("settings.unsynced.lost", { list: list(lost) }) : "";
}

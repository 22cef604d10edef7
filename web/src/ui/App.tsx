/** Who is here decides what is shown: the way in, or the desk. */

import { Button, Center, Loader, Stack, Text } from "@mantine/core";
import { proxy } from "comlink";
import { Suspense, useEffect, useRef, useState } from "react";
import {
  DeskProvider,
  door,
  unopened,
  useAccount,
  type AtDesk,
  type RemoteDesk,
} from "../client/backendClient.tsx";
import { isCoded } from "../core/errors.ts";
import type { Tell } from "../backend/account/accountLocks.ts";
import type { Loss } from "../backend/account/storageLoss.ts";
import { forgetDraft, forgetDrafts } from "./drafts.ts";
import { draftOf } from "./memory/useFactForm.ts";
import { Shell } from "./Shell.tsx";
import { useIsForgetting } from "./leaveAccount.ts";
import { UpdateRequired } from "./sync/UpdateRequired.tsx";
import { tellUnloaded } from "./loadError.ts";
import { part } from "./lazyComponent.ts";
import { t } from "../locale/t.ts";

const SignIn = part(() => import("./SignIn.tsx"));

declare global {
  interface Window {
    /** For the console, and for tests: everything that the page can ask. */
    vademecum: RemoteDesk;
  }
}

type Entered =
  | { kind: "opening" }
  | { kind: "waits" } // for a tab of another version
  | { kind: "outdated" } // a newer version has changed what is on the device
  | { kind: "nobody" }
  | { kind: "failedToOpen" }
  | { kind: "noSpace" } // to finish an interrupted rewrite
  | { kind: "notCarriedOver" } // to the form that this version gives rows
  | { kind: Loss } // of what was on the device, while the app was open
  | ({ kind: "open" } & AtDesk);

export function App() {
  const [entered, setEntered] = useState<Entered>({ kind: "opening" });
  useEffect(() => {
    const tell: Tell = (kind) =>
      setEntered((entered) => (entered.kind === "opening" || entered.kind === "waits" ? { kind } : entered));
    Promise.race([enter(tell), unopened]).then(setEntered, (error: unknown) => {
      if (isCoded(error, "NEWER_FORM")) return setEntered({ kind: "outdated" });
      console.error(error);
      if (isCoded(error, "FULL")) return setEntered({ kind: "noSpace" });
      setEntered({ kind: isCoded(error, "NOT_CARRIED_OVER") ? "notCarriedOver" : "failedToOpen" });
    });
  }, []);
  const desk = entered.kind === "open" ? entered.desk : undefined;
  useEffect(() => void desk?.watchTaken(proxy((kind) => setEntered({ kind }))), [desk]);
  if (entered.kind === "open") return <Opened {...entered} />;
  if (entered.kind === "nobody") {
    return (
      <Suspense>
        <SignIn />
      </Suspense>
    );
  }
  return (
    <Center h="100dvh" component="main">
      {entered.kind !== "opening" ? (
        <Stack align="center" p="md">
          <Text component="h1" fz="h4" fw={700} m={0}>
            {t("app.name")}
          </Text>
          <Text role="alert">{t(`app.start.${entered.kind}`)}</Text>
          {entered.kind === "outdated" && <UpdateRequired />}
          {entered.kind !== "outdated" && entered.kind !== "waits" && (
            <Button onClick={() => location.reload()}>{t("app.reload")}</Button>
          )}
        </Stack>
      ) : (
        <Stack align="center" role="status">
          <Loader type="dots" />
          <Text c="dimmed">{t("app.opening")}</Text>
        </Stack>
      )}
    </Center>
  );
}

/** What was open when everything is forgotten elsewhere is of what is gone: all begins anew. */
function Opened(entered: AtDesk) {
  const account = useAccount(entered);
  const { userId, forgottenAt } = account;
  const anew = useRef(forgottenAt);
  if (!useIsForgetting()) anew.current = forgottenAt;
  useEffect(() => {
    if (forgottenAt) forgetDrafts(userId, forgottenAt);
  }, [userId, forgottenAt]);
  return (
    <DeskProvider value={{ desk: entered.desk, account }}>
      <Shell key={anew.current} />
    </DeskProvider>
  );
}

async function enter(tell: Tell): Promise<Entered> {
  if (location.pathname === "/sign-in") return { kind: "nobody" }; // whoever is here wants to be somebody else
  const desk = await door.enter(proxy(tell));
  if (!desk) return { kind: "nobody" };
  window.vademecum = desk;
  const account = await desk.account();
  void desk.watchDeleted(
    proxy((id) => [id, draftOf(id)].forEach((draft) => forgetDraft(account.userId, draft))),
  );
  void desk.watchUnloaded(proxy(() => tellUnloaded()));
  return { kind: "open", desk, account };
}

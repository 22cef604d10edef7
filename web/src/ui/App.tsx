/** The signed-in account decides what is shown: the sign-in page, or the app. */

import { Button, Center, Loader, Stack, Text } from "@mantine/core";
import { proxy } from "comlink";
import { Suspense, useEffect, useRef, useState } from "react";
import {
  AccountProvider,
  signInApi,
  workerFailure,
  useAccount,
  type OpenAccount,
  type RemoteAccountApi,
} from "../client/backendClient.tsx";
import { isCoded } from "../core/errors.ts";
import type { ReportOpening } from "../backend/account/accountLocks.ts";
import type { StorageLoss } from "../backend/account/storageLoss.ts";
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
    vademecum: RemoteAccountApi;
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
  | { kind: StorageLoss } // of what was on the device, while the app was open
  | ({ kind: "open" } & OpenAccount);

export function App() {
  const [entered, setEntered] = useState<Entered>({ kind: "opening" });
  useEffect(() => {
    const tell: ReportOpening = (kind) =>
      setEntered((entered) => (entered.kind === "opening" || entered.kind === "waits" ? { kind } : entered));
    Promise.race([enter(tell), workerFailure]).then(setEntered, (error: unknown) => {
      if (isCoded(error, "NEWER_FORM")) return setEntered({ kind: "outdated" });
      console.error(error);
      if (isCoded(error, "FULL")) return setEntered({ kind: "noSpace" });
      setEntered({ kind: isCoded(error, "NOT_CARRIED_OVER") ? "notCarriedOver" : "failedToOpen" });
    });
  }, []);
  const api = entered.kind === "open" ? entered.api : undefined;
  useEffect(() => void api?.watchStorageLoss(proxy((kind) => setEntered({ kind }))), [api]);
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
function Opened(entered: OpenAccount) {
  const account = useAccount(entered);
  const { userId, forgottenAt } = account;
  const anew = useRef(forgottenAt);
  if (!useIsForgetting()) anew.current = forgottenAt;
  useEffect(() => {
    if (forgottenAt) forgetDrafts(userId, forgottenAt);
  }, [userId, forgottenAt]);
  return (
    <AccountProvider value={{ api: entered.api, account }}>
      <Shell key={anew.current} />
    </AccountProvider>
  );
}

async function enter(tell: ReportOpening): Promise<Entered> {
  if (location.pathname === "/sign-in") return { kind: "nobody" }; // whoever is here wants to be somebody else
  const api = await signInApi.openAccount(proxy(tell));
  if (!api) return { kind: "nobody" };
  window.vademecum = api;
  const account = await api.account();
  void api.watchDeleted(
    proxy((id) => [id, draftOf(id)].forEach((draft) => forgetDraft(account.userId, draft))),
  );
  void api.watchLoadErrors(proxy(() => tellUnloaded()));
  return { kind: "open", api, account };
}

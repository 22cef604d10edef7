/** The root component. It opens the account and shows the app, the sign-in page, or why the account did not open. */

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
import { Drafts } from "../client/drafts.ts";
import { hasCode } from "../core/errors.ts";
import type { ReportOpening, StorageLoss } from "../backend/api.ts";
import { draftOf } from "./memory/useFactForm.ts";
import { Shell } from "./Shell.tsx";
import { useIsForgetting } from "./leaveAccount.ts";
import { UpdateRequired } from "./sync/UpdateRequired.tsx";
import { reportLoadError } from "./loadError.ts";
import { lazyComponent } from "./lazyComponent.ts";
import { t } from "../locale/t.ts";

const SignIn = lazyComponent(() => import("./SignIn.tsx"));

declare global {
  interface Window {
    /** The API of the worker, for use in the browser's console and in tests. */
    vademecum: RemoteAccountApi;
  }
}

type AppState =
  | { kind: "opening" }
  | { kind: "waits" } // another tab runs a different version of the app, so this tab waits
  | { kind: "outdated" } // a newer version has changed the format of the stored data
  | { kind: "nobody" } // no account to open: show the sign-in page
  | { kind: "failedToOpen" }
  | { kind: "noSpace" } // the disk is too full to finish an interrupted rewrite of the database
  | { kind: "notCarriedOver" } // the stored data could not be migrated
  | { kind: StorageLoss } // the browser closed or deleted the database while the app was open
  | ({ kind: "open" } & OpenAccount);

export function App() {
  const [state, setState] = useState<AppState>({ kind: "opening" });
  useEffect(() => {
    const onProgress: ReportOpening = (kind) =>
      setState((state) => (state.kind === "opening" || state.kind === "waits" ? { kind } : state));
    Promise.race([openAccount(onProgress), workerFailure]).then(setState, (error: unknown) => {
      if (hasCode(error, "NEWER_FORM")) return setState({ kind: "outdated" });
      console.error(error);
      if (hasCode(error, "FULL")) return setState({ kind: "noSpace" });
      setState({ kind: hasCode(error, "NOT_CARRIED_OVER") ? "notCarriedOver" : "failedToOpen" });
    });
  }, []);
  const api = state.kind === "open" ? state.api : undefined;
  useEffect(() => void api?.watchStorageLoss(proxy((kind) => setState({ kind }))), [api]);
  if (state.kind === "open") return <OpenedAccount {...state} />;
  if (state.kind === "nobody") {
    return (
      <Suspense>
        <SignIn />
      </Suspense>
    );
  }
  return (
    <Center h="100dvh" component="main">
      {state.kind !== "opening" ? (
        <Stack align="center" p="md">
          <Text component="h1" fz="h4" fw={700} m={0}>
            {t("app.name")}
          </Text>
          <Text role="alert">{t(`app.start.${state.kind}`)}</Text>
          {state.kind === "outdated" && <UpdateRequired />}
          {state.kind !== "outdated" && state.kind !== "waits" && (
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

/**
 * Show the app for the opened account. After "forget everything" in another tab or on another device, remount the app,
 * because its open page still shows the erased data.
 */
function OpenedAccount(opened: OpenAccount) {
  const account = useAccount(opened);
  const { api, drafts } = opened;
  const { forgottenAt } = account;
  const shellKey = useRef(forgottenAt);
  if (!useIsForgetting()) shellKey.current = forgottenAt;
  useEffect(() => {
    if (forgottenAt) drafts.deleteBefore(forgottenAt);
  }, [drafts, forgottenAt]);
  return (
    <AccountProvider value={{ api, account, drafts }}>
      <Shell key={shellKey.current} />
    </AccountProvider>
  );
}

async function openAccount(onProgress: ReportOpening): Promise<AppState> {
  // On this path, do not open the last account, so that the user can sign in with another one.
  if (location.pathname === "/sign-in") return { kind: "nobody" };
  const api: RemoteAccountApi | null = await signInApi.openAccount(proxy(onProgress));
  if (!api) return { kind: "nobody" };
  window.vademecum = api;
  const account = await api.account();
  const drafts = await Drafts.open(account.userId);
  const deleteDraft = (id: string) => [id, draftOf(id)].forEach((draft) => drafts.delete(draft));
  void api.watch("deleted", proxy(deleteDraft));
  void api.watch(
    "loadErrors",
    proxy(() => reportLoadError()),
  );
  return { kind: "open", api, account, drafts };
}

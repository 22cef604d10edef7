/** Entry point of the page. The page gets its data from a worker (see backend/api/accountApi.ts). */

import "@mantine/core/styles.css";
import { MantineProvider } from "@mantine/core";
import { StrictMode, Suspense } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./ui/App.tsx";
import { ErrorBoundary } from "./ui/components/ErrorBoundary.tsx";
import { ErrorFallback } from "./ui/components/ErrorFallback.tsx";
import { LoadErrorPrompt } from "./ui/LoadErrorPrompt.tsx";
import "./ui/style.css";
import { theme } from "./ui/theme.ts";
import { listenForInstallPrompt } from "./ui/appInstall.ts";
import { registerServiceWorker } from "./ui/appUpdate.ts";
import { lazyComponent } from "./ui/lazyComponent.ts";
import { t } from "./locale/t.ts";

const Notices = lazyComponent(() => import("./ui/components/Notices.tsx"));

listenForInstallPrompt();
registerServiceWorker();
import("./ui/restoreFocus.ts").then(
  ({ installFocusRestoration }) => installFocusRestoration(),
  console.error,
);

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto">
      <Suspense>
        <Notices />
      </Suspense>
      <ErrorBoundary fallback={<ErrorFallback message={t("app.failed")} />}>
        <App />
      </ErrorBoundary>
      <LoadErrorPrompt />
    </MantineProvider>
  </StrictMode>,
);

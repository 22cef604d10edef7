/** The page. All it knows it asks the worker (see backend/api/accountApi.ts). */

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
import { hearOffers } from "./ui/appInstall.ts";
import { keepOnDevice } from "./ui/appUpdate.ts";
import { part } from "./ui/lazyComponent.ts";
import { t } from "./locale/t.ts";

const Notices = part(() => import("./ui/components/Notices.tsx"));

hearOffers();
keepOnDevice();
import("./ui/restoreFocus.ts").then(({ giveFocusBack }) => giveFocusBack(), console.error);

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto">
      <Suspense>
        <Notices />
      </Suspense>
      <ErrorBoundary instead={<ErrorFallback what={t("app.failed")} />}>
        <App />
      </ErrorBoundary>
      <LoadErrorPrompt />
    </MantineProvider>
  </StrictMode>,
);

/** The page. All it knows it asks the worker (see app.ts). */

import "@mantine/core/styles.css";
import { MantineProvider } from "@mantine/core";
import { StrictMode, Suspense } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./ui/App.tsx";
import { Bounded } from "./ui/Bounded.tsx";
import { Undrawn } from "./ui/Undrawn.tsx";
import { UnloadedPrompt } from "./ui/UnloadedPrompt.tsx";
import { words } from "./ui/words.ts";
import "./ui/style.css";
import { theme } from "./ui/theme.ts";
import { hearOffers } from "./ui/install.ts";
import { keepOnDevice } from "./ui/update.ts";
import { part } from "./ui/part.ts";

const Notices = part(() => import("./ui/Notices.tsx"));

hearOffers();
keepOnDevice();
import("./ui/focusBack.ts").then(({ giveFocusBack }) => giveFocusBack(), console.error);

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto">
      <Suspense>
        <Notices />
      </Suspense>
      <Bounded instead={<Undrawn what={words.places.undrawnApp} />}>
        <App />
      </Bounded>
      <UnloadedPrompt />
    </MantineProvider>
  </StrictMode>,
);

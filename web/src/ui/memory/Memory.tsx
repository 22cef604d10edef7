import { Container, Divider, Stack, Title } from "@mantine/core";
import { Entities } from "../entities/Entities.tsx";
import { SubNav } from "../components/SubNav.tsx";
import { BackgroundJobs } from "./BackgroundJobs.tsx";
import { Facts } from "./Facts.tsx";
import { ForgetEverything } from "./ForgetEverything.tsx";
import { Statements } from "./Statements.tsx";
import { Timeline } from "./Timeline.tsx";
import { t } from "../../locale/t.ts";

const NAVIGATION = [
  { to: "/memory", label: "memory.nav.remembered" },
  { to: "/memory/entities", label: "memory.nav.entities" },
  { to: "/memory/timeline", label: "memory.nav.timeline" },
  { to: "/memory/background", label: "memory.nav.background" },
] as const;
const PAGES = new Map([
  ["entities", Entities],
  ["timeline", Timeline],
  ["background", BackgroundJobs],
]);

/** Show the pages below `/memory`. */
export default function Memory({ params: { part = "" } }: { params: { part?: string } }) {
  const Page = PAGES.get(part) ?? FactsAndMemories;
  return (
    <Container size={Page === Entities ? "md" : "sm"} py="lg">
      <Stack gap={Page === FactsAndMemories ? 40 : "lg"}>
        <Stack gap="sm">
          <Title order={2}>{t("memory.title")}</Title>
          <SubNav
            label={t("memory.nav.label")}
            pages={NAVIGATION.map(({ to, label }) => ({ to, label: t(label) }))}
          />
        </Stack>
        <Page />
      </Stack>
    </Container>
  );
}

function FactsAndMemories() {
  return (
    <>
      <Facts />
      <Statements />
      <Divider />
      <ForgetEverything />
    </>
  );
}

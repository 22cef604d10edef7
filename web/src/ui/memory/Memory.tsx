/** What is remembered: facts and statements, whom and what they speak of, what was said when; and forgetting all of it. */

import { Container, Divider, Stack, Title } from "@mantine/core";
import { Entities } from "../entities/Entities.tsx";
import { SubNav } from "../components/SubNav.tsx";
import { memory as words } from "../words/memory.ts";
import { BackgroundJobs } from "./BackgroundJobs.tsx";
import { Facts } from "./Facts.tsx";
import { ForgetEverything } from "./ForgetEverything.tsx";
import { Statements } from "./Statements.tsx";
import { Timeline } from "./Timeline.tsx";

const PARTS = [
  { to: "/memory", label: words.remembered },
  { to: "/memory/entities", label: words.entities },
  { to: "/memory/timeline", label: words.timeline },
  { to: "/memory/background", label: words.background },
];
const PAGES = new Map([
  ["entities", Entities],
  ["timeline", Timeline],
  ["background", BackgroundJobs],
]);

export default function Memory({ params: { part = "" } }: { params: { part?: string } }) {
  const Page = PAGES.get(part) ?? Remembered;
  return (
    <Container size={Page === Entities ? "md" : "sm"} py="lg">
      <Stack gap={Page === Remembered ? 40 : "lg"}>
        <Stack gap="sm">
          <Title order={2}>{words.title}</Title>
          <SubNav label={words.parts} parts={PARTS} />
        </Stack>
        <Page />
      </Stack>
    </Container>
  );
}

function Remembered() {
  return (
    <>
      <Facts />
      <Statements />
      <Divider />
      <ForgetEverything />
    </>
  );
}

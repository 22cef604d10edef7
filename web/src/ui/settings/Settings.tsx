import { Container, Stack, Title } from "@mantine/core";
import { About } from "./About.tsx";
import { Account } from "./Account.tsx";
import { Appearance } from "./Appearance.tsx";
import { Install } from "./Install.tsx";
import { DeviceAccounts } from "./DeviceAccounts.tsx";
import { Model } from "./Model.tsx";
import { Password } from "./Password.tsx";
import { Storage } from "./Storage.tsx";
import { ExportImport } from "./ExportImport.tsx";
import { t } from "../../locale/t.ts";

export default function Settings() {
  return (
    <Container size="sm" py="lg">
      <Stack gap={40}>
        <Title order={2}>{t("settings.title")}</Title>
        <Account />
        <Password />
        <DeviceAccounts />
        <Appearance />
        <Model />
        <Storage />
        <ExportImport />
        <Install />
        <About />
      </Stack>
    </Container>
  );
}

import { Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { useAccountApi } from "../../client/backendClient.tsx";
import { Section } from "../components/Section.tsx";
import { ModelStatus } from "../sync/ModelStatus.tsx";
import { t } from "../../locale/t.ts";

export function Model() {
  const { api } = useAccountApi();
  const [isForeign, setForeign] = useState(false);
  useEffect(() => void api.isMostlyForeign().then(setForeign), [api]);
  return (
    <Section title={t("model.title")} hint={t("model.choice")}>
      <ModelStatus />
      {isForeign && <Text size="sm">{t("model.english")}</Text>}
    </Section>
  );
}

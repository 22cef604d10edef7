import { Alert, Button, Group, Text } from "@mantine/core";
import { useAccount, useAccountApi, useModel } from "../../client/backendClient.tsx";
import { bytes } from "../../locale/format.ts";
import { t } from "../../locale/t.ts";

/** Ask whether to download the embedding model, until the user decides. Accounts that do not search are not asked. */
export function ModelOffer() {
  const model = useModel();
  const { searchesDocuments } = useAccount(useAccountApi()).limits;
  if (model?.kind !== "offered" || model.isDeclined || !searchesDocuments) return null;
  return (
    <Alert variant="default" p="sm" maw="var(--reading-width)">
      <Text size="sm" mb="xs">
        {t("model.offered", { size: bytes(model.bytes) })}
      </Text>
      <ModelChoice canDecline />
    </Alert>
  );
}

/** Buttons that start the download of the embedding model, or decline it. */
export function ModelChoice({ canDecline }: { canDecline: boolean }) {
  const { api } = useAccountApi();
  return (
    <Group gap="xs">
      <Button size="compact-sm" variant="light" onClick={() => void api.downloadModel()}>
        {t("model.download")}
      </Button>
      {canDecline && (
        <Button size="compact-sm" variant="subtle" onClick={() => void api.declineModel()}>
          {t("model.notNow")}
        </Button>
      )}
    </Group>
  );
}

import { Button, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { applyUpdate, checkForUpdate, useUpdateReady } from "../appUpdate.ts";
import { t } from "../../locale/t.ts";

/** Show a button that updates the app, when the server needs a newer version. */
export function UpdateRequired() {
  const [missing, setMissing] = useState(false);
  const [isRequested, setRequested] = useState(false);
  const isReady = useUpdateReady();
  useEffect(() => {
    if (isRequested && isReady) void applyUpdate();
  }, [isRequested, isReady]);

  async function update() {
    if (!navigator.serviceWorker?.controller) return location.reload(); // no service worker serves the old version
    setRequested(true); // the download may take a while
    setMissing(!(await checkForUpdate()));
  }

  return (
    <>
      <Button onClick={() => void update()}>{t("app.update")}</Button>
      {missing && (
        <Text size="sm" role="alert">
          {t("app.updateMissing")}
        </Text>
      )}
    </>
  );
}

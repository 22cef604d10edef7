import { Button, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { applyUpdate, checkForUpdate, useUpdateReady } from "../appUpdate.ts";
import { t } from "../../locale/t.ts";

/** Show a button that updates the app. It is shown when the server or the stored data needs a newer version. */
export function UpdateRequired() {
  const [missing, setMissing] = useState(false);
  const [isRequested, setRequested] = useState(false);
  const isReady = useUpdateReady();
  useEffect(() => {
    if (isRequested && isReady) void applyUpdate();
  }, [isRequested, isReady]);

  async function update() {
    // Without a service worker, a reload loads the new version.
    if (!navigator.serviceWorker?.controller) return location.reload();
    setRequested(true); // the effect above applies the new version once it is downloaded
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

/** The server wants a newer app: the way to it. */

import { Button, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { changeVersion, lookForVersion, useNewVersion } from "../appUpdate.ts";
import { t } from "../../locale/t.ts";

export function UpdateRequired() {
  const [missing, setMissing] = useState(false);
  const [wanted, setWanted] = useState(false);
  const newer = useNewVersion();
  useEffect(() => {
    if (wanted && newer) void changeVersion();
  }, [wanted, newer]);

  async function load() {
    if (!navigator.serviceWorker?.controller) return location.reload(); // nothing but the server has it
    setWanted(true); // it may have to arrive first
    setMissing(!(await lookForVersion()));
  }

  return (
    <>
      <Button onClick={() => void load()}>{t("app.update")}</Button>
      {missing && (
        <Text size="sm" role="alert">
          {t("app.updateMissing")}
        </Text>
      )}
    </>
  );
}

/** Where notifications appear. What is shown before this has loaded waits for it. */

import { Notifications } from "@mantine/notifications";
import "@mantine/notifications/styles.css";

export default function Notices() {
  return <Notifications position="bottom-center" />;
}

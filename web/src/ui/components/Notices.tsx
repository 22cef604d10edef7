import { Notifications } from "@mantine/notifications";
import "@mantine/notifications/styles.css";

/** The notices at the bottom of the page. Those shown before this component has loaded wait for it. */
export default function Notices() {
  return <Notifications position="bottom-center" />;
}

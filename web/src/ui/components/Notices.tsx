import { Notifications } from "@mantine/notifications";
import "@mantine/notifications/styles.css";

/** The notices at the bottom of the page. Earlier notices wait until this component has loaded. */
export default function Notices() {
  return <Notifications position="bottom-center" />;
}

import { Notifications } from "@mantine/notifications";
import "@mantine/notifications/styles.css";

/** Show the notices at the bottom of the page. Earlier notices wait until this component has loaded. */
export default function Notices() {
  return <Notifications position="bottom-center" />;
}

import { Notifications } from "@mantine/notifications";
import "@mantine/notifications/styles.css";

/** Show the notices at the bottom of the page. The library keeps notices until this component has been loaded. */
export default function Notices() {
  return <Notifications position="bottom-center" />;
}

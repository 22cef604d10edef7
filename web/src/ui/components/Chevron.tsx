/** Points down while what it stands on is open. */

import { IconChevronRight } from "@tabler/icons-react";
import classes from "./Chevron.module.css";

export function Chevron() {
  return <IconChevronRight size={16} className={classes["chevron"]!} aria-hidden />;
}

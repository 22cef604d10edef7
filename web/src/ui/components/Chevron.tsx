import { IconChevronRight } from "@tabler/icons-react";
import classes from "./Chevron.module.css";

/** Show an arrow that points down while its button is expanded. */
export function Chevron() {
  return <IconChevronRight size={16} className={classes["chevron"]!} aria-hidden />;
}

import { IconChevronRight } from "@tabler/icons-react";
import classes from "./Chevron.module.css";

/** An arrow that points down while its button is expanded. */
export function Chevron() {
  return <IconChevronRight size={16} className={classes["chevron"]!} aria-hidden />;
}

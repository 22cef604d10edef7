/** What a notice says of what was done, or of what failed. */

import { notifications } from "@mantine/notifications";
import { said } from "./errorMessage.ts";

export const tell = (message: string) => notifications.show({ message, withCloseButton: false });

export const tellError = (error: unknown) =>
  notifications.show({ color: "orange", message: said(error), withCloseButton: false });

/** Ends the writing of what is stored only once it is: else the words stay where they are, and it is said why. */
export const stored = (storing: Promise<unknown>, done: () => void) => storing.then(done, tellError);

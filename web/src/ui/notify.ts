/** Show short notices about completed or failed actions. */

import { notifications } from "@mantine/notifications";
import { errorMessage } from "./errorMessage.ts";

export const notify = (message: string) => notifications.show({ message, withCloseButton: false });

export const notifyError = (error: unknown) =>
  notifications.show({ color: "orange", message: errorMessage(error), withCloseButton: false });

/** Call `onSaved` once `saving` succeeds. If `saving` fails, show the error. `onSaved` may close a form. */
export const afterSaving = (saving: Promise<unknown>, onSaved: () => void) =>
  saving.then(onSaved, notifyError);

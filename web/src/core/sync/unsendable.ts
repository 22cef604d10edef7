/** The message of the `syncError` of a row that the server cannot read. Only this device has the message. */
export const UNSENDABLE =
  "The server cannot read this text, because it is too large or contains broken characters. It is kept on this device " +
  "only. Change it, then try again.";

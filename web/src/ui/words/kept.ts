/** What is stored where, in the same words at a first question and among the documents. */

export const kept = "The text of a file is kept, on your devices and on your server. The file itself is not.";

/** The "not found" answer. The prompt tells the assistant to use this sentence. */
export const NOT_FOUND = "I could not find information about that in your documents.";
/** The server's answer if no documents were searched. */
export const NO_DOCUMENTS = "This conversation has no documents yet. Add one, and ask again.";

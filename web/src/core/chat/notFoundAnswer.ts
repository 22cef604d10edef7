/**
 * The "not found" answer. The prompt tells the assistant to use this sentence, and quotation answers start
 * with it.
 */
export const NOT_FOUND = "I could not find information about that in your documents.";

/** The one sentence for it, whoever answers: an assistant is told to say it, and quotations begin with it. */
export const NOT_FOUND = "I could not find information about that in your documents.";

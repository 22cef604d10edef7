/** Estimate the number of tokens of a text without the model: four characters per token. */
export const estimateTokens = (text: string) => Math.ceil(text.length / 4);

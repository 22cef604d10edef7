/**
 * Return the key by which this device recognizes an imported turn. It contains the account, because two
 * accounts can import the same turn, and the text lengths, because an edited turn is a different one. It
 * contains no hash of the text, because the hash would remain after the text is deleted.
 */
export function importedTurnId(userId: string, turn: Record<string, any>): string {
  return `${userId} ${turn["id"]} ${turn["userMessage"]?.length} ${turn["aiResponse"]?.length}`;
}

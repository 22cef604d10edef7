/**
 * By what this device knows a turn that came out of an export: of this account, because two may have the same one, and in
 * these words, because in others it is another. No digest tells them: it would be left of words that are deleted.
 */
export function importedTurnId(userId: string, turn: Record<string, any>): string {
  return `${userId} ${turn["id"]} ${turn["userMessage"]?.length} ${turn["aiResponse"]?.length}`;
}

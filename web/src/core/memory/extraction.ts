/**
 * Maximum number of current extracted memories of a session, as on the server (model/memory/extraction.py).
 */
export const SESSION_MEMORIES_MAX = 50;

/** Maximum number of current extracted memories per session, as on the server (model/memory/extraction.py). */
export const SESSION_MEMORIES_MAX = 50;

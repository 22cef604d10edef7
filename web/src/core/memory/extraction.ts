/** Current extracted memories of a session; the server (model/memory/extraction.py) stops there. */
export const SESSION_MEMORIES_MAX = 50;

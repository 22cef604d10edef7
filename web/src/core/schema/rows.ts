// Written by `make schemas` from the structs in server/vademecum/model/schema/collections.py. Not to be edited.

export interface DocumentDoc {
  id: string;
  createdAt: string;
  updatedAt: string;
  syncError?: {
    code: string;
    message: string;
    at: string;
    base?: string;
  };
  userId: string;
  originSessionId: string;
  activeSessions: string[];
  accessCount: number;
  lastAccessedAt: string;
  filename: string;
  mimeType: string;
  size: number;
  contentHash: string;
  chunkCount: number;
  pageCount?: number;
  status: "pending" | "ready" | "failed";
  statusDetail?: string;
  textHash: string;
  original: "none" | "stored";
  fileRevision: number;
  losses?: {
    code: string;
    count: number;
    of?: number;
  }[];
  ocr?: {
    pages: number[];
    confidence: number;
  };
  tags?: string[];
  _deleted?: boolean;
}

export interface VectorEmbeddingDoc {
  id: string;
  createdAt: string;
  updatedAt: string;
  syncError?: {
    code: string;
    message: string;
    at: string;
    base?: string;
  };
  documentId: string;
  block: number;
  textHash: string;
  model: string;
  dims: number;
  chunks: {
    index: number;
    start: number;
    text: string;
    tokens: number;
    page?: number;
    section?: string;
    sheet?: string;
    cells?: string;
    lines?: {
      start: number;
      box: number[];
      confidence: number;
    }[];
  }[];
  embedding: string | null;
  _deleted?: boolean;
}

export interface ProjectDoc {
  id: string;
  createdAt: string;
  updatedAt: string;
  syncError?: {
    code: string;
    message: string;
    at: string;
    base?: string;
  };
  name: string;
  description?: string;
  instructions?: string;
  documentIds: string[];
  _deleted?: boolean;
}

export interface SessionDoc {
  id: string;
  createdAt: string;
  updatedAt: string;
  syncError?: {
    code: string;
    message: string;
    at: string;
    base?: string;
  };
  title: string;
  mode: "analysis" | "authoritative";
  externalId?: string;
  projectId?: string;
  documentScope: "chosen" | "project" | "all" | "none";
  memory: "on" | "off";
  excluded?: string[];
  model?: string;
  _deleted?: boolean;
}

export interface EpisodeDoc {
  id: string;
  createdAt: string;
  updatedAt: string;
  syncError?: {
    code: string;
    message: string;
    at: string;
    base?: string;
  };
  sessionId: string;
  userMessage: string;
  aiResponse: string;
  citations: {
    n: number;
    documentId: string;
    filename: string;
    page?: number;
    block?: number;
    chunkIndex?: number;
    textHash?: string;
    sheet?: string;
    cells?: string;
    ocr?: number;
  }[];
  status: "queued" | "streaming" | "done" | "stopped" | "failed";
  model?: string;
  feedback?: "up" | "down";
  feedbackText?: string;
  notices?: {
    code: string;
    names?: string[];
  }[];
  memory?: "off";
  _deleted?: boolean;
}

export interface FactDoc {
  id: string;
  createdAt: string;
  updatedAt: string;
  syncError?: {
    code: string;
    message: string;
    at: string;
    base?: string;
  };
  key: string;
  value: string;
  sourceRemoved: boolean;
  confidence: number;
  confirmed: boolean;
  sourceDocumentId?: string;
  _deleted?: boolean;
}

export interface MemoryDoc {
  id: string;
  createdAt: string;
  updatedAt: string;
  syncError?: {
    code: string;
    message: string;
    at: string;
    base?: string;
  };
  text: string;
  sessionIds: string[];
  source: "user" | "extracted";
  pinned: boolean;
  projectId?: string;
  supersedes?: string;
  supersededBy?: string;
  _deleted?: boolean;
}

export interface EntityDoc {
  id: string;
  createdAt: string;
  updatedAt: string;
  syncError?: {
    code: string;
    message: string;
    at: string;
    base?: string;
  };
  name: string;
  type: "person" | "place" | "project" | "technology" | "concept" | "organization";
  projectId: string;
  notes?: string;
  _deleted?: boolean;
}

export interface RelationshipDoc {
  id: string;
  createdAt: string;
  updatedAt: string;
  syncError?: {
    code: string;
    message: string;
    at: string;
    base?: string;
  };
  fromId: string;
  toId: string;
  label: string;
  _deleted?: boolean;
}

export interface SummaryDoc {
  id: string;
  createdAt: string;
  updatedAt: string;
  syncError?: {
    code: string;
    message: string;
    at: string;
    base?: string;
  };
  content: string;
  sessionId?: string;
  projectId?: string;
  _deleted?: boolean;
}

export interface Collections {
  documents: DocumentDoc;
  vectorEmbeddings: VectorEmbeddingDoc;
  projects: ProjectDoc;
  sessions: SessionDoc;
  episodes: EpisodeDoc;
  facts: FactDoc;
  memories: MemoryDoc;
  entities: EntityDoc;
  relationships: RelationshipDoc;
  summaries: SummaryDoc;
}

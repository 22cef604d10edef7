import type { Remote } from "comlink";
import { useCallback } from "react";
import type { MemoryDesk } from "../memoryDesk.ts";
import { useDesk } from "./desk.tsx";

/** The part of the worker's desk about projects and memory: `memory((desk) => desk.pinMemory(id, true))`. */
export function useMemoryDesk() {
  const { desk } = useDesk();
  return useCallback(
    async <T>(verb: (memory: Remote<MemoryDesk>) => Promise<T>): Promise<T> => verb(await desk.memory()),
    [desk],
  );
}

import type { Remote } from "comlink";
import { useCallback } from "react";
import type { MemoryDesk } from "../backend/api/memoryApi.ts";
import { useDesk, type RemoteDesk } from "./backendClient.tsx";

/**
 * Held as long as the desk: Comlink closes the connection of a proxy that was collected as garbage, and what was asked
 * through it and not answered yet never is.
 */
const held = new WeakMap<RemoteDesk, Promise<Remote<MemoryDesk>>>();

/** The part of the worker's desk about projects and memory: `memory((desk) => desk.pinMemory(id, true))`. */
export function useMemoryApi() {
  const { desk } = useDesk();
  return useCallback(
    async <T>(verb: (memory: Remote<MemoryDesk>) => Promise<T>): Promise<T> => verb(await memoryOf(desk)),
    [desk],
  );
}

function memoryOf(desk: RemoteDesk): Promise<Remote<MemoryDesk>> {
  const known = held.get(desk);
  if (known) return known;
  const memory = desk.memory();
  held.set(desk, memory);
  memory.catch(() => held.delete(desk)); // to be tried again
  return memory;
}

import { proxy, type ProxyMarked } from "comlink";

type Method = (...args: any[]) => unknown;
type Methods<T> = { [Name in keyof T as T[Name] extends Method ? Name : never]: T[Name] };

/** Type with the methods of `T`, each returning a promise. */
export type AsyncMethods<T> = {
  [Name in keyof Methods<T>]: T[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : never;
};

/** Return an object with the methods of the object that `load` resolves to. Each of its methods first calls `load`. */
export function lazyApi<T extends object>(load: () => Promise<T>): AsyncMethods<T> & ProxyMarked {
  const get =
    (_: object, name: string | symbol) =>
    async (...args: unknown[]) => {
      const api = (await load()) as Record<string | symbol, Method>;
      return api[name]!(...args);
    };
  return proxy(new Proxy({}, { get }) as AsyncMethods<T>);
}

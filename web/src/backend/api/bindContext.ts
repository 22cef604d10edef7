import type { AccountContext } from "../account/accountContext.ts";

type Operation = (context: AccountContext, ...args: any[]) => unknown;

/** Type of the functions of `T` without their first parameter. */
export type Bound<T extends Record<string, Operation>> = {
  [Name in keyof T]: T[Name] extends (context: AccountContext, ...args: infer Args) => infer Result
    ? (...args: Args) => Result
    : never;
};

/** Return functions that call the given functions on an account. */
export function bindContext<T extends Record<string, Operation>>(
  context: AccountContext,
  operations: T,
): Bound<T> {
  const bound = Object.entries(operations).map(([name, operation]) => [name, operation.bind(null, context)]);
  return Object.fromEntries(bound) as Bound<T>;
}

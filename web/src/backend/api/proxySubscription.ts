/** What the page follows in the worker, until it stops. */

import { proxy, type ProxyMarked } from "comlink";
import type { Observable } from "rxjs";

export type Unsubscribe = () => void;

export function proxySubscription<T>(
  values: Observable<T>,
  listener: (value: T) => void,
): Unsubscribe & ProxyMarked {
  const subscription = values.subscribe((value) => listener(value));
  return proxy(() => subscription.unsubscribe());
}

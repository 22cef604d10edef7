/** Let the page subscribe to values in the worker. The page unsubscribes by calling the returned function. */

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

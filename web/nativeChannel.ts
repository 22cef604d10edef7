/** Replaces the module of RxDB's library "broadcast-channel" that chooses between BroadcastChannel and substitutes. */

// @ts-expect-error: the package has no types for its modules
import { NativeMethod } from "../node_modules/broadcast-channel/dist/esbrowser/methods/native.js";

export const chooseMethod = () => NativeMethod;

/** Where the app runs. */

import { expose } from "comlink";
import { Door } from "./app.ts";

expose(new Door());

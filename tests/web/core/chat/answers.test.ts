/** Which answers enter prompts: the same cases as the server's. */

import cases from "../../../conformance/answers.json";
import { entersPrompts } from "../../../../web/src/core/chat/answers.ts";

test.each(cases)("entersPrompts: $model, $aiResponse", ({ model, aiResponse, entersPrompts: expected }) => {
  expect(entersPrompts({ aiResponse, ...(model === null ? {} : { model }) })).toBe(expected);
});

/**
 * The set-up of a test file: one server for all its tests and, as asked for, a new user and two devices for each test.
 * A file calls one of the functions once, at its head. `alone`: it stops the server or makes it fail, so it has its own.
 */

import { Device } from "./device.ts";
import { Harness, type User } from "./harness.ts";

export let harness: Harness;
export let user: User;
export let phone: Device;
export let laptop: Device;

export function withServer(alone = false): void {
  beforeAll(async () => void (harness = await (alone ? Harness.start() : Harness.shared())));
  afterEach(({ task }) => {
    if (task.result?.state === "fail") harness.confess();
  });
  afterAll(() => harness?.stop());
}

export function withUser(alone = false): void {
  withServer(alone);
  beforeEach(async () => void (user = await harness.user()));
}

/** Two devices of the user, unmodified clients with these collections; they begin offline. */
export function withTwoDevices(names: string[], alone = false): void {
  withUser(alone);
  beforeEach(async () => {
    phone = await Device.make(harness, user, names);
    laptop = await Device.make(harness, user, names);
  });
  afterEach(async () => void (await Promise.all([phone.close(), laptop.close()])));
}

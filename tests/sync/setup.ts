/**
 * Set up a test file: one server for all its tests and, on request, a new user and two devices for each test. A file
 * calls one of the functions once, at the top. `ownServer`: start a separate server, which the
 * tests may stop or make fail.
 */

import { Device } from "./device.ts";
import { Harness, type User } from "./harness.ts";

export let harness: Harness;
export let user: User;
export let phone: Device;
export let laptop: Device;

export function withServer(ownServer = false): void {
  beforeAll(async () => void (harness = await (ownServer ? Harness.start() : Harness.shared())));
  afterEach(({ task }) => {
    if (task.result?.state === "fail") harness.printLog();
  });
  afterAll(() => harness?.stop());
}

export function withUser(ownServer = false): void {
  withServer(ownServer);
  beforeEach(async () => void (user = await harness.user()));
}

/** Create two devices of the user, plain clients with these collections, offline at first. */
export function withTwoDevices(names: string[], ownServer = false): void {
  withUser(ownServer);
  beforeEach(async () => {
    phone = await Device.make(harness, user, names);
    laptop = await Device.make(harness, user, names);
  });
  afterEach(async () => void (await Promise.all([phone.close(), laptop.close()])));
}

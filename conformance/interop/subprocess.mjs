// The agent of the clients in this folder: a subprocess.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";

/** Starts an agent, has drive talk to it, and returns how the agent ended and whether drive has failed. */
export async function withAgent([command, ...args], log, drive) {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  child.once("error", (error) => log("cannot start the agent:", error.message));
  const ended = once(child, "close");
  let failed = false;
  try {
    await drive(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  } catch (error) {
    failed = true;
    log(error);
  }

  // An agent ends when its input does.
  child.stdin.end();
  const grace = setTimeout(() => child.kill("SIGKILL"), 10_000);
  const [code, signal] = await ended;
  clearTimeout(grace);
  return { exit: signal ?? code, failed };
}

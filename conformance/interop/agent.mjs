// The agent of turns.mjs on standard input and output.

import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import { createAgent } from "./turns.mjs";

const stream = acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
await createAgent().connect(stream).closed;

// What flood-server.mjs and flood-client.mjs agree on: a prompt, or the id of a session to load, says how many updates to
// send and how long each is.

/** The text of update n, which is size bytes long. */
export const chunk = (n, size) => String(n).padEnd(size, ".");

/** Makes the text, or the id, that asks for count updates of size bytes. */
export const order = (count, size) => `flood-${count}-${size}`;

/** Reads what order has made. */
export function parse(text) {
  const [, count, size] = /^flood-(\d+)-(\d+)$/.exec(text).map(Number);
  return { count, size };
}

/** The most memory that this process has held, in bytes. */
export const peak = () => process.resourceUsage().maxRSS * 1024;

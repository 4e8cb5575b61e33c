// Package recording writes and reads files of what passed on a connection between a client and an agent.
//
// # The form
//
// A recording is lines of JSON, in UTF-8, one object a line. A [Writer] writes it, a [Reader] reads it:
//
//	{"recording":1,"tool":"acp","version":"0.1.0","command":["my-agent","--acp"],"date":"2026-01-02T15:04:05.123Z","masked":true}
//	{"t":0.412,"from":"client","raw":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",…}"}
//	{"t":35.020,"from":"agent","raw":"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{…}}"}
//	{"t":35.870,"from":"agent","stderr":"loading models"}
//	{"t":90.001,"exit":{"code":0,"signal":null},"closed":"client"}
//
// The first line is the header. The number of its member recording is the version of this form. All other members may be
// absent: the tool that recorded and its version; the command of the agent; protocolVersions, the versions of ACP
// that were spoken, where the tool knows them; the date at which the recording begins; masked, which says that
// secrets were replaced, see [Masker].
//
// All other lines may have a member t, the time since the date of the header in milliseconds, with decimals. They are
// in the order in which the lines passed, and are one of these:
//
//   - A line that a side wrote on the connection: from is "client" or "agent", raw is the line without its
//     newline, exact to the byte, whatever it is. A line that is not UTF-8 is in the member bytes in place of
//     raw, in base64. The member partial is true where the writer's output ended without a newline.
//   - A line that the agent wrote to standard error: stderr, or stderrBytes where it is not UTF-8.
//   - A gap: lost is the number of bytes that from wrote and that were not recorded, since the recorder could not keep up.
//   - The end, the last line: exit says how the agent ended, with its exit status as code or the name of the signal
//     ("SIGTERM") as signal; the other one is null. Both are null where that is not known. closed, which may be
//     absent, is the side that ended the connection.
//
// Members that are not listed here are ignored.
//
// # Other forms
//
// A Reader tells the form by each line's content, so that nobody has to name it. It also reads:
//
//   - Lines {"t":…,"from":"client","raw":"…"} with other headers or none.
//   - JSON-RPC messages, one a line or in a JSON array, with nothing that says who sent them. Methods tell it, and
//     of answers the id of the request that is open. Some messages cannot be told: extensions, answers to what is
//     not in the file. These are entries with an error.
//   - Logs of editors, SDKs and libraries: text, in which lines have a message behind a timestamp, an arrow
//     (-> <- --> <-- >>> <<< → ←), words such as "sent" and "received", "stdin" and "stdout" or the name of the
//     side. Which way an arrow points depends on who has written the log: the first message whose method tells it
//     decides. Lines without a message are skipped and counted.
//   - JSON lines in which an object wraps the message and a direction, such as {"ts":…,"dir":">>>","msg":{…}}.
//   - What the editor Zed copies from its ACP logs: an array of objects with the member _direction.
//   - The trace of the Rust conductor, of which one hop is read; see [ReaderOptions].
//
// From forms that do not keep the line, the message is rebuilt: it means the same, but is not exact to the byte.
package recording

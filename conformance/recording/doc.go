// Package recording reads and writes recordings of connections between a client and an agent.
//
// # Format
//
// A recording is a UTF-8 file with one JSON object per line. A [Writer] writes it, and a [Reader] reads it:
//
//	{"recording":1,"tool":"acp","version":"0.1.0","command":["my-agent"],"date":"2026-01-02T15:04:05Z","masked":true}
//	{"t":0.412,"from":"client","raw":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",…}"}
//	{"t":35.020,"from":"agent","raw":"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{…}}"}
//	{"t":35.870,"from":"agent","stderr":"loading models"}
//	{"t":90.001,"exit":{"code":0,"signal":null},"closed":"client"}
//
// The first line is the header. Its member recording is the version of this format. All other members may be absent:
// tool and version, the program that recorded; command, the agent's command line; protocolVersions, the negotiated
// versions of ACP, if the tool knows them; date, the beginning of the recording; and masked, which is true if secrets
// were replaced, see [Masker].
//
// All other lines may have a member t, the time since the date of the header in milliseconds, with decimals. They are
// in the order in which the recorded lines passed. Each is one of these:
//
//   - A line that a side wrote on the connection: from is "client" or "agent", and raw is the exact line without its
//     newline, even if it is not a message. A line that is not UTF-8 is in the member bytes instead of raw, in base64.
//     The member partial is true if the writer's output ended without a newline.
//   - A line that the agent wrote to standard error: stderr, or stderrBytes if it is not UTF-8.
//   - A gap: lost is the number of bytes that from wrote but that were not recorded because the recorder could not keep
//     up.
//   - The end, which is the last line: exit says how the agent ended, with its exit status as code or the name of the
//     signal ("SIGTERM") as signal; the other one is null. Both are null if that is unknown. closed, which may be
//     absent, is the side that ended the connection.
//
// Members that are not listed here are ignored.
//
// # Other formats
//
// A Reader detects the format from the content of each line. It also reads:
//
//   - Lines {"t":…,"from":"client","raw":"…"} with other headers or none.
//   - JSON-RPC messages, one per line, without their senders. The Reader determines the sender from the method, or for
//     answers from the id of the open request. It cannot do so for some messages, such as extensions and answers to
//     requests that are not in the file. These are entries with an error. Other lines before the first message are
//     skipped and counted.
//   - The trace of the Rust conductor, of which one hop is read; see [ReaderOptions].
//
// If a format does not keep the original line, the message is rebuilt: it has the same meaning, but not the same bytes.
package recording

// The contract between the server (Go, package inspect) and the page. protocol.go has the same types; keep the two alike.
//
// HTTP. Only the first two lines are for everybody; the rest wants "Authorization: Bearer " and Hello.secret:
//
//   GET /                        the page, with /app.js and /app.css
//   GET /ws                      the WebSocket, with one JSON document in each message
//   GET /schema/1, /schema/2     the JSON schema of a protocol version, with experimental features
//   GET /raw?source=S&n=N        the exact line of a row, as bytes (application/octet-stream)
//   GET /find?q=TEXT             rows whose line contains the text, without regard to case: Found
//   GET /export?source=S&as=F    a download: see ExportFormat; 409 with a text if that is not possible
//
// WebSocket: the page first sends Attach, with a key; then the server sends one Hello, and Log and State messages as they come. A page
// that has lost its connection attaches again with the cursor that it has reached: if hello.run has changed, it starts from
// nothing. Without a valid key, the server closes the connection with the code 1008. Every Command gets one Reply.
//
// The Log is append-only: the state of the page is a function of its events, in their order. State is not part of the log:
// the newest one replaces the one before it.
//
// A report is one file. The element <script type="application/json" id="report"> contains a Report. There is no server then:
// no commands, and what /raw, /find and /export would do is not offered; rows contain more of their text.

// From the server

export type ServerMessage = Hello | Log | State | Reply

export interface Hello {
  is: "hello"
  run: string // identifies this inspection; cursors of another one mean nothing
  version: string // of acp
  live: boolean // there is an agent to talk to, and commands work
  agent: string[] // the command or address of that agent, for display; empty without one
  folder: string // the folder from the command line that may be served to the agent; "" if there is none
  cwd: string // where the agent starts, for the forms that need a directory; "" if that is not known
  methods: Method[]
  rules: Rule[] // of the judge, in the order of the pages
  limits: Limits
  secret?: string // for Attach.keys and for requests; not in a report
}

export interface Limits {
  raw: number // the number of bytes of a line that a row contains at most
  message: number // the number of bytes of a message that can be sent
}

export interface Method {
  method: string
  version: number // of the protocol: 1 or 2
  side: "client" | "agent" // who sends it
  params: string // the name in $defs of the schema
  result: string // "" for a notification
  stable: boolean // false for an experimental method
}

export interface Rule {
  id: string // "PRM-9"
  level: Level
  side: "client" | "agent" | "both"
  text: string
  breaks: string // what breaks it
  right: string // an example, a message on each line, after "-> " from the client or "<- " from the agent
  wrong: string
  url: string // of the page
}

export type Level = "MUST" | "MUST NOT" | "SHOULD" | "SHOULD NOT" | "advice"

export interface Log {
  is: "log"
  cursor: number // for Attach
  caughtUp: boolean // there is nothing more at present
  events: Event[]
}

export type Event = Source | Row | Late | Item

// Source begins a source: one connection. Its rows have n from 1.
export interface Source {
  is: "source"
  source: string // the id: "1", "2", …
  kind: "agent" | "tap" | "file"
  name: string // the file, the command
  lanes: string[] // the participants from left to right: ["client", "agent"], or with proxies between them
  date: string // the beginning, RFC 3339, or ""
  masked: boolean // secrets were replaced by masks
}

export type Kind =
  | "request" | "response" | "error" | "notification" // messages
  | "invalid" // a line that is not a message
  | "stderr"
  | "gap" // text says what is missing: bytes that were not recorded, lines that could not be read
  | "end" // text says how the connection ended

export interface Row {
  is: "row"
  source: string
  n: number // from 1, in the order of the source
  t: number // milliseconds since the beginning; -1 if unknown
  kind: Kind
  from: string // lanes
  to: string // "" for stderr, gap and end
  method?: string // for a response, that of its request
  id?: string // as JSON
  session?: string
  update?: string // for session/update: the value of sessionUpdate
  message?: string // the messageId or toolCallId of an update; rows that belong to one item have the same
  re?: number // for a response: n of its request
  delay?: number // for a response: milliseconds since its request
  auto?: boolean // the inspector wrote it by itself (an answer to fs or terminal requests), not the user
  asks?: boolean // it is a permission request that the state has as a question
  size: number // of the line in bytes
  raw: string // the line; not the whole line if cut. Bytes that are not UTF-8 are U+FFFD, and then bytes is set
  cut?: boolean
  bytes?: boolean
  text?: string // of gap and end
  findings?: Finding[]
}

export interface Finding {
  rule: string // Rule.id; or "schema" and the like if there is no such rule
  level: Level
  side: "client" | "agent" | "both"
  message: string
  pointer: string // of the value (RFC 6901) in the message; "" for the whole
  definition: string // the schema's name of the value
  evidence: Evidence[]
}

export interface Evidence {
  n: number // the row; 0 if it is not known
  why: string
  excerpt: string
}

// Late is a finding about an earlier row.
export interface Late {
  is: "late"
  source: string
  n: number
  finding: Finding
}

// Item is a thing in the conversation as a user would see it. The first event with an index adds it; later ones replace it,
// except that append is added to the end of its text.
export interface Item {
  is: "item"
  source: string
  session: string
  index: number
  turn: number // 0 before the first
  kind: "user" | "agent" | "thought" | "tool" | "subagent" | "message" | "compaction" | "notice" | "unknown" | "plan" | "permission"
  title?: string // of a tool call
  status?: string // of a tool call: pending, in_progress, completed, failed
  text?: string
  append?: string
}

// Question is what the user has to see before answering the permission request in a row. It changes if the agent changes the tool
// call. All texts are ready to be shown.
export interface Question {
  n: number
  delay: number // milliseconds for which it must have been visible before something can be allowed
  facts: Fact[] // what the tool call does
  notes: Fact[] // what the agent says about it, and other things to know
  choices: Choice[] // in the order of the request's options
}

export interface Fact {
  name: string
  text: string // may have several lines
}

export interface Choice {
  text: string
  contradicts: boolean // the name of the option says something else than its kind
  rejects: boolean // it rejects once, for which the question need not have been visible as a whole
}

// State is replaced as a whole.
export interface State {
  is: "state"
  sources: SourceState[]
}

export interface SourceState {
  source: string
  open: boolean // the connection is open, or the file is being read
  rows: number
  messages: number
  findings: { must: number; should: number; advice: number }
  unanswered: number[] // n of requests without an answer, at most 1000
  version: number // of the protocol, as negotiated; 0 before
  sides: SideState[] // of the client, then of the agent
  stats: Stats
  answers?: Answers // of the agent that is talked to
  questions?: Question[] // that wait for an answer
}

export interface SideState {
  side: "client" | "agent"
  info: unknown // clientInfo or agentInfo; null if not known
  claimed: unknown // clientCapabilities or agentCapabilities, as sent; null if not known
  observed: Observed[]
}

export interface Observed {
  method: string
  capability: string // path in the capabilities that allows to use it; "" if none is needed
  by: "client" | "agent" // who sent it; SideState.side is the one that received it
  count: number
  claimed: boolean // the receiver claims the capability, or none is needed
}

// Stats is what "acp show --stats --format json" prints.
export interface Stats {
  messages: number
  bytes: number
  client: { messages: number; bytes: number } // what the client wrote
  agent: { messages: number; bytes: number }
  durationMs?: number
  methods: MethodStats[]
  sessions: SessionStats[]
  allSessions: SessionStats
  uncounted?: number // messages of methods and sessions beyond the first 1000, which are counted only in the totals
}

export interface MethodStats {
  from: "client" | "agent"
  method: string // "(no message)" for lines that are no messages
  update?: string // of session/update
  count: number
  bytes: number
  answers?: number
  errors?: number // among the answers
  answerBytes?: number
  delayMs?: { p50: number; p95: number; p99: number; max: number }
}

export interface SessionStats {
  id?: string
  messages: number
  prompts: number
  contextUsed?: number // tokens
  contextSize?: number
  cost?: Record<string, number> // by currency
  usageReports?: number // results of prompts with usage
  usage?: Record<string, number> // their sum, by kind of token
}

export interface Reply {
  is: "reply"
  id: number // of the command
  error?: string
  sent?: string // the JSON-RPC id, as JSON, of the request that was sent
}

export interface Found {
  rows: { source: string; n: number }[]
  more: boolean // there are more than these
}

export interface Report {
  hello: Hello // live is false
  schemas: Record<string, unknown> // by protocol version: "1"
  events: Event[]
  state: State
}

// From the page

export interface Attach {
  do: "attach"
  since: number // Log.cursor, or 0
  run: string // Hello.run, or ""
  keys: string[] // Hello.secret of before, the fragment of the URL, which is valid once, or both
}

export type Command = { id: number } & (
  | Start | Send | Raw | Kill | SetAnswers | Match | Seen | Choose
)

// Start starts the agent of the command line, as a new source. It is not started before.
export interface Start {
  do: "start"
}

// Send sends a request or a notification; the server chooses the id of a request.
export interface Send {
  do: "send"
  source: string
  method: string
  params: unknown
  notification: boolean
}

// Raw sends a line as it is: a message from an editor for experts, an answer to a request of the agent, a copy of an earlier row.
export interface Raw {
  do: "raw"
  source: string
  line: string
}

// Kill ends the agent.
export interface Kill {
  do: "kill"
  source: string
  how: "close" | "kill" // close its input and wait, or kill it at once
}

// Answers says who answers the agent's requests for files and terminals: the user, or the server in the folder of the command
// line or in memory.
export interface Answers {
  fs: "ask" | "folder" | "memory"
  terminal: "ask" | "folder" | "memory"
}

export interface SetAnswers {
  do: "answers"
  source: string
  answers: Answers
}

// Seen says that the whole question of a row is visible.
export interface Seen {
  do: "seen"
  source: string
  row: number
}

// Choose answers the question of a row with an option of its choices; -1 answers that the turn was cancelled.
export interface Choose {
  do: "choose"
  source: string
  row: number
  option: number
}

// Match asks whether a text matches a pattern. Reply.sent is "no" if it does not.
export interface Match {
  do: "match"
  pattern: string
  text: string
}

// Exports: "recording" (JSONL), "html" (a report).
export type ExportFormat = "recording" | "html"

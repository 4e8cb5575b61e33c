package inspect

import (
	"encoding/json"

	"github.com/acpgo/sdk/cmd/acp/internal/show"
)

// The messages between the server and the page. page/protocol.ts has the same types, with comments; keep the two alike.

type hello struct {
	Is      string       `json:"is"`
	Run     string       `json:"run"`
	Version string       `json:"version"`
	Live    bool         `json:"live"`
	Agent   []string     `json:"agent"`
	Folder  string       `json:"folder"`
	Cwd     string       `json:"cwd"`
	Methods []methodInfo `json:"methods"`
	Rules   []ruleInfo   `json:"rules"`
	Limits  limits       `json:"limits"`
	Secret  string       `json:"secret,omitempty"`
}

type limits struct {
	Raw     int `json:"raw"`
	Message int `json:"message"`
}

type methodInfo struct {
	Method  string `json:"method"`
	Version int    `json:"version"`
	Side    string `json:"side"`
	Params  string `json:"params"`
	Result  string `json:"result"`
	Stable  bool   `json:"stable"`
}

type ruleInfo struct {
	ID     string `json:"id"`
	Level  string `json:"level"`
	Side   string `json:"side"`
	Text   string `json:"text"`
	Breaks string `json:"breaks"`
	Right  string `json:"right"`
	Wrong  string `json:"wrong"`
	URL    string `json:"url"`
}

type logMessage struct {
	Is       string            `json:"is"`
	Cursor   int64             `json:"cursor"`
	CaughtUp bool              `json:"caughtUp"`
	Events   []json.RawMessage `json:"events"`
}

type sourceEvent struct {
	Is     string   `json:"is"`
	Source string   `json:"source"`
	Kind   string   `json:"kind"`
	Name   string   `json:"name"`
	Lanes  []string `json:"lanes"`
	Date   string   `json:"date"`
	Masked bool     `json:"masked"`
}

type rowEvent struct {
	Is       string        `json:"is"`
	Source   string        `json:"source"`
	N        int           `json:"n"`
	T        float64       `json:"t"`
	Kind     string        `json:"kind"`
	From     string        `json:"from"`
	To       string        `json:"to"`
	Method   string        `json:"method,omitempty"`
	ID       string        `json:"id,omitempty"`
	Session  string        `json:"session,omitempty"`
	Update   string        `json:"update,omitempty"`
	Message  string        `json:"message,omitempty"`
	Re       int           `json:"re,omitempty"`
	Delay    *float64      `json:"delay,omitempty"`
	Auto     bool          `json:"auto,omitempty"`
	Asks     bool          `json:"asks,omitempty"`
	Size     int           `json:"size"`
	Raw      string        `json:"raw"`
	Cut      bool          `json:"cut,omitempty"`
	Bytes    bool          `json:"bytes,omitempty"`
	Text     string        `json:"text,omitempty"`
	Findings []findingInfo `json:"findings,omitempty"`
}

type findingInfo struct {
	Rule       string         `json:"rule"`
	Level      string         `json:"level"`
	Side       string         `json:"side"`
	Message    string         `json:"message"`
	Pointer    string         `json:"pointer"`
	Definition string         `json:"definition"`
	Evidence   []evidenceInfo `json:"evidence"`
}

type evidenceInfo struct {
	N       int    `json:"n"`
	Why     string `json:"why"`
	Excerpt string `json:"excerpt"`
}

type lateEvent struct {
	Is      string      `json:"is"`
	Source  string      `json:"source"`
	N       int         `json:"n"`
	Finding findingInfo `json:"finding"`
}

type itemEvent struct {
	Is      string `json:"is"`
	Source  string `json:"source"`
	Session string `json:"session"`
	Index   int    `json:"index"`
	Turn    int    `json:"turn"`
	Kind    string `json:"kind"`
	Title   string `json:"title,omitempty"`
	Status  string `json:"status,omitempty"`
	Text    string `json:"text,omitempty"`
	Append  string `json:"append,omitempty"`
}

type questionInfo struct {
	N       int          `json:"n"`
	Delay   int64        `json:"delay"`
	Facts   []factInfo   `json:"facts"`
	Notes   []factInfo   `json:"notes"`
	Choices []choiceInfo `json:"choices"`
}

type factInfo struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

type choiceInfo struct {
	Text        string `json:"text"`
	Contradicts bool   `json:"contradicts"`
	Rejects     bool   `json:"rejects"`
}

type stateMessage struct {
	Is      string        `json:"is"`
	Sources []sourceState `json:"sources"`
}

type sourceState struct {
	Source     string         `json:"source"`
	Open       bool           `json:"open"`
	Rows       int            `json:"rows"`
	Messages   int            `json:"messages"`
	Findings   findingCount   `json:"findings"`
	Unanswered []int          `json:"unanswered"`
	Version    int            `json:"version"`
	Sides      []sideState    `json:"sides"`
	Stats      show.Document  `json:"stats"`
	Answers    *answers       `json:"answers,omitempty"`
	Questions  []questionInfo `json:"questions,omitempty"`
}

type findingCount struct {
	Must   int `json:"must"`
	Should int `json:"should"`
	Advice int `json:"advice"`
}

type sideState struct {
	Side     string          `json:"side"`
	Info     json.RawMessage `json:"info"`
	Claimed  json.RawMessage `json:"claimed"`
	Observed []observed      `json:"observed"`
}

type observed struct {
	Method     string `json:"method"`
	Capability string `json:"capability"`
	By         string `json:"by"`
	Count      int    `json:"count"`
	Claimed    bool   `json:"claimed"`
}

type reply struct {
	Is    string `json:"is"`
	ID    int    `json:"id"`
	Error string `json:"error,omitempty"`
	Sent  string `json:"sent,omitempty"`
}

type found struct {
	Rows []foundRow `json:"rows"`
	More bool       `json:"more"`
}

type foundRow struct {
	Source string `json:"source"`
	N      int    `json:"n"`
}

type reportData struct {
	Hello   hello                      `json:"hello"`
	Schemas map[string]json.RawMessage `json:"schemas"`
	Events  []json.RawMessage          `json:"events"`
	State   stateMessage               `json:"state"`
}

// command is what the page sends: an attach, or a command with an id.
type command struct {
	Do           string          `json:"do"`
	ID           int             `json:"id"`
	Since        int64           `json:"since"`
	Run          string          `json:"run"`
	Keys         []string        `json:"keys"`
	Source       string          `json:"source"`
	Method       string          `json:"method"`
	Params       json.RawMessage `json:"params"`
	Notification bool            `json:"notification"`
	Line         string          `json:"line"`
	How          string          `json:"how"`
	Answers      *answers        `json:"answers"`
	Row          int             `json:"row"`
	Option       int             `json:"option"`
	Pattern      string          `json:"pattern"`
	Text         string          `json:"text"`
}

type answers struct {
	FS       string `json:"fs"`
	Terminal string `json:"terminal"`
}

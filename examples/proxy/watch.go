package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// direction is the way that a message goes.
type direction string

const (
	toTheAgent  direction = "client → agent"
	toTheClient direction = "agent → client"
)

func (d direction) back() direction {
	if d == toTheAgent {
		return toTheClient
	}
	return toTheAgent
}

// watcher says what passes. It may be used concurrently.
type watcher struct {
	mu      sync.Mutex
	out     io.Writer         // nil: nobody wants to know
	pending map[string]string // methods of requests that were not answered, by direction and id
}

// What is remembered of requests that were not answered: some never are, and an id may be of any length.
const (
	maxPending = 1024
	maxName    = 256 // bytes of an id and a method together
)

// printf prints one line, whatever is in args.
func (w *watcher) printf(format string, args ...any) {
	if w.out == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintln(w.out, view.PrintableLine(fmt.Sprintf(format, args...)))
}

// envelope is what JSON-RPC wraps a message in.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// see says what a message is, in one line.
func (w *watcher) see(d direction, line []byte) {
	if w.out == nil {
		return
	}
	var e envelope
	if err := json.Unmarshal(line, &e); err != nil {
		w.printf("%s: no message: %v", d, err)
		return
	}
	if e.Method == "" {
		w.printf("%s: %s", d, w.answer(d, &e))
		return
	}
	what := e.Method
	if len(e.ID) > 0 {
		what += " #" + string(e.ID)
		w.remember(d, &e)
	}
	w.printf("%s: %s%s", d, what, describe(params(e.Method), e.Params))
}

// remember keeps the method of a request for its answer, if there is room.
func (w *watcher) remember(d direction, e *envelope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) < maxPending && len(e.ID)+len(e.Method) <= maxName {
		w.pending[string(d)+string(e.ID)] = strings.Clone(e.Method)
	}
}

// answer says what an answer is, and to what.
func (w *watcher) answer(d direction, e *envelope) string {
	key := string(d.back()) + string(e.ID)
	w.mu.Lock()
	method := cmp.Or(w.pending[key], "nothing known")
	delete(w.pending, key)
	w.mu.Unlock()
	what := fmt.Sprintf("answer to %s #%s", method, e.ID)
	if e.Error != nil {
		return fmt.Sprintf("%s: error %d: %q", what, e.Error.Code, e.Error.Message)
	}
	return what + describe(result(method), e.Result)
}

// params returns a new value for the parameters of a method, or nil for those that are not looked into.
func params(method string) any {
	switch method {
	case acp.MethodSessionUpdate:
		return &acp.SessionNotification{}
	case acp.MethodPrompt:
		return &acp.PromptRequest{}
	case acp.MethodRequestPermission:
		return &acp.RequestPermissionRequest{}
	}
	return nil
}

// result does so for the result of a method.
func result(method string) any {
	switch method {
	case acp.MethodInitialize:
		return &acp.InitializeResponse{}
	case acp.MethodPrompt:
		return &acp.PromptResponse{}
	case acp.MethodRequestPermission:
		return &acp.RequestPermissionResponse{}
	}
	return nil
}

// maxDecoded is how much is looked into, in bytes: decoded, it is several times as large.
const maxDecoded = 1 << 20

// describe decodes a value and says what is in it.
func describe(v any, raw json.RawMessage) string {
	if v == nil {
		return ""
	}
	if len(raw) > maxDecoded {
		return fmt.Sprintf(": %d bytes", len(raw))
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Sprintf(": %v", err)
	}
	switch v := v.(type) {
	case *acp.SessionNotification:
		// The name of the type says which update it is.
		kind := strings.TrimPrefix(fmt.Sprintf("%T", v.Update.Variant), "*acp.SessionUpdate")
		return fmt.Sprintf(" of %s: %s", v.SessionID, kind)
	case *acp.PromptRequest:
		var text strings.Builder
		for _, block := range v.Prompt {
			part, _ := block.Text()
			text.WriteString(part)
		}
		return fmt.Sprintf(" of %s: %q", v.SessionID, text.String())
	case *acp.RequestPermissionRequest:
		return fmt.Sprintf(" of %s: %q, %d options", v.SessionID, v.ToolCall.Title.Value(), len(v.Options))
	case *acp.InitializeResponse:
		return fmt.Sprintf(": version %d, %q", v.ProtocolVersion, v.AgentInfo.Value().Name)
	case *acp.PromptResponse:
		return fmt.Sprintf(": %s", v.StopReason)
	case *acp.RequestPermissionResponse:
		option, ok := v.Outcome.Selected()
		if !ok {
			return ": not chosen"
		}
		return fmt.Sprintf(": %q", option)
	}
	return ""
}

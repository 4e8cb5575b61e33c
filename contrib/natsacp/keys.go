package natsacp

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/internal/wire"
)

// keyed returns what is remembered of a prompt: nothing if it has no key.
func keyed(params []byte) (p Prompt) {
	var r struct {
		Prompt json.RawMessage
		Meta   map[string]json.RawMessage `json:"_meta"`
	}
	var key string
	var content bytes.Buffer
	if json.Unmarshal(params, &r) != nil || json.Unmarshal(r.Meta[translate.MetaIdempotencyKey], &key) != nil ||
		key == "" || json.Compact(&content, r.Prompt) != nil {
		return p // if the parameters are wrong, the agent says so
	}
	digest := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return base64.RawStdEncoding.EncodeToString(sum[:16])
	}
	// Whoever reads the record does not know the key, and so cannot try what the prompt may be.
	return Prompt{Key: digest(key), Digest: digest(key + "\n" + content.String())}
}

// errWaits reports that a prompt has taken the place of the first one with its key, and gets its answer.
var errWaits = errors.New("the prompt runs")

// known answers a prompt that the session has had before. Whatever became of that, the agent does not get it again.
func (s *seat) known(c call) (answer []byte, err error) {
	if c.prompt.Key == "" {
		return nil, nil
	}
	s.mu.Lock()
	for n, first := range s.calls {
		if first.prompt == c.prompt && first.gen != c.gen { // that client has gone
			first.gen, first.id = c.gen, c.id
			s.calls[n] = first
			s.mu.Unlock()
			return nil, errWaits
		}
	}
	s.mu.Unlock()
	s.record.prompt(c.prompt, func(r *Session, i int) {
		switch first := r.Prompts[i]; {
		case first.Digest != c.prompt.Digest:
			err = rpc.ErrInvalidParams.WithMessagef("the idempotency key belongs to another prompt")
		case first.StopReason != "":
			answer, err = json.Marshal(map[string]any{
				"stopReason": first.StopReason, "_meta": map[string]bool{translate.MetaIdempotencyKey: true},
			})
		default:
			data, _ := json.Marshal(map[string]string{translate.MetaIdempotencyKey: "unknown"}) // texts can be written
			err = &rpc.Error{
				Code: rpc.ErrInternal, Message: "The prompt was sent before, and its outcome is not known", Data: data,
			}
		}
	})
	return answer, err
}

// outcome remembers how a prompt has ended. One that the agent has refused may be sent again.
func (s *seat) outcome(c *call, m wire.Message) {
	s.record.prompt(c.prompt, func(r *Session, i int) {
		if m.Failure == nil {
			r.Prompts[i].StopReason = member(m.Result, "stopReason")
		} else if slices.Contains(refusals, rpc.Code(m.Failure.Code)) {
			r.Prompts = slices.Delete(r.Prompts, i, i+1)
		}
	})
}

// refusals are the errors of agents that have not begun with a prompt.
var refusals = []rpc.Code{rpc.ErrInvalidRequest, rpc.ErrInvalidParams, acp.ErrAuthRequired, acp.ErrResourceNotFound}

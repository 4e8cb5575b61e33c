package agentkit

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/translate"
)

// keyed is a prompt with an idempotency key: the client may send it again, when its connection was lost.
type keyed struct {
	Key        string         `json:"key"`
	Digest     string         `json:"digest"`               // of its content
	StopReason acp.StopReason `json:"stopReason,omitempty"` // empty as long as it is not known
	Message    acp.MessageID  `json:"message,omitempty"`    // its id in the store

	turn  *turn // which has it
	begun bool  // it is in the conversation
}

// maxKeyed is how many of them are remembered of a session; older ones are forgotten.
const maxKeyed = 64

// keyOf returns the key of a prompt, or "".
func keyOf(req *acp.PromptRequest) (key string) {
	if _, err := req.Meta.Get(translate.MetaIdempotencyKey, &key); err != nil {
		return "" // it is not one
	}
	return digest([]byte(key))
}

func digest(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	sum := sha256.Sum256(text)
	return base64.RawStdEncoding.EncodeToString(sum[:16])
}

// known answers a prompt that the session has had before. It remembers any other one with a key.
func (s *session) known(req *acp.PromptRequest) (*acp.PromptResponse, error) {
	key := keyOf(req)
	if key == "" {
		return nil, nil
	}
	text, err := json.Marshal(req.Prompt)
	if err != nil {
		return nil, err
	}
	content := digest(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.keyed, func(k keyed) bool { return k.Key == key })
	if i < 0 {
		s.keyed = append(s.keyed[max(0, len(s.keyed)-maxKeyed+1):], keyed{Key: key, Digest: content})
		return nil, nil
	}
	switch k := s.keyed[i]; {
	case k.Digest != content:
		return nil, acp.InvalidParamsf("the idempotency key belongs to another prompt")
	case k.StopReason != "":
		res := &acp.PromptResponse{StopReason: k.StopReason}
		return res, res.Meta.Set(translate.MetaIdempotencyKey, k.Message)
	}
	data, err := json.Marshal(map[string]string{translate.MetaIdempotencyKey: "unknown"})
	return nil, errors.Join(&rpc.Error{
		Code: rpc.ErrInternal, Message: "The prompt was sent before, and its outcome is not known", Data: data,
	}, err)
}

// forget frees the key of a prompt that did not become part of the conversation.
func (s *session) forget(req *acp.PromptRequest) {
	key := keyOf(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keyed = slices.DeleteFunc(s.keyed, func(k keyed) bool { return k.Key == key })
}

// takes records that the turn has a prompt, which has been stored if there is a store.
func (t *turn) takes(req *acp.PromptRequest) {
	key := keyOf(req)
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.keyed, func(k keyed) bool { return k.Key == key }); i >= 0 {
		k := &t.keyed[i]
		k.turn, k.begun = t, true
		if n := len(t.stored); n > 0 {
			k.Message = t.stored[n-1]
		}
	}
}

// outcome records how the turn has ended, for the prompts that it has.
func (t *turn) outcome(ctx context.Context) {
	reason := acp.StopReasonEndTurn
	switch {
	case errors.Is(context.Cause(ctx), acp.ErrTurnCancelled):
		reason = acp.StopReasonCancelled
	case t.err != nil || ctx.Err() != nil:
		reason = ""
	case t.response != nil && t.response.StopReason != "":
		reason = t.response.StopReason
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if errors.Is(t.err, acp.ErrAuthRequired) || errors.Is(t.err, acp.ErrInvalidParams) { // the prompt is refused
		t.keyed = slices.DeleteFunc(t.keyed, func(k keyed) bool { return k.turn == t })
	}
	for i, k := range t.keyed {
		if k.turn == t {
			t.keyed[i].StopReason, t.keyed[i].turn = reason, nil
		}
	}
}

// rememberKeys writes the prompts with keys into what is stored of the session.
func (s *session) rememberKeys(_ *sessionstore.Record, state *saved) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	state.Keyed = slices.DeleteFunc(slices.Clone(s.keyed), func(k keyed) bool { return !k.begun })
	return nil
}

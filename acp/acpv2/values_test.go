package acpv2_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/sample"
)

// The update, the state and the stop reason are three choices in one object. Those of a later version are kept as they
// came.
func TestStates(t *testing.T) {
	failure := acpv2.NewIdleStateUpdateError(acpv2.ErrorStopReason{Error: acpv2.Some(acpv2.Error{Code: -32603, Message: "no model"})})
	ended := acpv2.Cancelled()
	ended.Background = acpv2.Some([]acpv2.BackgroundWork{acpv2.NewBackgroundWorkTerminal(acpv2.BackgroundTerminal{TerminalID: "t"})})
	const (
		paused = `{"sessionUpdate":"state_update","state":"paused","until":1.50}`
		spent  = `{"sessionUpdate":"state_update","state":"idle","stopReason":"_budget","left":1e400}`
	)
	tests := []struct {
		update acpv2.SessionUpdate
		want   string
	}{
		{running, `{"sessionUpdate":"state_update","state":"running"}`},
		{idle, `{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}`},
		{state(acpv2.NewStateUpdateIdle(acpv2.NewIdleStateUpdateNone())), `{"sessionUpdate":"state_update","state":"idle"}`},
		{state(acpv2.NewStateUpdateIdle(failure)),
			`{"sessionUpdate":"state_update","state":"idle","stopReason":"error","error":{"code":-32603,"message":"no model"}}`},
		{state(acpv2.NewStateUpdateIdle(ended)),
			`{"sessionUpdate":"state_update","state":"idle","stopReason":"cancelled","background":[{"type":"terminal","terminalId":"t"}]}`},
		{state(acpv2.StateUpdate{Variant: &acpv2.StateUpdateUnknown{Tag: "paused", Raw: json.RawMessage(paused)}}), paused},
		{state(acpv2.NewStateUpdateIdle(acpv2.IdleStateUpdate{Variant: &acpv2.IdleStateUpdateUnknown{Tag: "_budget", Raw: json.RawMessage(spent)}})), spent},
		{acpv2.SessionUpdate{Variant: &acpv2.SessionUpdateUnknown{Tag: "_vendor", Raw: json.RawMessage(`{"sessionUpdate":"_vendor","x":1.0}`)}},
			`{"sessionUpdate":"_vendor","x":1.0}`},
	}
	for _, test := range tests {
		out, err := codec.Append(nil, &test.update)
		if err != nil {
			t.Errorf("%s: %v", test.want, err)
			continue
		}
		if !sameJSON(t, string(out), test.want) {
			t.Errorf("got %s, want %s", out, test.want)
		}
		var again acpv2.SessionUpdate
		must.Do(t, codec.Unmarshal([]byte(test.want), &again))
		if got, want := fmt.Sprintf("%T", again.Variant), fmt.Sprintf("%T", test.update.Variant); got != want {
			t.Errorf("%s: read as %s, want %s", test.want, got, want)
		}
		if back, err := codec.Append(nil, &again); err != nil || !sameJSON(t, string(back), test.want) {
			t.Errorf("read and written again: got %s, %v, want %s", back, err, test.want)
		}
	}
}

// sameJSON compares two texts but for the order of members. Numbers are compared as they are written.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	x := must.Get(sample.Parse([]byte(a)))(t)
	y := must.Get(sample.Parse([]byte(b)))(t)
	return reflect.DeepEqual(x, y)
}

// The stop reason that is reported is the one on the wire.
func TestStopReason(t *testing.T) {
	for _, text := range []string{
		`{"stopReason":"end_turn"}`, `{"stopReason":"max_tokens"}`, `{"stopReason":"max_turn_requests"}`, `{"stopReason":"refusal"}`,
		`{"stopReason":"cancelled"}`, `{"stopReason":"error"}`, `{"stopReason":"_budget"}`, `{}`, `{"stopReason":null}`,
	} {
		var want struct{ StopReason string }
		must.Do(t, json.Unmarshal([]byte(text), &want))
		var got acpv2.IdleStateUpdate
		if err := codec.Unmarshal([]byte(text), &got); err != nil || got.StopReason() != want.StopReason {
			t.Errorf("%s: got %q, %v", text, got.StopReason(), err)
		}
	}
}

// A variant that is held as an unknown one is sent if it is what the schema says of its tag, or of tags that it does not list.
func TestUnknownVariantsAreChecked(t *testing.T) {
	method := func(raw string) any {
		return &acpv2.AuthMethod{Variant: &acpv2.AuthMethodUnknown{Raw: json.RawMessage(raw)}}
	}
	plan := func(raw string) any {
		return &acpv2.PlanUpdateContent{Variant: &acpv2.PlanUpdateContentUnknown{Raw: json.RawMessage(raw)}}
	}
	update := func(raw string) any {
		return &acpv2.SessionUpdate{Variant: &acpv2.SessionUpdateUnknown{Raw: json.RawMessage(raw)}}
	}
	option := func(raw string) any {
		return &acpv2.SetSessionConfigOptionRequest{SessionID: "s", ConfigID: "c", Variant: &acpv2.SetSessionConfigOptionRequestUnknown{Raw: json.RawMessage(raw)}}
	}
	tests := []struct {
		value any
		sent  bool
	}{
		{method(`{"type":"_x","methodId":"i","name":"n","more":1}`), true},
		{method(`{"type":"_x","methodId":"i"}`), false},
		{method(`{"type":"_x","methodId":"i","name":1}`), false},
		{method(`{"type":"terminal","methodId":"i","name":"n"}`), true},
		{method(`{"type":"terminal","methodId":"i"}`), false},
		{plan(`{"type":"_x","planId":"p"}`), true},
		{plan(`{"type":"_x"}`), false},
		{plan(`{"type":"items","planId":"p","entries":[]}`), true},
		{plan(`{"type":"items","entries":[]}`), false},
		{update(`{"sessionUpdate":"_x"}`), true},
		{update(`{"sessionUpdate":"plan_update"}`), false},
		{update(`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[]}}`), true},
		{update(`{"sessionUpdate":"plan_update","plan":{"type":"items","entries":[]}}`), false},
		{option(`{"type":"_x","value":null}`), true},
		{option(`{"type":"_x"}`), false},
	}
	for _, test := range tests {
		if out, err := codec.Append(nil, test.value); (err == nil) != test.sent {
			t.Errorf("%+v: got %s, %v", test.value, out, err)
		}
	}
}

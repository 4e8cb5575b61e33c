package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/test/must"
)

// form is an Elicitor: it keeps the schema, and answers with a response, which is JSON.
type form struct {
	schema string
	answer string
}

func (f *form) ElicitForm(_ context.Context, _ string, schema acp.ElicitationSchema) (*acp.CreateElicitationResponse, error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	f.schema = string(text)
	var res acp.CreateElicitationResponse
	return &res, json.Unmarshal([]byte(f.answer), &res)
}

type colour string

type survey struct {
	Name   string   `title:"Your name"`
	Mail   string   `json:"mail,omitempty" format:"email" description:"For the answer."`
	Colour colour   `enum:"red,green"`
	Likes  []colour `json:"likes,omitzero" enum:"red,green,blue"`
	Count  uint8
	Level  int64   `json:",omitempty"`
	Share  float64 `json:"share,omitempty"`
	Sure   bool
	Hidden string `json:"-"`
	secret int
}

func TestAsk(t *testing.T) {
	begin := survey{Name: "Ada", Colour: "red", Likes: []colour{"blue"}, Count: 3, Level: -1, Share: 0.5, Hidden: "h", secret: 1}
	f := &form{answer: `{"action":"accept","content":{"Name":"Eve","Colour":"green","likes":["red","blue"],"Count":4,"share":2,"Sure":true}}`}
	got, answered, err := acp.Ask(t.Context(), f, "Who?", begin)
	want := survey{Name: "Eve", Colour: "green", Likes: []colour{"red", "blue"}, Count: 4, Share: 2, Sure: true, Hidden: "h", secret: 1}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(survey{})); err != nil || !answered || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	const schema = `{"type":"object","properties":{` +
		`"Colour":{"type":"string","default":"red","enum":["red","green"]},` +
		`"Count":{"type":"integer","minimum":0,"maximum":255,"default":3},` +
		`"Level":{"type":"integer","default":-1},` +
		`"Name":{"type":"string","title":"Your name","default":"Ada"},` +
		`"Sure":{"type":"boolean","default":false},` +
		`"likes":{"type":"array","items":{"type":"string","enum":["red","green","blue"]},"default":["blue"]},` +
		`"mail":{"type":"string","description":"For the answer.","format":"email"},` +
		`"share":{"type":"number","default":0.5}},` +
		`"required":["Name","Colour","Count","Sure"]}`
	if diff := cmp.Diff(schema, f.schema); diff != "" {
		t.Errorf("the schema (-want +got):\n%s", diff)
	}
	if _, _, err := acp.Ask(t.Context(), f, "Ready?", struct {
		Likes []string `json:",omitempty" enum:"a"`
	}{}); err != nil || f.schema != `{"type":"object","properties":{"Likes":{"type":"array","items":{"type":"string","enum":["a"]}}}}` {
		t.Errorf("nothing is required: %v, %s", err, f.schema)
	}

	for what, answer := range map[string]string{
		"a field is missing":        `{"Colour":"red","Count":1,"Sure":true}`,
		"a value that is not there": `{"Name":"","Colour":"blue","Count":1,"Sure":true}`,
		"another of several":        `{"Name":"","Colour":"red","Count":1,"Sure":true,"likes":["pink"]}`,
		"a number that is too big":  `{"Name":"","Colour":"red","Count":256,"Sure":true}`,
		"a number below 0":          `{"Name":"","Colour":"red","Count":-1,"Sure":true}`,
		"text for a number":         `{"Name":"","Colour":"red","Count":"1","Sure":true}`,
		"what no form has":          `{"Name":"","Colour":"red","Count":1,"Sure":true,"more":[7]}`,
	} {
		f.answer = `{"action":"accept","content":` + answer + `}`
		if got, answered, err := acp.Ask(t.Context(), f, "Who?", begin); err != nil || answered || !cmp.Equal(got, begin, cmp.AllowUnexported(survey{})) {
			t.Errorf("%s: got %+v, %v", what, got, err)
		}
	}
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(acp.ErrTurnCancelled)
	for _, test := range []struct {
		ctx    context.Context
		action string
		want   error
	}{
		{t.Context(), "decline", nil},
		{t.Context(), "later", nil},
		{t.Context(), "cancel", acp.ErrDismissed},
		{cancelled, "cancel", acp.ErrTurnCancelled},
	} {
		f.answer = `{"action":"` + test.action + `"}`
		if _, answered, err := acp.Ask(test.ctx, f, "Who?", begin); answered || !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.action, err, test.want)
		}
	}
}

// The form has the bounds of the fields' types.
func TestAskBounds(t *testing.T) {
	type bounds struct {
		A int8   `json:",omitempty"`
		B int32  `json:",omitempty"`
		C uint16 `json:",omitempty"`
		D uint32 `json:",omitempty"`
		E uint64 `json:",omitempty"`
		F int64  `json:",omitempty"`
	}
	f := &form{answer: `{"action":"accept","content":{}}`}
	if _, _, err := acp.Ask(t.Context(), f, "?", bounds{}); err != nil {
		t.Fatal(err)
	}
	const schema = `{"type":"object","properties":{` +
		`"A":{"type":"integer","minimum":-128,"maximum":127},` +
		`"B":{"type":"integer","minimum":-2147483648,"maximum":2147483647},` +
		`"C":{"type":"integer","minimum":0,"maximum":65535},` +
		`"D":{"type":"integer","minimum":0,"maximum":4294967295},` +
		`"E":{"type":"integer","minimum":0},` +
		`"F":{"type":"integer"}}}`
	if diff := cmp.Diff(schema, f.schema); diff != "" {
		t.Errorf("the schema (-want +got):\n%s", diff)
	}
}

// What is not a form is refused before anybody is asked.
func TestAskTypes(t *testing.T) {
	refused := func(ask func(acp.Elicitor) error) {
		t.Helper()
		f := &form{answer: `{"action":"accept","content":{}}`}
		if err := ask(f); err == nil || f.schema != "" {
			t.Errorf("got %v, asked %s", err, f.schema)
		}
	}
	refused(func(f acp.Elicitor) error {
		_, _, err := acp.Ask(t.Context(), f, "?", survey{Colour: "blue"})
		return err
	})
	refused(func(f acp.Elicitor) error {
		_, _, err := acp.Ask(t.Context(), f, "?", survey{Likes: []colour{"red", "pink"}})
		return err
	})
	type part struct{ Name string }
	refused(func(f acp.Elicitor) error { _, _, err := acp.Ask(t.Context(), f, "?", "text"); return err })
	refused(func(f acp.Elicitor) error { _, _, err := acp.Ask(t.Context(), f, "?", struct{ part }{}); return err })
	refused(func(f acp.Elicitor) error {
		_, _, err := acp.Ask(t.Context(), f, "?", struct{ Part part }{})
		return err
	})
	refused(func(f acp.Elicitor) error {
		_, _, err := acp.Ask(t.Context(), f, "?", struct{ List []string }{})
		return err
	})
	refused(func(f acp.Elicitor) error { _, _, err := acp.Ask(t.Context(), f, "?", struct{ Any any }{}); return err })
	refused(func(f acp.Elicitor) error {
		_, _, err := acp.Ask(t.Context(), f, "?", struct {
			N int `enum:"1,2"`
		}{})
		return err
	})
}

// Forms pass the judge, a client without forms is not asked, and one that fails has not answered. None of it ends the
// turn.
func TestAskClient(t *testing.T) {
	type person struct {
		Name string
		Team []string `json:"team,omitempty" enum:"a,b"`
	}
	for _, kind := range []string{"forms", "none", "fails"} {
		var got person
		var answered bool
		var asked error
		agent := complete(acp.AgentHandlers{})
		agent.Prompt = func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			got, answered, asked = acp.Ask(ctx, s, "Who are you?", person{Team: []string{"b"}})
			return nil, nil
		}
		client, opts := acp.ClientHandlers{}, &acp.ClientOptions{}
		if kind != "none" {
			opts.Forms = true
			client.CreateElicitation = func(_ context.Context, _ *acp.ClientConn, req *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
				if kind == "fails" {
					return nil, acp.ErrInvalidRequest
				}
				res := acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{Content: acp.Some(map[string]acp.ElicitationContentValue{
					"Name": acp.NewElicitationContentValueString("Ada"),
					"team": acp.NewElicitationContentValueStringArray([]string{"a"}),
				})})
				return &res, nil
			}
		}
		conn := connect(t, agent, nil, client, opts)
		s := start(t, conn)
		if s.Cwd() != "/home/ada" || conn.Session("other").Cwd() != "" {
			t.Errorf("the directory is %q", s.Cwd())
		}
		must.Get(s.Prompt(t.Context(), acp.TextBlock("go")))(t)
		want := person{Team: []string{"b"}}
		if kind == "forms" {
			want = person{"Ada", []string{"a"}}
		}
		if asked != nil || answered != (kind == "forms") || !cmp.Equal(got, want) {
			t.Errorf("%s: got %+v, %v, %v", kind, got, answered, asked)
		}
	}
}

// The user is asked to open a URL; the client is notified when waiting has ended, also if it has failed.
func TestOpenURL(t *testing.T) {
	failed := errors.New("the page was closed")
	for _, test := range []struct {
		name     string
		answer   func() (acp.CreateElicitationResponse, error)
		wait     error
		accepted bool
		want     error
		done     int // elicitation/complete
	}{
		{"accepted", func() (acp.CreateElicitationResponse, error) {
			return acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{}), nil
		}, nil, true, nil, 1},
		{"waiting fails", func() (acp.CreateElicitationResponse, error) {
			return acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{}), nil
		}, failed, true, failed, 1},
		{"declined", func() (acp.CreateElicitationResponse, error) { return acp.NewCreateElicitationResponseDecline(), nil }, failed, false, nil, 0},
		{"fails", func() (acp.CreateElicitationResponse, error) {
			return acp.CreateElicitationResponse{}, acp.ErrInvalidRequest
		}, nil, false, acp.ErrInvalidRequest, 0},
		{"no URLs", nil, failed, false, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var accepted bool
			var err error
			agent := complete(acp.AgentHandlers{})
			agent.Prompt = func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
				accepted, err = s.OpenURL(ctx, "Log in", "https://example.com", func(context.Context) error { return test.wait })
				return nil, nil
			}
			done := 0
			client, opts := acp.ClientHandlers{}, &acp.ClientOptions{}
			if test.answer != nil {
				opts.Elicitation.URL = acp.Some(acp.ElicitationURLCapabilities{})
				client.CreateElicitation = func(context.Context, *acp.ClientConn, *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
					res, err := test.answer()
					return &res, err
				}
				client.CompleteElicitation = func(context.Context, *acp.ClientConn, *acp.CompleteElicitationNotification) error {
					done++
					return nil
				}
			}
			conn := connect(t, agent, nil, client, opts)
			must.Get(start(t, conn).Prompt(t.Context(), acp.TextBlock("go")))(t)
			must.Do(t, conn.Close())
			if accepted != test.accepted || !errors.Is(err, test.want) || done != test.done {
				t.Errorf("got %v, %v, completed %d times", accepted, err, done)
			}
		})
	}
}

func TestContentHelpers(t *testing.T) {
	data, mime, ok := acp.ImageBlock("aGk=", "image/png").Image()
	if string(data) != "hi" || mime != "image/png" || !ok {
		t.Errorf("got %q, %q, %v", data, mime, ok)
	}
	for _, block := range []acp.ContentBlock{acp.TextBlock("aGk="), acp.ImageBlock("?", "image/png")} {
		if _, _, ok := block.Image(); ok {
			t.Errorf("%+v is an image", block)
		}
	}
	for want, update := range map[string]acp.SessionUpdate{
		`{"sessionUpdate":"usage_update","size":9,"used":3}`:                                        acp.ContextUsage(3, 9, nil),
		`{"cost":{"amount":0.5,"currency":"EUR"},"sessionUpdate":"usage_update","size":9,"used":3}`: acp.ContextUsage(3, 9, &acp.Cost{Amount: 0.5, Currency: "EUR"}),
	} {
		text, err := json.Marshal(update)
		var members map[string]json.RawMessage
		if err == nil {
			err = json.Unmarshal(text, &members)
		}
		if err == nil {
			text, err = json.Marshal(members) // in one order
		}
		if err != nil || string(text) != want {
			t.Errorf("got %s, %v, want %s", text, err, want)
		}
	}
}

package agentkit_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
)

// What the client receives of an answer and of the attempts to get one, and how long these take.
func TestStream(t *testing.T) {
	text := func(text string) agentkit.Piece { return agentkit.Piece{Text: text} }
	busy := func(after string) error {
		return &agentkit.APIError{Status: 429, RetryAfter: after, Reason: "slow down"}
	}
	down := &agentkit.APIError{Reason: "connection refused"}
	const hang = time.Hour
	type attempt = []any // pieces, errors, and durations of silence
	retry := func(what, wait string) string { return "thought: " + what + ". Trying again in " + wait + ".\n" }
	const slow, refused = "the model's API answers 429 Too Many Requests: slow down", "the model's API: connection refused"
	for name, test := range map[string]struct {
		attempts []attempt
		opts     *agentkit.StreamOptions
		want     []string
		err      error  // what the error matches
		reason   string // in the error
		took     time.Duration
	}{
		"text and thoughts": {
			attempts: []attempt{{agentkit.Piece{Thought: "Hm."}, agentkit.Piece{}, text("Yes")}}, want: []string{"thought: Hm.", "agent: Yes"},
		},
		"hidden": {
			attempts: []attempt{{agentkit.Piece{Thought: "Hm.", Text: "Yes"}}}, opts: &agentkit.StreamOptions{Hidden: true},
		},
		"the waiting times": {
			attempts: []attempt{{down}, {down}, {down}, {down}, {down}, {text("Yes")}}, took: 15500 * time.Millisecond,
			want: []string{retry(refused, "500ms"), retry(refused, "1s"), retry(refused, "2s"), retry(refused, "4s"), retry(refused, "8s"), "agent: Yes"},
		},
		"six attempts": {
			attempts: []attempt{{busy("0")}, {busy("0")}, {busy("0")}, {busy("0")}, {busy("0")}, {busy("0")}}, reason: slow,
			want: []string{retry(slow, "0s"), retry(slow, "0s"), retry(slow, "0s"), retry(slow, "0s"), retry(slow, "0s")},
		},
		"the API says when": {
			attempts: []attempt{{busy("7")}, {busy("0.25")}, {text("Yes")}}, took: 7250 * time.Millisecond,
			want: []string{retry(slow, "7s"), retry(slow, "250ms"), "agent: Yes"},
		},
		"it gives a date": { // the bubble's time begins with the year 2000
			attempts: []attempt{{busy(time.Date(2000, 1, 1, 0, 0, 9, 0, time.UTC).Format(http.TimeFormat))}, {text("Yes")}}, took: 9 * time.Second,
			want: []string{retry(slow, "9s"), "agent: Yes"},
		},
		"it asks for a day":  {attempts: []attempt{{busy("86400")}, {}}, took: 5 * time.Minute, want: []string{retry(slow, "5m0s")}},
		"it gives no number": {attempts: []attempt{{busy("NaN")}, {busy("-1")}, {}}, took: 1500 * time.Millisecond, want: []string{retry(slow, "500ms"), retry(slow, "1s")}},
		"not temporary": {
			attempts: []attempt{{&agentkit.APIError{Status: 400, Reason: "what?"}}}, reason: "the model's API answers 400 Bad Request: what?",
		},
		"no key":        {attempts: []attempt{{&agentkit.APIError{Status: 401}}}, err: acp.ErrAuthRequired, reason: "401 Unauthorized: no reason given"},
		"another error": {attempts: []attempt{{errors.New("a mistake")}}, reason: "a mistake"},
		"a part was shown": {
			attempts: []attempt{{text("Ye"), down}}, want: []string{"agent: Ye"}, reason: refused,
		},
		"a part was not shown": {
			attempts: []attempt{{text("Ye"), down}, {text("Yes")}}, opts: &agentkit.StreamOptions{Hidden: true}, took: 500 * time.Millisecond,
			want: []string{retry(refused, "500ms")},
		},
		"silence": {
			attempts: []attempt{{hang}, {text("Yes")}}, opts: &agentkit.StreamOptions{Silence: time.Minute}, took: time.Minute + 500*time.Millisecond,
			want: []string{retry("the model's API: no answer for 1m0s", "500ms"), "agent: Yes"},
		},
		"slow, but alive": {
			attempts: []attempt{{4 * time.Minute, agentkit.Piece{}, 4 * time.Minute, text("Yes")}}, took: 8 * time.Minute, want: []string{"agent: Yes"},
		},
		"too long": {
			attempts: []attempt{{text("one"), text("two")}}, opts: &agentkit.StreamOptions{MaxBytes: 5}, want: []string{"agent: one", "agent: tw"}, err: agentkit.ErrTooLarge,
		},
		"too much that is not shown": {
			attempts: []attempt{{agentkit.Piece{More: 3}, agentkit.Piece{More: 3}, text("x")}}, opts: &agentkit.StreamOptions{MaxBytes: 5}, err: agentkit.ErrTooLarge,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := dialogue(t, agentkit.Config[models]{Title: func([]acp.ContentBlock) string { return "" }}, nil)
				n := 0
				request := func(ctx context.Context) iter.Seq2[agentkit.Piece, error] {
					steps := test.attempts[n]
					n++
					return func(yield func(agentkit.Piece, error) bool) {
						for _, step := range steps {
							ok := true
							switch v := step.(type) {
							case agentkit.Piece:
								ok = yield(v, nil)
							case error:
								ok = yield(agentkit.Piece{}, v)
							case time.Duration:
								select {
								case <-time.After(v):
								case <-ctx.Done():
									ok = yield(agentkit.Piece{}, ctx.Err())
								}
							}
							if !ok {
								return
							}
							synctest.Wait() // so that each piece is sent alone
						}
					}
				}
				begun := time.Now()
				var err error
				lines, prompted := s.prompt(t, func(ctx context.Context, turn *agentkit.Turn[models]) error {
					err = turn.Stream(ctx, request, test.opts)
					return nil
				})
				if took := time.Since(begun); prompted != nil || took != test.took || n != len(test.attempts) {
					t.Errorf("%d attempts took %v, %v; want %v", n, took, prompted, test.took)
				}
				wantLines(t, name, lines, test.want...)
				fails := test.err != nil || test.reason != ""
				if fails != (err != nil) || test.err != nil && !errors.Is(err, test.err) || !strings.Contains(fmt.Sprint(err), test.reason) {
					t.Errorf("the error is %v, want %v with %q", err, test.err, test.reason)
				}
			})
		})
	}
}

// A turn that is cancelled while Stream waits for the API, or before the next attempt, ends at once.
func TestStreamCancelled(t *testing.T) {
	for name, wait := range map[string]bool{"in an answer": false, "between attempts": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := dialogue(t, agentkit.Config[models]{}, nil)
				request := func(ctx context.Context) iter.Seq2[agentkit.Piece, error] {
					return func(yield func(agentkit.Piece, error) bool) {
						time.AfterFunc(time.Second, func() {
							if err := s.ClientSession.Cancel(context.Background()); err != nil {
								t.Error(err)
							}
						})
						if !wait {
							<-ctx.Done()
						}
						yield(agentkit.Piece{}, &agentkit.APIError{Status: 503, RetryAfter: "100"})
					}
				}
				begun := time.Now()
				var err error
				_, prompted := s.prompt(t, func(ctx context.Context, turn *agentkit.Turn[models]) error {
					err = turn.Stream(ctx, request, nil)
					return err
				})
				if took := time.Since(begun); prompted != nil || took != time.Second || !errors.Is(err, acp.ErrTurnCancelled) {
					t.Errorf("it took %v, and ended with %v and %v", took, err, prompted)
				}
			})
		})
	}
}

// A client gets the text of an APIError that a handler returns.
func TestAPIError(t *testing.T) {
	s := dialogue(t, agentkit.Config[models]{}, nil)
	for status, want := range map[int]error{401: acp.ErrAuthRequired, 500: acp.Code(-32603)} {
		_, err := s.prompt(t, func(context.Context, *agentkit.Turn[models]) error {
			return &agentkit.APIError{Status: status, Reason: "because"}
		})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "because") {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// The texts are those of package net/http, which is not imported.
func TestStatusText(t *testing.T) {
	for status := 100; status < 600; status++ {
		want := fmt.Sprintf("the model's API answers %d %s: no", status, http.StatusText(status))
		if got := (&agentkit.APIError{Status: status, Reason: "no"}).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestResults(t *testing.T) {
	long := acp.ToolCall{ToolCallID: "1", RawOutput: acp.Raw(strings.Repeat("é", 10_000)), Status: acp.ToolCallStatusCompleted}
	empty := acp.ToolCall{ToolCallID: "2", RawOutput: acp.Raw(""), Status: acp.ToolCallStatusCompleted}
	m := agentkit.Message{ToolCalls: []acp.ToolCall{long, empty}}
	for most, want := range map[int]int{1 << 20: 20_000, 10_002: 5_000, 0: 2_000} {
		var results []string
		for call, result := range m.Results(most) {
			results = append(results, string(call.ToolCallID)+result)
		}
		cut := "1" + strings.Repeat("é", want/2)
		if want < 20_000 {
			cut += "\n(cut off)"
		}
		wantLines(t, fmt.Sprint("at most ", most), results, cut, "2(no output)")
	}
}

func TestContentText(t *testing.T) {
	resource := &acp.TextResourceContents{URI: "file:///a", Text: "the text"}
	got := agentkit.ContentText(acp.TextBlock("Look: "), acp.ResourceLinkBlock("b", "file:///b"), acp.ImageBlock("AAAA", "image/png"),
		acp.ResourceBlock(acp.EmbeddedResourceResource{Variant: resource}))
	if want := "Look: [b](file:///b)(This is not text.)<resource uri=\"file:///a\">\nthe text\n</resource>"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := agentkit.ContentText(); got != "" {
		t.Errorf("no content is %q", got)
	}
}

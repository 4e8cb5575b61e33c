package view_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/tier"
)

// count counts the items of a snapshot.
func count(s *view.Snapshot) (n int) {
	for range s.Items() {
		n++
	}
	return n
}

// What is dropped is said, and what is kept is the newest.
func TestBounds(t *testing.T) {
	for name, test := range map[string]struct {
		opts       view.Options
		first, max int
	}{
		"items":   {view.Options{MaxItems: 100}, 9_900, 100},
		"bytes":   {view.Options{MaxBytes: 100_000, MaxItems: -1}, 9_000, 1_000},
		"nothing": {view.Options{MaxItems: -1, MaxBytes: -1}, 0, 10_000},
	} {
		s := view.New(&test.opts)
		for i := range 10_000 {
			s.Update(acp.StartToolCall(acp.ToolCallID(fmt.Sprint(i)), strings.Repeat("x", i%50)))
			if i%1000 == 0 {
				s.Snapshot()
			}
		}
		snapshot := s.Snapshot()
		if snapshot.End() != 10_000 || snapshot.First() < test.first || count(snapshot) > test.max || snapshot.First() != 10_000-count(snapshot) {
			t.Errorf("%s: %d to %d, %d items", name, snapshot.First(), snapshot.End(), count(snapshot))
		}
		if snapshot.Item(snapshot.First()-1) != nil || snapshot.Item(snapshot.End()) != nil || snapshot.Item(9_999) == nil || snapshot.Item(-1) != nil {
			t.Errorf("%s: items that are not there", name)
		}
		if _, ok := s.ToolCall("9999"); !ok {
			t.Errorf("%s: the last call is not known", name)
		}
		// An update of a call that was dropped makes a new item.
		if snapshot.First() > 0 {
			s.Update(acp.UpdateToolCall("0", acp.WithTitle("again")))
			if c, ok := s.Snapshot().Item(10_000).Variant.(*view.ToolCall); !ok || c.Announced || c.Call.Title != "again" {
				t.Errorf("%s: got %v", name, s.Snapshot().Item(10_000))
			}
		}
	}
}

// A message that never ends is cut, and says by how much; what comes after it is not.
func TestLongMessage(t *testing.T) {
	s := view.New(&view.Options{MaxMessageBytes: 1000})
	for range 100 {
		s.Update(acp.AgentMessageText(strings.Repeat("x", 30)))
	}
	s.Update(acp.AgentThoughtText("hm"))
	s.Update(acp.NewSessionUpdateCompactionUpdate(acp.CompactionUpdate{CompactionID: "c", Status: acp.CompactionStatusInProgress}))
	for range 100 {
		s.Update(acp.NewSessionUpdateCompactionSummaryChunk(acp.CompactionSummaryChunk{CompactionID: "c", Content: acp.TextBlock(strings.Repeat("y", 30))}))
	}
	now := s.Snapshot()
	m := now.Item(0).Variant.(*view.Message)
	c := now.Item(2).Variant.(*view.Compaction)
	for _, content := range []view.Content{m.Content, c.Summary} {
		if len(content.Text()) != 990 || content.Dropped != 2010 {
			t.Errorf("%d bytes are kept, %d dropped", len(content.Text()), content.Dropped)
		}
	}
	if now.Item(1).Variant.(*view.Message).Text() != "hm" {
		t.Error("the thought is not there")
	}
}

// What takes room counts, also where agents usually put little.
func TestBytesOfEverything(t *testing.T) {
	const long, room = 10_000, 100_000
	for name, update := range map[string]func(id string) acp.SessionUpdate{
		"the id of a message": func(id string) acp.SessionUpdate {
			return acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.TextBlock("x"), MessageID: acp.Some(acp.MessageID(id))})
		},
		"the id of a tool call": func(id string) acp.SessionUpdate { return acp.StartToolCall(acp.ToolCallID(id), "x") },
		"the id of a compaction": func(id string) acp.SessionUpdate {
			return acp.NewSessionUpdateCompactionUpdate(acp.CompactionUpdate{CompactionID: acp.CompactionID(id)})
		},
		"a link": func(id string) acp.SessionUpdate {
			return acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{MessageID: acp.Some(acp.MessageID(id[:10])), Content: acp.ContentBlock{
				Variant: &acp.ContentBlockResourceLink{Name: "x", URI: "file:///x", Description: acp.Some(id)}}})
		},
	} {
		s := view.New(&view.Options{MaxBytes: room})
		for i := range 100 {
			s.Update(update(fmt.Sprintf("%010d", i) + strings.Repeat("x", long)))
		}
		if n := count(s.Snapshot()); n > room/long {
			t.Errorf("%s: %d items of %d bytes are kept", name, n, long)
		}
	}
}

// A summary that comes as a whole is joined and cut like one that comes in pieces.
func TestWholeSummary(t *testing.T) {
	s := view.New(&view.Options{MaxMessageBytes: 1000})
	s.Update(acp.NewSessionUpdateCompactionUpdate(acp.CompactionUpdate{CompactionID: "c", Status: acp.CompactionStatusInProgress,
		Summary: acp.Some([]acp.ContentBlock{acp.TextBlock("one "), acp.TextBlock("two ")})}))
	s.Update(acp.NewSessionUpdateCompactionSummaryChunk(acp.CompactionSummaryChunk{CompactionID: "c", Content: acp.TextBlock("three")}))
	c := s.Snapshot().Item(0).Variant.(*view.Compaction)
	n := 0
	for range c.Summary.Blocks() {
		n++
	}
	if n != 1 || c.Summary.Text() != "one two three" {
		t.Errorf("%d blocks, %q", n, c.Summary.Text())
	}
	s.Update(acp.NewSessionUpdateCompactionUpdate(acp.CompactionUpdate{CompactionID: "c", Status: acp.CompactionStatusCompleted,
		Summary: acp.Some([]acp.ContentBlock{acp.TextBlock(strings.Repeat("x", 900)), acp.TextBlock(strings.Repeat("x", 900))})}))
	c = s.Snapshot().Item(0).Variant.(*view.Compaction)
	if len(c.Summary.Text()) != 900 || c.Summary.Dropped != 900 {
		t.Errorf("%d bytes are kept, %d dropped", len(c.Summary.Text()), c.Summary.Dropped)
	}
}

// The end of a turn costs the same however many tool calls of other turns have not ended.
func TestManyOpenCalls(t *testing.T) {
	tier.Need(t, tier.Normal)
	fastest := func(open int) time.Duration {
		s := view.New(nil)
		for i := range open {
			s.Update(acp.StartToolCall(acp.ToolCallID(fmt.Sprint(i)), "x"))
		}
		best := time.Duration(1 << 62)
		for range 20 {
			began := time.Now()
			for range 100 {
				s.Prompt(acp.TextBlock("x")).End(nil, nil)
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	if few, many := fastest(1), fastest(100_000); many > 50*few {
		t.Errorf("%v with many open calls, %v with few", many, few)
	}
}

// Turns go with their items, and the plans of an agent that makes ever more are few.
func TestManyTurns(t *testing.T) {
	s := view.New(&view.Options{MaxItems: 10})
	for range 1000 {
		turn := s.Prompt(acp.TextBlock("x"))
		s.Update(acp.AgentMessageText("y"))
		turn.End(&acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil)
	}
	for i := range 10_000 {
		s.Update(acp.NewSessionUpdatePlanUpdate(acp.PlanUpdate{Plan: acp.NewPlanUpdateContentMarkdown(
			acp.PlanMarkdown{PlanID: acp.PlanID(fmt.Sprint(i))})}))
	}
	now := s.Snapshot()
	turns := 0
	for range now.Turns() {
		turns++
	}
	if turns > 10 || now.Turn(1000) == nil || now.Turn(1) != nil || now.Turn(1001) != nil || len(now.Plans) != 100 {
		t.Errorf("%d turns, %d plans", turns, len(now.Plans))
	}
}

// The history that a session/load replays takes the place of what was there, and turns of before do not come back.
func TestReplay(t *testing.T) {
	s := view.New(nil)
	turn := s.Prompt(acp.TextBlock("old"))
	s.Update(acp.TitleUpdate("T"))
	before := s.Snapshot()
	s.Reset()
	for range 2 {
		s.Update(acp.UserMessageText("what"))
		s.Update(acp.StartToolCall("1", "Look"))
		s.Update(acp.AgentMessageText("that"))
	}
	turn.Cancel()
	turn.End(&acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil)
	now := s.Snapshot()
	if now.SameHistory(before) || now.End() != 6 || now.Title.Value() != "T" || count(before) != 1 {
		t.Errorf("%d items, title %v", now.End(), now.Title)
	}
	one, two := now.Turn(1), now.Turn(2)
	if one == nil || !one.Replayed || !one.Ended || one.StopReason != "" || two == nil || two.Ended || now.Turn(3) != nil {
		t.Errorf("turns %+v, %+v", one, two)
	}
	if !now.Item(1).Variant.(*view.ToolCall).Unfinished || now.Item(4).Variant.(*view.ToolCall).Unfinished {
		t.Error("the call of the first turn is to be unfinished, that of the second open")
	}
	s.Prompt(acp.TextBlock("new"))
	if now = s.Snapshot(); now.Turn(3) == nil || now.Turn(3).Replayed || !now.Turn(2).Ended {
		t.Errorf("turns %+v, %+v", now.Turn(2), now.Turn(3))
	}
}

// A prompt is not doubled when the agent repeats it, as a whole or in pieces; what only begins like it is kept.
func TestEcho(t *testing.T) {
	user := func(s *view.State) (texts []string) {
		for item := range s.Snapshot().Items() {
			if m, ok := item.Variant.(*view.Message); ok && m.Role == view.User {
				texts = append(texts, m.Text())
			}
		}
		return texts
	}
	for name, test := range map[string]struct{ chunks, want []string }{
		"none":             {nil, []string{"fix the bug"}},
		"whole":            {[]string{"fix the bug"}, []string{"fix the bug"}},
		"in pieces":        {[]string{"fix ", "the", " bug"}, []string{"fix the bug"}},
		"something else":   {[]string{"also this"}, []string{"fix the bug", "also this"}},
		"begins like it":   {[]string{"fix ", "it all"}, []string{"fix the bug", "fix it all"}},
		"more than it":     {[]string{"fix the bug", " now"}, []string{"fix the bug", " now"}},
		"twice is not one": {[]string{"fix the bug", "fix the bug"}, []string{"fix the bug", "fix the bug"}},
	} {
		s := view.New(nil)
		turn := s.Prompt(acp.TextBlock("fix the bug"))
		for _, chunk := range test.chunks {
			s.Update(acp.UserMessageText(chunk))
		}
		if got := user(s); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		turn.End(nil, errors.New("lost"))
	}
}

// Readers that read snapshots while the State grows see what was there, and block nothing.
func TestReaders(t *testing.T) {
	tier.Need(t, tier.Normal)
	s := view.New(&view.Options{MaxItems: 50})
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			var old *view.Snapshot
			for now := range s.Watch(ctx) {
				text := describe(now)
				for item := range now.Changed(old) {
					_ = item.String()
					_, _ = item.Added(old)
				}
				if again := describe(now); again != text {
					t.Errorf("a snapshot has changed from\n%s\nto\n%s", text, again)
				}
				old = now
			}
		})
	}
	readers.Go(func() {
		for ctx.Err() == nil {
			s.Snapshot()
			s.ToolCall("t1")
			runtime.Gosched()
		}
	})
	updates, r := someUpdates(t), rand.New(rand.NewPCG(17, 17))
	for i := range 1500 {
		if i%100 == 0 {
			turn := s.Prompt(acp.TextBlock("go"))
			defer turn.End(nil, nil)
		}
		s.Update(updates[r.IntN(len(updates))])
	}
	cancel()
	readers.Wait()
}

// A reader is notified of changes, several at once if it is slow, and of the last in any case.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := view.New(nil)
		ctx, cancel := context.WithCancel(t.Context())
		var seen []int
		done := make(chan struct{})
		go func() {
			defer close(done)
			for now := range s.Watch(ctx) {
				seen = append(seen, now.End())
				time.Sleep(time.Second) // it draws
			}
		}()
		synctest.Wait()
		for range 5 {
			s.Update(acp.StartToolCall(acp.ToolCallID(fmt.Sprint(time.Now().UnixNano())), "x"))
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		cancel()
		<-done
		if fmt.Sprint(seen) != "[0 4 5]" {
			t.Errorf("seen %v", seen)
		}
		for range s.Watch(t.Context()) {
			break // it yields what there is at once
		}
	})
}

// prompter is a session of which nothing but prompts is wanted.
type prompter func(context.Context) (*acp.PromptResponse, error)

func (p prompter) Prompt(ctx context.Context, _ ...acp.ContentBlock) (*acp.PromptResponse, error) {
	return p(ctx)
}

// Prompt begins and ends the turn, and marks open tool calls when it is cancelled, at once.
func TestPRM8_Prompt(t *testing.T) {
	s := view.New(nil)
	ctx, cancel := context.WithCancel(t.Context())
	marked := false
	_, err := view.Prompt(ctx, s, prompter(func(ctx context.Context) (*acp.PromptResponse, error) {
		s.Update(acp.StartToolCall("1", "One"))
		s.Update(acp.StartToolCall("2", "Two"))
		s.Update(acp.UpdateToolCall("2", acp.WithStatus(acp.ToolCallStatusCompleted)))
		cancel()
		for now := range s.Watch(t.Context()) {
			if marked = now.Item(1).Variant.(*view.ToolCall).Cancelled; marked {
				break
			}
		}
		s.Update(acp.UpdateToolCall("1", acp.WithTitle("Late")))
		return &acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	}), acp.TextBlock("go"))
	if err != nil {
		t.Fatal(err)
	}
	now := s.Snapshot()
	one, two := now.Item(1).Variant.(*view.ToolCall), now.Item(2).Variant.(*view.ToolCall)
	if turn := now.Turn(1); !marked || !turn.Ended || !turn.Cancelled || turn.StopReason != acp.StopReasonCancelled {
		t.Errorf("marked %v, turn %+v", marked, turn)
	}
	if !one.Cancelled || !one.Unfinished || one.Call.Title != "Late" || two.Cancelled || two.Unfinished {
		t.Errorf("calls %+v, %+v", one, two)
	}
	_, err = view.Prompt(t.Context(), s, prompter(func(context.Context) (*acp.PromptResponse, error) {
		return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn, Usage: acp.Some(acp.Usage{TotalTokens: 7})}, nil
	}))
	if turn := s.Snapshot().Turn(2); err != nil || turn.Usage.Value().TotalTokens != 7 || turn.StopReason != acp.StopReasonEndTurn {
		t.Errorf("turn %+v, %v", turn, err)
	}
	lost := errors.New("lost")
	_, err = view.Prompt(t.Context(), s, prompter(func(context.Context) (*acp.PromptResponse, error) { return nil, lost }))
	if turn := s.Snapshot().Turn(3); err != lost || turn.Err != lost || !turn.Ended {
		t.Errorf("turn %+v, %v", turn, err)
	}
}

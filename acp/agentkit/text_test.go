package agentkit_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
)

// sink is a session that keeps what it is sent. It is busy between hold and release.
type sink struct {
	mu      sync.Mutex
	busy    chan struct{}
	fail    error
	updates []acp.SessionUpdate
}

func (s *sink) Update(ctx context.Context, update acp.SessionUpdate) error {
	s.mu.Lock()
	busy := s.busy
	s.mu.Unlock()
	if busy != nil {
		<-busy
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.updates = append(s.updates, update)
	return nil
}

func (s *sink) RequestPermission(context.Context, acp.ToolCallUpdate, ...acp.PermissionOption) (acp.RequestPermissionOutcome, error) {
	return acp.RequestPermissionOutcome{}, errors.New("nobody is asked here")
}

func (s *sink) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = make(chan struct{})
}

func (s *sink) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.busy)
	s.busy = nil
}

func (s *sink) failWith(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

func (s *sink) sent() []acp.SessionUpdate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updates
}

// chunks are the texts of the message chunks that were sent.
func (s *sink) chunks() []string {
	var texts []string
	for _, u := range s.sent() {
		if text := u.AgentText(); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

func (s *sink) text() string { return strings.Join(s.chunks(), "") }

// FuzzText requires that what arrives is what a conversion to runes makes of the bytes, however they were cut, and that
// each piece is whole.
func FuzzText(f *testing.F) {
	for _, text := range []string{
		"", "plain", "größer", "日本語", "🙂👍🏽", "e\u0301", "\x00\n\"\\",
		"\xff", "a\xffb", "\xe2\x82", "\xe2\x82A", "\xe2A\x82", "\xf0\x9f\x98", "\xf0\x9f\x98\x41", "\xc0\x80", "\xed\xa0\x80",
		"\xf4\x90\x80\x80", "\x80\x80\x80\x80\x80", "\xf0\xf0\xf0\x9f\x99\x82", "日\xe6\x97",
	} {
		for size := range uint64(5) {
			f.Add([]byte(text), size+1, uint64(1))
			f.Add([]byte(text), size+1, uint64(4))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, size, flush uint64) {
		s := &sink{}
		message := agentkit.NewMessage(t.Context(), s)
		for i, part := range slices.Collect(slices.Chunk(text, int(max(1, size%100_000)))) {
			part = slices.Clone(part)
			if n := must.Get(message.Write(part))(t); n != len(part) {
				t.Errorf("wrote %d bytes of %d", n, len(part))
			}
			clear(part) // Write must not keep it
			if uint64(i)%max(1, flush) == 0 {
				must.Do(t, message.Flush())
			}
		}
		must.Do(t, message.Close())
		if got, want := s.text(), string([]rune(string(text))); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		for _, chunk := range s.chunks() {
			if !utf8.ValidString(chunk) || chunk == "" {
				t.Errorf("sent %q", chunk)
			}
		}
	})
}

// One message is one id; another one has another.
func TestTextIDs(t *testing.T) {
	s := &sink{}
	message, thought := agentkit.NewMessage(t.Context(), s), agentkit.NewThought(t.Context(), s)
	for _, text := range []*agentkit.Text{message, thought, message} {
		must.Get(io.WriteString(text, "x"))(t)
		must.Do(t, text.Flush())
	}
	first := s.sent()[0].Variant.(*acp.SessionUpdateAgentMessageChunk)
	second := s.sent()[1].Variant.(*acp.SessionUpdateAgentThoughtChunk)
	third := s.sent()[2].Variant.(*acp.SessionUpdateAgentMessageChunk)
	if first.MessageID.Value() != message.ID() || third.MessageID != first.MessageID || second.MessageID == first.MessageID {
		t.Errorf("got ids %v, %v, %v", first.MessageID, second.MessageID, third.MessageID)
	}
}

// What one goroutine writes while the connection is busy is joined; what it writes to an idle one is sent without a Flush.
func TestTextIsJoinedWhileTheWriterIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		message := agentkit.NewMessage(t.Context(), s)
		write := func(text string) {
			must.Get(message.WriteString(text))(t)
		}
		write("first ")
		synctest.Wait()
		s.hold()
		write("second ")
		synctest.Wait()
		for range 1000 {
			write("more ")
		}
		if got := s.text(); got != "first " {
			t.Errorf("sent %q", got)
		}
		s.release()
		synctest.Wait()
		if got := len(s.chunks()); got != 3 {
			t.Errorf("sent %d pieces, want 3", got)
		}
		if got, want := s.text(), "first second "+strings.Repeat("more ", 1000); got != want {
			t.Errorf("sent %q", got)
		}
		must.Do(t, message.Close())
	})
}

// The buffer is bounded, also when all of it grows to U+FFFD, and a Write waits for room.
func TestTextWaitsForRoom(t *testing.T) {
	for _, filler := range []string{"x", "é", "\xff"} {
		synctest.Test(t, func(t *testing.T) {
			s := &sink{}
			s.hold()
			message := agentkit.NewMessage(t.Context(), s)
			text := strings.Repeat(filler, 300_000)
			written := make(chan error, 1)
			go func() {
				_, err := message.WriteString(text)
				written <- err
			}()
			synctest.Wait()
			select {
			case err := <-written:
				t.Fatalf("%d bytes were taken, %v", len(text), err)
			default:
			}
			s.release()
			if err := <-written; err != nil {
				t.Fatal(err)
			}
			must.Do(t, message.Close())
			if s.text() != string([]rune(text)) {
				t.Error("the text is another one")
			}
			for _, chunk := range s.chunks() {
				if len(chunk) > 64<<10 {
					t.Errorf("a piece has %d bytes", len(chunk))
				}
			}
		})
	}
}

// The end of the context ends a Write that waits; what was taken before is still sent.
func TestTextEndOfContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sink{}
		s.hold()
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		message := agentkit.NewMessage(ctx, s)
		text := strings.Repeat("x", 300_000)
		written, taken := make(chan error, 1), 0
		go func() {
			var err error
			taken, err = message.WriteString(text)
			written <- err
		}()
		synctest.Wait()
		cancel(why)
		if err := <-written; !errors.Is(err, why) {
			t.Errorf("the Write ended with %v", err)
		}
		s.release()
		must.Do(t, message.Close())
		if got := len(s.text()); got != taken || taken == 0 || taken == len(text) {
			t.Errorf("took %d bytes, sent %d", taken, got)
		}
		if _, err := message.WriteString("y"); !errors.Is(err, agentkit.ErrEnded) {
			t.Errorf("a Write after Close: %v", err)
		}
	})
}

// blocked is a session whose connection takes some updates, and then nothing.
type blocked struct {
	agentkit.Asker
	takes int
}

func (b *blocked) Update(ctx context.Context, _ acp.SessionUpdate) error {
	if b.takes--; b.takes >= 0 {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// A connection that takes nothing blocks for at most ten seconds after the end of the context.
func TestEndsAreBounded(t *testing.T) {
	for name, start := range map[string]func(context.Context) (closing func() error, err error){
		"text": func(ctx context.Context) (func() error, error) {
			message := agentkit.NewMessage(ctx, &blocked{})
			_, err := message.WriteString("hello")
			return message.Close, err
		},
		"call": func(ctx context.Context) (func() error, error) {
			call, err := agentkit.StartToolCall(ctx, &blocked{takes: 1}, "Tool")
			return call.Close, err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, acp.ErrTurnCancelled)
			defer cancel()
			closing := must.Get(start(ctx))(t)
			began := time.Now()
			if err := closing(); !errors.Is(err, acp.ErrTurnCancelled) {
				t.Errorf("closing the %s: %v", name, err)
			}
			if took := time.Since(began) - time.Hour; took != 10*time.Second {
				t.Errorf("closing the %s took %v after the end of the context", name, took)
			}
		})
	}
}

// The error of sending is what the next calls return.
func TestTextErrors(t *testing.T) {
	s, lost := &sink{}, errors.New("lost")
	message := agentkit.NewMessage(t.Context(), s)
	must.Get(message.WriteString("a"))(t)
	must.Do(t, message.Flush())
	s.failWith(lost)
	must.Get(message.WriteString("b"))(t)
	if err := message.Flush(); !errors.Is(err, lost) {
		t.Errorf("Flush: %v", err)
	}
	if _, err := message.WriteString("c"); !errors.Is(err, lost) {
		t.Errorf("Write: %v", err)
	}
	for range 2 {
		if err := message.Close(); !errors.Is(err, lost) {
			t.Errorf("Close: %v", err)
		}
	}
}

// Many goroutines write: nothing is lost, and what one Write got stays together.
func TestTextConcurrentWrites(t *testing.T) {
	s := &sink{}
	message := agentkit.NewMessage(t.Context(), s)
	const writers, lines = 8, 200
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			line := strings.Repeat(string(rune('a'+i)), 100+i*2000) + "é\n"
			for range lines {
				if _, err := message.WriteString(line); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	must.Do(t, message.Close())
	count := map[string]int{}
	for line := range strings.Lines(s.text()) {
		count[line]++
	}
	if len(count) != writers {
		t.Errorf("got %d different lines, want %d", len(count), writers)
	}
	for line, n := range count {
		if n != lines {
			t.Errorf("a line of %d bytes came %d times", len(line), n)
		}
	}
}

// A piece that is joined to others costs its share of their text; one that is sent alone costs as much as an update, and a
// goroutine.
func TestAllocationsText(t *testing.T) {
	if gentest.Race {
		t.Skip("the race detector allocates")
	}
	message := agentkit.NewMessage(t.Context(), mute{})
	piece := []byte(strings.Repeat("x", 64))
	write := func() {
		must.Get(message.Write(piece))(t)
	}
	alone := testing.AllocsPerRun(200, func() {
		write()
		must.Do(t, message.Flush())
	})
	s := &sink{}
	s.hold()
	joined := agentkit.NewMessage(t.Context(), s)
	together := testing.AllocsPerRun(500, func() {
		must.Get(joined.Write(piece))(t)
	})
	s.release()
	for _, text := range []*agentkit.Text{message, joined} {
		must.Do(t, text.Close())
	}
	t.Logf("alone: %.1f allocations, joined: %.1f", alone, together)
	if alone > 4.5 || together > 0.5 {
		t.Errorf("alone: %.1f allocations, want 4; joined: %.1f, want none", alone, together)
	}
}

package tui

// How the client's goroutines send messages to the loop. They never wait for the loop, which may be busy or have lent
// the terminal to a login, and many messages are combined into few.

import (
	"context"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

// mailbox holds messages until the loop takes them, all at once.
type mailbox struct {
	wake chan struct{}

	mu      sync.Mutex
	msgs    []tea.Msg
	stderr  []string
	outputs map[outputMsg]bool
}

// mailMsg are the messages of a mailbox.
type mailMsg []tea.Msg

func newMailbox() *mailbox {
	return &mailbox{wake: make(chan struct{}, 1), outputs: map[outputMsg]bool{}}
}

// put adds a message. For the agent's standard error, only the last lines are kept, and for a terminal, only that it
// has changed.
func (b *mailbox) put(msg tea.Msg) {
	b.mu.Lock()
	switch msg := msg.(type) {
	case outputMsg:
		b.outputs[msg] = true
	case eventMsg:
		if msg.Kind != talk.Stderr {
			b.msgs = append(b.msgs, msg)
			break
		}
		if b.stderr = append(b.stderr, msg.Text); len(b.stderr) > 2*maxLines {
			b.stderr = append(b.stderr[:0], b.stderr[maxLines:]...)
		}
	default:
		b.msgs = append(b.msgs, msg)
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take removes and returns all messages.
func (b *mailbox) take() mailMsg {
	b.mu.Lock()
	defer b.mu.Unlock()
	var mail mailMsg
	if len(b.stderr) > 0 {
		mail = append(mail, stderrMsg(b.stderr))
		b.stderr = nil
	}
	for o := range b.outputs {
		mail = append(mail, o)
	}
	clear(b.outputs)
	mail = append(mail, b.msgs...)
	b.msgs = nil
	return mail
}

// deliver sends the messages to the loop, at most once per half a frame.
func (b *mailbox) deliver(ctx context.Context, send func(tea.Msg)) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-b.wake:
		case <-ctx.Done():
			return
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		if mail := b.take(); len(mail) > 0 {
			send(mail)
		}
		pause.Reset(frame / 2)
	}
}

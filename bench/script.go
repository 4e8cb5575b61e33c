package main

// What an agent plays in a turn. The prompt's text says it, so that every library's agent plays the same.

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"time"
)

// script is a turn.
type script struct {
	Updates  int           `json:",omitempty"` // how many chunks to send
	Size     int           `json:",omitempty"` // bytes of text in each
	Every    time.Duration `json:",omitempty"` // pause before each, whose text then says when it was sent
	Asks     int           `json:",omitempty"` // permissions asked for between them
	Reads    int           `json:",omitempty"` // calls of fs/read_text_file
	InFlight int           `json:",omitempty"` // so many of them at a time
	Memory   bool          `json:",omitempty"` // send one chunk that says what the agent has allocated
}

func (s script) String() string { return string(asJSON(s)) }

// ops is how many measured things a turn has: its chunks, or its calls.
func (s script) ops() int { return max(s.Updates+s.Reads, 1) }

// voice is what an agent says to its client in one session, by some library.
type voice interface {
	// Chunk makes an update, and Send sends it: agents have updates at hand, and what is measured is
	// the sending.
	Chunk(text string) any
	Send(ctx context.Context, chunk any) error
	Read(ctx context.Context) (content string, err error)
	Ask(ctx context.Context) (option string, err error)
}

// play plays the turn that the prompt's text asks for.
func play(ctx context.Context, prompt string, v voice) error {
	var s script
	if err := json.Unmarshal([]byte(prompt), &s); err != nil {
		return err
	}
	if s.Memory {
		return v.Send(ctx, v.Chunk(string(asJSON(readMemory()))))
	}
	if s.Every > 0 {
		return s.playSparse(ctx, v)
	}
	part := s.Updates/(s.Asks+1) + 1 // updates before each question
	chunks := chunksOf(min(s.Updates, cycle), s.Size, v)
	for i := range s.Updates {
		if i > 0 && i%part == 0 {
			if err := ask(ctx, v); err != nil {
				return err
			}
		}
		if err := v.Send(ctx, chunks[i%cycle]); err != nil {
			return err
		}
	}
	return s.playReads(ctx, v)
}

func ask(ctx context.Context, v voice) error {
	option, err := v.Ask(ctx)
	if err == nil && option != allowed {
		err = fmt.Errorf("the client chose %q", option)
	}
	return err
}

func (s script) playSparse(ctx context.Context, v voice) error {
	for i := range s.Updates {
		time.Sleep(s.Every)
		text := numbered(i, 64)
		text = text[:numberWidth] + fmt.Sprintf(" %019d", time.Now().UnixNano()) + text[numberWidth+20:]
		if err := v.Send(ctx, v.Chunk(text)); err != nil {
			return err
		}
	}
	return nil
}

func (s script) playReads(ctx context.Context, v voice) error {
	var group sync.WaitGroup
	failures := make(chan error, s.InFlight)
	for worker := range s.InFlight {
		group.Go(func() {
			for range (s.Reads + worker) / s.InFlight {
				content, err := v.Read(ctx)
				if err == nil && content != fileContent {
					err = fmt.Errorf("got %d bytes of another file", len(content))
				}
				if err != nil {
					failures <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(failures)
	return <-failures
}

const (
	allowed     = "allow"
	filePath    = "/src/conn.go"
	numberWidth = 6
	cycle       = 1000 // updates are numbered up to here, and then from 0 again
)

var fileContent = prose(1024)

func prose(size int) string {
	const sentence = "The quick brown fox jumps over the lazy dog, and on.\n"
	return strings.Repeat(sentence, size/len(sentence)+1)[:size]
}

// numbered is a text that begins with its number, for the client to see what is lost or out of order.
func numbered(n, size int) string {
	return fmt.Sprintf("%0*d", numberWidth, n) + prose(size)[numberWidth:]
}

// number reads what numbered wrote.
func number(text string) (n int) {
	for _, c := range []byte(text[:min(numberWidth, len(text))]) {
		n = 10*n + int(c-'0')
	}
	return n
}

var prepared sync.Map // of []any, by prepareKey

type prepareKey struct {
	voice       reflect.Type
	count, size int
}

// chunksOf makes the updates of a turn, once.
func chunksOf(count, size int, v voice) []any {
	key := prepareKey{reflect.TypeOf(v), count, size}
	if made, ok := prepared.Load(key); ok {
		return made.([]any)
	}
	var made []any
	for i := range count {
		made = append(made, v.Chunk(numbered(i, size)))
	}
	prepared.Store(key, made)
	return made
}

// memory is what a process has allocated so far.
type memory struct {
	Allocs uint64
	Bytes  uint64
	Peak   uint64 // bytes from the operating system, which never become fewer
}

func readMemory() memory {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{Allocs: m.Mallocs, Bytes: m.TotalAlloc, Peak: m.Sys}
}

func asJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // a struct of numbers
	}
	return data
}

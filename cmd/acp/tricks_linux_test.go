package main

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/test/tricks"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestTricks: what an agent does around a question does not change what the user decides, in acp exec and a view.Console.
func TestTricks(t *testing.T) {
	for door, args := range map[string]func(name, answer string) (program string, args []string){
		"exec": func(name, answer string) (string, []string) {
			return "acp", []string{"exec", name, "--", "trickster", answer}
		},
		"Console": func(name, answer string) (string, []string) { return "consoleclient", []string{name, answer} },
	} {
		for _, k := range tricks.All() {
			if k.Idle {
				continue // the program ends with the turn
			}
			t.Run(door+"/"+k.Name, func(t *testing.T) {
				t.Parallel()
				answer := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
				played := make(tricks.Played, 1)
				var telling sync.WaitGroup
				telling.Go(func() {
					var id []byte
					if conn, err := answer.Accept(); err == nil {
						id, _ = io.ReadAll(conn) // the test fails without it
						_ = conn.Close()
					}
					played <- acp.PermissionOptionID(id)
				})
				program, words := args(k.Name, answer.Addr().String())
				s := programInSession(t, program, words...)
				var shown lines
				go func() { _, _ = io.Copy(&shown, s.main) }()                   // until the program ends
				typ := func(text string) { _, _ = io.WriteString(s.main, text) } // the program may have ended
				k.Test(t, &tricks.Lines{T: t, Type: func(line string) { typ(line + "\n") }, Stop: func() { typ("\x03") }, Shown: func() string {
					return strings.ReplaceAll(shown.String(), "\r\n", "\n")
				}}, played)
				done := make(chan error, 1)
				go func() { done <- s.Wait() }()
				select {
				case <-done:
				case <-time.After(time.Minute):
					t.Error("it does not end")
				}
				_ = answer.Close()
				telling.Wait()
			})
		}
	}
}

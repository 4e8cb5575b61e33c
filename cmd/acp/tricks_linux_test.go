package main

import (
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/tricks"
)

var answer = regexp.MustCompile(`answer <(.*)>`)

// TestTricks: what an agent does around a question does not change what the user decides, in acp exec and a view.Console.
func TestTricks(t *testing.T) {
	for door, args := range map[string]func(name string) (program string, args []string){
		"exec":    func(name string) (string, []string) { return "acp", []string{"exec", name, "--", "trickster"} },
		"Console": func(name string) (string, []string) { return "consoleclient", []string{name} },
	} {
		for _, k := range tricks.All() {
			t.Run(door+"/"+k.Name, func(t *testing.T) {
				t.Parallel()
				program, words := args(k.Name)
				s := programInSession(t, program, words...)
				var mu sync.Mutex
				var shown strings.Builder
				played := make(tricks.Played, 1)
				var reading sync.WaitGroup
				reading.Go(func() {
					for part := make([]byte, 4096); ; {
						n, err := s.main.Read(part)
						mu.Lock()
						shown.Write(part[:n])
						found := answer.FindStringSubmatch(shown.String())
						mu.Unlock()
						if found != nil {
							played <- acp.PermissionOptionID(found[1])
							return
						}
						if err != nil {
							return
						}
					}
				})
				k.Test(t, &tricks.Lines{T: t, Type: func(line string) { s.typeIn(t, line+"\n") }, Shown: func() string {
					mu.Lock()
					defer mu.Unlock()
					return strings.ReplaceAll(shown.String(), "\r\n", "\n")
				}}, played)
				reading.Wait()
				done := make(chan error, 1)
				go func() { done <- s.Wait() }()
				go func() { // so that the program can write the rest
					for part := make([]byte, 4096); ; {
						if _, err := s.main.Read(part); err != nil {
							return
						}
					}
				}()
				select {
				case <-done:
				case <-time.After(time.Minute):
					t.Error("it does not end")
				}
			})
		}
	}
}

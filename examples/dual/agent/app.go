package main

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"time"
)

// screen shows the user what the agent does, with the messages of one version.
type screen interface {
	// say shows a piece of a message.
	say(ctx context.Context, message, text string) error
	// plan shows the plan.
	plan(ctx context.Context, steps []step) error
	// propose shows a command that the agent would like to run, and asks whether it may.
	propose(ctx context.Context, c *command) (allowed bool, err error)
	// output shows more of what the command has written.
	output(ctx context.Context, c *command, text string) error
	// end shows that the command has ended, or was not run.
	end(ctx context.Context, c *command, how outcome) error
}

// step is one step of a plan.
type step struct {
	text   string
	status stepStatus
}

type stepStatus string

const (
	pending    stepStatus = "pending"
	inProgress stepStatus = "in_progress"
	completed  stepStatus = "completed"
)

// command is a command of the agent. There is no shell: the agent knows one command, which lists a directory.
type command struct {
	id   string
	line string
	cwd  string
}

// outcome is how a command ended.
type outcome int

const (
	succeeded outcome = iota
	failed
	refused
)

// Limits on what one agent keeps: its client opens the sessions, and determines their content.
const (
	maxSessions = 1000
	maxHistory  = 4 << 20 // bytes stored for a session of version 2
)

// play answers a prompt. It fails when the turn is cancelled.
func play(ctx context.Context, s screen, cwd, prompt string) error {
	if strings.HasPrefix(prompt, "Write a very long") {
		return writeAtLength(ctx, s)
	}
	steps := []step{{"List the directory", inProgress}, {"Say what is there", pending}}
	if err := s.plan(ctx, steps); err != nil {
		return err
	}
	if err := s.say(ctx, newID("msg"), "I look at what is there."); err != nil {
		return err
	}
	entries, err := list(ctx, s, &command{id: newID("call"), line: "ls", cwd: cwd})
	if err != nil {
		return err
	}
	steps[0].status, steps[1].status = completed, completed
	if err := s.plan(ctx, steps); err != nil {
		return err
	}
	text := "I was not allowed to look."
	if entries != nil {
		text = "There is: " + strings.Join(entries, ", ")
	}
	return s.say(ctx, newID("msg"), text)
}

// list runs the command if the user allows it. It returns nil if not.
func list(ctx context.Context, s screen, c *command) (names []string, err error) {
	allowed, err := s.propose(ctx, c)
	if err != nil {
		return nil, err
	}
	if !allowed {
		return nil, s.end(ctx, c, refused)
	}
	entries, err := os.ReadDir(c.cwd)
	if err != nil {
		if err := s.output(ctx, c, "ls: "+err.Error()+"\n"); err != nil {
			return nil, err
		}
		return []string{"nothing"}, s.end(ctx, c, failed)
	}
	names = []string{}
	for _, entry := range entries {
		names = append(names, entry.Name())
		if err := s.output(ctx, c, entry.Name()+"\n"); err != nil {
			return nil, err
		}
	}
	return names, s.end(ctx, c, succeeded)
}

// writeAtLength streams a message for two minutes, unless the turn is cancelled.
func writeAtLength(ctx context.Context, s screen) error {
	message := newID("msg")
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 12_000 {
		if err := s.say(ctx, message, "And then they walked on. "); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

func newID(kind string) string { return kind + "_" + rand.Text() }

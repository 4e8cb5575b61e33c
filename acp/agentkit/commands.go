package agentkit

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/acpgo/sdk/acp"
)

// Command is a command with which a prompt may begin, such as "/plan".
type Command[S any] struct {
	// Name is the command without the slash. It has no white space.
	Name string
	// Description says what the command does.
	Description string
	// Hint, if set, says what to write after the command.
	Hint string
	// Run answers a prompt that begins with the command, in place of Config.Prompt. input is the text after the
	// command, without white space around it; Turn.Request has the rest of the prompt. If Run returns nil, the turn
	// ends with the stop reason end_turn. For commands that need another stop reason, use Opening.Commands and answer
	// them in Config.Prompt. A prompt that Turn.NextPrompt returns runs no command.
	Run func(ctx context.Context, t *Turn[S], input string) error
}

// command is a Command for turns.
type command struct {
	name string
	sent acp.AvailableCommand
	run  func(ctx context.Context, t *turn, input string) error
}

func newCommand[S any](c Command[S]) command {
	return command{
		name: c.Name, sent: acp.SlashCommand(c.Name, c.Description, c.Hint),
		run: func(ctx context.Context, t *turn, input string) error { return c.Run(ctx, t.outer.(*Turn[S]), input) },
	}
}

// checkCommands panics if two commands have the same name, or if a command is not complete.
func checkCommands[S any](commands []Command[S]) {
	seen := map[string]bool{}
	for _, c := range commands {
		if c.Name == "" || strings.ContainsFunc(c.Name, unicode.IsSpace) || c.Run == nil || seen[c.Name] {
			panic(fmt.Sprintf("agentkit: NewSessions: the command %q must have a name of its own, without white space, and Run",
				c.Name))
		}
		seen[c.Name] = true
	}
}

// commands returns the author's commands in the form that clients get.
func (ss *sessions) commands() (commands []acp.AvailableCommand) {
	for _, c := range ss.config.commands {
		commands = append(commands, c.sent)
	}
	return commands
}

// command finds the command with which a prompt begins.
func (ss *sessions) command(req *acp.PromptRequest) (run func(context.Context, *turn, string) error, input string,
	ok bool) {
	text, ok := strings.CutPrefix(strings.TrimSpace(PromptText(req)), "/")
	if !ok {
		return nil, "", false
	}
	name := text
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		name, input = text[:i], strings.TrimSpace(text[i:])
	}
	for _, c := range ss.config.commands {
		if c.name == name {
			return c.run, input, true
		}
	}
	return nil, "", false
}

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
	// command, without white space around it; Turn.Request has the rest of the prompt. If Run returns nil, the turn ends
	// with the stop reason end_turn. Commands that need another one are sent with Opening.Commands and answered by
	// Config.Prompt. A prompt that Turn.Take returns runs no command.
	Run func(ctx context.Context, t *Turn[S], input string) error
}

// checkCommands panics if commands cannot be told apart or run.
func checkCommands[S any](commands []Command[S]) {
	seen := map[string]bool{}
	for _, c := range commands {
		if c.Name == "" || strings.ContainsFunc(c.Name, unicode.IsSpace) || c.Run == nil || seen[c.Name] {
			panic(fmt.Sprintf("agentkit: NewSessions: the command %q must have a name of its own, without white space, and Run", c.Name))
		}
		seen[c.Name] = true
	}
}

// commands are the author's commands, as clients are told of them.
func (ss *Sessions[S]) commands() (commands []acp.AvailableCommand) {
	for _, c := range ss.config.Commands {
		commands = append(commands, acp.SlashCommand(c.Name, c.Description, c.Hint))
	}
	return commands
}

// command finds the command with which a prompt begins.
func (ss *Sessions[S]) command(req *acp.PromptRequest) (run func(context.Context, *Turn[S], string) error, input string, ok bool) {
	text, ok := strings.CutPrefix(strings.TrimSpace(PromptText(req)), "/")
	if !ok {
		return nil, "", false
	}
	name := text
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		name, input = text[:i], strings.TrimSpace(text[i:])
	}
	for _, c := range ss.config.Commands {
		if c.Name == name {
			return c.Run, input, true
		}
	}
	return nil, "", false
}

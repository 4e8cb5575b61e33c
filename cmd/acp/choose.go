package main

// This file owns what sessions are set to.

import (
	"context"
	"errors"
	"strings"

	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

// choose sets the mode, the model and the options of a session to what the settings of its agent say: all that the agent
// has.
func choose(ctx context.Context, session *talk.Session, s *config.Settings) error {
	var errs []error
	if s.Mode != "" {
		errs = append(errs, session.ChooseMode(ctx, s.Mode))
	}
	if s.Model != "" {
		errs = append(errs, session.ChooseModel(ctx, s.Model))
	}
	for _, option := range s.Options {
		name, value, _ := strings.Cut(option, "=")
		errs = append(errs, session.ChooseOption(ctx, name, value))
	}
	return errors.Join(errs...)
}

package tui

// This file owns how a session is written to a file.

import (
	"fmt"
	"io"

	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/plain"
)

// exportMarkdown writes a session.
func exportMarkdown(w io.Writer, s *view.Snapshot) error {
	for item := range s.Items() {
		if _, err := fmt.Fprintf(w, "%s\n\n", plain.Screen(item.String())); err != nil {
			return err
		}
	}
	return nil
}

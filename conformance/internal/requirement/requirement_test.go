package requirement

import "testing"

// TestWords requires that each requirement has a text and a word for its severity.
func TestWords(t *testing.T) {
	for _, p := range Pages {
		for _, r := range p.Requirements {
			if levels[r.Word] == 0 || r.Text == "" {
				t.Errorf("%s: %q: %q", r.ID, r.Word, r.Text)
			}
		}
	}
}

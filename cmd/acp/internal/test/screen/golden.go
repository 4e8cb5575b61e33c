//go:build linux || darwin

package screen

import (
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
)

// A Mask replaces text that differs between two runs of a program.
type Mask struct {
	Pattern *regexp.Regexp
	With    string
}

// quiet is how long nothing must change before a screen is written to a file.
const quiet = 500 * time.Millisecond

// Settled returns the screen, cell by cell, once nothing has changed for some time. It is for writing golden files;
// comparing tests do not depend on time.
func (x *Terminal) Settled() *Frame {
	x.t.Helper()
	for {
		x.mu.Lock()
		changed := x.changed
		x.mu.Unlock()
		select {
		case <-changed:
		case <-x.drained:
			return x.Whole()
		case <-time.After(quiet):
			return x.Whole()
		}
	}
}

// Golden waits until the screen equals a golden file, or writes the file if update is true.
func (x *Terminal) Golden(file string, update bool, masks ...Mask) {
	x.t.Helper()
	dump := func(f *Frame) string {
		text := f.Dump()
		for _, m := range masks {
			text = m.Pattern.ReplaceAllString(text, m.With)
		}
		return text
	}
	if update {
		text := dump(x.Settled())
		must.Do(x.t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.Do(x.t, os.WriteFile(file, []byte(text), 0o644))
		return
	}
	want := must.Get(os.ReadFile(file))(x.t)
	x.within(Deadline/3, "what "+file+" has (-update writes it):\n"+string(want),
		func(f *Frame) bool { return dump(f) == string(want) })
}

package hostile

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// A Report is what a program says of an attack. Its methods may be called concurrently.
type Report struct {
	path string
	mu   sync.Mutex
	text ReportText
}

// ReportText is the content of a report file.
type ReportText struct {
	Ran      bool     `json:"ran"` // the attack was made to its end
	Problems []string `json:"problems,omitempty"`
	Notes    []string `json:"notes,omitempty"`
}

// NewReport makes a report that goes to a file, or nowhere if path is "".
func NewReport(path string) *Report { return &Report{path: path} }

const maxProblems = 20

// Problem notes what must not be.
func (r *Report) Problem(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.text.Problems) < maxProblems {
		r.text.Problems = append(r.text.Problems, fmt.Sprintf(format, args...))
	}
}

// Note adds something that the reader of the table should know.
func (r *Report) Note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.Notes = append(r.text.Notes, fmt.Sprintf(format, args...))
}

// Ran notes that the attack was made, and writes the report.
func (r *Report) Ran() error {
	r.mu.Lock()
	r.text.Ran = true
	r.mu.Unlock()
	return r.Write()
}

// Write writes the report as it is now, whole or not at all. It replaces the file, so that the path must not be that of
// anything else: renaming a file over a device such as /dev/null would take the device away.
func (r *Report) Write() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.path == "" {
		return nil
	}
	if info, err := os.Lstat(r.path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is there already, and is not a file that a report may replace", r.path)
	}
	text, err := json.Marshal(r.text)
	if err != nil {
		return err
	}
	temp := r.path + ".new"
	if err := os.WriteFile(temp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, r.path)
}

// ReadReport reads what a program has written.
func ReadReport(path string) (ReportText, error) {
	var text ReportText
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &text)
	}
	return text, err
}

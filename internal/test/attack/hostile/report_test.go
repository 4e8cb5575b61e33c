package hostile

import (
	"os"
	"path/filepath"
	"testing"
)

// A report replaces an older report, but only a regular file.
func TestReportReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.json")
	r := NewReport(path)
	r.Problem("first")
	for range 2 {
		if err := r.Ran(); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := ReadReport(path); err != nil || !text.Ran || len(text.Problems) != 1 {
		t.Errorf("got %v, %v", text, err)
	}
	if err := NewReport("").Ran(); err != nil {
		t.Error(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("report.json", link); err != nil {
		t.Skip(err)
	}
	if err := NewReport(link).Ran(); err == nil {
		t.Error("a report has replaced a link")
	}
	if err := NewReport(dir).Ran(); err == nil {
		t.Error("a report has replaced a directory")
	}
}

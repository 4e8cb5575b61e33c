package rules

import "testing"

func TestISO8601(t *testing.T) {
	for text, want := range map[string]bool{
		"2026-01-02T03:04:05Z": true, "2026-01-02T03:04:05.678+01:00": true, "2026-01-02t03:04:05,6-0530": true, "20260102T030405Z": true,
		"2026-01-02T03:04": true, "2026-01-02": true, "2026-002": true, "2026-W01-5": true,
		"": false, "yesterday": false, "12:30": false, "2026-13-02": false, "2026-01-32": false, "2026-01-02 03:04:05": false,
		"1767323045": false, "Fri, 02 Jan 2026 03:04:05 GMT": false, "2026-01-02T25:00:00Z": false,
	} {
		if iso8601.MatchString(text) != want {
			t.Errorf("%q: got %v", text, !want)
		}
	}
}

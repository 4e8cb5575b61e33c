package main

import "testing"

func TestFetchable(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.2.3": true, "v0.1.0-rc.1": true, "(devel)": false, "v1.2.3+dirty": false, "v1.2": false,
		"v0.0.0-20261123200819-0123456789ab": false, "v1.2.4-0.20261123200819-0123456789ab": false,
		"v1.2.3-rc.1.0.20261123200819-0123456789ab": false,
	} {
		if got := fetchable(version); got != want {
			t.Errorf("%s: got %v", version, got)
		}
	}
}

func TestProgramName(t *testing.T) {
	for module, want := range map[string]string{"x/a/v2": "a", "x/a/v10": "a", "x/a": "a", "x/v1": "v1", "v2": "v2", "a": "a"} {
		if got := programName(module); got != want {
			t.Errorf("%s: got %s, want %s", module, got, want)
		}
	}
}

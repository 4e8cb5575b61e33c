package launch

import "testing"

func TestInRange(t *testing.T) {
	for _, c := range []struct {
		version, wanted string
		in, known       bool
	}{
		{"v20.20.2", ">=22", false, true},
		{"v22.0.0", ">=22.0.0", true, true},
		{"v22.0.0", ">= 20 < 23", true, true},
		{"v23.1.0", ">=20 <23", false, true},
		{"v22.11.0", "^20.19.0 || >=22.12.0", false, true},
		{"v20.19.5", "^20.19.0 || >=22.12.0", true, true},
		{"v20.18.0", "^20.19", false, true},
		{"v20.1.9", "~20.1", true, true},
		{"v20.2.0", "~20.1.3", false, true},
		{"v20.2.0", "~20", true, true},
		{"v18.3.0", "18.x", true, true},
		{"v18.3.0", "18", true, true},
		{"v19.0.0", "18", false, true},
		{"v18.3.0", "=18.3.0", true, true},
		{"v20.0.0", "18 - 20", true, true},
		{"v21.0.0", "18 - 20", false, true},
		{"v20.0.0", ">20", false, true},
		{"v21.0.0", ">20", true, true},
		{"v20.9.0", "<=20", true, true},
		{"v20.9.0", "*", true, true},
		{"v20.9.0", "", true, true},
		{"v22.0.0-nightly1", ">=22", true, true},
		{"v0.2.9", "^0.2.3", true, true},
		{"v0.3.0", "^0.2.3", false, true},
		{"v0.0.4", "^0.0.3", false, true},
		{"v20.9.0", "lts", false, false},
		{"x", ">=20", false, false},
		{"v20.9.0", "<>20", false, false},
	} {
		if in, known := inRange(c.version, c.wanted); in != c.in || known != c.known {
			t.Errorf("%s in %q: got %t %t, want %t %t", c.version, c.wanted, in, known, c.in, c.known)
		}
	}
}

package acp

import (
	"encoding/json"
	"testing"
)

func TestAbsolute(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/a": true, `\\server\share`: true, `C:\`: true, "z:/a": true, `Z:\a`: true,
		"": false, "a/b": false, `\a`: false, "C:": false, "C:a": false, "C/:": false, `@:\`: false, `[:\`: false, "`:/": false, "{:/": false, "1:/": false,
	} {
		if absolute(path) != want {
			t.Errorf("%q is absolute: %t", path, !want)
		}
	}
}

// Options are advertised, and a shorthand replaces nothing that was given in full.
func TestClientOptionsAreAdvertised(t *testing.T) {
	meta := Meta{"a": json.RawMessage("1")}
	o := ClientOptions{
		Forms: true, Elicitation: ElicitationCapabilities{Form: Some(ElicitationFormCapabilities{Meta: meta})},
		BooleanConfig: true, TerminalAuth: true, Session: ClientSessionCapabilities{ConfigOptions: Some(SessionConfigOptionsCapabilities{
			Boolean: Some(BooleanConfigOptionCapabilities{Meta: meta}),
		})},
	}
	var caps ClientCapabilities
	o.advertise(&caps)
	if !caps.Auth.Terminal || caps.Elicitation.Value().Form.Value().Meta == nil || caps.Session.Value().ConfigOptions.Value().Boolean.Value().Meta == nil {
		t.Errorf("advertised %+v", caps)
	}
}

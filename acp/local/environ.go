package local

import (
	"os"
	"slices"
	"strings"
)

// passed are the variables that commands get by default if they are asked about, as are those that begin with LC_:
// programs do not work without most of them, and none holds a secret.
var passed = []string{
	"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
	"ALLUSERSPROFILE", "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "OS", "PATHEXT", "PROGRAMDATA",
	"PROGRAMFILES",
	"PROGRAMFILES(X86)", "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE",
	"WINDIR",
}

// environ returns the environment for commands by default.
func (a *Approval) environ() []string {
	all := os.Environ()
	if a == nil || a.ask == nil {
		return all
	}
	return slices.DeleteFunc(all, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		name = strings.ToUpper(name)
		return !slices.Contains(passed, name) && !strings.HasPrefix(name, "LC_")
	})
}

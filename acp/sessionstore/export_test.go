package sessionstore

import (
	"os"

	"github.com/acpgo/sdk/acp"
)

// Memories opens stores in memory: those of the same name have the same sessions.
func Memories() func(name string) Store {
	all := map[string]*shared{}
	return func(name string) Store {
		if all[name] == nil {
			all[name] = &shared{sessions: map[acp.SessionID]*remembered{}}
		}
		return &memory{shared: all[name]}
	}
}

// Cut has cut called before each change of a file.
func Cut(d *Dir, cut func(file *os.File, at int64, data []byte)) { d.cut = cut }

// FileName is the name of a session's files, without the suffix.
var FileName = nameOf

// Synced has synced called for each file and folder that is synchronized.
func Synced(d *Dir, synced func(name string)) { d.synced = synced }

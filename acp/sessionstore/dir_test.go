package sessionstore_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/sessionstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(tb testing.TB, dir string) sessionstore.Store {
	d, err := sessionstore.Open(dir, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func TestDir(t *testing.T) { storetest.Run(t, open) }

var kills = flag.Int("kills", 0, "how many processes are killed while they write")

func TestDirProcesses(t *testing.T) {
	storetest.RunProcesses(t, open, &storetest.Processes{Kills: *kills})
}

package natsacp_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/acpgo/sdk/internal/test/must"
)

// envURL is where the server of the parent process is, in processes that tests start.
const envURL = "ACP_NATS_URL"

func TestMain(m *testing.M) {
	if text := os.Getenv(envRole); text != "" {
		if err := playRole(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// serve starts a server for a test, and returns its URL.
func serve(tb testing.TB, change ...func(*server.Options)) string {
	tb.Helper()
	if url := os.Getenv(envURL); url != "" {
		return url
	}
	o := &server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: tb.TempDir(), NoSigs: true, NoLog: true}
	for _, c := range change {
		c(o)
	}
	return run(tb, o)
}

func run(tb testing.TB, o *server.Options) (url string) {
	tb.Helper()
	s := must.Get(server.NewServer(o))(tb)
	s.Start()
	tb.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s.ClientURL()
}

func dial(tb testing.TB, url string) *nats.Conn {
	tb.Helper()
	nc := must.Get(nats.Connect(url, nats.MaxReconnects(-1)))(tb)
	tb.Cleanup(nc.Close)
	return nc
}

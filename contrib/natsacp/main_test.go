package natsacp_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/acpgo/sdk/internal/test/must"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(envRole); text != "" {
		playRole(text)
	}
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// serve starts a server for a test.
func serve(tb testing.TB, change ...func(*server.Options)) *server.Server {
	tb.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: tb.TempDir(), NoSigs: true, NoLog: true}
	for _, c := range change {
		c(o)
	}
	return run(tb, o)
}

func run(tb testing.TB, o *server.Options) *server.Server {
	tb.Helper()
	s := must.Get(server.NewServer(o))(tb)
	s.Start()
	tb.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}

func dial(tb testing.TB, url string) *nats.Conn {
	tb.Helper()
	nc := must.Get(nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond)))(tb)
	tb.Cleanup(nc.Close)
	return nc
}

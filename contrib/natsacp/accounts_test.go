package natsacp_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/acpgo/sdk/contrib/natsacp"
)

// The sample configuration lets each program do what it needs, and nothing of other teams and roles.
func TestAccounts(t *testing.T) {
	users := []string{"operator", "node", "gateway", "agent"}
	for _, team := range []string{"RED", "BLUE"} {
		for _, user := range users {
			t.Setenv(team+"_"+strings.ToUpper(user), "secret-"+user)
		}
	}
	opts, err := server.ProcessConfigFile(filepath.Join("deploy", "nats.conf"))
	must(t, err)
	opts.Host, opts.Port, opts.StoreDir, opts.NoSigs, opts.NoLog = "127.0.0.1", -1, t.TempDir(), true, true
	s, err := server.NewServer(opts)
	must(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	refused := make(chan error, 100)
	as := func(team, user string) *nats.Conn {
		t.Helper()
		nc, err := nats.Connect(s.ClientURL(), nats.UserInfo(team+"-"+user, "secret-"+user),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
		must(t, err)
		t.Cleanup(nc.Close)
		return nc
	}
	r := newRig(t)
	r.opts = &natsacp.Options{Lease: 2 * time.Second}
	r.connect = func() (*nats.Conn, error) {
		return nats.Connect(s.ClientURL(), nats.UserInfo("red-agent", "secret-agent"))
	}
	for _, team := range []string{"red", "blue"} {
		r.fleet(as(team, "operator")) // creates it
	}
	r.nodeOn(as("red", "node"), "n1")
	g, err := r.fleet(as("red", "gateway")).StartGateway(t.Context(), &natsacp.GatewayOptions{Name: "g1", Logger: quiet})
	must(t, err)
	spy, err := as("blue", "node").SubscribeSync("acp.up.*.*")
	must(t, err)

	u := r.user(newServer(t, g).url)
	session := u.session()
	u.wantSaid(u.prompt(session, "say=3 ask"), numbers(3)+"yes")
	must(t, r.fleet(as("red", "operator")).Drain(t.Context(), "n1"))
	select {
	case err := <-refused:
		t.Errorf("the fleet was refused something: %v", err)
	default:
	}

	if n, _, err := spy.Pending(); n != 0 || err != nil {
		t.Errorf("another team has received %d messages, %v", n, err)
	}
	all, err := r.fleet(as("blue", "operator")).Sessions(t.Context())
	if err != nil || len(all) != 0 {
		t.Errorf("another team has the sessions %v, %v", all, err)
	}
	for _, test := range []struct{ user, publish, subscribe string }{
		{"gateway", "acp.log.link", ""},
		{"gateway", "$KV.acp_sessions.key", ""},
		{"agent", "acp.log.link", ""},
		{"agent", "acp.up.n1.link", ""},
		{"node", "acp.updates.x.u", ""},
		{"node", "", "acp.down.*"},
		{"agent", "", "acp.>"},
		{"gateway", "", "acp.up.*.*"},
	} {
		nc := as("red", test.user)
		if test.publish != "" {
			must(t, nc.Publish(test.publish, []byte("x")))
		} else {
			_, err := nc.SubscribeSync(test.subscribe)
			must(t, err)
		}
		select {
		case err := <-refused:
			if !strings.Contains(err.Error(), "Permissions Violation") {
				t.Errorf("%+v: %v", test, err)
			}
		case <-time.After(patience):
			t.Errorf("%+v is allowed", test)
		}
	}
}

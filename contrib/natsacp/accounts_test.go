package natsacp_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/acpgo/sdk/contrib/natsacp"
	"github.com/acpgo/sdk/internal/test/must"
)

// The sample configuration lets each program do what it needs. TestRoles shows what it does not let them do.
func TestAccounts(t *testing.T) {
	s := newSample(t)
	refused := make(chan error, 100)
	as := func(user string) *nats.Conn { return s.as(user, func(err error) { refused <- err }) }
	r := newRig(t)
	r.opts = &natsacp.Options{Lease: 2 * time.Second}
	r.agents = as("red-agent")
	for _, team := range []string{"red", "blue"} {
		r.fleet(as(team + "-operator")) // creates it
	}
	r.nodeOf(as("red-node"), "n1", r.agent("n1"))
	_, front := r.gatewayOn(as("red-gateway"), "g1")

	u := r.user("ws://" + front.Addr())
	session := u.session()
	u.wantSaid(u.prompt(session, "say=3 ask"), numbers(3)+"yes")
	page := must.Get(u.ListSessions(t.Context(), nil))(t)
	if len(page.Sessions) != 1 {
		t.Errorf("the sessions are %+v", page.Sessions)
	}
	other := u.session()
	must.Do(t, other.Delete(t.Context()))
	r.nodeOf(as("red-node"), "n2", r.agent("n2"))
	must.Do(t, r.fleet(as("red-operator")).Drain(t.Context(), "n1"))
	u.wantSaid(u.prompt(session, "node say=3"), "n2"+numbers(3)) // the node that has gone does not answer
	all, err := r.fleet(as("red-operator")).Sessions(t.Context())
	if err != nil || len(all) != 1 || all[0].Node != "n2" {
		t.Errorf("the records are %+v, %v", all, err)
	}
	select {
	case err := <-refused:
		t.Errorf("the fleet was refused something: %v", err)
	default:
	}
	all, err = r.fleet(as("blue-operator")).Sessions(t.Context())
	if err != nil || len(all) != 0 {
		t.Errorf("another team has the sessions %v, %v", all, err)
	}
}

package natsacp_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/acpgo/sdk/contrib/natsacp"
	"github.com/acpgo/sdk/internal/test/must"
)

// sample is a server with the sample configuration.
type sample struct {
	*testing.T
	url string
}

var roles = []string{"operator", "node", "gateway", "agent"}

func newSample(t *testing.T) *sample {
	t.Helper()
	for _, team := range []string{"RED", "BLUE"} {
		for _, role := range roles {
			t.Setenv(team+"_"+strings.ToUpper(role), "secret-"+role)
		}
	}
	opts := must.Get(server.ProcessConfigFile(filepath.Join("deploy", "nats.conf")))(t)
	opts.Host, opts.Port, opts.StoreDir, opts.NoSigs, opts.NoLog = "127.0.0.1", -1, t.TempDir(), true, true
	for _, account := range opts.Accounts { // and in each account a user who may do everything, for the test
		opts.Users = append(opts.Users, &server.User{Username: "witness-" + account.Name, Password: "secret-witness", Account: account})
	}
	return &sample{t, run(t, opts)}
}

// as connects as a user: of a team and a role, or a witness in an account.
func (s *sample) as(team, role string, failed func(error)) *nats.Conn {
	s.Helper()
	nc := must.Get(nats.Connect(s.url, nats.UserInfo(team+"-"+role, "secret-"+strings.TrimPrefix(team+"-"+role, team+"-")),
		nats.CustomInboxPrefix("_INBOX."+role), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { failed(err) })))(s)
	s.Cleanup(nc.Close)
	return nc
}

func (s *sample) witness(account string) *nats.Conn {
	s.Helper()
	nc := must.Get(nats.Connect(s.url, nats.UserInfo("witness-"+account, "secret-witness")))(s)
	s.Cleanup(nc.Close)
	return nc
}

// deeds are what somebody can do to the red team, in the order of the page. What they read contains the key, and what
// they write has a subject that begins with it; account is where that arrives.
var deeds = []struct{ name, key, account string }{
	{"read what agents say", "SECRET-SAID", ""},
	{"read what users send", "SECRET-SENT", ""},
	{"read the records: ids, users, links", "SECRET-RECORD", ""},
	{"read answers to other roles", "SECRET-ANSWER", ""},
	{"read the sessions in the store of agents", "SECRET-STORE", ""},
	{"say something as an agent, in the log", "acp.log.", "RED"},
	{"say something as an agent, to clients of a gateway", "acp.down.", "RED_GATEWAYS"},
	{"send something as a user", "acp.up.", "RED"},
	{"start an agent for a user", "acp.open.", "RED"},
	{"write or spoil a record", "$KV.acp_sessions.", "RED"},
	{"take the lease of a node, which ends its agents", "$KV.acp_members.node.", "RED"},
	{"register a gateway, or spoil its entry", "$KV.acp_members.gateway.", "RED"},
	{"drain a node", "acp.node.", "RED"},
	{"change the sessions in the store of agents", "acp.updates.", "RED_AGENTS"},
	{"empty or remove the log, the records or the leases", "wipe", "RED"},
	{"create a stream of one's own", "create", "RED"},
	{"ask or hear the system account", "$SYS", ""},
}

// attack does everything that it can think of with a connection. Answers and messages that arrive go to heard.
func attack(t *testing.T, nc *nats.Conn, name string, heard func(m *nats.Msg)) {
	own := "_INBOX." + name + ".attack"
	if name == "agent" || name == "other-agent" {
		own = "_INBOX.attack"
	}
	for _, subject := range []string{
		own, ">", "acp.>", "acp.down.*", "acp.down.victim", "acp.log.*", "acp.up.*.*", "acp.open.*", "acp.node.*", "acp.updates.>",
		"$KV.>", "$KV.acp_sessions.*", "$KV.acp_store.>", "_INBOX.>", "_INBOX.operator.>", "_INBOX.node.>", "_INBOX.gateway.>",
		"_R_.>", "$JS.>", "$JS.API.>", "$JS.ACK.>", "$SYS.>", "$SYS.ACCOUNT.>",
	} {
		must.Get(nc.Subscribe(subject, heard))(t)
	}
	send := func(subject, reply string, data any, headers ...string) {
		m := &nats.Msg{Subject: subject, Reply: reply, Header: nats.Header{}}
		if text, ok := data.(string); ok {
			m.Data = []byte(text)
		} else {
			m.Data, _ = json.Marshal(data)
		}
		for i := 0; i < len(headers); i += 2 {
			m.Header.Set(headers[i], headers[i+1])
		}
		must.Do(t, nc.PublishMsg(m))
	}
	type object = map[string]any
	streams := []string{"acp_log", "KV_acp_sessions", "KV_acp_members", "acp_updates", "KV_acp_store"}
	targets := []string{own}
	writable := []string{ // what some role may write
		"acp.log." + name, "acp.down." + name, "acp.up.n1." + name, "acp.open." + name, "$KV.acp_sessions." + name,
		"$KV.acp_members.node." + name, "$KV.acp_members.gateway." + name, "acp.node." + name, "acp.updates." + name + ".u", "$KV.acp_store.v1." + name,
	}
	targets = append(targets, writable...)
	for _, subject := range writable {
		send(subject, "", commandDrain)
		for _, header := range [][]string{
			{"Nats-Trace-Dest", own}, {"Nats-Schedule", "@at 2009-11-10T23:00:00Z", "Nats-Schedule-Target", "acp.node." + name},
			{"Nats-Msg-Id", "victim"}, {"Nats-TTL", "1s"}, {"Nats-Incr", "1"}, {"Nats-Batch-Id", "b", "Nats-Batch-Sequence", "1"},
		} {
			send(subject, own, commandDrain, header...)
		}
	}
	for i, to := range targets {
		for _, subject := range []string{ // each is answered, which reply sends elsewhere
			"$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "acp.open.n1", "acp.up.n1.victim", "$KV.acp_members.gateway." + name,
			"$SYS.REQ.USER.INFO", "$SYS.REQ.SERVER.PING", "$SYS.REQ.SERVER.PING.CONNZ", "$SYS.REQ.ACCOUNT.RED.CONNZ", "$SRV.PING",
		} {
			send(subject, to, "")
		}
		for _, s := range streams {
			send("$JS.API.STREAM.INFO."+s, to, object{"subjects_filter": ">"})
			for seq := range 4 {
				send("$JS.API.STREAM.MSG.GET."+s, to, object{"seq": seq + 1})
				send("$JS.API.DIRECT.GET."+s, to, object{"seq": seq + 1})
			}
			send("$JS.API.STREAM.MSG.GET."+s, to, object{"seq": 1, "next_by_subj": ">"})
			send("$JS.API.DIRECT.GET."+s, to, object{"multi_last": []string{">"}, "batch": 100})
			send("$JS.API.DIRECT.GET."+s, to, object{"seq": 1, "next_by_subj": ">", "batch": 100})
			send("$JS.API.DIRECT.GET."+s+".acp.log.victim", to, "")
			send("$JS.API.DIRECT.GET."+s+".$KV.acp_sessions.victim", to, "")
			send("$JS.API.STREAM.SNAPSHOT."+s, own, object{"deliver_subject": to, "no_consumers": true})
			id := fmt.Sprintf("%s-%d", name, i)
			push := object{"stream_name": s, "config": object{"name": id, "deliver_subject": to, "deliver_policy": "all", "ack_policy": "none", "inactive_threshold": 1e10}}
			send("$JS.API.CONSUMER.CREATE."+s+"."+id, own, push)
			send("$JS.API.CONSUMER.CREATE."+s, own, object{"stream_name": s, "config": object{"deliver_subject": to, "ack_policy": "none"}})
			send("$JS.API.CONSUMER.CREATE."+s+"."+id+"f.>", own, object{"stream_name": s, "config": object{"name": id + "f", "filter_subject": ">", "deliver_subject": to, "ack_policy": "none"}})
			send("$JS.API.CONSUMER.DURABLE.CREATE."+s+"."+id+"d", own, object{"stream_name": s, "config": object{"durable_name": id + "d", "deliver_subject": to, "ack_policy": "none"}})
			pull := object{"stream_name": s, "config": object{"name": id + "p", "ack_policy": "none", "inactive_threshold": 1e10}}
			send("$JS.API.CONSUMER.CREATE."+s+"."+id+"p", own, pull)
			send("$JS.API.CONSUMER.MSG.NEXT."+s+"."+id+"p", to, object{"batch": 100})
			send("$JS.ACK."+s+"."+id+"p.1.1.1.1.0", to, "+NXT")
			send("$JS.FC."+s+"."+id+".x", to, "")
			other := object{"name": id + s, "max_bytes": 1 << 20, "sources": []object{{"name": s}}}
			if i > 0 {
				other["republish"] = object{"src": ">", "dest": to}
			}
			send("$JS.API.STREAM.CREATE."+id+s, own, other)
			send("$JS.API.STREAM.MSG.GET."+id+s, own, object{"seq": 1})
			send("$JS.API.STREAM.RESTORE."+id+s+"r", own, object{"config": object{"name": id + s + "r"}})
		}
	}
	must.Do(t, nc.FlushTimeout(patience))
	settle()
	// What destroys comes last.
	for _, subject := range writable {
		send(subject, own, "", "Nats-Rollup", "all")
	}
	for _, s := range streams {
		if !strings.HasSuffix(s, "_updates") && !strings.HasSuffix(s, "_store") {
			send("$JS.API.STREAM.MSG.DELETE."+s, own, object{"seq": 1})
			send("$JS.API.STREAM.UPDATE."+s, own, object{"name": s, "max_msgs": 1})
			send("$JS.API.STREAM.PURGE."+s, own, "")
			send("$JS.API.STREAM.DELETE."+s, own, "")
		}
	}
	must.Do(t, nc.FlushTimeout(patience))
	settle()
}

const commandDrain = "drain"

// settle waits for what the server still sends. That nothing comes cannot be waited for; the witness, for whom everything
// comes, shows that this is enough.
func settle() { time.Sleep(200 * time.Millisecond) }

// What each role of the sample configuration can do is what the page says: everything is tried, with the credentials of
// each role and of another team's.
func TestRoles(t *testing.T) {
	columns := []string{"operator", "node", "gateway", "agent", "another team"}
	can := map[string][]bool{} // by deed, for each column
	for _, column := range append(columns, "witness") {
		done := tryRole(t, column)
		for _, d := range deeds {
			can[d.name] = append(can[d.name], done[d.key])
		}
	}
	var page strings.Builder
	fmt.Fprintf(&page, "| | %s |\n| --- |%s\n", strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
	for _, d := range deeds {
		fmt.Fprintf(&page, "| %s |", d.name)
		for i := range columns {
			page.WriteString(map[bool]string{true: " yes |", false: " no |"}[can[d.name][i]])
		}
		page.WriteString("\n")
		if all := can[d.name][len(columns)]; !all && d.account == "RED" {
			t.Errorf("not even those who may do everything can %s", d.name)
		}
	}
	path := filepath.Join("..", "..", "docs", "reference", "fleet.md")
	text := must.Get(os.ReadFile(path))(t)
	begin := strings.Index(string(text), "| | operator |")
	if begin < 0 {
		t.Fatalf("the page has no table of roles:\n%s", page.String())
	}
	old := string(text)[begin:]
	old = old[:strings.Index(old, "\n\n")+1]
	if old == page.String() {
		return
	}
	if *update {
		must.Do(t, os.WriteFile(path, []byte(strings.Replace(string(text), old, page.String(), 1)), 0o644))
		return
	}
	t.Errorf("the table of roles is\n%swant\n%s", old, page.String())
}

// tryRole returns which deeds somebody can do, by key.
func tryRole(t *testing.T, column string) map[string]bool {
	s := newSample(t)
	ignore := func(error) {}
	must.Get(natsacp.Open(t.Context(), s.as("red", "operator", ignore), nil))(t)
	store := must.Get(natsacp.OpenStore(t.Context(), s.as("red", "agent", ignore), nil))(t)
	defer store.Close()
	red, gateways, agents := s.witness("RED"), s.witness("RED_GATEWAYS"), s.witness("RED_AGENTS")
	js := must.Get(jetstream.New(red))(t)
	agentJS := must.Get(jetstream.New(agents))(t)
	for _, p := range []struct {
		js            jetstream.JetStream
		subject, data string
	}{
		{js, "acp.log.victim", "SECRET-SAID"}, {js, "$KV.acp_sessions.victim", "SECRET-RECORD"},
		{js, "$KV.acp_members.node.victim", "{}"}, {js, "$KV.acp_members.node.other", "{}"},
		{agentJS, "acp.updates.victim.u", "SECRET-STORE"}, {agentJS, "$KV.acp_store.v1.victim", "SECRET-STORE"},
	} {
		must.Get(p.js.Publish(t.Context(), p.subject, []byte(p.data)))(t)
	}
	var mu sync.Mutex
	done := map[string]bool{}
	wrote := func(account string) nats.MsgHandler {
		return func(m *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			for _, d := range deeds {
				if d.account == account && strings.HasPrefix(m.Subject, d.key) && !strings.Contains(m.Subject, "victim") &&
					(d.key != "acp.node." || string(m.Data) == commandDrain) {
					done[d.key] = true
				}
			}
		}
	}
	for nc, account := range map[*nats.Conn]string{red: "RED", gateways: "RED_GATEWAYS", agents: "RED_AGENTS"} {
		must.Get(nc.Subscribe(">", wrote(account)))(t)
	}
	for _, subject := range []string{"acp.open.n1", "acp.up.n1.victim"} { // as a node would
		must.Get(red.Subscribe(subject, func(m *nats.Msg) {
			if m.Reply != "" {
				must.Do(t, m.Respond([]byte("+")))
			}
		}))(t)
	}
	for _, nc := range []*nats.Conn{red, gateways, agents} {
		must.Do(t, nc.Flush())
	}

	heard := func(m *nats.Msg) {
		text := string(m.Data)
		var answer struct{ Message struct{ Data []byte } }
		if json.Unmarshal(m.Data, &answer) == nil {
			text += string(answer.Message.Data)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, d := range deeds {
			if strings.HasPrefix(d.key, "SECRET") && (strings.Contains(text, d.key) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(d.key)))) {
				done[d.key] = true
			}
		}
		if strings.HasPrefix(m.Subject, "$SYS.") || strings.Contains(text, `"server":{`) && !strings.Contains(text, "jetstream.api") {
			done["$SYS"] = true
		}
	}
	names := []string{column}
	if column == "another team" {
		names = []string{"other-operator", "other-node", "other-gateway", "other-agent"}
	}
	for _, name := range names {
		var nc *nats.Conn
		if other, ok := strings.CutPrefix(name, "other-"); ok {
			nc = s.as("blue", other, ignore)
		} else if name == "witness" {
			nc = s.witness("RED")
		} else {
			nc = s.as("red", name, ignore)
		}
		stop := make(chan struct{})
		var traffic sync.WaitGroup
		traffic.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond):
				}
				must.Do(t, red.Publish("acp.log.victim", []byte("SECRET-SAID")))
				must.Do(t, red.Publish("acp.up.n1.victim", []byte("SECRET-SENT")))
				must.Do(t, gateways.Publish("acp.up.n1.victim", []byte("SECRET-SENT")))
				for role, account := range map[string]*nats.Conn{"operator": red, "node": red, "gateway": gateways} {
					if role != name {
						must.Do(t, account.Publish("_INBOX."+role+".victim", []byte("SECRET-ANSWER")))
					}
				}
			}
		})
		attack(t, nc, strings.TrimPrefix(name, "other-"), heard)
		close(stop)
		traffic.Wait()
	}
	for _, name := range []string{"acp_log", "KV_acp_sessions", "KV_acp_members"} {
		stream, err := js.Stream(t.Context(), name)
		if err != nil {
			done["wipe"] = true
			continue
		}
		for _, subject := range map[string][]string{
			"acp_log": {"acp.log.victim"}, "KV_acp_sessions": {"$KV.acp_sessions.victim"},
			"KV_acp_members": {"$KV.acp_members.node.victim", "$KV.acp_members.node.other"},
		}[name] {
			if _, err := stream.GetLastMsgForSubject(t.Context(), subject); err != nil {
				done["wipe"] = true
			}
		}
	}
	for name := range js.StreamNames(t.Context()).Name() {
		if !slices.Contains([]string{"acp_log", "KV_acp_sessions", "KV_acp_members"}, name) {
			done["create"] = true
		}
	}
	mu.Lock()
	defer mu.Unlock()
	return done
}

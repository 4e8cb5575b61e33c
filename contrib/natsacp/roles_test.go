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
		opts.Users = append(opts.Users, &server.User{Username: "witness-" + account.Name, Password: "secret-" + account.Name, Account: account})
	}
	return &sample{t, run(t, opts).ClientURL()}
}

// as connects as a user of the red or blue team in a role, or as the witness in an account.
func (s *sample) as(user string, failed ...func(error)) *nats.Conn {
	s.Helper()
	_, role, _ := strings.Cut(user, "-")
	nc := must.Get(nats.Connect(s.url, nats.UserInfo(user, "secret-"+role), nats.CustomInboxPrefix("_INBOX."+role),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			for _, f := range failed {
				f(err)
			}
		})))(s)
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

// tries are the requests that somebody sends for each stream: <self> is who it is, <own> a subject that only they hear, <stream>
// the stream, <id> a name that is new, and <to> where the answer, or what is in the stream, is to go. Each has a subject,
// who is answered, and what it says.
var tries = [][3]string{
	{"$JS.API.INFO", "<to>", ""}, {"$JS.API.STREAM.NAMES", "<to>", ""}, {"$JS.API.STREAM.LIST", "<to>", ""}, {"acp.open.n1", "<to>", ""},
	{"acp.up.n1.victim", "<to>", ""}, {"$KV.acp_members.gateway.<self>", "<to>", ""}, {"$SYS.REQ.USER.INFO", "<to>", ""},
	{"$SYS.REQ.SERVER.PING", "<to>", ""}, {"$SYS.REQ.SERVER.PING.CONNZ", "<to>", ""}, {"$SYS.REQ.ACCOUNT.RED.CONNZ", "<to>", ""},
	{"$SRV.PING", "<to>", ""},

	{"$JS.API.STREAM.INFO.<stream>", "<to>", `{"subjects_filter":">"}`},
	{"$JS.API.STREAM.MSG.GET.<stream>", "<to>", `{"seq":1}`}, {"$JS.API.STREAM.MSG.GET.<stream>", "<to>", `{"seq":2}`},
	{"$JS.API.STREAM.MSG.GET.<stream>", "<to>", `{"seq":3}`}, {"$JS.API.STREAM.MSG.GET.<stream>", "<to>", `{"seq":4}`},
	{"$JS.API.DIRECT.GET.<stream>", "<to>", `{"seq":1}`}, {"$JS.API.DIRECT.GET.<stream>", "<to>", `{"seq":2}`},
	{"$JS.API.DIRECT.GET.<stream>", "<to>", `{"seq":3}`}, {"$JS.API.DIRECT.GET.<stream>", "<to>", `{"seq":4}`},
	{"$JS.API.STREAM.MSG.GET.<stream>", "<to>", `{"seq":1,"next_by_subj":">"}`},
	{"$JS.API.DIRECT.GET.<stream>", "<to>", `{"multi_last":[">"],"batch":100}`},
	{"$JS.API.DIRECT.GET.<stream>", "<to>", `{"seq":1,"next_by_subj":">","batch":100}`},
	{"$JS.API.DIRECT.GET.<stream>.acp.log.victim", "<to>", ""},
	{"$JS.API.DIRECT.GET.<stream>.$KV.acp_sessions.victim", "<to>", ""},
	{"$JS.API.STREAM.SNAPSHOT.<stream>", "<own>", `{"deliver_subject":"<to>","no_consumers":true}`},

	{"$JS.API.CONSUMER.CREATE.<stream>.<id>", "<own>", `{"stream_name":"<stream>","config":{"name":"<id>","deliver_subject":"<to>",` +
		`"deliver_policy":"all","ack_policy":"none","inactive_threshold":10000000000}}`},
	{"$JS.API.CONSUMER.CREATE.<stream>", "<own>", `{"stream_name":"<stream>","config":{"deliver_subject":"<to>","ack_policy":"none"}}`},
	{"$JS.API.CONSUMER.CREATE.<stream>.<id>f.>", "<own>", `{"stream_name":"<stream>","config":{"name":"<id>f","filter_subject":">",` +
		`"deliver_subject":"<to>","ack_policy":"none"}}`},
	{"$JS.API.CONSUMER.DURABLE.CREATE.<stream>.<id>d", "<own>", `{"stream_name":"<stream>","config":{"durable_name":"<id>d",` +
		`"deliver_subject":"<to>","ack_policy":"none"}}`},
	{"$JS.API.CONSUMER.CREATE.<stream>.<id>p", "<own>", `{"stream_name":"<stream>","config":{"name":"<id>p","ack_policy":"none",` +
		`"inactive_threshold":10000000000}}`},
	{"$JS.API.CONSUMER.MSG.NEXT.<stream>.<id>p", "<to>", `{"batch":100}`},
	{"$JS.ACK.<stream>.<id>p.1.1.1.1.0", "<to>", "+NXT"},
	{"$JS.FC.<stream>.<id>.x", "<to>", ""},

	{"$JS.API.STREAM.CREATE.<id><stream>", "<own>", `{"name":"<id><stream>","max_bytes":1048576,"sources":[{"name":"<stream>"}],` +
		`"republish":{"src":">","dest":"<to>"}}`},
	{"$JS.API.STREAM.CREATE.<id><stream>", "<own>", `{"name":"<id><stream>","max_bytes":1048576,"sources":[{"name":"<stream>"}]}`},
	{"$JS.API.STREAM.MSG.GET.<id><stream>", "<own>", `{"seq":1}`},
	{"$JS.API.STREAM.RESTORE.<id><stream>r", "<own>", `{"config":{"name":"<id><stream>r"}}`},
}

// ends are the requests that destroy a stream, which come last.
var ends = [][3]string{
	{"$JS.API.STREAM.MSG.DELETE.<stream>", "<own>", `{"seq":1}`}, {"$JS.API.STREAM.UPDATE.<stream>", "<own>", `{"name":"<stream>","max_msgs":1}`},
	{"$JS.API.STREAM.PURGE.<stream>", "<own>", ""}, {"$JS.API.STREAM.DELETE.<stream>", "<own>", ""},
}

// headers are those that make the server do more with a message than to store it.
var headers = []nats.Header{
	{"Nats-Trace-Dest": {"<own>"}},
	{"Nats-Schedule": {"@at 2009-11-10T23:00:00Z"}, "Nats-Schedule-Target": {"acp.node.<self>"}},
	{"Nats-Msg-Id": {"victim"}}, {"Nats-TTL": {"1s"}}, {"Nats-Incr": {"1"}},
	{"Nats-Batch-Id": {"b"}, "Nats-Batch-Sequence": {"1"}},
}

// audible is what somebody subscribes to, and writable what some role may write.
var (
	audible = []string{
		"<own>", ">", "acp.>", "acp.down.*", "acp.down.victim", "acp.log.*", "acp.up.*.*", "acp.open.*", "acp.node.*", "acp.updates.>",
		"$KV.>", "$KV.acp_sessions.*", "$KV.acp_store.>", "_INBOX.>", "_INBOX.operator.>", "_INBOX.node.>", "_INBOX.gateway.>",
		"_R_.>", "$JS.>", "$JS.API.>", "$JS.ACK.>", "$SYS.>", "$SYS.ACCOUNT.>",
	}
	writable = []string{
		"acp.log.<self>", "acp.down.<self>", "acp.up.n1.<self>", "acp.open.<self>", "$KV.acp_sessions.<self>",
		"$KV.acp_members.node.<self>", "$KV.acp_members.gateway.<self>", "acp.node.<self>", "acp.updates.<self>.u",
		"$KV.acp_store.v1.<self>",
	}
)

// attack does all of that with a connection. Answers and messages that arrive go to heard.
func attack(t *testing.T, nc *nats.Conn, name string, heard func(m *nats.Msg)) {
	own := "_INBOX." + name + ".attack"
	if name == "agent" {
		own = "_INBOX.attack"
	}
	places := []string{"<own>", own, "<self>", name}
	for _, subject := range audible {
		must.Get(nc.Subscribe(strings.NewReplacer(places...).Replace(subject), heard))(t)
	}
	send := func(subject, reply, data string, header nats.Header, more ...string) {
		r := strings.NewReplacer(append(more, places...)...)
		m := &nats.Msg{Subject: r.Replace(subject), Reply: r.Replace(reply), Data: []byte(r.Replace(data)), Header: nats.Header{}}
		for key, values := range header {
			m.Header.Set(key, r.Replace(values[0]))
		}
		must.Do(t, nc.PublishMsg(m))
	}
	for _, subject := range writable {
		send(subject, "", commandDrain, nil)
		for _, header := range headers {
			send(subject, "<own>", commandDrain, header)
		}
	}
	streams := []string{"acp_log", "KV_acp_sessions", "KV_acp_members", "acp_updates", "KV_acp_store"}
	for i, to := range append([]string{"<own>"}, writable...) {
		to = strings.NewReplacer(places...).Replace(to)
		for _, s := range streams {
			for _, try := range tries {
				if s == streams[0] || strings.Contains(try[0], "<stream>") {
					send(try[0], try[1], try[2], nil, "<stream>", s, "<to>", to, "<id>", fmt.Sprintf("%s-%d", name, i))
				}
			}
		}
	}
	settle(t, nc)
	for _, subject := range writable {
		send(subject, "<own>", "", nats.Header{"Nats-Rollup": {"all"}})
	}
	for _, s := range streams[:3] {
		for _, end := range ends {
			send(end[0], end[1], end[2], nil, "<stream>", s)
		}
	}
	settle(t, nc)
}

const commandDrain = "drain"

// settle waits for what the server still sends. That nothing comes cannot be waited for; the witness, for whom everything
// comes, shows that this is enough.
func settle(t *testing.T, nc *nats.Conn) {
	must.Do(t, nc.FlushTimeout(patience))
	time.Sleep(200 * time.Millisecond)
}

// What each role of the sample configuration can do is what the page says: everything is tried, with the credentials of
// each role and of another team's.
func TestRoles(t *testing.T) {
	columns := []string{"operator", "node", "gateway", "agent", "another team"}
	can := map[string][]bool{} // by deed, for each column
	for _, column := range append(columns, "witness") {
		t.Run(column, func(t *testing.T) {
			s := newSample(t)
			must.Get(natsacp.Open(t.Context(), s.as("red-operator"), nil))(t)
			store := must.Get(natsacp.OpenStore(t.Context(), s.as("red-agent"), nil))(t)
			defer store.Close()
			red, gateways, agents := s.as("witness-RED"), s.as("witness-RED_GATEWAYS"), s.as("witness-RED_AGENTS")
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
			users := []string{"red-" + column}
			switch column {
			case "another team":
				users = []string{"blue-operator", "blue-node", "blue-gateway", "blue-agent"}
			case "witness":
				users = []string{"witness-RED"}
			}
			for _, user := range users {
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
							if "red-"+role != user {
								must.Do(t, account.Publish("_INBOX."+role+".victim", []byte("SECRET-ANSWER")))
							}
						}
					}
				})
				attack(t, s.as(user), user[strings.Index(user, "-")+1:], heard)
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
			for _, d := range deeds {
				can[d.name] = append(can[d.name], done[d.key])
			}
		})
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

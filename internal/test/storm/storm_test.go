package storm

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/ledger"
	"github.com/acpgo/sdk/internal/test/badlines"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

var (
	soakTime = flag.Duration("storm.time", 0, "how long TestSoak runs; by default the tier decides")
	soakSeed = flag.Uint64("storm.seed", 0, "the seed of TestSoak; 0 means a random one")
)

// allWays are the ways to the victim. Over those of the network there are messages only.
var allWays = []string{"pipe", "process", "ws", "http", "h2c"}

func isNetwork(way string) bool { return way != "pipe" && way != "process" }

// storm is something that a peer does. The client is in a turn meanwhile.
type storm struct {
	name  string
	side  string // "" means both
	bytes bool   // what it sends is not messages
	blow  func(v *victim)
}

// size is how many of something a storm sends. A request over HTTP costs a hundred times as much as a line.
func (v *victim) size(normal, nightly int) int {
	n := tier.Pick(normal/10, normal, normal, nightly)
	if isNetwork(v.way) {
		n /= 20
	}
	return max(n, 1)
}

var storms = []storm{
	{name: "nothing", blow: func(*victim) {}},
	{name: "bad lines", bytes: true, blow: func(v *victim) {
		v.tolerate()
		for _, line := range badlines.Lines("_storm/line", `"x":1`) {
			v.send(line.Text)
		}
	}},
	{name: "garbage", bytes: true, blow: func(v *victim) {
		v.tolerate()
		random := rand.NewChaCha8([32]byte{})
		garbage := make([]byte, v.size(1<<20, 100<<20))
		_, _ = random.Read(garbage) // never fails
		for i := 0; i < len(garbage); i += 97 {
			garbage[i] = "\n{}[]\"\\:,0"[i/97%10]
		}
		v.send(string(garbage))
	}},
	{name: "depth", bytes: true, blow: func(v *victim) {
		v.tolerate()
		for _, depth := range []int{250, 1000, v.size(100_000, 10_000_000)} {
			for _, value := range []string{
				strings.Repeat("[", depth) + strings.Repeat("]", depth), strings.Repeat(`{"a":`, depth) + "0" + strings.Repeat("}", depth),
				strings.Repeat("[", depth),
			} {
				v.send(value, note("_storm/deep", value), `{"jsonrpc":"2.0","id":"deep","result":`+value+`}`,
					`{"jsonrpc":"2.0","id":`+value+`,"method":"_storm/deep"}`, `{"jsonrpc":"2.0","id":1000,"method":"session/prompt","params":`+value+`}`)
			}
		}
	}},
	{name: "a line that is too long", bytes: true, blow: func(v *victim) {
		v.tolerate()
		v.long(tier.Pick(65, 65, 80, 4096))
		v.send(`"}}`)
	}},
	{name: "trickle", blow: func(v *victim) {
		for _, b := range []byte(v.request(`"slow"`, "_storm/slow", `{}`, nil) + "\n") {
			if err := v.write(string(b)); err != nil {
				v.t.Error(err)
			}
			runtime.Gosched()
		}
	}},
	{name: "answers to nothing", blow: func(v *victim) {
		ids := []string{"-1", `"x"`, "1e6", `"1"`, "7777777"}
		results := []string{`"result":{"outcome":{"outcome":"selected","optionId":"allow"}}`, `"error":{"code":-32000,"message":"x"}`}
		for i := range v.size(20_000, 1_000_000) {
			v.send(`{"jsonrpc":"2.0","id":` + ids[i%len(ids)] + `,` + results[i%2] + `}`)
		}
	}},
	{name: "requests", blow: func(v *victim) {
		empty := func(int) string { return `{}` }
		v.many(v.size(20_000, 500_000), func(i int) string { return fmt.Sprintf(`"many-%d"`, i) }, "_storm/x", empty)
		long := strings.Repeat("i", 100<<10)
		v.many(v.size(40, 4000), func(i int) string { return fmt.Sprintf(`"%d-%s"`, i, long) }, "_storm/x", empty)
		if !isNetwork(v.way) { // there, an id may be used again when its request is answered
			v.many(v.size(500, 4000), func(int) string { return `"same"` }, "_storm/x", empty)
		}
	}},
	{name: "no reader", blow: func(v *victim) {
		resume := v.pause()
		taken, wrote := v.flood(v.size(40_000, 400_000), func(i int) string {
			return v.request(fmt.Sprintf(`"%d%0500d"`, i, 0), "_storm/x", `{}`, nil)
		})
		standstill(taken, wrote)
		resume()
		if err := receive(v.peer, wrote, "the end of writing"); err != nil {
			v.t.Error(err)
		}
	}},
	{name: "cancellations", blow: func(v *victim) {
		for i := range v.size(20_000, 1_000_000) {
			v.send(note("$/cancel_request", fmt.Sprintf(`{"requestId":%d}`, i+1_000_000)))
			if i%10 == 0 && v.side == "agent" {
				v.send(note("session/cancel", fmt.Sprintf(`{"sessionId":"no-%d"}`, i)))
			}
		}
	}},
	{name: "sessions", side: "agent", blow: func(v *victim) {
		v.many(v.size(500, 20_000), func(i int) string { return fmt.Sprintf(`"new-%d"`, i) }, "session/new",
			func(int) string { return `{"cwd":` + quote(v.dir) + `,"mcpServers":[]}` })
	}},
	{name: "races", side: "agent", blow: races},
	{name: "updates", side: "client", blow: func(v *victim) {
		n := v.size(5000, 1_000_000)
		for i := range n {
			v.send(update("s", fmt.Sprintf("#%d#\n", i)))
		}
		v.turnEnds()
		v.screen.mu.Lock()
		defer v.screen.mu.Unlock()
		if v.screen.next != n {
			v.t.Errorf("%d of %d updates are printed in order", v.screen.next, n)
		}
	}},
	{name: "updates of other sessions", side: "client", blow: func(v *victim) {
		for i := range v.size(20_000, 1_000_000) {
			v.send(update("other-"+strconv.Itoa(i), "x"))
		}
	}},
	{name: "questions", side: "client", blow: func(v *victim) {
		n := v.size(200, 5000)
		id := func(i int) string { return fmt.Sprintf(`"ask-%d"`, i) }
		v.many(n, id, "session/request_permission", func(int) string { return question("s", strings.Repeat("q", 1000)) })
		for i := range n / 2 {
			v.send(note("$/cancel_request", `{"requestId":`+id(i)+`}`))
		}
		v.turnEnds() // and with it the rest
	}},
}

func question(session, text string) string {
	return fmt.Sprintf(`{"sessionId":%q,"toolCall":{"toolCallId":"t","title":%q},"options":[{"optionId":"allow","name":"Allow","kind":"allow_once"}]}`,
		session, text)
}

// flood writes n lines, and says how many of them were taken, and how that ended.
func (v *victim) flood(n int, line func(i int) string) (*atomic.Int64, <-chan error) {
	taken, wrote := new(atomic.Int64), make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < n && err == nil; i++ {
			err = v.write(line(i) + "\n")
			taken.Add(1)
		}
		wrote <- err
	}()
	return taken, wrote
}

// long begins a message of so many MiB.
func (v *victim) long(mib int) {
	if err := v.write(`{"jsonrpc":"2.0","method":"_storm/long","params":{"text":"`); err != nil {
		v.t.Fatal(err)
	}
	piece := strings.Repeat("l", 1<<20)
	for range mib {
		if err := v.write(piece); err != nil {
			v.t.Fatal(err)
		}
	}
}

// turnEnds ends the client's turn, waits until all of it was printed, and begins another one.
func (v *victim) turnEnds() {
	v.t.Helper()
	v.endTurn(v.inTurn)
	v.inTurn = v.prompted()
}

// races has several sessions with turns at once, which are cancelled at any time. Each turn is answered once, and what
// the agent said before is in order.
func races(v *victim) {
	var all sync.WaitGroup
	for n := range v.size(100, 1000)/20 + 2 {
		session := v.open()
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 0))
			var want strings.Builder
			for i := range 5 {
				text := fmt.Sprintf("think plan permission %d.%d", n, i)
				cancelled := random.IntN(2) == 0
				if cancelled {
					text = "write a very long story"
				}
				id, result := v.begin("session/prompt", prompt(session, text))
				if cancelled {
					time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond) // any time
					v.send(note("session/cancel", `{"sessionId":`+quote(session)+`}`), note("$/cancel_request", `{"requestId":"`+id+`"}`))
				} else {
					want.WriteString("You said: " + text)
				}
				var r struct{ StopReason string }
				if err := json.Unmarshal(receive(v.peer, result, text), &r); err != nil || cancelled != (r.StopReason == "cancelled") {
					v.t.Errorf("%s ended with %s, %v", text, r.StopReason, err)
				}
			}
			v.mu.Lock()
			defer v.mu.Unlock()
			if said := strings.ReplaceAll(v.said[session], "On and on it goes. ", ""); said != want.String() {
				v.t.Errorf("said %.500q, want %.500q", said, want.String())
			}
		})
	}
	all.Wait()
}

// weather is one storm on a victim, after which that has an ordinary turn, and ends.
func (s *storm) weather(t testing.TB, way, side string) {
	v := start(t, side, way, 0)
	if side == "client" {
		v.inTurn = v.prompted()
	}
	s.blow(v)
	v.settle()
	if side == "client" {
		v.turnEnds()
		v.endTurn(v.inTurn)
	}
	v.turn()
	v.finish()
}

// cells calls do for each cell of the matrix.
func cells(do func(s *storm, way, side string)) {
	for i := range storms {
		s := &storms[i]
		for _, way := range allWays {
			for _, side := range []string{"agent", "client"} {
				if (s.side == "" || s.side == side) && !(s.bytes && isNetwork(way)) {
					do(s, way, side)
				}
			}
		}
	}
}

func TestStorms(t *testing.T) {
	cells(func(s *storm, way, side string) {
		t.Run(s.name+"/"+way+"/"+side, func(t *testing.T) {
			if tier.Current() < tier.Full && (way == "http" || way == "process") || way == "process" {
				tier.Need(t, tier.Normal)
			}
			t.Parallel()
			s.weather(t, way, side)
		})
	})
}

// Ends of a connection with a turn and a question in progress: all of it ends.
func TestEndings(t *testing.T) {
	for _, end := range []struct {
		name  string
		bytes bool
		end   func(v *victim)
	}{
		{"the peer is gone", false, func(v *victim) { v.close() }},
		{"the peer breaks off within a line", true, func(v *victim) {
			_ = v.write(`{"jsonrpc":"2.0","id":1,"result":{"stopR`) // the victim sees what of it has come
			v.close()
		}},
		{"the peer writes no more", true, func(v *victim) {
			if err := v.w.Close(); err != nil {
				v.t.Error(err)
			}
			receive(v.peer, v.done, "the end of the output")
			v.close()
		}},
		{"the peer reads no more, and is gone", false, func(v *victim) {
			defer v.pause()()
			standstill(v.flood(v.size(100_000, 1_000_000), func(i int) string {
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":"unread-%d","method":"_storm/x","params":{}}`, i)
			}))
			v.close()
		}},
		{"a line without an end", true, func(v *victim) {
			v.tolerate()
			v.long(70)
			v.close()
		}},
	} {
		for _, way := range allWays {
			for _, side := range []string{"agent", "client"} {
				if end.bytes && isNetwork(way) {
					continue
				}
				t.Run(end.name+"/"+way+"/"+side, func(t *testing.T) {
					if way == "process" {
						tier.Need(t, tier.Normal)
					}
					t.Parallel()
					v := start(t, side, way, 0)
					asked := make(chan struct{})
					v.serve = func(*ledger.Message) { close(asked) } // and is never answered
					if side == "agent" {
						v.send(note("$/x", `{}`), `{"jsonrpc":"2.0","id":"turn","method":"session/prompt","params":`+prompt(v.session, "permission")+`}`)
						receive(v.peer, asked, "a question")
						v.send(`{"jsonrpc":"2.0","id":"long","method":"session/prompt","params":` + prompt(v.open(), "write a very long story") + `}`)
						v.tolerate()
					} else {
						v.prompted()
						v.send(`{"jsonrpc":"2.0","id":"ask","method":"session/request_permission","params":` + question("s", "x") + `}`)
						v.tolerate()
					}
					end.end(v)
					if side == "client" {
						_ = v.user.Close()
					}
					v.over()
				})
			}
		}
	}
}

// What a connection makes a process hold is bounded, whatever a peer sends, and whether it reads or not: each of these
// would take three times of what is allowed.
func TestFloods(t *testing.T) {
	tier.Need(t, tier.Full)
	if gentest.Race || runtime.GOOS != "linux" {
		t.Skip("it measures the memory of a process, without that of the race detector")
	}
	maxBytes := tier.Pick(0, 0, 32<<20, 256<<20)
	bound := 48 + 3*(maxBytes>>20) // MiB; with what the program itself takes, and what is not collected yet
	for _, flood := range []struct {
		name, side string
		deaf       bool
		method     string
		params     func(v *victim) string
		length     int // of what it takes, in bytes
	}{
		{"refusals that nobody reads", "agent", true, "_storm/x", func(*victim) string { return `{}` }, 8000},
		{"files", "client", false, "fs/read_text_file", bigFile(maxBytes / 25 / 6), maxBytes / 25},
		{"files that nobody reads", "client", true, "fs/read_text_file", bigFile(maxBytes / 25 / 6), maxBytes / 25},
		{"long questions", "client", false, "session/request_permission", func(*victim) string {
			return question("s", strings.Repeat("q", maxBytes/64))
		}, maxBytes / 64},
		{"wide questions", "client", false, "session/request_permission", func(*victim) string {
			return strings.Replace(question("s", "q"), `"toolCallId"`, `"locations":[{"path":"/"}`+strings.Repeat(`,{"path":"/"}`, maxBytes/64/64)+`],"toolCallId"`, 1)
		}, maxBytes / 64},
		{"refusals that nobody reads", "client", true, "_storm/x", func(*victim) string { return `{}` }, 8000},
	} {
		t.Run(flood.name+"/"+flood.side, func(t *testing.T) {
			v := start(t, flood.side, "process", maxBytes)
			if flood.side == "client" {
				v.prompted()
			}
			params := flood.params(v)
			questions := flood.method == "session/request_permission" // which nobody answers
			resume := v.pause()
			if !flood.deaf {
				resume()
			}
			id := strings.Repeat("i", max(0, 4000-len(params)))
			taken, wrote := v.flood(3*bound<<20/flood.length, func(i int) string {
				return v.request(fmt.Sprintf(`"%d%s"`, i, id), flood.method, params, nil)
			})
			if flood.deaf {
				standstill(taken, wrote)
				resume()
			}
			must.Do(t, receive(v.peer, wrote, "the end of writing"))
			if !questions {
				v.settle()
			}
			peak := v.peak()
			if peak == 0 || peak > bound {
				t.Errorf("the process has %d MiB, want %d at most", peak, bound)
			}
			t.Logf("%d messages, %d MiB of %d", taken.Load(), peak, bound)
			v.close()
			_ = v.user.Close()
			v.over()
		})
	}
}

// bigFile reads a file whose every byte is six in JSON.
func bigFile(size int) func(v *victim) string {
	return func(v *victim) string {
		path := filepath.Join(v.dir, "big.txt")
		if err := os.WriteFile(path, []byte(strings.Repeat("\x01", size)), 0o600); err != nil {
			v.t.Fatal(err)
		}
		return `{"sessionId":"s","path":` + quote(path) + `}`
	}
}

// residue is what a process uses when nothing is in progress.
type residue struct {
	goroutines, files int
	heap              uint64
}

func left() residue {
	runtime.GC() // what is in a sync.Pool survives one collection
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, _ := os.ReadDir("/proc/self/fd") // elsewhere, they are not counted
	return residue{runtime.NumGoroutine(), len(files), m.HeapAlloc}
}

// Storms at random, several at a time, for the time of the flag: nothing is left.
func TestSoak(t *testing.T) {
	tier.Need(t, tier.Normal)
	seed := *soakSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	type cell struct {
		s         *storm
		way, side string
	}
	var all []cell
	cells(func(s *storm, way, side string) { all = append(all, cell{s, way, side}) })
	for _, way := range allWays {
		// What is kept forever exists from now on, and what is not is gone at the end of the subtest.
		for _, side := range []string{"agent", "client"} {
			t.Run("first/"+way+"/"+side, func(t *testing.T) { storms[0].weather(t, way, side) })
		}
	}
	before := left()
	var rest atomic.Bool
	period := *soakTime
	if period == 0 {
		period = tier.Pick(0, 2*time.Second, 20*time.Second, time.Minute)
	}
	time.AfterFunc(period, func() { rest.Store(true) })
	var workers sync.WaitGroup
	var blown atomic.Int64
	for i := range uint64(3) {
		workers.Go(func() {
			for random := rand.New(rand.NewPCG(seed, i)); !rest.Load() && !t.Failed(); blown.Add(1) {
				c := all[random.IntN(len(all))]
				t.Run(c.s.name+"/"+c.way+"/"+c.side, func(t *testing.T) { c.s.weather(t, c.way, c.side) })
			}
		})
	}
	workers.Wait()
	more := func(after residue) bool {
		return after.goroutines > before.goroutines || after.files > before.files || after.heap > before.heap+16<<20
	}
	after := left()
	for end := time.Now().Add(patience); more(after) && time.Now().Before(end); after = left() {
		time.Sleep(10 * time.Millisecond) // until what was closed has ended
	}
	t.Logf("%d storms: %+v became %+v", blown.Load(), before, after)
	if more(after) {
		t.Error("something is left")
	}
}

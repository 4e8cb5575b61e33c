package natsacp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A Fleet is what nodes and gateways share: its records, leases and log in JetStream. Its methods are safe for
// concurrent use.
type Fleet struct {
	*engine
	lease    time.Duration
	sessions jetstream.KeyValue
	members  jetstream.KeyValue // nodes and gateways, for the time of the lease
	log      string             // the stream
}

// Open opens a fleet, and creates what it needs in JetStream if necessary. The caller closes nc, after the nodes and
// gateways. nc should reconnect forever.
func Open(ctx context.Context, nc *nats.Conn, opts *Options) (*Fleet, error) {
	e, err := newEngine(nc, opts)
	if err != nil {
		return nil, err
	}
	f := &Fleet{engine: e}
	if f.sessions, err = e.bucket(ctx, "sessions", 0); err != nil {
		return nil, err
	}
	if f.members, err = e.bucket(ctx, "members", e.opts.Lease); err != nil {
		return nil, err
	}
	status, err := f.members.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("natsacp: %w", err)
	}
	f.lease = status.TTL() // of the one who created it
	log, err := e.stream(ctx, jetstream.StreamConfig{
		Name:        e.opts.Name + "_log",
		Subjects:    []string{e.opts.Name + ".log.*"},
		MaxAge:      e.opts.LogAge,
		MaxBytes:    e.opts.LogBytes,
		Duplicates:  100 * time.Millisecond, // readers recognize them
		AllowDirect: true,
		RePublish:   &jetstream.RePublish{Source: e.opts.Name + ".log.*", Destination: e.opts.Name + ".down.{{wildcard(1)}}"},
	})
	if err != nil {
		return nil, fmt.Errorf("natsacp: %w", err)
	}
	f.log = log.CachedInfo().Config.Name
	return f, nil
}

// TurnState is what became of a prompt.
type TurnState string

// The states of a turn.
const (
	TurnRunning     TurnState = "running"
	TurnDone        TurnState = "done"
	TurnInterrupted TurnState = "interrupted" // the agent or its node ended first; the prompt is not run again
)

// A Turn describes the last prompt of a session.
type Turn struct {
	Number     uint64    `json:"number"` // counts the session's prompts
	State      TurnState `json:"state"`
	StopReason string    `json:"stopReason,omitempty"`
}

// A Session is the record of a session.
type Session struct {
	ID        string `json:"id"`
	Principal string `json:"principal,omitempty"`
	Cwd       string `json:"cwd"`
	// Node is where the session's agent runs, or empty.
	Node string `json:"node,omitempty"`
	// Epoch counts the agents that have had the session.
	Epoch   uint64    `json:"epoch"`
	Turn    Turn      `json:"turn,omitzero"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"` // when Node or Turn has last changed
	Prompts []Prompt  `json:"prompts,omitempty"`

	// Link is the link of the agent. It is new with each epoch. Last is that of the last agent, if none runs.
	Link string `json:"link,omitempty"`
	Last string `json:"last,omitempty"`

	// Format is 0. Programs refuse records of other formats, which are from newer ones.
	Format int `json:"format,omitempty"`

	revision uint64
}

// A Prompt is one of the last prompts of a session that had an idempotency key.
type Prompt struct {
	Key    string `json:"key"`    // a digest
	Digest string `json:"digest"` // of its content
	// StopReason is how its turn ended, or empty if it runs, or if that is not known.
	StopReason string `json:"stopReason,omitempty"`
}

// Sessions returns the records of all sessions, by id. If some are damaged, it also returns an error that names them.
func (f *Fleet) Sessions(ctx context.Context) ([]Session, error) {
	var all []Session
	var damaged []error
	err := f.each(ctx, f.sessions, ">", func(entry jetstream.KeyValueEntry) {
		if s, err := readRecord(entry); err != nil {
			damaged = append(damaged, err)
		} else {
			all = append(all, *s)
		}
	})
	slices.SortFunc(all, func(a, b Session) int { return strings.Compare(a.ID, b.ID) })
	return all, explain(ctx, errors.Join(append(damaged, err)...))
}

// readRecord reads a record, or returns a *recordError.
func readRecord(entry jetstream.KeyValueEntry) (*Session, error) {
	s := &Session{}
	err := json.Unmarshal(entry.Value(), s)
	switch {
	case err != nil:
		return nil, &recordError{entry.Key(), err.Error()}
	case s.Format != 0:
		return nil, &recordError{entry.Key(), fmt.Sprintf("it has the format %d, of a newer program", s.Format)}
	case sessionKey(s.Principal, s.ID) != entry.Key():
		return nil, &recordError{entry.Key(), "it is of another session"}
	}
	s.revision = entry.Revision()
	return s, nil
}

// recordError reports a record that cannot be used.
type recordError struct{ key, why string }

func (e *recordError) Error() string {
	return fmt.Sprintf("the record %s cannot be read: %s", e.key, e.why)
}

// explain adds to an error where it is from.
func explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("natsacp: %w", err)
}

// sessionKey is the key of a session's record. Each principal has their own, and nobody can guess it.
func sessionKey(principal, id string) string {
	sum := sha256.Sum256([]byte(principal + "\x00" + id))
	return hex.EncodeToString(sum[:])
}

// session returns the record of a principal's session, or nil.
func (f *Fleet) session(ctx context.Context, principal, id string) (*Session, error) {
	entry, err := f.sessions.Get(ctx, sessionKey(principal, id))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return readRecord(entry)
}

// errTaken reports that another node has changed a session's record.
var errTaken = errors.New("another node has taken the session")

// store writes a record if nobody has changed it since it was read. While there is no answer it tries again, and it
// recognizes its own write.
func (f *Fleet) store(ctx context.Context, s *Session) error {
	s.Updated = time.Now().UTC()
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	key := sessionKey(s.Principal, s.ID)
	return retry(ctx, func() error {
		var revision uint64
		if s.revision == 0 {
			revision, err = f.sessions.Create(ctx, key, text)
		} else {
			revision, err = f.sessions.Update(ctx, key, text, s.revision)
		}
		if errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			var entry jetstream.KeyValueEntry
			entry, err = f.sessions.Get(ctx, key)
			if errors.Is(err, jetstream.ErrKeyNotFound) || err == nil && !bytes.Equal(entry.Value(), text) {
				return errTaken
			}
			if err == nil {
				revision = entry.Revision()
			}
		}
		if err == nil {
			s.revision = revision
		}
		return err
	})
}

// forget removes a record.
func (f *Fleet) forget(ctx context.Context, s *Session) error {
	return f.sessions.Purge(ctx, sessionKey(s.Principal, s.ID), jetstream.LastRevision(s.revision),
		jetstream.PurgeTTL(markerTime))
}

// A Member describes a node or a gateway that is alive.
type Member struct {
	Name string `json:"name"`
	// Sessions is how many agents a node runs, and of how many clients a gateway has connections.
	Sessions int       `json:"sessions"`
	Max      int       `json:"max,omitempty"` // how many a node may run
	Draining bool      `json:"draining,omitempty"`
	Since    time.Time `json:"since"`
	// Protocol is the version of the protocol that a node's agents speak, that of the last one to say so; 0 if none has.
	// Clients of either version can use it.
	Protocol int `json:"protocolVersion,omitempty"`
}

const (
	nodePrefix    = "node."
	gatewayPrefix = "gateway."
)

// memberName returns the name of a member, which is random if none is given.
func memberName(given string) (string, error) {
	name := cmp.Or(given, strings.ToLower(unique()[:8]))
	return name, checkName(name)
}

// Nodes returns the nodes that are alive, by name.
func (f *Fleet) Nodes(ctx context.Context) ([]Member, error) { return f.list(ctx, nodePrefix) }

// Gateways returns the gateways that are alive, by name.
func (f *Fleet) Gateways(ctx context.Context) ([]Member, error) { return f.list(ctx, gatewayPrefix) }

// list asks for one member after the other. A watcher would need a consumer, and whoever may create one can have what
// is in a stream sent to any subject of the account, such as those of sessions.
func (f *Fleet) list(ctx context.Context, prefix string) ([]Member, error) {
	found := map[string]Member{} // one that is renewed meanwhile comes twice
	subject := "$KV." + f.members.Bucket() + "." + prefix + "*"
	for next := uint64(1); ; next++ {
		seq, text, err := f.get(ctx, "KV_"+f.members.Bucket(), map[string]any{"seq": next, "next_by_subj": subject})
		if err != nil {
			return nil, explain(ctx, err)
		}
		if seq == 0 {
			break
		}
		next = seq
		var m Member
		if json.Unmarshal(text, &m) == nil { // else it was deleted, or has expired
			found[m.Name] = m
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Member) int { return strings.Compare(a.Name, b.Name) }), nil
}

// alive returns the names of the members of a kind.
func (f *Fleet) alive(ctx context.Context, prefix string) (map[string]bool, error) {
	members, err := f.list(ctx, prefix)
	return names(members), err
}

func names(members []Member) map[string]bool {
	names := map[string]bool{}
	for _, m := range members {
		names[m.Name] = true
	}
	return names
}

// Drain makes a node give up its sessions: it accepts no new sessions, finishes its turns and hands its sessions over.
// Drain returns once this has started; Nodes shows what is left.
func (f *Fleet) Drain(ctx context.Context, node string) error {
	if err := checkName(node); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := f.nc.RequestWithContext(ctx, f.subject("node", node), []byte(commandDrain))
	if errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("natsacp: no node with the name %q is running", node)
	}
	return explain(ctx, err)
}

const commandDrain = "drain"

func (f *Fleet) subject(parts ...string) string {
	return f.opts.Name + "." + strings.Join(parts, ".")
}

// opening is a gateway's request for an agent.
type opening struct {
	Link      string `json:"link"`
	Principal string `json:"principal,omitempty"`
	Gateway   string `json:"gateway"`
}

// opened is the answer.
type opened struct {
	Node  string `json:"node,omitempty"`
	Error string `json:"error,omitempty"`
	Full  bool   `json:"full,omitempty"` // for this principal
}

// A frame is what nodes and gateways send each other about a link: about one agent and its client.
type frame struct {
	kind byte
	gen  uint64 // counts the clients that have been attached to the link
	seq  uint64 // of the frames of this kind
	arg  uint64
	data []byte
}

const (
	// To the node; all but frameTaken are answered.
	frameData   = 'd' // messages, or a part of one
	frameCancel = 'c' // one message that need not wait for data after frame arg
	frameAttach = 'a' // another client attaches; data is the name of its gateway
	frameDetach = 'x' // the client has gone
	frameTaken  = 't' // the client has taken arg bytes
	frameNamed  = 'n' // not answered, and from a node that has started: it has the name of the node

	// To the gateway; the first two are in the log, and share seq.
	frameEnd    = 'e' // the agent has ended; data says why
	frameMoved  = 'm' // like frameEnd: the session can continue elsewhere, and nothing is lost
	frameBeat   = 'b' // the log has arrived at seq; the node wants to know how much is taken
	frameReplay = 'r' // another client is attached

	// In the log, from another node.
	frameFence = 'F' // what follows is from a node that has lost the session
)

// The answers of a node to a frame.
const (
	replyOK    = '+'
	replyMoved = 'm' // it was not accepted: the session can continue elsewhere
	replyNone  = '-' // there is no such link
)

func (fr *frame) encode() []byte {
	b := make([]byte, 0, 16+len(fr.data))
	b = append(b, fr.kind)
	for _, n := range []uint64{fr.gen, fr.seq, fr.arg} {
		b = binary.AppendUvarint(b, n)
	}
	return append(b, fr.data...)
}

func decodeFrame(b []byte) (fr frame, ok bool) {
	if len(b) == 0 {
		return fr, false
	}
	fr.kind, b = b[0], b[1:]
	for _, n := range []*uint64{&fr.gen, &fr.seq, &fr.arg} {
		size := 0
		if *n, size = binary.Uvarint(b); size <= 0 {
			return fr, false
		}
		b = b[size:]
	}
	fr.data = b
	return fr, true
}

package natsacp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options says where a fleet, or a session store, keeps its data. Everyone who shares it must use the same options. A
// nil *Options, and the zero value of each field, mean the defaults.
type Options struct {
	// Name begins the names of all streams, buckets and subjects, so that several fleets can share an account: letters,
	// digits, - and _. The default is acp.
	Name string
	// Replicas is how many servers keep each piece of data, 1 to 5. The default is 1.
	Replicas int
	// InMemory keeps the data in the servers' memory instead of on their disks.
	InMemory bool
	// Lease is how long a node or gateway that has stopped is believed to be alive. Then others take over its sessions. It
	// applies when the fleet is created. The default is 15 s.
	Lease time.Duration
	// LogAge is how long a fleet keeps messages of agents for clients that come back. The default is 1 h.
	LogAge time.Duration
	// LogBytes is how many bytes of such messages a fleet keeps. The oldest are dropped first. The default is 1 GiB.
	LogBytes int64
}

// engine is what this package needs of NATS.
type engine struct {
	nc   *nats.Conn
	js   jetstream.JetStream
	opts Options
}

func newEngine(nc *nats.Conn, opts *Options) (*engine, error) {
	e := &engine{nc: nc}
	if opts != nil {
		e.opts = *opts
	}
	e.opts.Name = cmp.Or(e.opts.Name, "acp")
	e.opts.Replicas = cmp.Or(e.opts.Replicas, 1)
	e.opts.Lease = cmp.Or(e.opts.Lease, 15*time.Second)
	e.opts.LogAge = cmp.Or(e.opts.LogAge, time.Hour)
	e.opts.LogBytes = cmp.Or(e.opts.LogBytes, 1<<30)
	if err := checkName(e.opts.Name); err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("natsacp: %w", err)
	}
	e.js = js
	return e, nil
}

// checkName checks that a name can be a part of a subject.
func checkName(name string) error {
	if name == "" || len(name) > 100 ||
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		return fmt.Errorf("natsacp: invalid name %q: expected at most 100 letters, digits, - and _", name)
	}
	return nil
}

// stream returns a stream, which it creates if necessary.
func (e *engine) stream(ctx context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := e.js.Stream(ctx, c.Name)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return s, err // an operator may have changed its limits
	}
	c.Replicas = e.opts.Replicas
	if e.opts.InMemory {
		c.Storage = jetstream.MemoryStorage
	}
	if s, err = e.js.CreateStream(ctx, c); errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return e.js.Stream(ctx, c.Name) // another process was faster, with other options
	}
	return s, err
}

// bucket returns a key-value bucket, which it creates if necessary. Unlike those that CreateKeyValue creates, only its
// leader answers, so that nobody reads what has been replaced. ttl is how long values are kept; if it is 0, Purge can
// be used. Where it can, whoever may write one key can also remove all others, with a header.
func (e *engine) bucket(ctx context.Context, name string, ttl time.Duration) (jetstream.KeyValue, error) {
	name = e.opts.Name + "_" + name
	c := jetstream.StreamConfig{
		Name:              "KV_" + name,
		Subjects:          []string{"$KV." + name + ".>"},
		MaxMsgsPerSubject: 1,
		MaxAge:            ttl,
		Discard:           jetstream.DiscardNew,
		DenyDelete:        true,
	}
	if ttl == 0 {
		c.AllowRollup, c.AllowMsgTTL, c.SubjectDeleteMarkerTTL = true, true, markerTime
	}
	if _, err := e.stream(ctx, c); err != nil {
		return nil, fmt.Errorf("natsacp: bucket %s: %w", name, err)
	}
	return e.js.KeyValue(ctx, name)
}

// markerTime is how long a bucket remembers that a key was deleted.
const markerTime = time.Hour

// publish publishes a message to a stream. It tries again while there is no answer, and the message is stored only
// once.
func (e *engine) publish(ctx context.Context, m *nats.Msg) error {
	id := unique()
	return retry(ctx, func() error {
		_, err := e.js.PublishMsg(ctx, m, jetstream.WithMsgID(id))
		return err
	})
}

// retry calls do until it does not fail for now, at most for a time in which a leader is elected for certain.
func retry(ctx context.Context, do func() error) error {
	const longest = 30 * time.Second
	for begun := time.Now(); ; {
		err := do()
		if err == nil || ctx.Err() != nil || time.Since(begun) > longest || !isTemporary(err) {
			return err
		}
		if err := pause(ctx, lull); err != nil {
			return err
		}
	}
}

// isTemporary reports whether an error may be gone when a new leader has been elected.
func isTemporary(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code == 503
	}
	return errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}

// unique returns a name that nobody can guess.
func unique() string { return rand.Text() }

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// signal wakes whoever waits for a channel with room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// maxPayload is how long the messages in a stream are at most, in bytes.
const maxPayload = 256 << 10

// payload returns how much fits into a message.
func (e *engine) payload() int {
	return max(1<<10, min(maxPayload, int(e.nc.MaxPayload())-1<<10)) // without the header
}

// maxBatch and maxBatchBytes bound what read asks for at once.
const (
	maxBatch      = 256
	maxBatchBytes = 1 << 20
)

// read returns the stored messages of a subject from a sequence number on, some at a time. The result is empty if there
// are none. Any replica may answer, so the newest may be missing.
func (e *engine) read(ctx context.Context, stream, subject string, from uint64) ([]*nats.Msg, error) {
	request, _ := json.Marshal(map[string]any{ // numbers and a string cannot fail
		"seq": max(1, from), "next_by_subj": subject, "batch": maxBatch, "max_bytes": maxBatchBytes,
	})
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	inbox := e.nc.NewInbox()
	sub, err := e.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails only when the connection is closed
	if err := e.nc.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, request); err != nil {
		return nil, err
	}
	var messages []*nats.Msg
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return nil, err
		}
		switch status := m.Header.Get("Status"); {
		case status == "204" || status == "404":
			return messages, nil
		case status != "" && len(m.Data) == 0:
			return nil, fmt.Errorf("reading stream %s: %s %s", stream, status, m.Header.Get("Description"))
		}
		messages = append(messages, m)
	}
}

// get returns one message of a stream, and 0 if there is none. The stream's leader answers.
func (e *engine) get(ctx context.Context, stream string, which map[string]any) (seq uint64, data []byte, err error) {
	request, _ := json.Marshal(which) // numbers and a string cannot fail
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	m, err := e.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, request)
	if err != nil {
		return 0, nil, err
	}
	var answer struct {
		Message struct {
			Seq  uint64
			Data []byte
		}
		Error *jetstream.APIError
	}
	switch err := json.Unmarshal(m.Data, &answer); {
	case err != nil:
		return 0, nil, err
	case answer.Error != nil && answer.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return 0, nil, nil
	case answer.Error != nil:
		return 0, nil, answer.Error
	}
	return answer.Message.Seq, answer.Message.Data, nil
}

// each calls do for each value in a bucket whose key matches. While others write, a watcher says too early that it has
// delivered all values, so the stream says which keys there are.
func (e *engine) each(ctx context.Context, bucket jetstream.KeyValue, keys string,
	do func(jetstream.KeyValueEntry)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	stream, err := e.js.Stream(ctx, "KV_"+bucket.Bucket())
	if err != nil {
		return err
	}
	prefix := "$KV." + bucket.Bucket() + "."
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(prefix+keys))
	if err != nil {
		return err
	}
	left := info.State.Subjects
	watcher, err := bucket.Watch(ctx, keys)
	if err != nil {
		return err
	}
	defer func() { _ = watcher.Stop() }() // it fails only when the connection is closed
	for len(left) > 0 {
		select {
		case entry, ok := <-watcher.Updates():
			switch {
			case !ok:
				return nats.ErrConnectionClosed
			case entry == nil: // what is left was delayed, or removed for good
				if info, err = stream.Info(ctx, jetstream.WithSubjectFilter(prefix+keys)); err != nil {
					return err
				}
				maps.DeleteFunc(left, func(subject string, _ uint64) bool { return info.State.Subjects[subject] == 0 })
			case left[prefix+entry.Key()] > 0:
				if delete(left, prefix+entry.Key()); entry.Operation() == jetstream.KeyValuePut {
					do(entry)
				}
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// isConflict reports whether a message was not stored because another one came first.
func isConflict(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// sequence returns the sequence number of a message in its stream, or 0.
func sequence(m *nats.Msg) uint64 {
	n, _ := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
	return n
}

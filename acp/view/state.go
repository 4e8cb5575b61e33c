package view

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/internal/turns"
)

// Options bounds what a State keeps. A nil *Options, and the zero value of each field, mean the defaults; a negative
// value means no bound.
type Options struct {
	// MaxItems is how many items are kept. The oldest are dropped for newer ones; Snapshot.First returns how many. The
	// default is 100,000.
	MaxItems int
	// MaxBytes is the approximate number of bytes that the kept items may take together; the last item is always kept.
	// The default is 256 MiB.
	MaxBytes int
	// MaxMessageBytes is the approximate number of bytes of one message or summary that are kept. The rest is dropped;
	// Content.Dropped says how much. The default is 16 MiB.
	MaxMessageBytes int
}

const unbounded = int(^uint(0) >> 1)

func bound(limit, standard int) int {
	if limit < 0 {
		return unbounded
	}
	return cmp.Or(limit, standard)
}

// State is the conversation of one session, into which updates are folded. Its methods are safe for concurrent use, and
// none of them waits for a reader. A State keeps the values that updates and other arguments refer to, and they must
// not be changed.
type State struct {
	maxItems, maxBytes, maxMessage int

	mu         sync.Mutex
	now        Snapshot  // the current state, without Version and the fields below
	snapshot   *Snapshot // the last snapshot, or nil if something has changed since
	version    uint64
	epoch      uint64        // the epoch of data that no snapshot contains
	wake       chan struct{} // closed at the next change; nil if there is no waiter
	size       int           // of all items, in bytes
	generation uint64        // identifies the history since New or Reset; from generations

	// The indexes of items.
	messages        map[messageKey]int
	calls           map[acp.ToolCallID]int
	compactions     map[acp.CompactionID]int
	subagents       map[acp.SessionID]int
	sessionMessages map[acp.MessageID]int

	open    int                            // index of the message that chunks without an id continue, or -1
	running []int                          // the turns in progress, oldest first
	opened  map[int]map[acp.ToolCallID]int // tool calls that have not ended, by turn
	echoes  []*echo                        // echoes of prompts in progress
}

type messageKey struct {
	role Role
	id   acp.MessageID
}

// New returns a State of a session about which nothing is known yet.
func New(opts *Options) *State {
	o := *cmp.Or(opts, &Options{})
	s := &State{
		maxItems:   bound(o.MaxItems, 100_000),
		maxBytes:   bound(o.MaxBytes, 256<<20),
		maxMessage: bound(o.MaxMessageBytes, 16<<20),
	}
	s.clear()
	return s
}

// generations numbers the histories of all States: snapshots of different States have no history in common.
var generations atomic.Uint64

// clear forgets the conversation; mu is held.
func (s *State) clear() {
	s.epoch++
	s.now.items, s.now.turns = vector[Item]{}, vector[TurnState]{}
	s.now.Plan, s.now.Plans, s.now.Usage = acp.Opt[acp.Plan]{}, nil, acp.Opt[acp.UsageUpdate]{}
	s.generation = generations.Add(1)
	s.now.generation = s.generation
	s.size, s.open = 0, -1
	s.messages, s.calls = map[messageKey]int{}, map[acp.ToolCallID]int{}
	s.compactions, s.subagents = map[acp.CompactionID]int{}, map[acp.SessionID]int{}
	s.sessionMessages, s.opened = map[acp.MessageID]int{}, map[int]map[acp.ToolCallID]int{}
	s.running, s.echoes = nil, nil
}

// Reset forgets the conversation, the plans and the usage, before the session's history is replayed, as with
// session/load. It ends the turns in progress; later calls of their handles have no effect. Title, modes, options and
// commands stay until the agent reports others.
func (s *State) Reset() {
	s.begin()
	defer s.end()
	s.clear()
	v := &s.now.Versions
	v.Plan, v.Plans, v.Usage = s.version, s.version, s.version
}

// begin begins a change, which ends with a call of end.
func (s *State) begin() {
	s.mu.Lock()
	s.version++
}

// end wakes the goroutines that wait for a change.
func (s *State) end() {
	s.snapshot = nil
	if s.wake != nil {
		close(s.wake)
		s.wake = nil
	}
	s.mu.Unlock()
}

// SetSession records the modes and options of a session that was created, loaded or resumed. Call it again after
// setting a mode or an option.
func (s *State) SetSession(session *acp.ClientSession) {
	modes, options := session.Modes(), session.ConfigOptions()
	s.begin()
	defer s.end()
	if !modes.IsZero() {
		s.now.Modes = modes
		s.now.Versions.Modes = s.version
	}
	if !options.IsZero() {
		s.now.ConfigOptions = options
		s.now.Versions.ConfigOptions = s.version
	}
}

// Update folds an update into the conversation. Pass it every update of the session, in order: both those that a turn's
// loop yields and those that the handler SessionUpdate receives.
func (s *State) Update(update acp.SessionUpdate) {
	s.begin()
	defer s.end()
	switch u := update.Variant.(type) {
	case *acp.SessionUpdateUserMessageChunk:
		s.chunk(User, (*acp.ContentChunk)(u))
	case *acp.SessionUpdateAgentMessageChunk:
		s.chunk(Agent, (*acp.ContentChunk)(u))
	case *acp.SessionUpdateAgentThoughtChunk:
		s.chunk(Thought, (*acp.ContentChunk)(u))
	case *acp.SessionUpdateToolCall:
		s.toolCall((*acp.ToolCall)(u))
	case *acp.SessionUpdateToolCallUpdate:
		s.toolCallUpdate((*acp.ToolCallUpdate)(u), false)
	case *acp.SessionUpdatePlan:
		s.plan((*acp.Plan)(u))
	case *acp.SessionUpdatePlanUpdate:
		s.planUpdate((*acp.PlanUpdate)(u))
	case *acp.SessionUpdatePlanRemoved:
		s.planRemoved(u.PlanID)
	case *acp.SessionUpdateAvailableCommandsUpdate:
		s.now.Commands = u.AvailableCommands
		s.now.Versions.Commands = s.version
	case *acp.SessionUpdateCurrentModeUpdate:
		s.mode(u.CurrentModeID)
	case *acp.SessionUpdateConfigOptionUpdate:
		s.now.ConfigOptions = acp.Some(u.ConfigOptions)
		s.now.Versions.ConfigOptions = s.version
	case *acp.SessionUpdateSessionInfoUpdate:
		s.info((*acp.SessionInfoUpdate)(u))
	case *acp.SessionUpdateUsageUpdate:
		s.usage((*acp.UsageUpdate)(u))
	case *acp.SessionUpdateNotice:
		s.add((*Notice)(u))
	case *acp.SessionUpdateCompactionUpdate:
		s.compaction((*acp.CompactionUpdate)(u))
	case *acp.SessionUpdateCompactionSummaryChunk:
		s.summary((*acp.CompactionSummaryChunk)(u))
	case *acp.SessionUpdateSubagentUpdate:
		s.subagent((*acp.SubagentUpdate)(u))
	case *acp.SessionUpdateSessionMessage:
		s.sessionMessage((*acp.SessionMessage)(u))
	case *acp.SessionUpdateSessionMessageChunk:
		s.sessionMessageChunk((*acp.SessionMessageChunk)(u))
	default:
		s.unknown(update)
	}
}

// unknown shows an update of a kind that this package has no case for, which package acp may know.
func (s *State) unknown(update acp.SessionUpdate) {
	var tagged struct {
		SessionUpdate string `json:"sessionUpdate"`
	}
	raw, err := update.MarshalJSON()
	if err == nil && json.Unmarshal(raw, &tagged) == nil {
		s.add(&Unknown{tagged.SessionUpdate, raw})
	}
}

// add appends an item, and drops old ones if there are then too many.
func (s *State) add(variant ItemVariant) int { return s.addTo(s.turn(), variant) }

func (s *State) addTo(turn int, variant ItemVariant) int {
	item := &Item{Index: s.now.items.next, Turn: turn, Version: s.version, Variant: variant, epoch: s.epoch,
		size: variant.bytes()}
	s.now.items.add(item)
	s.size += item.size
	s.trim()
	return item.Index
}

// entity is add for items that end the message that chunks without an id continue.
func (s *State) entity(variant ItemVariant) int {
	s.open = -1
	return s.add(variant)
}

// edit returns the item at an index for a change; done must be called after it.
func (s *State) edit(index int) *Item {
	item := s.now.items.get(index)
	if item.epoch != s.epoch {
		c := *item
		c.Variant, c.epoch = c.Variant.clone(), s.epoch
		item = &c
		s.now.items.set(index, item, s.epoch)
	}
	item.Version = s.version
	return item
}

// edited records the size of an item after edit.
func (s *State) edited(item *Item) {
	size := item.Variant.bytes()
	s.size += size - item.size
	item.size = size
	s.trim()
}

// trim drops the oldest items while the limits are exceeded.
func (s *State) trim() {
	items := &s.now.items
	for items.next-items.first > 1 && (items.next-items.first > s.maxItems || s.size > s.maxBytes) {
		item := items.get(items.first)
		s.forget(item)
		s.size -= item.size
		items.drop(s.epoch)
	}
	turns := &s.now.turns
	for turns.next-turns.first > 1 && turns.get(turns.first).Ended && turns.get(turns.first+1).First <= items.first {
		turns.drop(s.epoch)
	}
}

// forget removes an item from the indexes.
func (s *State) forget(item *Item) {
	if s.open == item.Index {
		s.open = -1
	}
	switch v := item.Variant.(type) {
	case *Message:
		unlist(s.messages, messageKey{v.Role, v.ID}, item.Index)
	case *ToolCall:
		unlist(s.calls, v.Call.ToolCallID, item.Index)
		s.closeCall(item, v.Call.ToolCallID)
	case *Compaction:
		unlist(s.compactions, v.ID, item.Index)
	case *Subagent:
		unlist(s.subagents, v.SessionID, item.Index)
	case *SessionMessage:
		unlist(s.sessionMessages, v.ID, item.Index)
	}
}

func unlist[K comparable](index map[K]int, key K, i int) {
	if at, ok := index[key]; ok && at == i {
		delete(index, key)
	}
}

// chunk adds a piece to a message.
func (s *State) chunk(role Role, c *acp.ContentChunk) {
	if role == User && s.echoed(c) {
		return
	}
	s.say(role, c)
}

// say is chunk for text that is not an echo of a prompt.
func (s *State) say(role Role, c *acp.ContentChunk) {
	id, named := c.MessageID.Get()
	index := s.open
	if named {
		at, ok := s.messages[messageKey{role, id}]
		if !ok {
			at = -1
		}
		index = at
	} else if index >= 0 && s.now.items.get(index).Variant.(*Message).Role != role {
		index = -1
	}
	if index < 0 {
		if role == User && len(s.running) == 0 {
			s.replayTurn()
		}
		index = s.add(&Message{Role: role, ID: id})
		if named {
			s.messages[messageKey{role, id}] = index
		}
	}
	s.open = index
	item := s.edit(index)
	m := item.Variant.(*Message)
	m.add(c.Content, s.maxMessage)
	patchMeta(&m.Meta, c.Meta)
	s.edited(item)
}

// toolCall folds a tool_call. A second one with the id of a call that is in the same turn, or has not ended, updates
// that call; any other is a new call.
func (s *State) toolCall(call *acp.ToolCall) {
	index, known := s.calls[call.ToolCallID]
	if known {
		item := s.now.items.get(index)
		c := item.Variant.(*ToolCall)
		known = item.Turn == s.turn() || !c.finished() && !c.Unfinished
	}
	if !known {
		c := &ToolCall{Call: *call, Announced: true}
		c.measure()
		s.begun(s.entity(c))
		return
	}
	item := s.edit(index)
	c := item.Variant.(*ToolCall)
	c.Announced = true
	u := turns.Whole(*call)
	s.apply(item, &u)
}

// begun records a tool call that was added.
func (s *State) begun(index int) {
	item := s.now.items.get(index)
	c := item.Variant.(*ToolCall)
	s.calls[c.Call.ToolCallID] = index
	if !c.finished() {
		s.goesOn(item, c.Call.ToolCallID)
	}
}

// goesOn records that a tool call has not ended.
func (s *State) goesOn(item *Item, id acp.ToolCallID) {
	calls := s.opened[item.Turn]
	if calls == nil {
		calls = map[acp.ToolCallID]int{}
		s.opened[item.Turn] = calls
	}
	calls[id] = item.Index
}

// closeCall records that a tool call has ended, or was dropped.
func (s *State) closeCall(item *Item, id acp.ToolCallID) {
	calls := s.opened[item.Turn]
	if unlist(calls, id, item.Index); len(calls) == 0 {
		delete(s.opened, item.Turn)
	}
}

// toolCallUpdate folds an update, or a request for permission, about a tool call into the conversation, and returns its
// index.
func (s *State) toolCallUpdate(u *acp.ToolCallUpdate, asks bool) int {
	index, known := s.calls[u.ToolCallID]
	if known && asks {
		// A call that needs permission has not ended, so this is a new call that reuses the id of an earlier one.
		item := s.now.items.get(index)
		known = item.Turn == s.turn() || !item.Variant.(*ToolCall).finished()
	}
	if !known {
		c := &ToolCall{Call: acp.ToolCall{ToolCallID: u.ToolCallID}}
		c.Call.Apply(*u)
		c.measure()
		index = s.entity(c)
		s.begun(index)
		return index
	}
	s.apply(s.edit(index), u)
	return index
}

// apply updates a tool call that is being edited.
func (s *State) apply(item *Item, u *acp.ToolCallUpdate) {
	c := item.Variant.(*ToolCall)
	ended := c.finished()
	c.Call.Apply(*u)
	if u.Content.Present() || u.Locations.Present() {
		c.measure()
	}
	if c.finished() {
		c.Cancelled, c.Unfinished = false, false
		s.closeCall(item, u.ToolCallID)
	} else if ended && s.inProgress(item.Turn) {
		s.goesOn(item, u.ToolCallID)
	}
	s.edited(item)
}

func (s *State) plan(plan *acp.Plan) {
	s.open = -1
	s.now.Plan = acp.Some(*plan)
	s.now.Versions.Plan = s.version
}

// maxPlans is how many plans with an id are kept. No real agent has as many.
const maxPlans = 100

func (s *State) planUpdate(u *acp.PlanUpdate) {
	s.open = -1
	id := planID(u.Plan)
	plan := Plan{ID: id, Content: u.Plan, Meta: u.Meta}
	plans := slices.Clone(s.now.Plans)
	if i := slices.IndexFunc(plans, func(p Plan) bool { return p.ID == id }); i >= 0 {
		plans[i] = plan
	} else {
		plans = append(plans, plan)
	}
	s.now.Plans = plans[max(0, len(plans)-maxPlans):]
	s.now.Versions.Plans = s.version
}

func (s *State) planRemoved(id acp.PlanID) {
	s.open = -1
	s.now.Plans = slices.DeleteFunc(slices.Clone(s.now.Plans), func(p Plan) bool { return p.ID == id })
	s.now.Versions.Plans = s.version
}

// mode records the current mode, even if there is no list of modes.
func (s *State) mode(id acp.SessionModeID) {
	modes := s.now.Modes.Value()
	modes.CurrentModeID = id
	s.now.Modes = acp.Some(modes)
	s.now.Versions.Modes = s.version
}

func (s *State) info(u *acp.SessionInfoUpdate) {
	s.now.Versions.Info = s.version
	patch(&s.now.Title, u.Title)
	patch(&s.now.UpdatedAt, u.UpdatedAt)
	patchMeta(&s.now.Meta, u.Meta)
}

// patch sets the members that are not absent; null clears.
func patch[T any](to *acp.Opt[T], from acp.Opt[T]) {
	if !from.IsZero() {
		*to = from
	}
}

func patchMeta(to *acp.Meta, from acp.Meta) {
	if from != nil {
		*to = from
	}
}

// usage stores a usage update. A cost is that of the whole session, and stays if it is left out.
func (s *State) usage(u *acp.UsageUpdate) {
	usage := *u
	if usage.Cost.IsZero() {
		usage.Cost = s.now.Usage.Value().Cost
	}
	s.now.Usage = acp.Some(usage)
	s.now.Versions.Usage = s.version
}

// upsert returns the item of an entity for a change, creating it with variant if there is none.
func upsert[K comparable](s *State, index map[K]int, key K, variant func() ItemVariant) *Item {
	i, ok := index[key]
	if !ok {
		i = s.entity(variant())
		index[key] = i
	}
	return s.edit(i)
}

func (s *State) compaction(u *acp.CompactionUpdate) {
	item := upsert(s, s.compactions, u.CompactionID, func() ItemVariant { return &Compaction{ID: u.CompactionID} })
	c := item.Variant.(*Compaction)
	c.Status = u.Status
	if !u.Summary.IsZero() {
		c.Summary.replace(u.Summary.Value(), s.maxMessage)
	}
	patch(&c.Error, u.Error)
	patchMeta(&c.Meta, u.Meta)
	s.edited(item)
}

func (s *State) summary(u *acp.CompactionSummaryChunk) {
	item := upsert(s, s.compactions, u.CompactionID, func() ItemVariant {
		return &Compaction{ID: u.CompactionID, Status: acp.CompactionStatusInProgress}
	})
	item.Variant.(*Compaction).Summary.add(u.Content, s.maxMessage)
	s.edited(item)
}

func (s *State) subagent(u *acp.SubagentUpdate) {
	item := upsert(s, s.subagents, u.SessionID, func() ItemVariant {
		return &Subagent{SessionID: u.SessionID}
	})
	a := item.Variant.(*Subagent)
	patch(&a.Title, u.Title)
	patch(&a.Description, u.Description)
	patch(&a.Capabilities, u.Capabilities)
	patch(&a.State, u.State)
	patch(&a.Cwd, u.Cwd)
	patch(&a.AdditionalDirectories, u.AdditionalDirectories)
	patchMeta(&a.Meta, u.Meta)
	s.edited(item)
}

func (s *State) sessionMessage(u *acp.SessionMessage) {
	item := upsert(s, s.sessionMessages, u.MessageID, func() ItemVariant { return &SessionMessage{ID: u.MessageID} })
	m := item.Variant.(*SessionMessage)
	patch(&m.Sender, u.SenderSessionID)
	patch(&m.Recipient, u.RecipientSessionID)
	patch(&m.SenderMessage, u.SenderMessageID)
	patch(&m.RecipientMessage, u.RecipientMessageID)
	if !u.Content.IsZero() {
		m.replace(u.Content.Value(), s.maxMessage)
	}
	patchMeta(&m.Meta, u.Meta)
	s.edited(item)
}

func (s *State) sessionMessageChunk(u *acp.SessionMessageChunk) {
	item := upsert(s, s.sessionMessages, u.MessageID, func() ItemVariant { return &SessionMessage{ID: u.MessageID} })
	m := item.Variant.(*SessionMessage)
	m.add(u.Content, s.maxMessage)
	patchMeta(&m.Meta, u.Meta)
	s.edited(item)
}

// ToolCall returns a tool call as currently known, and whether there is one; if several have the id, it returns the
// last.
func (s *State) ToolCall(id acp.ToolCallID) (acp.ToolCall, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	index, ok := s.calls[id]
	if !ok {
		return acp.ToolCall{}, false
	}
	return s.now.items.get(index).Variant.(*ToolCall).Call, true
}

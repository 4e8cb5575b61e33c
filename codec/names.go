package codec

import (
	"sync"
	"sync/atomic"
)

// Name is an enum of strings that has a list of its values. The empty string, unless it is listed, means that nothing
// is set.
type Name interface {
	~string
	Known() bool
}

// WasRead reports whether this process has read v although its enum does not list it. A newer peer may know more names,
// and these can then be sent on. A process remembers 4,096 such names of up to 64 bytes each. WasRead is safe for
// concurrent use.
func WasRead[T Name](v T) bool { return unlisted.has(v) }

var unlisted names

// names is a bounded set of names of any type.
type names struct {
	set   sync.Map // the names, as values of their types
	count atomic.Int32
}

const maxNames = 4096

func (n *names) has(name any) bool {
	_, ok := n.set.Load(name)
	return ok
}

func (n *names) add(name any, length int) {
	if length > maxInterned || n.count.Load() >= maxNames || n.has(name) {
		return
	}
	if _, there := n.set.LoadOrStore(name, nil); !there {
		n.count.Add(1)
	}
}

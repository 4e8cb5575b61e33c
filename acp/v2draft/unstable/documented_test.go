package unstable

// This file owns the messages of the protocol's documents on version 2, which unstable features do not change.

import "testing"

func TestDocumentedMessages(t *testing.T) { generated().Documented(t, 2) }

package v2draft

// This file owns the messages of the protocol's documents on version 2.

import "testing"

func TestDocumentedMessages(t *testing.T) { generated().Documented(t, 2) }

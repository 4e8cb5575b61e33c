//go:build race

package codec_test

import "testing"

func skipUnderRace(t *testing.T) { t.Skip("the race detector allocates") }
